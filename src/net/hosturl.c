/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of where a daemon is. */
#include "net/hosturl.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "net/hostname.h"

#define FORMS "write unix:///PATH/TO/SOCKET, http://127.0.0.1:PORT or https://NAME[:PORT]"

static int wrong(const char *text, const char *why, struct pale_err *e)
{
    char shown[200];
    return err_set(e, PALE_BAD_INPUT, "%s: %s", quote_into(shown, sizeof(shown), text, strlen(text)), why);
}

static int parse_unix(const char *text, const char *path, struct hosturl *ret, struct pale_err *e)
{
    if (path[0] != '/')
        return wrong(text, "a socket is named by its whole path: unix:///run/…", e);
    if (strlen(path) >= sizeof(ret->path))
        return wrong(text, "a socket's path has at most 107 bytes", e);
    snprintf(ret->path, sizeof(ret->path), "%s", path);
    snprintf(ret->host, sizeof(ret->host), "localhost");
    return 0;
}

/* A name in its canonical form, or an address. */
static bool take_name(const char *p, size_t n, bool bracketed, struct hosturl *ret)
{
    struct hostname name;
    if (address_parse(p, n, &ret->address)) {
        address_text(&ret->address, ret->name);
        return bracketed == (ret->address.family == ADDRESS_V6);
    }
    if (bracketed || hostname_canon(p, n, true, &name) != HOSTNAME_GOOD)
        return false;
    memcpy(ret->name, name.text, name.len + 1);
    return true;
}

/* Splits NAME[:PORT] or [ADDRESS][:PORT]. */
static bool split(const char *rest, struct hosturl *ret)
{
    const char *end = rest[0] == '[' ? strchr(rest, ']') : NULL, *colon = end ? end + 1 : strchr(rest, ':');
    uint64_t port = ret->port;
    size_t n = end ? (size_t)(end - rest) - 1 : colon ? (size_t)(colon - rest) : strlen(rest);
    if ((rest[0] == '[' && !end) || !take_name(end ? rest + 1 : rest, n, end, ret))
        return false;
    if (colon && *colon && (*colon != ':' || !number_u64(colon + 1, UINT16_MAX, &port) || port == 0))
        return false;
    ret->port = (uint16_t)port;
    return true;
}

static bool is_loopback(const struct hosturl *u)
{
    static const struct address_range four = {{ADDRESS_V4, {127}}, 8}, six = {{ADDRESS_V6, {[15] = 1}}, 128};
    if (u->address.family)
        return address_is_in(&u->address, &four) || address_is_in(&u->address, &six);
    return strcmp(u->name, "localhost") == 0;
}

static int parse_net(const char *text, const char *rest, bool secure, struct hosturl *ret, struct pale_err *e)
{
    char bare[HOSTURL_NAME_MAX + 32];
    size_t n = strlen(rest);
    if (n > 0 && rest[n - 1] == '/')
        n--;
    if (n >= sizeof(bare))
        return wrong(text, "the name is too long", e);
    memcpy(bare, rest, n);
    bare[n] = 0;
    ret->port = secure ? 443 : HOSTURL_PORT;
    if (!split(bare, ret))
        return wrong(text, "no host and port can be read from it; " FORMS, e);
    if (!secure && !is_loopback(ret))
        return err_set(e, PALE_DENIED,
                       "http://%s would send the token in the clear; use https://, or ssh -L %u:127.0.0.1:%u %s and http://127.0.0.1:%u",
                       bare, ret->port, ret->port, ret->name, ret->port);
    bool six = ret->address.family == ADDRESS_V6;
    if (secure && ret->port == 443)
        snprintf(ret->host, sizeof(ret->host), "%s%s%s", six ? "[" : "", ret->name, six ? "]" : "");
    else
        snprintf(ret->host, sizeof(ret->host), "%s%s%s:%u", six ? "[" : "", ret->name, six ? "]" : "", ret->port);
    return 0;
}

int hosturl_parse(const char *text, struct hosturl *ret, struct pale_err *e)
{
    static const struct {
        const char *scheme;
        enum hosturl_kind kind;
    } rows[] = {{"unix://", HOSTURL_UNIX}, {"http://", HOSTURL_HTTP}, {"https://", HOSTURL_HTTPS}};
    struct hosturl u = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t n = strlen(rows[i].scheme);
        if (strncmp(text, rows[i].scheme, n) != 0)
            continue;
        u.kind = rows[i].kind;
        int r = u.kind == HOSTURL_UNIX ? parse_unix(text, text + n, &u, e) : parse_net(text, text + n, u.kind == HOSTURL_HTTPS, &u, e);
        if (r == 0)
            *ret = u;
        return r;
    }
    return wrong(text, "this says no daemon; " FORMS, e);
}
