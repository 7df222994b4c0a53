/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the parts that wirings are made of. */
#include "agents/wiring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/json.h"

void wiring_done(struct wiring *w)
{
    words_done(&w->argv);
    words_done(&w->env);
    for (size_t i = 0; i < w->file_count; i++)
        buf_done(&w->file[i].text);
    w->file_count = 0;
}

struct buf *wiring_file(struct wiring *w, const char *name, mode_t mode)
{
    if (w->file_count == WIRING_FILES_MAX || strlen(name) >= sizeof(w->file[0].name)) {
        w->failed = true;
        return &w->file[WIRING_FILES_MAX - 1].text;
    }
    struct wiring_file *f = &w->file[w->file_count++];
    snprintf(f->name, sizeof(f->name), "%s", name);
    f->mode = mode;
    buf_init(&f->text, WIRING_FILE_BYTES);
    return &f->text;
}

void wiring_link(struct wiring *w, const char *name, const char *target, bool is_folder)
{
    struct buf *b = wiring_file(w, name, is_folder ? 0700 : 0600);
    buf_add_text(b, target);
    if (w->file_count > 0)
        w->file[w->file_count - 1].is_link = true;
}

void wiring_text(struct buf *b, const char *text)
{
    struct json j;
    json_start(&j, b);
    json_text(&j, NULL, text);
}

bool wiring_is_good(const struct wiring *w)
{
    bool good = !w->failed && !w->argv.failed && !w->env.failed;
    for (size_t i = 0; i < w->file_count; i++)
        good = good && !w->file[i].text.failed;
    return good;
}

void wiring_environment(const struct wiring_facts *f, struct json *j, const char *key)
{
    json_begin_object(j, key);
    for (size_t i = 0; i < f->mcp_env->count; i++) {
        const char *word = f->mcp_env->item[i], *value = strchr(word, '=');
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)(value - word), word);
        json_text(j, name, value + 1);
    }
    json_end_object(j);
}

void wiring_server(const struct wiring_facts *f, struct json *j)
{
    json_text(j, "command", f->pale);
    json_begin_list(j, "args");
    json_text(j, NULL, "mcp");
    json_text(j, NULL, f->box_id);
    json_end_list(j);
    wiring_environment(f, j, "env");
}

void wiring_quote(struct buf *b, const char *word)
{
    buf_add_text(b, "'");
    for (const char *at = word; *at; at++)
        if (*at == '\'')
            buf_add_text(b, "'\\''");
        else
            buf_add(b, at, 1);
    buf_add_text(b, "'");
}

void wiring_export(const struct wiring_facts *f, struct buf *b)
{
    for (size_t i = 0; i < f->mcp_env->count; i++) {
        const char *word = f->mcp_env->item[i], *value = strchr(word, '=');
        if (strncmp(word, "PALE_MCP_BOX=", 13) == 0)
            continue; /* by which the server is known */
        buf_addf(b, "export %.*s=", (int)(value - word), word);
        wiring_quote(b, value + 1);
        buf_add_text(b, "\n");
    }
}

void wiring_shells(struct wiring *w, const struct wiring_facts *f)
{
    static const char *const names[] = {"bin/bash", "bin/sh", "bin/zsh"};
    own_buf path = {0};
    for (size_t i = 0; i < 3; i++) {
        struct buf *b = wiring_file(w, names[i], 0700);
        buf_add_text(b, "#!/bin/sh\n# A shell of the box.\nif [ -t 0 ]; then how=-t; else how=-i; fi\n");
        wiring_export(f, b);
        buf_add_text(b, "exec ");
        wiring_quote(b, f->pale);
        buf_add_text(b, " exec -q \"$how\" --cwd ");
        wiring_quote(b, f->project);
        buf_addf(b, " %s -- /bin/sh -c 'if [ -x /bin/bash ]; then exec /bin/bash \"$@\"; else exec /bin/sh \"$@\"; fi' sh \"$@\"\n",
                 f->box_id);
    }
    const char *old = words_env(&w->env, "PATH");
    buf_init(&path, 65536);
    buf_addf(&path, "%s/bin:%s", f->shadow, old ? old : "/usr/bin:/bin");
    words_set_env(&w->env, "PATH", buf_text(&path));
    buf_clear(&path);
    buf_addf(&path, "%s/bin/bash", f->shadow);
    words_set_env(&w->env, "SHELL", buf_text(&path));
    w->failed = w->failed || path.failed;
}

/* A folder of the user's that is not there yet is made as the harness would, with the one it is in. */
static int write_link(int dirfd, const struct wiring_file *f, struct pale_err *e)
{
    own_mem char *to = strndup((const char *)f->text.data, f->text.len);
    char *slash = to ? strrchr(to, '/') : NULL;
    if (!to)
        return err_nomem(e);
    if (f->mode == 0700 && slash) {
        *slash = 0;
        (void)mkdir(to, 0700);
        *slash = '/';
        if (mkdir(to, 0700) < 0 && errno != EEXIST)
            return err_os(e, "make folder %s", to);
    }
    return symlinkat(to, dirfd, f->name) < 0 ? err_os(e, "link %s", f->name) : 0;
}

/* Folders of a name are made on the way. */
static int write_file(int dirfd, const struct wiring_file *f, struct pale_err *e)
{
    char part[sizeof(f->name)];
    for (size_t i = 1; f->name[i]; i++) {
        if (f->name[i] != '/')
            continue;
        memcpy(part, f->name, i);
        part[i] = 0;
        if (mkdirat(dirfd, part, 0700) < 0 && errno != EEXIST)
            return err_os(e, "make %s", part);
    }
    if (f->is_link)
        return write_link(dirfd, f, e);
    own_fd fd = openat(dirfd, f->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, f->mode);
    if (fd < 0 || !fd_write_full(fd, f->text.data, f->text.len))
        return err_os(e, "write %s", f->name);
    return 0;
}

int wiring_write(const struct wiring *w, int dirfd, struct pale_err *e)
{
    int r = wiring_is_good(w) ? 0 : err_nomem(e);
    for (size_t i = 0; r == 0 && i < w->file_count; i++)
        r = write_file(dirfd, &w->file[i], e);
    return r;
}
