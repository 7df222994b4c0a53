/* SPDX-License-Identifier: Apache-2.0 */
/* What an archive says of an entry in headers before it, because the entry's own cannot hold it: pax records, and GNU's long names.
 *
 * Pure; the records are read byte by byte, whatever the pieces they come in. A record is "LENGTH KEY=VALUE\n", where the length is
 * that of the whole record. Those of no interest are skipped, whatever their length. Nothing may be said twice: readers would
 * differ about which to believe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"

enum tarpax_field { TARPAX_PATH, TARPAX_LINK, TARPAX_SIZE, TARPAX_MTIME, TARPAX_FIELDS };

#define TARPAX_ATTRIBUTE "SCHILY.xattr."
#define TARPAX_KEY_MAX 272u   /* no key of interest is longer, nor any beginning of one: an attribute's name has 255 bytes */
#define TARPAX_NUMBER_MAX 64u /* a time has a fraction of any length, which is not looked at */

enum tarpax_state { TARPAX_LENGTH, TARPAX_KEY, TARPAX_VALUE };

/* Attributes as base/attributes.h has them. */
struct tarpax_attributes {
    size_t len;
    size_t name, length; /* where the name of the last one begins, and where its length stands */
    uint8_t bytes[ATTRIBUTES_BYTES_MAX];
};

/* All zero before an entry, but for attributes. */
struct tarpax {
    bool has[TARPAX_FIELDS];
    char path[PATH_BYTES_MAX], link[PATH_BYTES_MAX]; /* as text */
    uint64_t size;
    int64_t mtime;
    bool has_attributes;                  /* extended ones */
    struct tarpax_attributes *attributes; /* where they go, if they are a user's own; NULL: they are not taken */
    const char *trouble;                  /* why one of them is not taken; NULL: all are */
    bool has_other;                       /* something else that is of no interest */

    /* The record being read. */
    enum tarpax_state state;
    uint64_t left;
    unsigned digits;
    size_t key_len, value_len;
    char key[TARPAX_KEY_MAX];
    char number[TARPAX_NUMBER_MAX];
    bool in_attribute;
    int field; /* TARPAX_FIELDS: of no interest */
};

/* Takes the next bytes of the records. */
int tarpax_take(struct tarpax *t, const uint8_t *p, size_t n, struct pale_err *e) MUST_CHECK;

/* Takes the next bytes of a long name or target, which a zero may end. */
int tarpax_take_long(struct tarpax *t, enum tarpax_field field, const uint8_t *p, size_t n, struct pale_err *e) MUST_CHECK;

/* All of the records, or of the name, has been taken. */
int tarpax_end(struct tarpax *t, struct pale_err *e) MUST_CHECK;
int tarpax_end_long(struct tarpax *t, enum tarpax_field field, struct pale_err *e) MUST_CHECK;

/* Writes a record at ret, which has room for it: at most TARPAX_RECORD_MORE bytes besides key and value, with the zero
 * that is not counted. Returns its length. */
#define TARPAX_RECORD_MORE 24u
size_t tarpax_put(char *ret, const char *key, const char *value);

/* The same for any bytes. */
size_t tarpax_put_bytes(char *ret, const char *key, const void *value, size_t n);
