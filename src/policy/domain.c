/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a policy says about host names that are none. Pure. */
#include "policy/domain.h"

#include <string.h>

#include "base/quote.h"
#include "net/hostname.h"

int domain_parse(const char *s, size_t len, bool pattern, char ret[DOMAIN_NAME_MAX + 1], struct pale_err *e)
{
    struct hostname name;
    char shown[200];
    enum hostname_trouble t = (pattern ? hostname_pattern : hostname_canon)(s, len, true, &name);
    /* What is written in a policy reads back as it was written, so that the dot, which would vanish, is refused. */
    const char *why = t != HOSTNAME_GOOD ? hostname_trouble_text(t) : name.len != len ? "ends with a dot; write it without" : NULL;
    if (why)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" %s", quote_into(shown, sizeof(shown), s, len), why);
    memcpy(ret, name.text, name.len + 1);
    return 0;
}
