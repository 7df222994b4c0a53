/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the source mmdebstrap: a Debian or Ubuntu root, made by that program out of the archive this host uses itself.
 *
 * How it works: mmdebstrap picks the way it can go (as root, with subordinate ids, with fakechroot) and writes a tar to its standard
 * output, so no file of another owner ever stands on our disk; the tar is unpacked in a box like any other. Of the host's apt sources those
 * of its own distribution are used, with the suite's name in the place of the host's, and apt's proxy is handed on as a variable.
 * So no address stands in this program. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "cli/build.h"
#include "cli/listen.h"

#define SOURCES_MAX (1u << 20)
#define WORD "abcdefghijklmnopqrstuvwxyz0123456789.-"

/* --- suites --- */

/* VERSION_CODENAME of the host. */
static int host_suite(char ret[64], struct pale_err *e)
{
    static const char key[] = "VERSION_CODENAME=";
    own_buf text = {0};
    buf_init(&text, 65536);
    own_fd fd = open("/etc/os-release", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fd_read_all(fd, &text, e) < 0)
        return err_set(e, PALE_UNSUPPORTED, "/etc/os-release cannot be read; say which suite with --suite");
    for (const char *at = buf_text(&text); *at;) {
        size_t n = strcspn(at, "\n");
        if (strncmp(at, key, strlen(key)) == 0) {
            const char *name = at + strlen(key) + (at[strlen(key)] == '"');
            snprintf(ret, 64, "%.*s", (int)strspn(name, WORD), name);
            return *ret ? 0 : err_set(e, PALE_UNSUPPORTED, "this host does not say which suite it is of; give --suite");
        }
        at += n + (at[n] == '\n');
    }
    return err_set(e, PALE_UNSUPPORTED, "this host does not say which suite it is of; give --suite");
}

/* Words that go on a command line: nothing that could be a flag or a path. */
static int check_words(const char *flag, const char *value, const char *also, struct pale_err *e)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-";
    bool good = *value && *value != '-' && strlen(value) < 4096;
    for (const char *c = value; good && *c; c++)
        good = strchr(plain, *c) || strchr(also, *c);
    return good ? 0 : err_set(e, PALE_BAD_INPUT, "--%s %.100s: letters, digits and .+- make one", flag, value);
}

/* --- the host's sources --- */

/* One paragraph, or one line of the older kind, about the host's own distribution? It names the suite, and the part every archive of a
 * distribution has. */
static bool is_of(const char *p, size_t n, const char *suite)
{
    bool named = false, main = false;
    size_t len = strlen(suite);
    for (size_t i = 0; i < n;) {
        size_t blanks = strspn(p + i, " \t\n"), word = strcspn(p + i + blanks, " \t\n");
        const char *w = p + i + blanks;
        named |= word >= len && strncmp(w, suite, len) == 0 && (word == len || w[len] == '-');
        main |= word == 4 && strncmp(w, "main", 4) == 0;
        i += blanks + word + (word == 0);
    }
    return named && main;
}

/* The same, with another suite's name. */
static void add_renamed(struct buf *out, const char *p, size_t n, const char *from, const char *to)
{
    size_t len = strlen(from);
    for (size_t i = 0; i < n;) {
        bool begins = i == 0 || strchr(" \t", p[i - 1]);
        bool here = begins && i + len <= n && strncmp(p + i, from, len) == 0 && (i + len == n || strchr(" \t\n-", p[i + len]));
        if (here)
            buf_add_text(out, to);
        else
            buf_add(out, p + i, 1);
        i += here ? len : 1;
    }
}

struct sources {
    const char *host, *wanted; /* suites */
    struct buf lines, paragraphs;
};

/* What is switched off is not ours to switch on. */
static bool is_off(const char *p, size_t n)
{
    for (size_t i = 0; i + 11 < n; i++)
        if ((i == 0 || p[i - 1] == '\n') && strncasecmp(p + i, "Enabled: no", 11) == 0)
            return true;
    return false;
}

static void take_text(struct sources *s, const char *text, bool paragraphs)
{
    const char *end = paragraphs ? "\n\n" : "\n";
    for (const char *at = text; *at;) {
        const char *stop = strstr(at, end);
        size_t n = stop ? (size_t)(stop - at) : strlen(at);
        bool takes = paragraphs ? !is_off(at, n) : strncmp(at, "deb ", 4) == 0;
        if (takes && is_of(at, n, s->host)) {
            struct buf *out = paragraphs ? &s->paragraphs : &s->lines;
            add_renamed(out, at, n, s->host, s->wanted);
            buf_add_text(out, paragraphs ? "\n\n" : "\n");
        }
        at += n + (stop ? strlen(end) : 0);
    }
}

static void take_source(struct sources *s, int dir, const char *name)
{
    const char *dot = strrchr(name, '.');
    bool lines = dot && strcmp(dot, ".list") == 0, paragraphs = dot && strcmp(dot, ".sources") == 0;
    own_buf text = {0};
    struct pale_err e;
    if (!lines && !paragraphs)
        return;
    own_fd fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    buf_init(&text, SOURCES_MAX);
    if (fd >= 0 && fd_read_all(fd, &text, &e) == 0)
        take_text(s, buf_text(&text), paragraphs);
}

static void take_sources(struct sources *s)
{
    own_fd apt = open("/etc/apt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (apt < 0)
        return;
    take_source(s, apt, "sources.list");
    int list = openat(apt, "sources.list.d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = list < 0 ? NULL : fdopendir(list);
    for (const struct dirent *en; d && (en = readdir(d));)
        take_source(s, list, en->d_name);
    if (d)
        closedir(d);
    else
        own_close(&list);
}

/* Into a file of the staging, which is gone when the image is there. Its path, or "" if there is nothing to say. */
static int put_source(struct build *b, const char *name, struct buf *text, char ret[PATH_BYTES_MAX], struct pale_err *e)
{
    *ret = 0;
    if (text->len == 0)
        return 0;
    if (text->failed || !path_join(ret, PATH_BYTES_MAX, b->staging.path, name))
        return err_nomem(e);
    return fd_write_new(b->staging.fd, name, text->data, text->len, 0644, false, e);
}

/* --- the proxy --- */

/* What apt's configuration says is a variable to mmdebstrap, unless there is one. */
static void find_proxy(const char *key, char ret[512])
{
    own_buf text = {0};
    struct pale_err e;
    buf_init(&text, 4096);
    *ret = 0;
    char *argv[] = {(char *)"apt-config", (char *)"dump", (char *)"--format", (char *)"%v%n", (char *)key, NULL};
    if (listen_to(argv, &text, &e) < 0)
        return;
    const char *value = buf_text(&text);
    size_t n = strcspn(value, "\n");
    if (n > 0 && n < 512 && strncmp(value, "DIRECT", 6) != 0)
        snprintf(ret, 512, "%.*s", (int)n, value);
}

/* --- */

static int take_flags(struct build *b, struct sources *s, char host[64], struct pale_err *e)
{
    struct manifest *m = &b->manifest;
    const char *suite = args_get(b->args, "suite");
    m->variant = args_get(b->args, "variant") ? args_get(b->args, "variant") : "apt";
    m->include = args_get(b->args, "include");
    int r = host_suite(host, e);
    if (r < 0 && suite) {
        *host = 0;
        r = 0;
    }
    if (r == 0 && suite)
        r = check_words("suite", suite, "/", e);
    if (r == 0)
        r = check_words("variant", m->variant, "", e);
    if (r == 0 && m->include)
        r = check_words("include", m->include, ",:", e);
    if (r < 0)
        return r;
    if (strlen(suite ? suite : host) >= sizeof(b->suite))
        return err_set(e, PALE_BAD_INPUT, "--suite %.100s: it is too long", suite);
    snprintf(b->suite, sizeof(b->suite), "%s", suite ? suite : host);
    m->suite = s->wanted = b->suite;
    s->host = host;
    if (*host)
        take_sources(s);
    return 0;
}

static int run(struct build *b, char *const argv[], struct pale_err *e)
{
    char http[512], https[512];
    const char *env[8] = {NULL};
    size_t n = 0;
    own_spout s = SPOUT_NONE;
    find_proxy("Acquire::http::Proxy", http);
    find_proxy("Acquire::https::Proxy", https);
    if (*http)
        env[n++] = "http_proxy", env[n++] = http;
    if (*https)
        env[n++] = "https_proxy", env[n++] = https;
    build_say(b, "mmdebstrap makes %s (%s); this takes a while", b->suite, b->manifest.variant);
    int r = spout_program(&s, argv, env, e);
    return r < 0 ? r : build_unpack(b, &s, b->root, "whole", b->source_hex, &b->manifest.source_bytes, e);
}

/* mmdebstrap leaves the host's own there. A box has others, and an image should tell of no host. */
static int forget_host(struct build *b, struct pale_err *e)
{
    static const char *const names[] = {"hostname", "resolv.conf"};
    own_fd etc = fd_open_beneath(b->root_fd, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (etc < 0 || (unlinkat(etc, names[i], 0) < 0 && errno != ENOENT))
            return err_os(e, "empty etc/%s of the image", names[i]);
        own_fd empty = openat(etc, names[i], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (empty < 0)
            return err_os(e, "empty etc/%s of the image", names[i]);
    }
    return 0;
}

int build_debian(struct build *b, struct pale_err *e)
{
    char host[64] = "", variant[4200], include[4200], lines[PATH_BYTES_MAX], paragraphs[PATH_BYTES_MAX];
    struct sources s = {0};
    buf_init(&s.lines, SOURCES_MAX);
    buf_init(&s.paragraphs, SOURCES_MAX);
    int r = take_flags(b, &s, host, e);
    if (r == 0)
        r = put_source(b, "sources.list", &s.lines, lines, e);
    if (r == 0)
        r = put_source(b, "sources.sources", &s.paragraphs, paragraphs, e);
    buf_done(&s.lines);
    buf_done(&s.paragraphs);
    if (r < 0)
        return r;
    snprintf(variant, sizeof(variant), "--variant=%s", b->manifest.variant);
    snprintf(include, sizeof(include), "--include=%s", b->manifest.include ? b->manifest.include : "");
    char *argv[10] = {(char *)"mmdebstrap", (char *)"--format=tar", variant};
    size_t n = 3;
    if (b->manifest.include)
        argv[n++] = include;
    argv[n++] = b->suite;
    argv[n++] = (char *)"-";
    if (*lines)
        argv[n++] = lines;
    if (*paragraphs)
        argv[n++] = paragraphs;
    b->manifest.source_digest = b->source_hex;
    r = run(b, argv, e);
    if (r < 0 && strncmp(e->text, "mmdebstrap failed", 17) == 0 && geteuid() != 0)
        return err_prefix(e, "as an ordinary user mmdebstrap needs subordinate ids (`pale doctor` tells) or fakechroot");
    return r < 0 ? r : forget_host(b, e);
}
