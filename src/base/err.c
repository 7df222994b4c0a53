/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of error codes and the only functions that fill a struct pale_err. */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct code_row {
    const char *name;
    int exit_status;
    unsigned http_status;
} code_rows[] = {
    [PALE_OK] = {"ok", 0, 200},
    [PALE_BAD_INPUT] = {"bad-input", 125, 400},
    [PALE_NOT_FOUND] = {"not-found", 125, 404},
    [PALE_EXISTS] = {"exists", 125, 409},
    [PALE_DENIED] = {"denied", 125, 403},
    [PALE_BUSY] = {"busy", 125, 429},
    [PALE_LIMIT] = {"limit", 125, 413},
    [PALE_TIMEOUT] = {"timeout", 124, 504},
    [PALE_UNSUPPORTED] = {"unsupported", 125, 501},
    [PALE_CORRUPT] = {"corrupt", 125, 500},
    [PALE_PROTOCOL] = {"protocol", 125, 502},
    [PALE_GONE] = {"gone", 125, 410},
    [PALE_OS] = {"os", 125, 500},
    [PALE_NO_MEMORY] = {"no-memory", 125, 503},
    [PALE_INTERNAL] = {"internal", 125, 500},
    [PALE_CONFLICT] = {"conflict", 125, 409},
    [PALE_NO_SPACE] = {"no-space", 125, 507},
};
static_assert(sizeof(code_rows) / sizeof(code_rows[0]) == PALE_CODE_COUNT, "a row for every code");

const char *err_name(enum pale_code code)
{
    return (unsigned)code < PALE_CODE_COUNT ? code_rows[code].name : "internal";
}

int err_exit_status(enum pale_code code)
{
    return (unsigned)code < PALE_CODE_COUNT ? code_rows[code].exit_status : 125;
}

unsigned err_http_status(enum pale_code code)
{
    return (unsigned)code < PALE_CODE_COUNT ? code_rows[code].http_status : 500;
}

enum pale_code err_code_of(const char *name)
{
    for (unsigned i = 0; i < PALE_CODE_COUNT; i++)
        if (strcmp(code_rows[i].name, name) == 0)
            return (enum pale_code)i;
    return PALE_INTERNAL;
}

static enum pale_code code_of_errno(int os)
{
    switch (os) {
    case ENOENT:
    case ENOTDIR:
        return PALE_NOT_FOUND;
    case EEXIST:
        return PALE_EXISTS;
    case EACCES:
    case EPERM:
        return PALE_DENIED;
    case ENOMEM:
        return PALE_NO_MEMORY;
    case ENOSPC:
    case EDQUOT:
        return PALE_NO_SPACE;
    default:
        return PALE_OS;
    }
}

int err_set(struct pale_err *e, enum pale_code code, const char *fmt, ...)
{
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        e->code = code;
        e->os = 0;
        vsnprintf(e->text, sizeof(e->text), fmt, ap);
        va_end(ap);
    }
    return -(int)code;
}

int err_os(struct pale_err *e, const char *fmt, ...)
{
    int os = errno;
    enum pale_code code = code_of_errno(os);
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        e->code = code;
        e->os = os;
        int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof(e->text))
            snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", strerror(os));
    }
    return -(int)code;
}

int err_prefix(struct pale_err *e, const char *fmt, ...)
{
    if (!e)
        return -PALE_INTERNAL;
    char old[PALE_ERR_TEXT_MAX];
    memcpy(old, e->text, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(e->text))
        snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", old);
    return -(int)e->code;
}

int err_nomem(struct pale_err *e)
{
    return err_set(e, PALE_NO_MEMORY, "out of memory");
}
