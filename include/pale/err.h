/* SPDX-License-Identifier: Apache-2.0 */
/* The result of everything that can fail: 0, or a negative enum pale_code with its text in a struct pale_err. */
#pragma once

enum pale_code {
    PALE_OK = 0,
    PALE_BAD_INPUT,   /* a request, file or flag that makes no sense */
    PALE_NOT_FOUND,   /* the named thing is not there */
    PALE_EXISTS,      /* the named thing is there already */
    PALE_DENIED,      /* policy or permission says no */
    PALE_BUSY,        /* try again later */
    PALE_LIMIT,       /* a maximum was reached */
    PALE_TIMEOUT,     /* it took longer than allowed */
    PALE_UNSUPPORTED, /* this host or this build cannot hold what was asked */
    PALE_CORRUPT,     /* stored or received data is damaged */
    PALE_PROTOCOL,    /* a peer of ours broke the protocol */
    PALE_GONE,        /* it ended while we were using it */
    PALE_OS,          /* the system refused; os holds errno */
    PALE_NO_MEMORY,
    PALE_INTERNAL, /* our own mistake */
    PALE_CONFLICT, /* what is there is not as the request takes it to be; waiting does not mend it */
    PALE_NO_SPACE, /* the disk is full, or a quota is */
    PALE_CODE_COUNT,
};

#define PALE_ERR_TEXT_MAX 640

/* Lives on the caller's stack. The text says what was tried, on what, why it failed and what to do next. */
struct pale_err {
    enum pale_code code;
    int os;
    char text[PALE_ERR_TEXT_MAX];
};
