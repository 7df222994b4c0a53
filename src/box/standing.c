/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lists of answers that stand. */
#include "box/standing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/fd.h"
#include "base/number.h"
#include "base/own.h"
#include "base/sha256.h"
#include "box/place.h"
#include "net/address.h"
#include "net/hostname.h"

#define LINE_MAX_BYTES (DOMAIN_NAME_MAX + 40u)
#define LIST_BYTES_MAX (STANDING_MAX * LINE_MAX_BYTES)

bool standing_is_host(const char *host)
{
    struct hostname name;
    struct address address;
    char text[ADDRESS_TEXT_MAX];
    if (address_parse(host, strlen(host), &address))
        return strcmp(address_text(&address, text), host) == 0;
    return hostname_canon(host, strlen(host), true, &name) == HOSTNAME_GOOD && strcmp(name.text, host) == 0;
}

/* --- a list as text --- */

/* The words of a line, which loses its blanks. */
static bool split(char *line, const char *word[4])
{
    for (int i = 0; i < 4; i++) {
        char *blank = i < 3 ? strchr(line, ' ') : NULL;
        if (i < 3 && !blank)
            return false;
        if (blank)
            *blank = 0;
        word[i] = line;
        line = blank ? blank + 1 : line;
    }
    return true;
}

static bool parse_line(const char *p, size_t n, struct standing *ret)
{
    char line[LINE_MAX_BYTES];
    const char *word[4];
    uint64_t port, until;
    if (n >= sizeof(line) || memchr(p, 0, n))
        return false;
    memcpy(line, p, n);
    line[n] = 0;
    bool whole = split(line, word) && number_u64(word[2], UINT16_MAX, &port) && port > 0 && number_u64(word[3], INT64_MAX / 1000, &until);
    if (!whole || strlen(word[1]) > DOMAIN_NAME_MAX || !standing_is_host(word[1]))
        return false;
    bool allow = strcmp(word[0], "allow") == 0;
    if (!allow && strcmp(word[0], "deny") != 0)
        return false;
    *ret = (struct standing){.allow = allow, .port = (uint16_t)port, .until_unix = until};
    memcpy(ret->host, word[1], strlen(word[1]) + 1);
    return true;
}

bool standing_parse(const char *text, size_t n, struct standing_list *ret)
{
    ret->count = 0;
    while (n > 0) {
        const char *end = memchr(text, '\n', n);
        if (!end || ret->count == STANDING_MAX || !parse_line(text, (size_t)(end - text), &ret->item[ret->count]))
            return false;
        ret->count++;
        n -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return true;
}

void standing_write(const struct standing_list *l, struct buf *out)
{
    for (size_t i = 0; i < l->count; i++)
        buf_addf(out, "%s %s %u %llu\n", l->item[i].allow ? "allow" : "deny", l->item[i].host, l->item[i].port,
                 (unsigned long long)l->item[i].until_unix);
}

/* --- where they are --- */

/* The folder that the box's project is, or has its box in. */
static bool project_of(const struct standing_of *of, char ret[PATH_BYTES_MAX])
{
    static const char inside[] = "/.pale/";
    const char *path = of->policy->project != PROJECT_NONE ? of->policy->project_path : NULL;
    const char *end = path || !of->data ? NULL : strrchr(of->data, '/');
    size_t n = path ? strlen(path) : 0;
    if (end && (size_t)(end - of->data) >= sizeof(inside) - 2 && memcmp(end - (sizeof(inside) - 2), inside, sizeof(inside) - 1) == 0) {
        path = of->data;
        n = (size_t)(end - of->data) - (sizeof(inside) - 2);
    }
    if (!path || n == 0 || n >= PATH_BYTES_MAX)
        return false;
    memcpy(ret, path, n);
    ret[n] = 0;
    return true;
}

int standing_find(const struct standing_of *of, enum verdict_scope scope, bool make, struct standing_path *ret, struct pale_err *e)
{
    char project[PATH_BYTES_MAX], hex[SHA256_HEX];
    if (scope == APPLIES_BOX) {
        if (!of->state || snprintf(ret->dir, sizeof(ret->dir), "%s", of->state) >= (int)sizeof(ret->dir))
            return err_set(e, PALE_BAD_INPUT, "a one-shot box keeps no answers");
        snprintf(ret->name, sizeof(ret->name), "approvals");
        return 0;
    }
    if (scope != APPLIES_PROJECT && scope != APPLIES_ALWAYS)
        return err_set(e, PALE_BAD_INPUT, "an answer for once stands nowhere");
    if (of->tenant && of->tenant[0])
        return err_set(e, PALE_BAD_INPUT, "an answer to a tenant's box stands for that box alone; give --once or --box");
    snprintf(ret->name, sizeof(ret->name), "always");
    if (scope == APPLIES_PROJECT) {
        if (!project_of(of, project))
            return err_set(e, PALE_BAD_INPUT, "the box belongs to no project; give --once, --box or --always");
        sha256_hex(project, strlen(project), hex);
        snprintf(ret->name, sizeof(ret->name), "project-%.16s", hex);
    }
    return place_approvals_dir(make, ret->dir, sizeof(ret->dir), e);
}

/* --- reading and writing --- */

static int read_list(int dir, const struct standing_path *p, struct standing_list *ret, struct pale_err *e)
{
    own_buf text = {0};
    own_fd fd = openat(dir, p->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    ret->count = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : err_os(e, "open %s/%s", p->dir, p->name);
    buf_init(&text, LIST_BYTES_MAX);
    int r = fd_read_all(fd, &text, e);
    if (r < 0)
        return err_prefix(e, "%s/%s", p->dir, p->name);
    if (!standing_parse(buf_text(&text), text.len, ret))
        return err_set(e, PALE_CORRUPT, "%s/%s is no list of answers (allow|deny HOST PORT UNTIL, a line each); mend or remove it", p->dir,
                       p->name);
    return 0;
}

int standing_read(const struct standing_path *p, struct standing_list *ret, struct pale_err *e)
{
    own_fd dir = open(p->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ret->count = 0;
    return dir < 0 ? err_os(e, "open %s", p->dir) : read_list(dir, p, ret, e);
}

bool standing_is_over(const struct standing *s, uint64_t now_unix)
{
    return s->until_unix && s->until_unix <= now_unix;
}

/* A list that is about to be written anew: of two who do that at once the second sees what the first has done. */
struct rewriting {
    int dir, lock;
    struct standing_list list;
    bool found; /* it said something that still held */
};

static void rewriting_done(struct rewriting *w)
{
    own_close(&w->dir);
    own_close(&w->lock);
}

/* Reads it but for what has expired and what it says about this host and port. */
static int begin(struct rewriting *w, const struct standing_path *p, const char *host, uint16_t port, uint64_t now_unix, struct pale_err *e)
{
    size_t kept = 0;
    w->dir = open(p->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    w->lock = w->dir < 0 ? -1 : openat(w->dir, "approvals.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (w->lock < 0 || flock(w->lock, LOCK_EX) < 0)
        return err_os(e, "lock %s", p->dir);
    struct standing_list *l = &w->list;
    int r = read_list(w->dir, p, l, e);
    for (size_t i = 0; r == 0 && i < l->count; i++) {
        if (standing_is_over(&l->item[i], now_unix))
            continue;
        if (l->item[i].port == port && strcmp(l->item[i].host, host) == 0)
            w->found = true;
        else
            l->item[kept++] = l->item[i];
    }
    l->count = kept;
    return r;
}

static int finish(struct rewriting *w, const struct standing_path *p, struct pale_err *e)
{
    own_buf text = {0};
    buf_init(&text, LIST_BYTES_MAX);
    standing_write(&w->list, &text);
    return text.failed ? err_nomem(e) : fd_replace_file(w->dir, p->name, text.data, text.len, 0600, true, e);
}

int standing_add(const struct standing_path *p, const struct standing *s, uint64_t now_unix, struct pale_err *e)
{
    CLEANUP(rewriting_done) struct rewriting w = {.dir = -1, .lock = -1};
    int r = begin(&w, p, s->host, s->port, now_unix, e);
    if (r < 0)
        return r;
    if (w.list.count == STANDING_MAX)
        return err_set(e, PALE_LIMIT, "%u answers stand in %s/%s already; write a rule, or `pale approvals forget` some", STANDING_MAX,
                       p->dir, p->name);
    w.list.item[w.list.count++] = *s;
    return finish(&w, p, e);
}

int standing_remove(const struct standing_path *p, const char *host, uint16_t port, uint64_t now_unix, struct pale_err *e)
{
    CLEANUP(rewriting_done) struct rewriting w = {.dir = -1, .lock = -1};
    int r = begin(&w, p, host, port, now_unix, e);
    if (r == 0 && !w.found)
        r = err_set(e, PALE_NOT_FOUND, "no answer about %s port %u stands in %s/%s", host, port, p->dir, p->name);
    return r == 0 ? finish(&w, p, e) : r;
}

size_t standing_gather(const struct standing_of *of, uint64_t now_unix, struct standing *ret, size_t cap, uint64_t *ret_next,
                       void (*trouble)(void *arg, const struct pale_err *e), void *arg)
{
    own_mem struct standing_list *l = malloc(sizeof(*l));
    struct standing_path path;
    size_t n = 0;
    *ret_next = 0;
    for (enum verdict_scope s = APPLIES_BOX; l && s < APPLIES_COUNT; s++) {
        struct pale_err e = {0};
        int r = standing_find(of, s, false, &path, &e);
        if (r == 0)
            r = standing_read(&path, l, &e);
        if (r < 0 && r != -PALE_BAD_INPUT && r != -PALE_NOT_FOUND && trouble)
            trouble(arg, &e);
        for (size_t i = 0; r == 0 && i < l->count && n < cap; i++) {
            uint64_t until = l->item[i].until_unix;
            if (standing_is_over(&l->item[i], now_unix))
                continue;
            ret[n++] = l->item[i];
            if (until && (!*ret_next || until < *ret_next))
                *ret_next = until;
        }
    }
    return n;
}
