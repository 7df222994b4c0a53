/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the limits: their units, ranges and defaults. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "base/quote.h"
#include "policy/field.h"

#define NO_LIMIT "none"
#define DEFAULT_WORD " default"
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define YEAR_MS (UINT64_C(366) * 86400000)

static bool read_count(const char *s, uint64_t *ret)
{
    return number_u64(s, UINT64_MAX, ret);
}

static void write_count(uint64_t v, struct buf *out)
{
    buf_addf(out, "%" PRIu64, v);
}

static void write_ms(uint64_t v, struct buf *out)
{
    buf_addf(out, "%" PRIu64 "ms", v);
}

static void write_milli(uint64_t v, struct buf *out)
{
    buf_addf(out, "%" PRIu64 ".%03" PRIu64, v / 1000, v % 1000);
}

static void write_micro(uint64_t v, struct buf *out)
{
    buf_addf(out, "%" PRIu64 ".%06" PRIu64, v / 1000000, v % 1000000);
}

static void show_bytes(uint64_t v, struct buf *out)
{
    char text[32];
    buf_add_text(out, number_show_bytes(v, text, sizeof(text)));
}

static void show_ms(uint64_t v, struct buf *out)
{
    char text[32];
    buf_add_text(out, number_show_ms(v, text, sizeof(text)));
}

static void show_cpus(uint64_t v, struct buf *out)
{
    write_milli(v, out);
    buf_add_text(out, v == 1000 ? " CPU" : " CPUs");
}

static void show_dollars(uint64_t v, struct buf *out)
{
    buf_add_text(out, "$");
    write_micro(v, out);
}

/* Below the least nothing could start; beyond the most it is a mistake of units. */
const struct limit_row limit_rows[LIMIT_COUNT] = {
    [LIMIT_MEMORY] = {number_size, write_count, show_bytes, MIB, UINT64_C(1) << 50, "512M or 4G", 4 * GIB},
    [LIMIT_PROCESSES] = {read_count, write_count, write_count, 1, 4194304, "64", 512},
    [LIMIT_CPU_TIME] = {number_duration, write_ms, show_ms, 1, YEAR_MS, "30, 30s or 5m", 0},
    [LIMIT_CPU_SHARE] = {number_milli, write_milli, show_cpus, 10, 4096000, "0.5 or 2", 0},
    [LIMIT_DISK] = {number_size, write_count, show_bytes, MIB, UINT64_C(1) << 60, "500M or 10G", 0},
    [LIMIT_WALL] = {number_duration, write_ms, show_ms, 1, YEAR_MS, "60, 90s or 2h", 0},
    [LIMIT_OUTPUT] = {number_size, write_count, show_bytes, 1, UINT64_C(1) << 60, "10M", GIB},
    [LIMIT_TOKENS] = {read_count, write_count, write_count, 1, UINT64_C(1000000000000000), "100000", 0},
    [LIMIT_COST] = {number_micro, write_micro, show_dollars, 1, UINT64_C(1000000000) * 1000000, "0.10", 0},
};

static const struct policy_limit *limit_of(const struct field *f, const struct policy *p)
{
    return field_value_const(f, p);
}

static void limit_text(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct limit_row *row = f->row;
    uint64_t v = limit_of(f, p)->value;
    (void)i;
    if (v)
        row->write(v, out);
    else
        buf_add_text(out, NO_LIMIT);
}

static void limit_show(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct limit_row *row = f->row;
    const struct policy_limit *l = limit_of(f, p);
    (void)i;
    if (l->value)
        row->show(l->value, out);
    else
        buf_add_text(out, NO_LIMIT);
    bool held = !policy_limit_is_unheld(p, (enum policy_limit_kind)(row - limit_rows));
    if (l->value && !l->asked)
        buf_add_text(out, held ? " (default)" : " (default, not held: this build does not meter model APIs)");
}

/* "512M default" is a value that nobody insists on. */
static bool cut_default(const char *value, char *ret, size_t cap)
{
    size_t n = strlen(value), tail = strlen(DEFAULT_WORD);
    bool is = n > tail && n < cap && strcmp(value + n - tail, DEFAULT_WORD) == 0;
    snprintf(ret, cap, "%.*s", (int)(is ? n - tail : 0), value);
    return is;
}

/* What somebody means by a size that is none, or by a bare number that would be bytes: "512", "4g", "512 MB". "" if that is not plain. */
static const char *hint_of_size(const struct limit_row *row, const char *value, char *ret, size_t cap)
{
    size_t digits = strspn(value, "0123456789"), blanks = strspn(value + digits, " ");
    static const char letters[] = "kKmMgGtT", upper[] = "KKMMGGTT";
    const char *letter = value + digits + blanks, *known = letter[0] ? strchr(letters, letter[0]) : NULL;
    bool is_bare = !letter[0], is_unit = known && (!letter[1] || strcasecmp(letter + 1, "b") == 0 || strcasecmp(letter + 1, "ib") == 0);
    ret[0] = 0;
    if (row->read == number_size && digits > 0 && digits < 12 && (is_bare || is_unit))
        snprintf(ret, cap, "%.*s%c", (int)digits, value, is_bare ? 'M' : upper[known - letters]);
    return ret;
}

static int limit_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    const struct limit_row *row = f->row;
    struct policy_limit *l = field_value(f, p);
    char shown[100], bare[64], meant[16];
    uint64_t v;
    bool is_default = cut_default(value, bare, sizeof(bare));
    if (is_default)
        value = bare;
    if (strcmp(value, NO_LIMIT) == 0) {
        *l = (struct policy_limit){0};
        return 0;
    }
    quote_into(shown, sizeof(shown), value, strlen(value));
    const char *hint = hint_of_size(row, value, meant, sizeof(meant));
    if (!row->read(value, &v) && hint[0])
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no size; write %s", shown, hint);
    if (!row->read(value, &v))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no value for it; write for example %s, or none", shown, row->example);
    if (v == 0)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" would let nothing run; write none for no limit", shown);
    if (v < row->least && hint[0] && strlen(value) == strspn(value, "0123456789"))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" would be bytes; write %s for megabytes", shown, hint);
    if (v < row->least || v > row->most) {
        own_buf range = {0};
        buf_init(&range, 128);
        row->write(row->least, &range);
        buf_add_text(&range, " to ");
        row->write(row->most, &range);
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is out of range; it goes from %s", shown, buf_text(&range));
    }
    *l = (struct policy_limit){.value = v, .asked = !is_default};
    return 0;
}

/* None is the widest. A limit that must hold may not become one that may fall back to watching. */
static bool limit_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    const struct policy_limit *a = limit_of(f, parent), *b = limit_of(f, child);
    return !a->value || (b->value && b->value <= a->value && b->asked >= a->asked);
}

/* In base units: bytes, milliseconds, thousandths of a CPU, millionths of a dollar, or a count. */
static void limit_json(const struct field *f, const struct policy *p, size_t i, struct json *j, const char *key)
{
    const struct policy_limit *l = limit_of(f, p);
    (void)i;
    if (!l->value) {
        json_put_null(j, key);
        return;
    }
    json_begin_object(j, key);
    json_u64(j, "value", l->value);
    json_bool(j, "asked", l->asked);
    if (policy_limit_is_unheld(p, (enum policy_limit_kind)((const struct limit_row *)f->row - limit_rows)))
        json_bool(j, "held", false);
    json_end_object(j);
}

const struct field_kind limit_kind = {.shape = SHAPE_ONE,
                                      .count = field_count_one,
                                      .text = limit_text,
                                      .show = limit_show,
                                      .set = limit_set,
                                      .within = limit_within,
                                      .json = limit_json};
