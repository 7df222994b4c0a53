/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bundles. A hostile stream is received into a tree in memory, whose every operation checks that it is given one
 * plain name below the folder it was promised. What arrived is sent again from a real folder now and then, and must come out
 * the same. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Owning locals close through the tree in memory too. */
static int mem_close(int fd);
#define close mem_close
#include "base/own.h"
#undef close

#include "base/bundle.h"
#include "base/fd.h"
#include "base/quote.h"
#include "input.h"

/* --- a tree in memory --- */

enum kind { NONE, FILE_NODE, FOLDER, LINK };
#define NODES_MAX 512
#define FD_FIRST 1000
#define FD_IN 999

static struct node {
    enum kind kind;
    int parent;
    char name[256];
    mode_t mode;
    int64_t mtime;
    uint32_t sum; /* of the content, or of a link's target */
    size_t bytes;
} nodes[NODES_MAX];
static int node_count; /* node 0 stands outside, node 1 is the folder the bundle may write below */
static int open_node[NODES_MAX], open_count;
static struct input stream;

UNSEEN static void plain(const char *name)
{
    assert(name[0] && strlen(name) < 256 && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
}

UNSEEN static int folder_of(int fd)
{
    assert(fd >= FD_FIRST && fd < FD_FIRST + open_count && open_node[fd - FD_FIRST] > 0);
    int n = open_node[fd - FD_FIRST];
    assert(nodes[n].kind == FOLDER);
    return n;
}

UNSEEN static int find(int parent, const char *name)
{
    for (int i = 2; i < node_count; i++)
        if (nodes[i].kind != NONE && nodes[i].parent == parent && strcmp(nodes[i].name, name) == 0)
            return i;
    return -1;
}

UNSEEN static int make(int parent, const char *name, enum kind kind, mode_t mode)
{
    if (node_count == NODES_MAX)
        return errno = ENOSPC, -1;
    nodes[node_count] = (struct node){.kind = kind, .parent = parent, .mode = mode};
    memcpy(nodes[node_count].name, name, strlen(name) + 1);
    return node_count++;
}

UNSEEN static int open_as(int node)
{
    if (open_count == NODES_MAX)
        return errno = EMFILE, -1;
    open_node[open_count] = node;
    return FD_FIRST + open_count++;
}

UNSEEN static int mem_openat(int fd, const char *name, int flags, ...)
{
    int parent = folder_of(fd), n;
    plain(name);
    n = find(parent, name);
    assert(flags & O_NOFOLLOW && flags & O_CLOEXEC);
    if (flags & O_CREAT) {
        assert(flags & O_EXCL);
        if (n >= 0)
            return errno = EEXIST, -1;
        n = make(parent, name, FILE_NODE, 0600);
    } else if (n < 0) {
        return errno = ENOENT, -1;
    } else {
        assert(flags & O_DIRECTORY);
        if (nodes[n].kind != FOLDER)
            return errno = nodes[n].kind == LINK ? ELOOP : ENOTDIR, -1;
    }
    return n < 0 ? -1 : open_as(n);
}

UNSEEN static int mem_unlinkat(int fd, const char *name, int flags)
{
    int n = find(folder_of(fd), name);
    plain(name);
    assert(flags == 0);
    if (n < 0)
        return errno = ENOENT, -1;
    if (nodes[n].kind == FOLDER)
        return errno = EISDIR, -1;
    nodes[n].kind = NONE;
    return 0;
}

UNSEEN static int mem_mkdirat(int fd, const char *name, mode_t mode)
{
    plain(name);
    if (find(folder_of(fd), name) >= 0)
        return errno = EEXIST, -1;
    return make(folder_of(fd), name, FOLDER, mode) < 0 ? -1 : 0;
}

UNSEEN static void add_up(struct node *n, const void *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        n->sum = n->sum * 31 + ((const uint8_t *)p)[i];
    n->bytes += len;
}

UNSEEN static int mem_symlinkat(const char *target, int fd, const char *name)
{
    plain(name);
    assert(target[0]);
    if (find(folder_of(fd), name) >= 0)
        return errno = EEXIST, -1;
    int n = make(folder_of(fd), name, LINK, 0777);
    if (n >= 0)
        add_up(&nodes[n], target, strlen(target));
    return n < 0 ? -1 : 0;
}

UNSEEN static int mem_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    plain(from);
    plain(to);
    int n = find(folder_of(from_fd), from), there = find(folder_of(to_fd), to);
    assert(n >= 0 && from_fd == to_fd);
    if (there >= 0 && nodes[there].kind == FOLDER)
        return errno = EISDIR, -1;
    if (there >= 0 && there != n)
        nodes[there].kind = NONE;
    memcpy(nodes[n].name, to, strlen(to) + 1);
    return 0;
}

static struct node *open_file(int fd)
{
    assert(fd >= FD_FIRST && fd < FD_FIRST + open_count && open_node[fd - FD_FIRST] > 0);
    return &nodes[open_node[fd - FD_FIRST]];
}

static int mem_fchmod(int fd, mode_t mode)
{
    assert(mode <= 0777); /* no setuid bit comes through a bundle */
    open_file(fd)->mode = mode;
    return 0;
}

static int mem_futimens(int fd, const struct timespec t[2])
{
    open_file(fd)->mtime = t[1].tv_sec;
    return 0;
}

static bool mem_write_full(int fd, const void *p, size_t n)
{
    assert(open_file(fd)->kind == FILE_NODE);
    add_up(open_file(fd), p, n);
    return true;
}

static ssize_t mem_read_full(int fd, void *p, size_t n)
{
    size_t got;
    assert(fd == FD_IN);
    const uint8_t *from = input_bytes(&stream, n, &got);
    if (got)
        memcpy(p, from, got);
    return (ssize_t)got;
}

static int mem_close(int fd)
{
    if (fd < FD_FIRST)
        return (close)(fd);
    assert(open_file(fd));
    open_node[fd - FD_FIRST] = -1;
    return 0;
}

/* clang-format off: the receiving half works on the tree above; the sending half is not called here */
#define openat mem_openat
#define unlinkat mem_unlinkat
#define mkdirat mem_mkdirat
#define symlinkat mem_symlinkat
#define renameat mem_renameat
#define fchmod mem_fchmod
#define futimens mem_futimens
#define fd_write_full mem_write_full
#define fd_read_full mem_read_full
#define close mem_close
#define bundle_send bundle_send_unused
#define bundle_receive mem_receive
#include "base/bundle.c"
#undef openat
#undef unlinkat
#undef mkdirat
#undef symlinkat
#undef renameat
#undef fchmod
#undef futimens
#undef fd_write_full
#undef fd_read_full
#undef close
#undef bundle_send
#undef bundle_receive
/* clang-format on */

/* Does a relative target, read by a reader of its own, stay below the bundle's top when it stands in a folder at this depth? */
UNSEEN static void check_tree(const struct bundle_count *c)
{
    uint64_t files = 0, links = 0;
    for (int i = 2; i < node_count; i++) {
        files += nodes[i].kind == FILE_NODE;
        links += nodes[i].kind == LINK;
        assert(nodes[i].kind == NONE || nodes[i].parent >= 1);
    }
    assert(files <= c->files && links <= c->links + 1);
    assert(open_node[0] == 1);
    for (int i = 1; i < open_count; i++)
        assert(open_node[i] == -1); /* every descriptor but the caller's is closed */
}

/* --- a real folder, for the way there and back --- */

static int scratch = -1, pipe_fds[2];

static void remove_scratch(void)
{
    struct pale_err e;
    char path[64];
    snprintf(path, sizeof(path), "/dev/shm/pale-fuzz-bundle-%d", (int)getpid());
    (void)!fd_remove_tree(AT_FDCWD, path, &e);
}

static void open_scratch(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/dev/shm/pale-fuzz-bundle-%d", (int)getpid());
    atexit(remove_scratch);
    assert(mkdir(path, 0700) == 0 && (scratch = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
    assert(mkdirat(scratch, "a", 0700) == 0 && mkdirat(scratch, "b", 0700) == 0);
    assert(pipe2(pipe_fds, O_CLOEXEC) == 0 && fcntl(pipe_fds[0], F_SETPIPE_SZ, 1 << 20) > 0);
}

UNSEEN static void there_and_back(const uint8_t *data, size_t size, bool inner)
{
    struct bundle_count one = {0}, two = {0}, three = {0};
    struct pale_err e = {0};
    int fd[2];
    if (size > 60000)
        return;
    if (scratch < 0)
        open_scratch();
    int a = openat(scratch, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC), b = openat(scratch, "b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(a >= 0 && b >= 0 && pipe2(fd, O_CLOEXEC) == 0 && write(fd[1], data, size) == (ssize_t)size);
    close(fd[1]);
    int r = bundle_receive(fd[0], a, "x", inner, &one, &e);
    close(fd[0]);
    struct stat st;
    assert(fstatat(scratch, "x", &st, AT_SYMLINK_NOFOLLOW) < 0); /* nothing above the folder it was given */
    if (r == 0 && fstatat(a, "x", &st, AT_SYMLINK_NOFOLLOW) == 0 && one.bytes < 100000 && one.folders + one.files < 100) {
        assert(bundle_send(pipe_fds[1], a, "x", false, &two, &e) == 0);
        assert(two.skipped == 0 && two.files <= one.files && two.bytes <= one.bytes);
        assert(bundle_receive(pipe_fds[0], b, "y", false, &three, &e) == 0);
        assert(three.files == two.files && three.links == two.links && three.bytes == two.bytes && three.folders == two.folders);
    }
    close(a);
    close(b);
    (void)!fd_remove_tree(scratch, "a/x", &e);
    (void)!fd_remove_tree(scratch, "b/y", &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bundle_count c = {0};
    struct pale_err e = {0};
    struct input in = {data, size};
    uint8_t flags = input_byte(&in);
    node_count = 2;
    nodes[1] = (struct node){.kind = FOLDER};
    open_node[0] = 1;
    open_count = 1;
    stream = in;
    int r = mem_receive(FD_IN, FD_FIRST, "copy", flags & 1, &c, &e);
    assert(r == 0 || e.text[0]);
    check_tree(&c);
    if (r == 0 && (size * 7 + flags) % 16 == 0)
        there_and_back(in.at, in.left, flags & 1);
    return 0;
}
