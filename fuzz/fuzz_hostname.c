/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: names of hosts and patterns for them, any bytes. The first byte says whether one label will
 * do, the second how long the name is; the rest is the pattern. */
#include <arpa/inet.h>
#include <assert.h>

#include "input.h"
#include "net/address.h"
#include "net/dnswire.h"
#include "net/hostname.h"

/* What a name of ours means to readers that are not ours. */
static void check_name(const struct hostname *h, size_t from)
{
    struct in_addr four;
    struct address a;
    struct dns_name wire, upper;
    struct hostname again;
    assert(h->len > 0 && h->len <= DOMAIN_NAME_MAX && h->len <= from && strlen(h->text) == h->len);
    assert(strspn(h->text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == h->len && !strstr(h->text, ".."));
    assert(!inet_aton(h->text, &four) && !address_parse(h->text, h->len, &a));
    dnswire_from_host(h, &wire);
    assert(wire.len == h->len + 2 && dnswire_host(&wire, &again) == HOSTNAME_GOOD && strcmp(again.text, h->text) == 0);
    upper = wire;
    for (size_t i = 0; i < upper.len; i++)
        if (upper.byte[i] >= 'a' && upper.byte[i] <= 'z')
            upper.byte[i] = (uint8_t)(upper.byte[i] - 32);
    assert(dnswire_same_name(&wire, &upper) && dnswire_host(&upper, &again) == HOSTNAME_GOOD && strcmp(again.text, h->text) == 0);
}

/* The same as hostname_covers says of a pattern and a name, by another way: label by label from the end. */
static bool is_beneath(const char *name, const char *top)
{
    size_t n = strlen(name), m = strlen(top);
    while (n > 0 && m > 0 && name[n - 1] == top[m - 1]) {
        n--;
        m--;
    }
    return m == 0 && n > 1 && name[n - 1] == '.';
}

static void check_cover(const struct hostname *pattern, const struct hostname *name)
{
    bool star = strncmp(pattern->text, "*.", 2) == 0;
    bool want =
        strcmp(pattern->text, "*") == 0 || (star ? is_beneath(name->text, pattern->text + 2) : strcmp(pattern->text, name->text) == 0);
    assert(hostname_covers(pattern->text, name->text) == want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    bool single = input_byte(&in) & 1;
    size_t n, m;
    const char *p = (const char *)input_bytes(&in, input_byte(&in), &n), *s = (const char *)input_bytes(&in, in.left, &m);
    struct hostname name, pattern, again;
    enum hostname_trouble t = hostname_canon(p, n, single, &name), u = hostname_pattern(s, m, single, &pattern);
    assert(hostname_trouble_text(t) && hostname_trouble_text(u));
    if (u == HOSTNAME_GOOD) {
        assert(hostname_pattern(pattern.text, pattern.len, single, &again) == HOSTNAME_GOOD && strcmp(again.text, pattern.text) == 0);
        assert(hostname_covers(pattern.text, pattern.text) && hostname_covers("*", pattern.text));
        bool plain = hostname_canon(s, m, single, &again) == HOSTNAME_GOOD;
        assert(plain == (pattern.text[0] != '*'));
    }
    if (t != HOSTNAME_GOOD)
        return 0;
    check_name(&name, n);
    assert(hostname_canon(name.text, name.len, single, &again) == HOSTNAME_GOOD && strcmp(again.text, name.text) == 0);
    assert(hostname_pattern(p, n, single, &again) == HOSTNAME_GOOD && strcmp(again.text, name.text) == 0);
    if (u == HOSTNAME_GOOD)
        check_cover(&pattern, &name);
    return 0;
}
