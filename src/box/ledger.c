/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ledger's text and file. */
#include "box/ledger.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/own.h"

static const char *const deed_names[] = {"append", "create", "mkdir", "chown"};
static_assert(sizeof(deed_names) / sizeof(deed_names[0]) == DEED_COUNT, "a name for every deed");

#define LEDGER_TEXT_MAX (1u << 20)

void ledger_write(const struct ledger *l, struct buf *out)
{
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_u64(&j, "version", 1);
    json_begin_list(&j, "steps");
    for (size_t i = 0; i < l->count; i++) {
        const struct ledger_step *s = &l->step[i];
        json_begin_object(&j, NULL);
        json_text(&j, "do", deed_names[s->deed]);
        json_text(&j, "user", s->user);
        json_text(&j, "path", s->path);
        json_text(&j, "text", s->text);
        json_u64(&j, "uid", s->uid);
        json_u64(&j, "gid", s->gid);
        json_end_object(&j);
    }
    json_end_list(&j);
    json_end_object(&j);
    buf_add_text(out, "\n");
}

/* --- reading what we wrote --- */

struct cursor {
    const char *at, *end;
};

static bool take(struct cursor *c, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static bool take_string(struct cursor *c, char *ret, size_t cap)
{
    size_t n = 0;
    if (!take(c, "\""))
        return false;
    while (c->at < c->end && *c->at != '"') {
        char ch = *c->at++;
        if (ch == '\\') {
            static const char from[] = "nt\"\\", to[] = "\n\t\"\\";
            const char *hit = c->at < c->end && *c->at ? strchr(from, *c->at) : NULL;
            if (!hit)
                return false;
            ch = to[hit - from];
            c->at++;
        }
        if ((unsigned char)ch == 0 || n + 1 >= cap)
            return false;
        ret[n++] = ch;
    }
    ret[n] = 0;
    return take(c, "\"");
}

static bool take_id(struct cursor *c, uint32_t *ret)
{
    char word[16];
    uint64_t v;
    size_t n = 0;
    while (c->at + n < c->end && c->at[n] >= '0' && c->at[n] <= '9' && n + 1 < sizeof(word)) {
        word[n] = c->at[n];
        n++;
    }
    word[n] = 0;
    if (!number_u64(word, UINT32_MAX, &v))
        return false;
    c->at += n;
    *ret = (uint32_t)v;
    return true;
}

static bool take_step(struct cursor *c, struct ledger_step *ret)
{
    char deed[16];
    if (!take(c, "{\"do\":") || !take_string(c, deed, sizeof(deed)) || !take(c, ",\"user\":") ||
        !take_string(c, ret->user, sizeof(ret->user)) || !take(c, ",\"path\":") || !take_string(c, ret->path, sizeof(ret->path)) ||
        !take(c, ",\"text\":") || !take_string(c, ret->text, sizeof(ret->text)) || !take(c, ",\"uid\":") || !take_id(c, &ret->uid) ||
        !take(c, ",\"gid\":") || !take_id(c, &ret->gid) || !take(c, "}"))
        return false;
    for (int d = 0; d < DEED_COUNT; d++)
        if (strcmp(deed, deed_names[d]) == 0) {
            ret->deed = (enum ledger_deed)d;
            return ret->path[0] == '/';
        }
    return false;
}

int ledger_parse(const char *text, size_t len, struct ledger *ret, struct pale_err *e)
{
    struct cursor c = {text, text + len};
    ret->count = 0;
    bool good = take(&c, "{\"version\":1,\"steps\":[");
    while (good && !take(&c, "]}\n")) {
        good = (ret->count == 0 || take(&c, ",")) && ret->count < LEDGER_STEPS_MAX && take_step(&c, &ret->step[ret->count]);
        ret->count += good;
    }
    if (good && c.at == c.end) {
        /* Numbers with zeros before them, other escapes … mean the same and are not ours. */
        own_buf again = {0};
        buf_init(&again, LEDGER_TEXT_MAX);
        ledger_write(ret, &again);
        if (again.failed)
            return err_nomem(e);
        if (again.len == len && memcmp(again.data, text, len) == 0)
            return 0;
    }
    ret->count = 0;
    return err_set(e, PALE_CORRUPT, "it is not what we wrote; put it right by hand or remove it");
}

int ledger_load(const char *path, struct ledger *ret, struct pale_err *e)
{
    own_buf b = {0};
    struct stat st;
    ret->count = 0;
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s", path);
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))
        return err_set(e, PALE_DENIED, "%s must be root's and writable by nobody else", path);
    buf_init(&b, LEDGER_TEXT_MAX);
    int r = fd_read_all(fd, &b, e);
    if (r == 0)
        r = ledger_parse(buf_text(&b), b.len, ret, e);
    return r < 0 ? err_prefix(e, "%s", path) : 0;
}

int ledger_save(const char *path, const struct ledger *l, struct pale_err *e)
{
    char dir_path[PATH_BYTES_MAX];
    own_buf b = {0};
    const char *slash = strrchr(path, '/');
    int n = snprintf(dir_path, sizeof(dir_path), "%.*s", slash ? (int)(slash - path) : 0, path);
    if (n <= 0 || (size_t)n >= sizeof(dir_path))
        return err_set(e, PALE_BAD_INPUT, "bad path: %s", path);
    if (l->count == 0) {
        if (unlink(path) < 0 && errno != ENOENT)
            return err_os(e, "remove %s", path);
        (void)rmdir(dir_path); /* if nothing else of ours is in it */
        return 0;
    }
    if (mkdir(dir_path, 0755) < 0 && errno != EEXIST)
        return err_os(e, "make %s", dir_path);
    own_fd dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_os(e, "open %s", dir_path);
    buf_init(&b, LEDGER_TEXT_MAX);
    ledger_write(l, &b);
    return b.failed ? err_nomem(e) : fd_replace_file(dir, slash + 1, b.data, b.len, 0644, true, e);
}
