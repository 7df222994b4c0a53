/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of policies from outside to a struct policy. */
#include "box/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/own.h"
#include "box/imageref.h"
#include "box/place.h"
#include "box/presetfile.h"
#include "confine/weaken.h"

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

int intake_file(const char *file, int in_fd, bool json_errors, struct buf *out, struct buf *complaints, struct pale_err *e)
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
        if (in_fd >= 0)
            dup2(in_fd, 0);
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
        return err_set(e, PALE_BAD_INPUT, "%s: write HOST:TARGET or HOST:TARGET:ro", value);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - value), value);
    int r = real_path(host, real, e);
    if (r < 0)
        return r;
    snprintf(whole, sizeof(whole), "%s%s", real, colon);
    return policy_set(p, "volumes", whole, e);
}

/* A rule as a flag gives it, which says the verdict itself. */
static int set_rule(struct policy *p, const char *verdict, const char *value, struct pale_err *e)
{
    size_t skip = value[0] == '[' ? strcspn(value, "]") : 0, n = skip + strcspn(value + skip, "=@+");
    own_buf text = {0};
    if (value[n] == '=')
        return err_set(e, PALE_BAD_INPUT, "%s: the flag says %s already; take the verdict out", value, verdict);
    buf_init(&text, POLICY_TEXT_MAX);
    buf_addf(&text, "%.*s=%s%s", (int)n, value, verdict, value + n);
    return text.failed ? err_nomem(e) : policy_set(p, "network.egress", buf_text(&text), e);
}

/* Whoever opens something means a network in which only that is open. */
static int set_network(struct policy *p, const char *key, const char *value, struct pale_err *e)
{
    int r = strcmp(key, "network.presets") == 0   ? presetfile_apply(p, value, e)
            : strcmp(key, "network.publish") == 0 ? policy_set(p, key, value, e)
                                                  : set_rule(p, strchr(key, '.') + 1, value, e);
    if (r == 0 && p->network == NETWORK_NONE && strcmp(key, "network.deny") != 0)
        p->network = NETWORK_FILTERED;
    return r;
}

int intake_set(struct policy *p, const char *key, const char *value, struct pale_err *e)
{
    static const char *const of_network[] = {"network.allow", "network.ask", "network.deny", "network.presets", "network.publish"};
    char real[PATH_BYTES_MAX];
    for (size_t i = 0; i < sizeof(of_network) / sizeof(of_network[0]); i++)
        if (strcmp(key, of_network[i]) == 0)
            return set_network(p, key, value, e);
    if (strcmp(key, "env") == 0)
        return policy_set(p, strchr(value, '=') ? "env.set" : "env.pass", value, e);
    if (strcmp(key, "volumes") == 0)
        return set_volume(p, value, e);
    if (strcmp(key, "read") == 0 || strcmp(key, "write") == 0 || strcmp(key, "project.path") == 0 || strcmp(key, "volume_root") == 0) {
        int r = real_path(value, real, e);
        return r < 0 ? r : policy_set(p, key, real, e);
    }
    return policy_set(p, key, value, e);
}

/* A name may be given to another image later; a box stays on the one it was made for. */
static int pin_image(struct policy *p, struct pale_err *e)
{
    char whole[IMAGE_NAME_MAX + 1];
    own_image i = {.lock_fd = -1};
    int r = imageref_find(p->image, &i, e);
    if (r < 0)
        return r;
    int n = snprintf(whole, sizeof(whole), "%.*s@sha256:%s", (int)strcspn(p->image, "@"), p->image, i.digest);
    if (strncmp(p->image, "sha256:", 7) == 0)
        n = snprintf(whole, sizeof(whole), "sha256:%s", i.digest);
    return n > 0 && (size_t)n < sizeof(whole) ? policy_set(p, "image", whole, e) : err_set(e, PALE_LIMIT, "image: the name is too long");
}

int intake_check(struct policy *p, const char *project, struct pale_err *e)
{
    char real[PATH_BYTES_MAX];
    int r = 0;
    if (p->project != PROJECT_NONE && !p->project_path) {
        if (!project)
            return err_set(e, PALE_BAD_INPUT, "project.path: there is no working folder to take; name the folder");
        r = real_path(project, real, e);
        if (r == 0)
            r = policy_set(p, "project.path", real, e);
    }
    if (r == 0)
        r = policy_check(p, e);
    if (r == 0)
        r = policy_held(p, e);
    return r == 0 && p->image ? pin_image(p, e) : r;
}

int intake_parse(struct buf *text, struct policy *ret, struct pale_err *e)
{
    own_policy p = {0};
    int r = policy_parse(buf_text(text), text->len, &p, e);
    if (r == 0)
        r = presetfile_apply_all(&p, e);
    if (r < 0)
        return r;
    *ret = p;
    p = (struct policy){0};
    return 0;
}

int intake_policy(const char *file, int in_fd, struct policy *ret, struct pale_err *e)
{
    own_buf out = {0}, complaints = {0};
    buf_init(&out, POLICY_TEXT_MAX);
    buf_init(&complaints, 4096);
    int r = intake_file(file, in_fd, false, &out, &complaints, e);
    if (r == -PALE_BAD_INPUT && complaints.len > 0) {
        size_t n = complaints.len;
        while (n > 0 && complaints.data[n - 1] == '\n')
            n--;
        return err_set(e, PALE_BAD_INPUT, "the policy: %.*s", (int)(n < 500 ? n : 500), (const char *)complaints.data);
    }
    return r < 0 ? r : intake_parse(&out, ret, e);
}
