/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from flags and policy files to a policy. */
#include "cli/boxflags.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/weak.h"
#include "box/intake.h"

extern char **environ;

const struct option box_options[] = {
    {"policy", 'P', "FILE", "start from a policy or capability file (YAML or JSON)", NULL},
    {"project", 0, "MODE", "show the working folder: live, review, ro or none (none)", "project.mode"},
    {"project-path", 0, "DIR", "… this folder instead", "project.path"},
    {"read", 'r', "PATH", "show a host path, read-only", "read"},
    {"write", 0, "PATH", "show a host path, writable", "write"},
    {"volume", 'v', "HOST:TARGET[:ro|rw]", "show a host path elsewhere", "volumes"},
    {"volume-root", 0, "DIR", "every volume must lie below it", "volume_root"},
    {"network", 0, "MODE", "none (default), filtered: what rules allow, open: every public address, host", "network.mode"},
    {"net", 0, "MODE", "the same", "network.mode"},
    {"yes-host-network", 0, NULL, "with --network host: yes, the host's own network, unfiltered", NULL},
    {"allow", 0, "RULE", "let a name through: example.org:443, *.example.org, 10.0.0.0/8:5432 (filtered)", "network.allow"},
    {"ask", 0, "RULE", "ask the operator about it", "network.ask"},
    {"deny", 0, "RULE", "refuse it, whatever else allows it", "network.deny"},
    {"preset", 0, "NAME", "the rules of a preset; `pale presets` lists them (filtered)", "network.presets"},
    {"publish", 'p', "[HOSTPORT:]BOXPORT", "lead a port of the host's loopback to the box (filtered)", "network.publish"},
    {"env", 'e', "NAME[=VALUE]", "set a variable, or let the host's pass", "env"},
    {"memory", 'm', "SIZE", "memory of the whole box (512M)", "limits.memory"},
    {"processes", 0, "N", "processes and threads at once", "limits.processes"},
    {"pids-limit", 0, "N", "the same", "limits.processes"},
    {"cpu", 0, "SECONDS", "CPU time of one command", "limits.cpu_seconds"},
    {"cpus", 0, "N", "CPUs at most (1.5)", "limits.cpu_share"},
    {"disk", 0, "SIZE", "what the box may write (on a disk: with project quotas, as root)", "limits.disk"},
    {"wall", 0, "TIME", "longest run of any command (10m)", "limits.wall"},
    {"output", 0, "SIZE", "output one command may hand back", "limits.output"},
    {"scratch", 0, "disk|memory", "where the box's own writes go", "scratch"},
    {"ephemeral-fs", 0, NULL, "the same as --scratch memory", "scratch"},
    {"seccomp", 0, "PROFILE", "strict (default), debug, image-build", "seccomp"},
    {"tier", 0, "TIER", "auto (default), native, gvisor, microvm", "tier"},
    {"image", 0, "NAME", "a root of its own instead of the host's /usr", "image"},
    {0},
};

int boxflags_file(const struct args *a, struct policy *ret, struct pale_err *e)
{
    const char *file = args_get(a, "policy");
    if (!file)
        return policy_init(ret, e);
    own_buf out = {0}, complaints = {0};
    buf_init(&out, POLICY_TEXT_MAX);
    buf_init(&complaints, 65536);
    int r = intake_file(file, -1, false, &out, &complaints, e);
    if (r < 0 && complaints.len > 0 && e->code == PALE_BAD_INPUT)
        fwrite(complaints.data, 1, complaints.len, stderr);
    return r < 0 ? r : intake_parse(&out, ret, e);
}

/* Tells of a variable that looks like a secret: here, and through the request in the box's log. Its value is told nowhere. */
static void hold_back(struct msg_exec *m, const char *name)
{
    static char names[ENV_HELD_MAX][ENV_NAME_MAX + 1];
    char text[ENV_NAME_MAX + 160];
    snprintf(text, sizeof(text), "%s was held back: it looks like a secret; if the box is to have it, say --env %s when it is made", name,
             name);
    cli_complain(text);
    if (m->heldc == ENV_HELD_MAX)
        return;
    snprintf(names[m->heldc], sizeof(names[0]), "%s", name);
    m->held[m->heldc] = names[m->heldc];
    m->heldc++;
}

void boxflags_pass_env(const struct policy *p, struct msg_exec *m)
{
    for (char **at = environ; p->env_pass.count + p->env_allow.count > 0 && *at; at++) {
        char name[256];
        size_t n = strcspn(*at, "=");
        bool set = n == 0 || n >= sizeof(name) || m->envc == EXEC_STRINGS_MAX;
        for (size_t i = 0; !set && i < m->envc; i++)
            set = strncmp(m->env[i], *at, n + 1) == 0;
        if (set)
            continue;
        memcpy(name, *at, n);
        name[n] = 0;
        enum policy_env verdict = policy_env_verdict(p, name, *at + n + 1);
        if (verdict == ENV_COMES_IN)
            m->env[m->envc++] = *at;
        else if (verdict == ENV_HELD_BACK)
            hold_back(m, name);
    }
}

/* The one flag that sets a key and takes no value. */
const char *boxflags_value(const struct args *a, int i)
{
    return a->given[i].option->value ? a->given[i].value : "memory";
}

bool boxflags_is_last(const struct option *o)
{
    return o->key && strcmp(o->key, "network.mode") == 0;
}

int boxflags_check_host(const struct args *a, enum policy_network network, struct pale_err *e)
{
    bool yes = args_has(a, "yes-host-network");
    if (network == NETWORK_HOST && !yes && !weak_word("policy-check"))
        return err_set(e, PALE_BAD_INPUT,
                       "network host puts the box on the host's own network, past every rule; say --yes-host-network too if that is meant");
    if (network != NETWORK_HOST && yes)
        return err_set(e, PALE_BAD_INPUT, "--yes-host-network: the network is %s; take it out, or say --network host",
                       policy_network_name(network));
    return 0;
}

int boxflags_set(const struct args *a, struct policy *p, struct pale_err *e)
{
    int r = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; r == 0 && i < a->given_count; i++) {
            const struct option *o = a->given[i].option;
            if (!o->key || boxflags_is_last(o) != (pass == 1))
                continue;
            r = intake_set(p, o->key, boxflags_value(a, i), e);
            if (r < 0)
                err_prefix(e, "--%s", o->name);
        }
    return r < 0 ? r : boxflags_check_host(a, p->network, e);
}

int boxflags_policy(const struct args *a, struct policy *ret, struct pale_err *e)
{
    own_policy p = {0};
    int r = boxflags_file(a, &p, e);
    if (r == 0)
        r = boxflags_set(a, &p, e);
    if (r == 0)
        r = intake_check(&p, ".", e);
    if (r == 0) {
        *ret = p;
        p = (struct policy){0};
    }
    return r;
}

bool boxflags_given(const struct args *a)
{
    for (int i = 0; i < a->given_count; i++)
        if (a->given[i].option->key || strcmp(a->given[i].option->name, "policy") == 0)
            return true;
    return false;
}
