/* SPDX-License-Identifier: Apache-2.0 */
/* Owns pax records and long names. */
#include "net/tarpax.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/attributes.h"
#include "base/number.h"

#define LENGTH_DIGITS_MAX 7u /* a header of records is at most a megabyte */
#define SPARSE "GNU.sparse."

static const char *const keys[] = {[TARPAX_PATH] = "path", [TARPAX_LINK] = "linkpath", [TARPAX_SIZE] = "size", [TARPAX_MTIME] = "mtime"};
static_assert(sizeof(keys) / sizeof(keys[0]) == TARPAX_FIELDS, "a key for each field");

static int broken(struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "its pax header is damaged");
}

static char *text_of(struct tarpax *t, int field, size_t *ret_cap)
{
    *ret_cap = field <= TARPAX_LINK ? PATH_BYTES_MAX : TARPAX_NUMBER_MAX;
    return field == TARPAX_PATH ? t->path : field == TARPAX_LINK ? t->link : t->number;
}

static int length_byte(struct tarpax *t, uint8_t b, struct pale_err *e)
{
    if (b >= '0' + (t->digits == 0) && b <= '9' && t->digits < LENGTH_DIGITS_MAX) {
        t->left = t->left * 10 + (b - '0');
        t->digits++;
        return 0;
    }
    /* A key of one byte, its '=' and the newline are the least that follows. */
    if (b != ' ' || t->left < t->digits + 1 + 3)
        return broken(e);
    t->left -= t->digits + 1;
    t->state = TARPAX_KEY;
    t->key_len = 0;
    return 0;
}

/* What is wrong with an attribute is told when the entry comes, whose name is known then. */
static void refuse_attribute(struct tarpax *t, const char *why)
{
    t->trouble = t->trouble ? t->trouble : why;
    t->in_attribute = false;
}

static void add_attribute_bytes(struct tarpax *t, const void *p, size_t n)
{
    struct tarpax_attributes *a = t->attributes;
    if (t->in_attribute && n > sizeof(a->bytes) - a->len)
        refuse_attribute(t, "it has more extended attributes than are taken");
    if (!t->in_attribute)
        return;
    memcpy(a->bytes + a->len, p, n);
    a->len += n;
}

/* Begins one. They come sorted, so that none comes twice. */
static void begin_attribute(struct tarpax *t)
{
    static const uint8_t zeros[ATTRIBUTE_LENGTH_BYTES];
    struct tarpax_attributes *a = t->attributes;
    char name[TARPAX_KEY_MAX + 1];
    size_t before = strlen(TARPAX_ATTRIBUTE), n = t->key_len - before, last = a->name;
    if (t->key_len > TARPAX_KEY_MAX || n > FILE_NAME_MAX || memchr(t->key, 0, t->key_len))
        return refuse_attribute(t, "it has an extended attribute whose name is none");
    memcpy(name, t->key + before, n);
    name[n] = 0;
    if (!attributes_is_own(name))
        return refuse_attribute(t, "it has one of the extended attributes that steer an overlay or give power, which are not taken");
    if (a->len > 0 && strcmp((const char *)a->bytes + last, name) >= 0)
        return refuse_attribute(t, "its attributes are out of order, or there twice");
    a->name = a->len;
    add_attribute_bytes(t, name, n + 1);
    a->length = a->len;
    add_attribute_bytes(t, zeros, sizeof(zeros));
}

static void end_attribute(struct tarpax_attributes *a)
{
    uint64_t n = a->len - a->length - ATTRIBUTE_LENGTH_BYTES;
    for (unsigned i = 0; i < ATTRIBUTE_LENGTH_BYTES; i++)
        a->bytes[a->length + i] = (uint8_t)(n >> (8 * i));
}

static int key_end(struct tarpax *t, struct pale_err *e)
{
    size_t n = t->key_len;
    /* The map of such a file stands in its content. */
    if (n >= strlen(SPARSE) && memcmp(t->key, SPARSE, strlen(SPARSE)) == 0)
        return err_set(e, PALE_BAD_INPUT, "it is sparse, which is not taken; make the archive without --sparse");
    t->in_attribute = n >= strlen(TARPAX_ATTRIBUTE) && memcmp(t->key, TARPAX_ATTRIBUTE, strlen(TARPAX_ATTRIBUTE)) == 0;
    t->has_attributes |= t->in_attribute;
    t->in_attribute = t->in_attribute && t->attributes;
    for (t->field = 0; t->field < TARPAX_FIELDS; t->field++)
        if (n == strlen(keys[t->field]) && memcmp(t->key, keys[t->field], n) == 0)
            break;
    if (t->field < TARPAX_FIELDS && t->has[t->field])
        return err_set(e, PALE_BAD_INPUT, "it has more than one %s", keys[t->field]);
    t->has_other |= t->field == TARPAX_FIELDS && !t->in_attribute;
    t->state = TARPAX_VALUE;
    t->value_len = 0;
    if (t->in_attribute)
        begin_attribute(t);
    return n ? 0 : broken(e);
}

static int key_byte(struct tarpax *t, uint8_t b, struct pale_err *e)
{
    t->left--;
    if (t->left == 0)
        return broken(e);
    if (b == '=')
        return key_end(t, e);
    if (t->key_len < TARPAX_KEY_MAX)
        t->key[t->key_len] = (char)b;
    t->key_len++;
    return 0;
}

/* A byte of a text that is kept, with room for its end. */
static int text_byte(struct tarpax *t, int field, uint8_t b, struct pale_err *e)
{
    size_t cap;
    char *text = text_of(t, field, &cap);
    if (b == 0)
        return err_set(e, PALE_BAD_INPUT, "its %s has a zero byte in it", keys[field]);
    if (t->value_len + 1 >= cap)
        return err_set(e, PALE_LIMIT, "its %s is longer than %zu bytes", keys[field], cap - 1);
    text[t->value_len++] = (char)b;
    text[t->value_len] = 0;
    return 0;
}

/* Seconds, perhaps negative and with a fraction, which goes. */
static bool get_time(char *text, int64_t *ret)
{
    char *dot = strchr(text, '.');
    if (dot) {
        if (dot[1 + strspn(dot + 1, "0123456789")])
            return false;
        *dot = 0;
    }
    return number_i64(strcmp(text, "-0") == 0 ? "0" : text, ret);
}

static int value_end(struct tarpax *t, struct pale_err *e)
{
    t->state = TARPAX_LENGTH;
    t->digits = 0;
    if (t->in_attribute)
        end_attribute(t->attributes);
    if (t->field == TARPAX_FIELDS)
        return 0;
    if (t->value_len == 0)
        return err_set(e, PALE_BAD_INPUT, "its %s is empty", keys[t->field]);
    if ((t->field == TARPAX_SIZE && !number_u64(t->number, INT64_MAX, &t->size)) ||
        (t->field == TARPAX_MTIME && !get_time(t->number, &t->mtime)))
        return err_set(e, PALE_BAD_INPUT, "its %s is no number", keys[t->field]);
    t->has[t->field] = true;
    t->value_len = 0;
    return 0;
}

static int value_byte(struct tarpax *t, uint8_t b, struct pale_err *e)
{
    t->left--;
    if (t->left == 0)
        return b == '\n' ? value_end(t, e) : broken(e);
    add_attribute_bytes(t, &b, 1);
    return t->field == TARPAX_FIELDS ? 0 : text_byte(t, t->field, b, e);
}

int tarpax_take(struct tarpax *t, const uint8_t *p, size_t n, struct pale_err *e)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = t->state == TARPAX_LENGTH ? length_byte(t, p[i], e) : t->state == TARPAX_KEY ? key_byte(t, p[i], e) : value_byte(t, p[i], e);
    return r;
}

int tarpax_end(struct tarpax *t, struct pale_err *e)
{
    return t->state == TARPAX_LENGTH && t->digits == 0 ? 0 : broken(e);
}

int tarpax_take_long(struct tarpax *t, enum tarpax_field field, const uint8_t *p, size_t n, struct pale_err *e)
{
    if (t->has[field])
        return err_set(e, PALE_BAD_INPUT, "it has more than one %s", keys[field]);
    for (size_t i = 0; i < n; i++) {
        /* From a first zero on, left counts zeros. */
        if (p[i] == 0)
            t->left++;
        else if (t->left)
            return err_set(e, PALE_BAD_INPUT, "its %s has a zero byte in it", keys[field]);
        int r = p[i] ? text_byte(t, field, p[i], e) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int tarpax_end_long(struct tarpax *t, enum tarpax_field field, struct pale_err *e)
{
    if (t->has[field])
        return err_set(e, PALE_BAD_INPUT, "it has more than one %s", keys[field]);
    if (t->value_len == 0)
        return err_set(e, PALE_BAD_INPUT, "its %s is empty", keys[field]);
    t->has[field] = true;
    t->value_len = 0;
    t->left = 0;
    return 0;
}

size_t tarpax_put_bytes(char *ret, const char *key, const void *value, size_t n)
{
    size_t rest = strlen(key) + n + 3, len = rest, digits;
    do {
        digits = (size_t)snprintf(NULL, 0, "%zu", len);
        len = rest + digits;
    } while ((size_t)snprintf(NULL, 0, "%zu", len) != digits);
    size_t at = (size_t)snprintf(ret, len + 1, "%zu %s=", len, key);
    memcpy(ret + at, value, n);
    memcpy(ret + at + n, "\n", 2);
    return len;
}

size_t tarpax_put(char *ret, const char *key, const char *value)
{
    return tarpax_put_bytes(ret, key, value, strlen(value));
}
