/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of search patterns. Pure. */
#include "init/pattern.h"

#include <string.h>

struct reading {
    const char *at;
    struct pattern *p;
    size_t len; /* of the regex so far */
    char grown[PATTERN_BYTES_MAX + 1];
    size_t grown_len, last; /* last: bytes of the run's last character */
    int depth;              /* of groups */
    bool either;            /* there is a | outside of all groups, so nothing is needed by every match */
    bool meta;              /* something does not stand for itself */
};

static void put(struct reading *r, const char *s, size_t n)
{
    /* The regex has room for six bytes for each of the pattern's; nothing becomes more. */
    memcpy(r->p->regex + r->len, s, n);
    r->len += n;
}

static void put_text(struct reading *r, const char *s)
{
    put(r, s, strlen(s));
}

/* --- the literal --- */

static void end_run(struct reading *r)
{
    if (r->grown_len > r->p->literal_len) {
        memcpy(r->p->literal, r->grown, r->grown_len);
        r->p->literal_len = r->grown_len;
    }
    r->grown_len = r->last = 0;
}

static void end_plain(struct reading *r)
{
    r->meta = true;
    end_run(r);
}

/* A character that stands for itself. What other case a character beyond ASCII has is the library's to know. */
static void grow(struct reading *r, const char *s, size_t n)
{
    if (r->depth > 0 || (r->p->ignore_case && (s[0] & 0x80)))
        return end_plain(r);
    for (size_t i = 0; i < n; i++) {
        bool capital = r->p->ignore_case && s[i] >= 'A' && s[i] <= 'Z';
        r->grown[r->grown_len++] = capital ? (char)(s[i] + ('a' - 'A')) : s[i];
    }
    r->last = n;
}

/* --- characters --- */

static size_t character_length(const char *s)
{
    size_t n = 1;
    if ((unsigned char)*s >= 0xc0)
        while (n < 4 && ((unsigned char)s[n] & 0xc0) == 0x80)
            n++;
    return n;
}

static void put_character(struct reading *r, const char *s)
{
    size_t n = character_length(s);
    if (strchr("^.[$()|*+?{}\\", *s))
        put(r, "\\", 1);
    put(r, s, n);
    grow(r, s, n);
}

static int one_line(struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "the pattern has a line end in it; lines are searched one by one");
}

static int unknown_escape(char c, struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT,
                   "the pattern has \\%c, which is not known here; \\d \\w \\s \\b and their capitals, \\t and \\x41 are, as in POSIX "
                   "extended expressions",
                   c);
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* What a letter after a backslash stands for, if that is one character: \t, \x41. 0 if it is not. */
static char escaped(struct reading *r, char c)
{
    static const char names[] = "trfvae", values[] = "\t\r\f\v\a\033";
    const char *found = strchr(names, c);
    if (c && found)
        return values[found - names];
    if (c != 'x' || hex(r->at[0]) < 0 || hex(r->at[1]) < 0)
        return 0;
    int v = hex(r->at[0]) * 16 + hex(r->at[1]);
    if (v == 0 || v == '\n' || v > 127)
        return 0;
    r->at += 2;
    return (char)v;
}

static bool is_letter(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9');
}

static int take_escape(struct reading *r, struct pale_err *e)
{
    char c = *++r->at;
    if (!c)
        return err_set(e, PALE_BAD_INPUT, "the pattern ends in a backslash");
    r->at++;
    if (c == 'n')
        return one_line(e);
    if (c == 'd' || c == 'D') {
        put_text(r, c == 'd' ? "[0-9]" : "[^0-9]");
        return end_plain(r), 0;
    }
    if (strchr("wWsSbB<>", c)) {
        put(r, (char[]){'\\', c}, 2);
        return end_plain(r), 0;
    }
    char one[2] = {is_letter(c) ? escaped(r, c) : c, 0};
    if (!one[0])
        return unknown_escape(c, e);
    if (!(c & 0x80))
        return put_character(r, one), 0;
    r->at--;
    put_character(r, r->at);
    r->at += character_length(r->at);
    return 0;
}

/* --- classes --- */

/* What a class has, in an order in which POSIX reads it as it is meant: ] first, - last, and no backslash. */
struct class
{
    char body[6 * PATTERN_BYTES_MAX];
    size_t len;
    bool negative, closing, opening, caret, dash;
};

static int no_range(struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "the pattern has a range in [] that ends in something special");
}

static int no_class_end(struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "the pattern has a [ without its ]");
}

/* One member at r->at. ret_one: its first byte if it is a single character, else 0; ret: where it stands and how long it is. */
static int take_member(struct reading *r, char *ret_one, const char **ret, size_t *ret_n, struct pale_err *e)
{
    static const char *const sets[][2] = {{"d", "0-9"}, {"w", "[:alnum:]_"}, {"s", "[:space:]"}};
    static char one; /* of an escape */
    char c = *r->at;
    if (c == '[' && strchr(":.=", r->at[1]) && r->at[1]) {
        char end[3] = {r->at[1], ']', 0};
        const char *stop = strstr(r->at + 2, end);
        if (!stop)
            return no_class_end(e);
        *ret = r->at;
        *ret_n = (size_t)(stop + 2 - r->at);
        r->at = stop + 2;
        return *ret_one = 0, 0;
    }
    if (c != '\\' || (r->at[1] & 0x80)) {
        *ret_n = character_length(r->at);
        *ret = r->at;
        *ret_one = c;
        r->at += *ret_n;
        return c == '\n' ? one_line(e) : 0;
    }
    c = r->at[1];
    if (!c)
        return no_class_end(e);
    r->at += 2;
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        if (c == sets[i][0][0]) {
            *ret = sets[i][1];
            *ret_n = strlen(*ret);
            return *ret_one = 0, 0;
        }
    if (c == 'n')
        return *ret_n = 0, *ret = "", *ret_one = 0, 0; /* a line has none */
    one = is_letter(c) ? escaped(r, c) : c;
    if (!one)
        return unknown_escape(c, e);
    *ret = &one;
    *ret_n = 1;
    return *ret_one = one, 0;
}

static void add_member(struct class *k, const char *s, size_t n)
{
    memcpy(k->body + k->len, s, n);
    k->len += n;
}

/* A member, or a range of them. */
static int add_members(struct reading *r, struct class *k, struct pale_err *e)
{
    char low, high;
    char first[8];
    const char *p;
    size_t n, low_n;
    int res = take_member(r, &low, &p, &n, e);
    if (res < 0)
        return res;
    bool range = low && r->at[0] == '-' && r->at[1] && r->at[1] != ']';
    bool special = low && strchr("]^-[\\", low);
    if (!range) {
        k->closing |= low == ']';
        k->caret |= low == '^';
        k->dash |= low == '-';
        k->opening |= low == '[';
        if (!special || low == '\\')
            add_member(k, p, n);
        return 0;
    }
    memcpy(first, p, low_n = n);
    r->at++;
    res = take_member(r, &high, &p, &n, e);
    if (res < 0)
        return res;
    if (special || !high || strchr("]^-[\\", high))
        return no_range(e);
    add_member(k, first, low_n);
    add_member(k, "-", 1);
    add_member(k, p, n);
    return 0;
}

static void put_class(struct reading *r, const struct class *k)
{
    if (!k->negative && k->caret && !k->len && !k->closing && !k->opening && !k->dash)
        return put_text(r, "\\^");
    put_text(r, k->negative ? "[^" : "[");
    put_text(r, k->closing ? "]" : "");
    put(r, k->body, k->len);
    put_text(r, k->opening ? "[" : "");
    put_text(r, k->caret ? "^" : "");
    put_text(r, k->dash ? "-]" : "]");
}

static int take_class(struct reading *r, struct pale_err *e)
{
    static const char *const all[] = {"[\\s\\S]", "[\\S\\s]", "[\\d\\D]", "[\\D\\d]", "[\\w\\W]", "[\\W\\w]"};
    static struct class k;
    end_plain(r);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strncmp(r->at, all[i], 6) == 0) {
            r->at += 6;
            return put_text(r, "."), 0;
        }
    k = (struct class){0};
    k.negative = *++r->at == '^';
    r->at += k.negative;
    for (bool first = true; *r->at && (*r->at != ']' || first); first = false) {
        int res = add_members(r, &k, e);
        if (res < 0)
            return res;
    }
    if (*r->at++ != ']')
        return no_class_end(e);
    if (!k.len && !k.closing && !k.opening && !k.caret && !k.dash) /* a line end alone */
        return one_line(e);
    put_class(r, &k);
    return 0;
}

/* --- groups and repetitions --- */

static int take_group(struct reading *r, struct pale_err *e)
{
    end_plain(r);
    if (r->at[1] == '?' && r->at[2] != ':')
        return err_set(e, PALE_BAD_INPUT, "the pattern has (?%c, which is not known here; of those (?: is, and (?i) at the beginning",
                       r->at[2] ? r->at[2] : ' ');
    r->depth++;
    put(r, "(", 1);
    r->at += r->at[1] == '?' ? 3 : 1;
    return 0;
}

/* The length of {n}, {n,} or {n,m} at s; 0 if it is none. */
static size_t interval_length(const char *s)
{
    size_t i = 1, first = i;
    while (s[i] >= '0' && s[i] <= '9')
        i++;
    if (i == first)
        return 0;
    if (s[i] == ',')
        i++;
    while (s[i] >= '0' && s[i] <= '9')
        i++;
    return s[i] == '}' ? i + 1 : 0;
}

/* n bytes that repeat what stands before them. */
static int take_repetition(struct reading *r, size_t n, struct pale_err *e)
{
    bool none = *r->at == '*' || *r->at == '?' || (*r->at == '{' && r->at[1] == '0');
    if (none && r->last > 0)
        r->grown_len -= r->last;
    end_plain(r);
    put(r, r->at, n);
    r->at += n;
    if (*r->at == '?' || *r->at == '+')
        r->at++; /* lazy or greedy: the same lines match */
    if ((*r->at && strchr("*+?", *r->at)) || (*r->at == '{' && interval_length(r->at)))
        return err_set(e, PALE_BAD_INPUT, "the pattern repeats a repetition");
    return 0;
}

static int take_next(struct reading *r, struct pale_err *e)
{
    char c = *r->at;
    size_t n = c == '{' ? interval_length(r->at) : c == '*' || c == '+' || c == '?';
    if (n > 0)
        return take_repetition(r, n, e);
    switch (c) {
    case '\\':
        return take_escape(r, e);
    case '[':
        return take_class(r, e);
    case '(':
        return take_group(r, e);
    case '\n':
        return one_line(e);
    case ')':
    case '|':
    case '.':
    case '^':
    case '$':
        r->either |= c == '|' && r->depth == 0;
        r->depth -= c == ')' && r->depth > 0;
        end_plain(r);
        put(r, r->at++, 1);
        return 0;
    default:
        put_character(r, r->at);
        r->at += character_length(r->at);
        return 0;
    }
}

int pattern_read(struct pattern *p, const char *text, bool fixed, bool ignore_case, struct pale_err *e)
{
    static struct reading r;
    int res = 0;
    *p = (struct pattern){.ignore_case = ignore_case};
    r = (struct reading){.at = text, .p = p};
    if (!text[0] || strlen(text) > PATTERN_BYTES_MAX)
        return err_set(e, PALE_BAD_INPUT, "a pattern has 1 to %d bytes", PATTERN_BYTES_MAX);
    if (!fixed && strncmp(text, "(?i)", 4) == 0) {
        p->ignore_case = true;
        r.at += 4;
    }
    while (res == 0 && *r.at) {
        if (!fixed)
            res = take_next(&r, e);
        else if (*r.at == '\n')
            res = one_line(e);
        else {
            put_character(&r, r.at);
            r.at += character_length(r.at);
        }
    }
    if (res < 0)
        return res;
    end_run(&r);
    if (r.either)
        p->literal_len = 0;
    p->literal[p->literal_len] = p->regex[r.len] = 0;
    p->plain = !r.meta && p->literal_len > 0;
    return 0;
}
