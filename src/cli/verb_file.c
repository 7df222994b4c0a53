/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about files of a box: cp, cat, write, files.
 *
 * Paths of the box are resolved in the box, by builtins of pale-init that run as a command would. What comes out is hostile: a
 * listing is parsed strictly and quoted, and a tree is received through base/bundle, which never follows a symlink and never
 * leaves the folder it was given. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bundle.h"
#include "base/limits.h"
#include "base/number.h"
#include "base/path.h"
#include "base/quote.h"
#include "cli/cli.h"
#include "cli/lookup.h"
#include "cli/reach.h"
#include "cli/session.h"
#include "cli/verbs.h"

/* One builtin request: who, what, and its streams. */
struct request {
    struct reach reach;
    struct msg_exec exec;
    struct session session;
    char label[512];
};

static int open_request(struct args *a, const char *box, struct request *q, struct pale_err *e)
{
    struct place p;
    reach_init(&q->reach);
    int r = lookup_box(a, box, &p, e);
    return r < 0 ? r : reach_box(&q->reach, &p, true, e);
}

static void set_builtin(struct request *q, const char *name, const char *path, const char *third)
{
    snprintf(q->label, sizeof(q->label), "%s %.400s", name, path);
    q->exec = (struct msg_exec){.flags = EXEC_BUILTIN, .user = "", .cwd = "", .label = q->label, .argc = 2};
    q->exec.argv[0] = name;
    q->exec.argv[1] = path;
    if (third)
        q->exec.argv[q->exec.argc++] = third;
    session_init(&q->session, &q->reach, &q->exec);
}

/* The builtin's own complaint becomes our error. */
static int finish(struct request *q, struct buf *complaint, struct pale_err *e)
{
    struct msg_result r;
    q->session.err = complaint;
    int res = session_run(&q->session, &r, e);
    if (res < 0)
        return res;
    if (r.flags & RESULT_TRUNCATED)
        return err_set(e, PALE_LIMIT, "the box's output limit cut the answer");
    size_t n = complaint->len;
    while (n > 0 && complaint->data[n - 1] == '\n')
        n--;
    if (r.status == 0) {
        char shown[600];
        if (n > 0)
            cli_note("in the box: %s", quote_into(shown, sizeof(shown), complaint->data, n));
        return 0;
    }
    if (n == 0)
        return err_set(e, PALE_OS, "%s", r.message[0] ? r.message : "the request failed in the box");
    own_buf shown = {0};
    buf_init(&shown, 1024);
    quote_text(&shown, complaint->data, n, 500);
    enum pale_code code = strstr(buf_text(&shown), "No such file") ? PALE_NOT_FOUND : PALE_OS;
    return err_set(e, code, "in the box: %s", buf_text(&shown));
}

static struct request request;

static int run_cat(struct args *a)
{
    struct pale_err e;
    own_buf complaint = {0};
    buf_init(&complaint, 4096);
    for (int i = 1; i < a->count; i++) {
        if (open_request(a, a->word[0], &request, &e) < 0)
            return cli_fail(a, &e);
        set_builtin(&request, "read", a->word[i], NULL);
        int r = finish(&request, &complaint, &e);
        reach_close(&request.reach);
        if (r < 0)
            return cli_fail(a, &e);
    }
    return 0;
}

static int run_write(struct args *a)
{
    struct pale_err e;
    own_buf complaint = {0};
    char mode[16] = "420"; /* 0644 */
    const char *m = args_get(a, "mode");
    buf_init(&complaint, 4096);
    if (m) {
        unsigned v = 0;
        for (const char *c = m; *c; c++)
            v = *c >= '0' && *c <= '7' && v < 01000 ? v * 8 + (unsigned)(*c - '0') : 07777777;
        if (!*m || v > 0777) {
            err_set(&e, PALE_BAD_INPUT, "--mode %s: write it in octal, 000 to 777", m);
            return cli_fail(a, &e);
        }
        snprintf(mode, sizeof(mode), "%u", v);
    }
    if (open_request(a, a->word[0], &request, &e) < 0)
        return cli_fail(a, &e);
    set_builtin(&request, "write", a->word[1], mode);
    request.exec.flags |= EXEC_STDIN;
    request.session.forward_input = true;
    return finish(&request, &complaint, &e) < 0 ? cli_fail(a, &e) : 0;
}

/* --- files --- */

struct entry {
    char type;
    uint64_t mode, size, mtime;
    const char *name, *target;
};

/* "t mode size mtime name\0target\0" */
static bool take_entry(const char **at, const char *end, struct entry *ret)
{
    const char *p = *at;
    char word[3][24];
    if (end - p < 8 || p[1] != ' ')
        return false;
    ret->type = p[0];
    p += 2;
    for (int i = 0; i < 3; i++) {
        const char *space = memchr(p, ' ', (size_t)(end - p));
        if (!space || (size_t)(space - p) >= sizeof(word[0]))
            return false;
        snprintf(word[i], sizeof(word[i]), "%.*s", (int)(space - p), p);
        p = space + 1;
    }
    const char *nul = memchr(p, 0, (size_t)(end - p));
    const char *second = nul ? memchr(nul + 1, 0, (size_t)(end - nul - 1)) : NULL;
    if (!second || !strchr("fdlpscb?", ret->type) || !number_u64(word[0], 7777, &ret->mode) ||
        !number_u64(word[1], UINT64_MAX, &ret->size) || !number_u64(word[2], UINT64_MAX, &ret->mtime))
        return false;
    ret->name = p;
    ret->target = nul + 1;
    *at = second + 1;
    return true;
}

static int show_entries(struct args *a, const struct buf *out, struct pale_err *e)
{
    struct table t;
    struct json j;
    own_buf b = {0};
    const char *at = (const char *)out->data, *end = at + out->len;
    buf_init(&b, 256 << 20);
    json_start(&j, &b);
    json_list(&j, NULL);
    table_init(&t, NULL, 4);
    while (out->len > 0 && at < end) {
        struct entry en;
        char size[32], mode[16], name[2 * PATH_BYTES_MAX];
        if (!take_entry(&at, end, &en))
            return err_set(e, PALE_PROTOCOL, "the listing cannot be read");
        json_object(&j, NULL);
        json_text(&j, "name", en.name);
        json_text(&j, "type", (char[]){en.type, 0});
        json_u64(&j, "size", en.size);
        json_text(&j, "mode", (snprintf(mode, sizeof(mode), "%04llu", (unsigned long long)en.mode), mode));
        json_u64(&j, "mtime", en.mtime);
        if (en.type == 'l')
            json_text(&j, "target", en.target);
        json_end_object(&j);
        snprintf(name, sizeof(name), "%s%s%s%s", en.name, en.type == 'd' ? "/" : "", en.type == 'l' ? " -> " : "", en.target);
        table_cell(&t, (char[]){en.type, 0});
        table_cell(&t, mode);
        table_cell(&t, en.type == 'f' ? number_show_bytes(en.size, size, sizeof(size)) : "-");
        table_cell(&t, name);
    }
    json_end_list(&j);
    if (a->json)
        return cli_json(&b) ? -PALE_OS : 0;
    if (out->len > 0)
        table_print(&t);
    return 0;
}

static int run_files(struct args *a)
{
    struct pale_err e;
    own_buf complaint = {0}, out = {0};
    buf_init(&complaint, 4096);
    buf_init(&out, 64 << 20);
    if (open_request(a, a->word[0], &request, &e) < 0)
        return cli_fail(a, &e);
    set_builtin(&request, "list", a->count > 1 ? a->word[1] : ".", NULL);
    request.session.out = &out;
    if (finish(&request, &complaint, &e) < 0)
        return cli_fail(a, &e);
    if (out.failed)
        return err_set(&e, PALE_LIMIT, "the listing is longer than 64 MiB"), cli_fail(a, &e);
    return show_entries(a, &out, &e) < 0 ? cli_fail(a, &e) : 0;
}

/* --- cp --- */

/* BOX:PATH, where BOX is a box name and PATH is not empty. */
static bool split_box(const char *word, char box[BOX_NAME_MAX + 1], const char **ret_path)
{
    const char *colon = strchr(word, ':');
    size_t n = colon ? (size_t)(colon - word) : 0;
    if (n == 0 || n > BOX_NAME_MAX || !colon[1])
        return false;
    memcpy(box, word, n);
    box[n] = 0;
    *ret_path = colon + 1;
    return path_is_box_name(box);
}

static const char *last_name(const char *path)
{
    static char name[PATH_BYTES_MAX];
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t start = n;
    while (start > 0 && path[start - 1] != '/')
        start--;
    snprintf(name, sizeof(name), "%.*s", (int)(n - start), path + start);
    return name;
}

/* Bundles go through a child that reads or writes files while we carry bytes. */
static pid_t start_bundle(int *fd, bool sending, int dirfd, const char *name)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        struct bundle_count count;
        struct pale_err e;
        close(sending ? p[0] : p[1]);
        int r = sending ? bundle_send(p[1], dirfd, name, true, &count, &e) : bundle_receive(p[0], dirfd, name, true, &count, &e);
        if (r < 0)
            cli_complain(e.text);
        else if (count.skipped)
            fprintf(stderr, "pale: %llu entries were left out: no files, folders or symlinks, or links that lead out\n",
                    (unsigned long long)count.skipped);
        fflush(stderr);
        _exit(r < 0 ? 1 : 0);
    }
    close(sending ? p[1] : p[0]);
    *fd = sending ? p[0] : p[1];
    return pid;
}

static int end_bundle(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The folder and name that a host destination means, as cp does: into an existing folder, else as that name. */
static int host_target(const char *path, const char *source_name, int *ret_dir, char *ret_name, size_t cap, struct pale_err *e)
{
    struct stat st;
    char dir[PATH_BYTES_MAX];
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        snprintf(dir, sizeof(dir), "%s", path);
        snprintf(ret_name, cap, "%s", source_name);
    } else {
        const char *slash = strrchr(path, '/');
        snprintf(dir, sizeof(dir), "%.*s", slash ? slash == path ? 1 : (int)(slash - path) : 1, slash ? path : ".");
        snprintf(ret_name, cap, "%s", slash ? slash + 1 : path);
    }
    *ret_dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_dir < 0)
        return err_os(e, "open folder %s", dir);
    return ret_name[0] ? 0 : err_set(e, PALE_BAD_INPUT, "%s names no file", path);
}

static int copy_out(struct args *a, const char *box, const char *path, const char *to)
{
    struct pale_err e;
    own_buf complaint = {0};
    char name[PATH_BYTES_MAX];
    own_fd dir = -1, fd = -1;
    buf_init(&complaint, 4096);
    if (host_target(to, last_name(path), &dir, name, sizeof(name), &e) < 0 || open_request(a, box, &request, &e) < 0)
        return cli_fail(a, &e);
    pid_t pid = start_bundle(&fd, false, dir, name);
    if (pid < 0)
        return err_os(&e, "start the copy"), cli_fail(a, &e);
    set_builtin(&request, "pack", path, NULL);
    request.session.out_fd = fd;
    int r = finish(&request, &complaint, &e);
    own_close(&fd);
    int child = end_bundle(pid);
    if (r < 0)
        return cli_fail(a, &e);
    return child ? 125 : 0;
}

/* Is the box's path a folder? Then things are copied into it. */
static bool is_box_folder(struct args *a, const char *box, const char *path)
{
    struct pale_err e;
    own_buf complaint = {0}, out = {0};
    struct entry en;
    buf_init(&complaint, 4096);
    buf_init(&out, 65536);
    if (open_request(a, box, &request, &e) < 0)
        return false;
    char with_dot[PATH_BYTES_MAX];
    snprintf(with_dot, sizeof(with_dot), "%s/.", path);
    set_builtin(&request, "stat", with_dot, NULL);
    request.session.out = &out;
    int r = finish(&request, &complaint, &e);
    reach_close(&request.reach);
    const char *at = (const char *)out.data;
    return r == 0 && out.len > 0 && take_entry(&at, at + out.len, &en) && en.type == 'd';
}

static int copy_in(struct args *a, const char *from, const char *box, const char *path)
{
    struct pale_err e;
    own_buf complaint = {0};
    char target[PATH_BYTES_MAX];
    own_fd fd = -1;
    buf_init(&complaint, 4096);
    struct stat st;
    if (stat(from, &st) < 0)
        return err_os(&e, "%s", from), cli_fail(a, &e);
    if (is_box_folder(a, box, path))
        path_join(target, sizeof(target), path, last_name(from));
    else
        snprintf(target, sizeof(target), "%s", path);
    if (open_request(a, box, &request, &e) < 0)
        return cli_fail(a, &e);
    pid_t pid = start_bundle(&fd, true, AT_FDCWD, from);
    if (pid < 0)
        return err_os(&e, "start the copy"), cli_fail(a, &e);
    set_builtin(&request, "unpack", target, NULL);
    request.exec.flags |= EXEC_STDIN;
    request.session.forward_input = true;
    request.session.in_fd = fd;
    int r = finish(&request, &complaint, &e);
    own_close(&fd);
    int child = end_bundle(pid);
    if (r < 0)
        return cli_fail(a, &e);
    return child ? 125 : 0;
}

static int run_cp(struct args *a)
{
    struct pale_err e;
    char box[2][BOX_NAME_MAX + 1];
    const char *path[2];
    bool from_box = split_box(a->word[0], box[0], &path[0]), to_box = split_box(a->word[1], box[1], &path[1]);
    if (from_box == to_box) {
        err_set(&e, PALE_BAD_INPUT,
                "one of the two must be BOX:PATH and the other a path of the host (write ./a:b for a name with a colon)");
        return cli_fail(a, &e);
    }
    return from_box ? copy_out(a, box[0], path[0], a->word[1]) : copy_in(a, a->word[0], box[1], path[1]);
}

static const struct option write_options[] = {{"mode", 0, "MODE", "permissions in octal (644)", NULL}, {0}};
static const struct option *const plain_tables[] = {scope_options, common_options, NULL};
static const struct option *const write_tables[] = {write_options, scope_options, common_options, NULL};

const struct verb verb_cp = {
    "cp",
    "Files",
    "copy files and folders in or out",
    "BOX:PATH HOSTPATH | HOSTPATH BOX:PATH",
    "Copies a file or a whole tree. Symlinks are copied as links and never followed; links that lead out of the tree\n"
    "are left out on the way to the host; setuid bits are dropped.",
    plain_tables,
    2,
    2,
    -1,
    run_cp};
const struct verb verb_cat = {
    "cat", "Files", "print files of a box", "BOX PATH …", "Byte for byte on standard output.", plain_tables, 2, -1, -1, run_cat};
const struct verb verb_write = {"write",
                                "Files",
                                "write a file of a box",
                                "[--mode MODE] BOX PATH",
                                "Standard input becomes the file; readers see the old content or the new, never a part.",
                                write_tables,
                                2,
                                2,
                                -1,
                                run_write};
const struct verb verb_files = {
    "files", "Files",  "list a folder of a box", "BOX [PATH]", "Type, mode, size and name; names are shown quoted.", plain_tables, 1, 2,
    -1,      run_files};
