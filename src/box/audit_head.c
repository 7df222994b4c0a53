/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the line that says how far an audit log has come. */
#include "box/audit_head.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define DIGITS 20u
#define DIGEST_AT (DIGITS + 1)
#define SHORT_BYTES (DIGEST_AT + SHA256_HEX) /* number, blank, digest, newline */
#define GAPS_AT SHORT_BYTES
#define RUNNING_AT (GAPS_AT + DIGITS + 1)

static bool read_number(const char *text, uint64_t *ret)
{
    char word[DIGITS + 1];
    memcpy(word, text, DIGITS);
    word[DIGITS] = 0;
    if (strspn(word, "0123456789") != DIGITS)
        return false;
    const char *digits = word + strspn(word, "0");
    return number_u64(*digits ? digits : "0", UINT64_MAX, ret);
}

static bool is_zero(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i])
            return false;
    return true;
}

enum audit_head_state audit_head_parse(const char *text, size_t n, struct audit_head_line *ret)
{
    struct audit_head_line l = {0};
    if (is_zero(text, n))
        return AUDIT_HEAD_BLANK;
    if (n < SHORT_BYTES || n > AUDIT_HEAD_BYTES || !read_number(text, &l.seq) || text[DIGITS] != ' ')
        return AUDIT_HEAD_BAD;
    memcpy(l.digest, text + DIGEST_AT, SHA256_HEX - 1);
    if (strspn(l.digest, "0123456789abcdef") != SHA256_HEX - 1)
        return AUDIT_HEAD_BAD;
    bool is_short = text[SHORT_BYTES - 1] == '\n' && is_zero(text + SHORT_BYTES, n - SHORT_BYTES);
    if (!is_short) {
        if (n != AUDIT_HEAD_BYTES || text[SHORT_BYTES - 1] != ' ' || !read_number(text + GAPS_AT, &l.gaps) || text[RUNNING_AT - 1] != ' ' ||
            (text[RUNNING_AT] != '0' && text[RUNNING_AT] != '1') || text[RUNNING_AT + 1] != '\n')
            return AUDIT_HEAD_BAD;
        l.running = text[RUNNING_AT] == '1';
    }
    *ret = l;
    return AUDIT_HEAD_GOOD;
}

void audit_head_write(const struct audit_head_line *l, char ret[AUDIT_HEAD_BYTES + 1])
{
    snprintf(ret, AUDIT_HEAD_BYTES + 1, "%020llu %s %020llu %d\n", (unsigned long long)l->seq, l->digest, (unsigned long long)l->gaps,
             l->running);
}
