/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from the name of a preset to its text. */
#include "box/presetfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/nearest.h"
#include "base/own.h"
#include "base/quote.h"
#include "box/place.h"
#include "policy/preset.h"
#include "policy/strlist.h"

static bool folder(char *ret, size_t cap)
{
    return place_config("presets", ret, cap);
}

static int read_file(int fd, const char *path, struct buf *out, struct pale_err *e)
{
    struct stat st;
    char block[4096];
    ssize_t n;
    if (fstat(fd, &st) < 0)
        return err_os(e, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, PALE_BAD_INPUT, "%s is not a regular file", path);
    while ((n = read(fd, block, sizeof(block))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_os(e, "%s", path);
        buf_add(out, block, (size_t)n);
    }
    return out->failed ? err_set(e, PALE_LIMIT, "%s is longer than %u bytes", path, POLICY_TEXT_MAX) : 0;
}

static int offer(void *arg, const char *name, struct pale_err *e)
{
    struct nearest *near = arg;
    (void)e;
    /* A user's names last as long as this call; those of pale are enough to mistype. */
    if (preset_text(name))
        nearest_offer(near, name);
    return 0;
}

static int unknown(const char *name, struct pale_err *e)
{
    struct nearest near;
    nearest_init(&near, name);
    if (presetfile_each(offer, &near, e) == 0 && near.best)
        return err_set(e, PALE_NOT_FOUND, "there is no preset \"%s\"; did you mean \"%s\"?", name, near.best);
    return err_set(e, PALE_NOT_FOUND, "there is no preset \"%s\"; `pale presets` lists them", name);
}

int presetfile_read(const char *name, struct buf *ret_text, char *path, size_t cap, struct pale_err *e)
{
    char dir[PATH_BYTES_MAX], shown[80];
    const char *text = preset_text(name);
    own_fd fd = -1;
    errno = ENOENT;
    if (!preset_is_name(name, strlen(name)))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no name of a preset; they have a-z, 0-9 and '-'",
                       quote_into(shown, sizeof(shown), name, strlen(name)));
    if (folder(dir, sizeof(dir)) && snprintf(path, cap, "%s/%s", dir, name) < (int)cap)
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && text)
        return err_set(e, PALE_EXISTS, "%s: pale has a preset of this name; give the file another", path);
    if (fd >= 0)
        return read_file(fd, path, ret_text, e);
    if (!text && errno != ENOENT && errno != ENOTDIR)
        return err_os(e, "%s", path);
    if (!text)
        return unknown(name, e);
    buf_add_text(ret_text, text);
    path[0] = 0;
    return ret_text->failed ? err_nomem(e) : 0;
}

int presetfile_apply(struct policy *p, const char *item, struct pale_err *e)
{
    char name[PRESET_NAME_MAX + 16], path[PATH_BYTES_MAX];
    own_buf text = {0};
    int r = policy_set(p, "network.presets", item, e);
    if (r < 0)
        return r;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(item, "@"), item);
    buf_init(&text, POLICY_TEXT_MAX);
    r = presetfile_read(name, &text, path, sizeof(path), e);
    return r < 0 ? r : preset_apply(p, name, buf_text(&text), text.len, e);
}

static void strings_done(struct policy_strings *l)
{
    strlist_done(l);
}

int presetfile_apply_all(struct policy *p, struct pale_err *e)
{
    CLEANUP(strings_done) struct policy_strings asked = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < p->presets.count; i++)
        r = strlist_add(&asked, p->presets.item[i], e);
    for (size_t i = 0; r == 0 && i < asked.count; i++)
        r = presetfile_apply(p, asked.item[i], e);
    return r;
}

static void close_dir(DIR **d)
{
    if (*d)
        closedir(*d);
}

int presetfile_each(int (*fn)(void *arg, const char *name, struct pale_err *e), void *arg, struct pale_err *e)
{
    CLEANUP(strings_done) struct policy_strings own = {0};
    CLEANUP(close_dir) DIR *d = NULL;
    char dir[PATH_BYTES_MAX];
    const char *name;
    int r = 0;
    for (size_t i = 0; r == 0 && (name = preset_at(i)); i++)
        r = fn(arg, name, e);
    if (folder(dir, sizeof(dir)))
        d = opendir(dir);
    for (const struct dirent *at; r == 0 && d && (at = readdir(d));)
        if (preset_is_name(at->d_name, strlen(at->d_name)))
            r = strlist_add(&own, at->d_name, e);
    for (size_t i = 0; r == 0 && i < own.count; i++)
        r = fn(arg, own.item[i], e);
    return r;
}
