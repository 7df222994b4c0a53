/* SPDX-License-Identifier: Apache-2.0 */
/* Owns snippets. */
#include "agents/snippet.h"

#include <stdlib.h>
#include <string.h>

#include "agents/harness.h"
#include "base/quote.h"

void snippet_env(const char *box, struct words *out)
{
    static const char *const names[] = {"HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", NULL};
    for (const char *const *n = names; *n; n++)
        if (getenv(*n))
            words_set_env(out, *n, getenv(*n));
    words_set_env(out, "PALE_MCP_BOX", box);
}

int snippet_make(const char *harness, const char *pale, const char *box, struct buf *out, const char **ret_place, struct pale_err *e)
{
    const struct harness *h = harness_find(harness);
    own_words env = {0};
    char shown[80];
    if (!h) {
        own_buf names = {0};
        buf_init(&names, 1024);
        for (const struct harness *const *at = harness_all; *at; at++)
            buf_addf(&names, "%s%s", names.len ? ", " : "", (*at)->name);
        return err_set(e, PALE_NOT_FOUND, "there is no snippet for %s; there is for %s",
                       quote_into(shown, sizeof(shown), harness, strlen(harness)), buf_text(&names));
    }
    snippet_env(box, &env);
    struct wiring_facts f = {.pale = pale, .box_id = box, .mcp_env = &env};
    h->config(&f, out);
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        buf_add_text(out, "\n");
    *ret_place = h->config_place;
    return out->failed || env.failed ? err_nomem(e) : 0;
}
