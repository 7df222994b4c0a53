/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the differences between the eras. */
#include "mcp/era.h"

#include <string.h>

#include "base/base64.h"

#define META "io.modelcontextprotocol/"
#define CACHE_MS 60000 /* what is offered changes with the daemon only */
#define HEADER_MAX 1024u

static const char *const legacy_versions[] = {MCP_LEGACY_VERSION, "2025-06-18", "2025-03-26"};

static bool is_legacy(const char *version)
{
    for (size_t i = 0; i < sizeof(legacy_versions) / sizeof(legacy_versions[0]); i++)
        if (strcmp(version, legacy_versions[i]) == 0)
            return true;
    return false;
}

/* --- checks --- */

static bool check_version(struct mcp_request *r, const char *version)
{
    if (strcmp(version, MCP_MODERN_VERSION) == 0)
        return true;
    mcp_fail(r, 400, RPC_BAD_VERSION, json_pack("{s:[s], s:s}", "supported", MCP_MODERN_VERSION, "requested", version),
             "this version of the protocol is not spoken here");
    return false;
}

static bool check_head(struct mcp_request *r, const char *head, const char *body, const char *text)
{
    if (head && body && strcmp(head, body) == 0)
        return true;
    mcp_fail(r, 400, RPC_HEADER_MISMATCH, NULL, text);
    return false;
}

static bool check_modern(struct mcp_request *r, const struct mcp_heads *heads)
{
    const json_t *meta = json_object_get(r->message.params, "_meta"), *version = json_object_get(meta, META "protocolVersion"),
                 *capabilities = json_object_get(meta, META "clientCapabilities");
    r->era = MCP_MODERN;
    if (!json_is_string(version) || !json_is_object(capabilities)) {
        mcp_fail(r, 400, RPC_BAD_PARAMS, NULL, "params._meta needs " META "protocolVersion and " META "clientCapabilities");
        return false;
    }
    r->capabilities = capabilities;
    if (heads && !check_head(r, heads->version, json_string_value(version),
                             "the header MCP-Protocol-Version and the version in _meta must be the same"))
        return false;
    return check_version(r, json_string_value(version)) &&
           (!heads || check_head(r, heads->method, r->message.method, "the header Mcp-Method must be the request's method"));
}

bool era_check(struct mcp_request *r, const struct mcp_heads *heads)
{
    const json_t *version = json_object_get(json_object_get(r->message.params, "_meta"), META "protocolVersion");
    const char *head = heads ? heads->version : NULL;
    bool opens = strcmp(r->message.method, "initialize") == 0, discovers = strcmp(r->message.method, "server/discover") == 0;
    /* initialize opens the legacy era, unless the request says itself that it is modern: there it is no method. */
    if (version || (!opens && (discovers || (head && !is_legacy(head)))))
        return check_modern(r, heads);
    r->era = MCP_LEGACY;
    r->goes_on = !r->client->lasts;
    return true;
}

/* A header's value may be written as =?base64?…?=, because names need not be ASCII. */
static const char *decoded(const char *head, struct buf *mem)
{
    static const char open[] = "=?base64?", close[] = "?=";
    size_t n = head ? strlen(head) : 0, edges = sizeof(open) - 1 + sizeof(close) - 1;
    if (n < edges || strncmp(head, open, sizeof(open) - 1) != 0 || strcmp(head + n - 2, close) != 0)
        return head;
    own_mem char *coded = strndup(head + sizeof(open) - 1, n - edges);
    bool good = coded && base64_read(coded, mem) && !(mem->len > 0 && memchr(mem->data, 0, mem->len));
    return good ? buf_text(mem) : NULL;
}

bool era_check_name(struct mcp_request *r, const struct mcp_heads *heads)
{
    own_buf mem = {0};
    if (!heads || r->era != MCP_MODERN || !r->method->named_by)
        return true;
    buf_init(&mem, HEADER_MAX);
    return check_head(r, decoded(heads->name, &mem), mcp_param_text(r, r->method->named_by),
                      "the header Mcp-Name must be what the request names");
}

/* --- results --- */

static json_t *server_info(const struct mcp_request *r)
{
    return json_pack("{s:s, s:s, s:s}", "name", r->offer->name, "title", r->offer->title, "version", PALE_VERSION);
}

json_t *era_dress(const struct mcp_request *r, json_t *result)
{
    json_t *meta = json_object_get(result, "_meta");
    if (!json_object_get(result, "resultType"))
        json_object_set_new(result, "resultType", json_string("complete"));
    if (!meta && json_object_set_new(result, "_meta", json_object()) == 0)
        meta = json_object_get(result, "_meta");
    json_object_set_new(meta, META "serverInfo", server_info(r));
    if (r->method && r->method->cached && !json_object_get(result, "ttlMs")) {
        json_object_set_new(result, "ttlMs", json_integer(CACHE_MS));
        json_object_set_new(result, "cacheScope", json_string("private"));
    }
    return result;
}

static json_t *capabilities(const struct mcp_request *r)
{
    return json_loads(r->offer->capabilities, 0, NULL);
}

/* Of what a client says that it can do, what it may ever be asked for; it stays as long as the connection. */
static json_t *kept(const json_t *can)
{
    static const char *const names[] = {"elicitation", "sampling", "roots"};
    json_t *ret = json_object();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (json_is_object(json_object_get(can, names[i])))
            json_object_set_new(ret, names[i], json_object());
    return ret;
}

void era_initialize(struct mcp_request *r)
{
    const char *wanted = mcp_param_text(r, "protocolVersion");
    const json_t *can = json_object_get(r->message.params, "capabilities");
    if (!wanted || !json_is_object(can) || !json_is_object(json_object_get(r->message.params, "clientInfo")))
        return mcp_error(r, RPC_BAD_PARAMS, "initialize needs protocolVersion, capabilities and clientInfo");
    if (r->client->lasts) {
        json_decref(r->client->capabilities);
        r->client->capabilities = kept(can);
    }
    mcp_result(r, json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", is_legacy(wanted) ? wanted : MCP_LEGACY_VERSION, "capabilities",
                            capabilities(r), "serverInfo", server_info(r), "instructions", r->offer->instructions));
}

void era_discover(struct mcp_request *r)
{
    mcp_result(r, json_pack("{s:[s], s:o, s:s}", "supportedVersions", MCP_MODERN_VERSION, "capabilities", capabilities(r), "instructions",
                            r->offer->instructions));
}
