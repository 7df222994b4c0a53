/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from flags and policy files to a policy. */
#include "cli/boxflags.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "box/place.h"
#include "confine/weaken.h"

extern char **environ;

const struct option box_options[] = {
    {"policy", 'P', "FILE", "start from a policy or capability file (YAML or JSON)", NULL},
    {"project", 'p', "MODE", "show the working folder: live, ro or none (none)", "project.mode"},
    {"project-path", 0, "DIR", "… this folder instead", "project.path"},
    {"read", 'r', "PATH", "show a host path, read-only", "read"},
    {"write", 0, "PATH", "show a host path, writable", "write"},
    {"volume", 'v', "HOST:TARGET[:ro|rw]", "show a host path elsewhere", "volumes"},
    {"volume-root", 0, "DIR", "every volume must lie below it", "volume_root"},
    {"network", 0, "MODE", "none (default); others are refused until they can be held", "network.mode"},
    {"net", 0, "MODE", "the same", "network.mode"},
    {"env", 'e', "NAME[=VALUE]", "set a variable, or let the host's pass", "env"},
    {"memory", 'm', "SIZE", "memory of the whole box (512M)", "limits.memory"},
    {"processes", 0, "N", "processes and threads at once", "limits.processes"},
    {"pids-limit", 0, "N", "the same", "limits.processes"},
    {"cpu", 0, "SECONDS", "CPU time of one command", "limits.cpu_seconds"},
    {"cpus", 0, "N", "CPUs at most (1.5)", "limits.cpu_share"},
    {"disk", 0, "SIZE", "what the box may write (with --scratch memory)", "limits.disk"},
    {"wall", 0, "TIME", "longest run of any command (10m)", "limits.wall"},
    {"output", 0, "SIZE", "output one command may hand back", "limits.output"},
    {"scratch", 0, "disk|memory", "where the box's own writes go", "scratch"},
    {"seccomp", 0, "PROFILE", "strict (default), debug, image-build", "seccomp"},
    {"tier", 0, "TIER", "auto (default), native, gvisor, microvm", "tier"},
    {"image", 0, "NAME", "a root of its own instead of the host's /usr", "image"},
    {0},
};

static int drain(int fd, struct buf *b)
{
    char block[4096];
    ssize_t n = read(fd, block, sizeof(block));
    if (n > 0)
        buf_add(b, block, (size_t)n);
    return n < 0 && errno == EINTR ? 1 : (int)n;
}

/* Reads both pipes to their ends. */
static void collect(int out_fd, int err_fd, struct buf *out, struct buf *err)
{
    struct pollfd p[2] = {{.fd = out_fd, .events = POLLIN}, {.fd = err_fd, .events = POLLIN}};
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return;
        if (p[0].revents && drain(p[0].fd, out) <= 0)
            p[0].fd = -1;
        if (p[1].revents && drain(p[1].fd, err) <= 0)
            p[1].fd = -1;
    }
}

int boxflags_read_file(const char *file, bool json_errors, struct buf *out, struct buf *complaints, struct pale_err *e)
{
    char program[PATH_BYTES_MAX];
    int o[2], x[2], status = -1;
    int r = place_program("pale-policy", program, sizeof(program), e);
    if (r < 0)
        return r;
    if (pipe2(o, O_CLOEXEC) < 0 || pipe2(x, O_CLOEXEC) < 0)
        return err_os(e, "pipe");
    char *argv[] = {(char *)"pale-policy", (char *)"--errors", (char *)(json_errors ? "json" : "text"), (char *)"--", (char *)file, NULL};
    char *const *envp = weaken_envp(); /* nothing, but in a test build */
    pid_t pid = vfork();
    if (pid == 0) {
        dup2(o[1], 1);
        dup2(x[1], 2);
        execve(program, argv, envp);
        _exit(125);
    }
    close(o[1]);
    close(x[1]);
    if (pid > 0) {
        collect(o[0], x[0], out, complaints);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(o[0]);
    close(x[0]);
    if (pid < 0)
        return err_os(e, "start pale-policy");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !out->failed)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
        return err_set(e, PALE_BAD_INPUT, "%s is not a valid policy", file);
    size_t n = complaints->len;
    while (n > 0 && complaints->data[n - 1] == '\n')
        n--;
    return err_set(e, PALE_OS, "%.*s", n ? (int)n : 28, n ? (const char *)complaints->data : "pale-policy could not run it");
}

static int load_base(const struct args *a, struct policy *ret, struct pale_err *e)
{
    const char *file = args_get(a, "policy");
    if (!file)
        return policy_init(ret, e);
    own_buf out = {0}, complaints = {0};
    buf_init(&out, POLICY_TEXT_MAX);
    buf_init(&complaints, 65536);
    int r = boxflags_read_file(file, false, &out, &complaints, e);
    if (r < 0 && complaints.len > 0 && e->code == PALE_BAD_INPUT)
        fwrite(complaints.data, 1, complaints.len, stderr);
    return r < 0 ? r : policy_parse(buf_text(&out), out.len, ret, e);
}

/* Host paths are made real before they enter a policy, so that what is mounted later is what was meant now. */
static int real_path(const char *path, char *ret, struct pale_err *e)
{
    return realpath(path, ret) ? 0 : err_os(e, "%s", path);
}

static int set_volume(struct policy *p, const char *value, struct pale_err *e)
{
    char host[PATH_BYTES_MAX], real[PATH_BYTES_MAX], whole[2 * PATH_BYTES_MAX];
    const char *colon = strchr(value, ':');
    if (!colon || (size_t)(colon - value) >= sizeof(host))
        return err_set(e, PALE_BAD_INPUT, "--volume %s: write HOST:TARGET or HOST:TARGET:ro", value);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - value), value);
    int r = real_path(host, real, e);
    if (r < 0)
        return r;
    snprintf(whole, sizeof(whole), "%s%s", real, colon);
    return policy_set(p, "volumes", whole, e);
}

static int set_one(struct policy *p, const struct option *o, const char *value, struct pale_err *e)
{
    char real[PATH_BYTES_MAX];
    if (strcmp(o->key, "env") == 0)
        return policy_set(p, strchr(value, '=') ? "env.set" : "env.pass", value, e);
    if (strcmp(o->key, "volumes") == 0)
        return set_volume(p, value, e);
    if (strcmp(o->key, "read") == 0 || strcmp(o->key, "write") == 0 || strcmp(o->key, "project.path") == 0 ||
        strcmp(o->key, "volume_root") == 0) {
        int r = real_path(value, real, e);
        return r < 0 ? r : policy_set(p, o->key, real, e);
    }
    return policy_set(p, o->key, value, e);
}

void boxflags_pass_env(const struct policy *p, struct msg_exec *m)
{
    for (char **at = environ; p->env_pass.count && *at; at++) {
        char name[256];
        size_t n = strcspn(*at, "=");
        bool set = n == 0 || n >= sizeof(name) || m->envc == EXEC_STRINGS_MAX;
        for (size_t i = 0; !set && i < m->envc; i++)
            set = strncmp(m->env[i], *at, n + 1) == 0;
        if (set)
            continue;
        memcpy(name, *at, n);
        name[n] = 0;
        if (policy_passes_env(p, name))
            m->env[m->envc++] = *at;
    }
}

int boxflags_policy(const struct args *a, struct policy *ret, struct pale_err *e)
{
    own_policy p = {0};
    int r = load_base(a, &p, e);
    for (int i = 0; r == 0 && i < a->given_count; i++)
        if (a->given[i].option->key) {
            r = set_one(&p, a->given[i].option, a->given[i].value, e);
            if (r < 0)
                err_prefix(e, "--%s", a->given[i].option->name);
        }
    if (r == 0 && p.project != PROJECT_NONE && !p.project_path) {
        char cwd[PATH_BYTES_MAX];
        if (!realpath(".", cwd))
            return err_os(e, "find the working folder");
        r = policy_set(&p, "project.path", cwd, e);
    }
    if (r == 0)
        r = policy_check(&p, e);
    if (r == 0)
        r = policy_held(&p, e);
    if (r == 0) {
        *ret = p;
        p = (struct policy){0};
    }
    return r;
}
