/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the building of images for clients of the daemon. */
#include "steward/building.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "image/store.h"
#include "steward/making.h"
#include "wire/frame.h"

#define WORDS_MAX 16

/* What a source may be told, by the names of the command line's flags. */
static bool is_flag(const char *key)
{
    static const char *const known[] = {"suite", "variant", "include", "force-copy"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(key, known[i]) == 0)
            return true;
    return false;
}

/* KEY TAB VALUE, line by line, each a word of its own that cannot be taken for another. */
static int add_flags(const char *sets, struct buf *words, size_t *count, struct pale_err *e)
{
    char key[32];
    for (const char *at = sets; *at;) {
        const char *end = strchr(at, '\n'), *tab = strchr(at, '\t');
        if (!end || !tab || tab > end || (size_t)(tab - at) >= sizeof(key) || *count == WORDS_MAX)
            return err_set(e, PALE_PROTOCOL, "an order has no such form");
        snprintf(key, sizeof(key), "%.*s", (int)(tab - at), at);
        if (!is_flag(key))
            return err_set(e, PALE_BAD_INPUT, "%s is nothing that an image is built with", key);
        buf_addf(words, tab + 1 == end ? "--%s" : "--%s=%.*s", key, (int)(end - tab - 1), tab + 1);
        buf_add(words, "", 1);
        ++*count;
        at = end + 1;
    }
    return 0;
}

/* A source that is an archive, which paled sends. */
static bool is_archive(const char *source)
{
    return strcmp(source, "tar") == 0 || strcmp(source, "oci") == 0;
}

static int build(const struct msg_deed *m, int fd, struct buf *told, struct pale_err *e)
{
    char from[64];
    char *argv[WORDS_MAX + 12] = {(char *)"pale", (char *)"image", (char *)"build", (char *)"--json", (char *)"--progress",
                                  /* This host, whatever PALE_HOST says: else it might ask us. */
                                  (char *)"--host", (char *)"", (char *)m->name, from};
    size_t n = 9, flags = 0;
    own_buf words = {0};
    snprintf(from, sizeof(from), "--from=%s", m->form);
    buf_init(&words, FRAME_PAYLOAD_MAX);
    int r = add_flags(m->sets, &words, &flags, e);
    if (r == 0 && words.failed)
        r = err_nomem(e);
    if (r < 0)
        return r;
    char *at = (char *)words.data;
    for (size_t i = 0; i < flags; i++, at += strlen(at) + 1)
        argv[n++] = at;
    if (is_archive(m->form))
        argv[n++] = (char *)"--file=-";
    const struct making making = {.order = m, .fd = fd, .during = "building", .after = "built", .takes = is_archive(m->form)};
    return making_run(&making, argv, told, e);
}

int building_run(const struct msg_deed *m, int fd, struct buf *told, struct pale_err *e)
{
    static const char *const sources[] = {"mmdebstrap", "minimal", "host-copy", "tar", "oci"};
    size_t source = 0;
    if (!store_is_name(m->name)) /* it becomes a word of a command */
        return err_set(e, PALE_BAD_INPUT, "name: letters, digits and . _ : + -, beginning with a letter or digit");
    while (source < sizeof(sources) / sizeof(sources[0]) && strcmp(sources[source], m->form) != 0)
        source++;
    if (source == sizeof(sources) / sizeof(sources[0]))
        return err_set(e, PALE_BAD_INPUT, "from: an image is built from mmdebstrap, minimal, host-copy, tar or oci");
    return build(m, fd, told, e);
}
