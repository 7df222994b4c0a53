/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the default guard list and the matching of guard names. Pure. */
#include "policy/guard.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/quote.h"

/* Only what takes effect with no human act beyond opening the folder, entering it or asking git for its status. Files that
 * need one (build files, package scripts, CI) are for review; they stay writable, or nothing could be developed. */
const char *const guard_defaults[] = {
    /* git: hooks run, config names programs, commondir and the folders of worktrees and submodules bring other configs */
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
    ".git/modules",
    ".git/worktrees",
    ".gitmodules",
    /* agents: hooks, commands, tool servers, permissions */
    ".claude",
    ".mcp.json",
    ".codex",
    ".gemini",
    ".qwen",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".cursor",
    ".copilot",
    ".github/hooks",
    ".windsurf",
    ".continue",
    ".kiro",
    ".amazonq",
    ".aider.conf.yml",
    /* editors: tasks and settings that run when the folder is opened, language servers that run a build */
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".devcontainer",
    ".devcontainer.json",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".cargo/config",
    ".cargo/config.toml",
    /* shells and debuggers: read on entering the folder or on starting there */
    ".envrc",
    ".direnv",
    ".mise",
    ".mise.toml",
    "mise.toml",
    ".tool-versions",
    ".autoenv",
    ".autoenv.zsh",
    ".gdbinit",
    ".lldbinit",
    /* git hook managers, and ourselves */
    ".husky",
    ".pale",
    NULL,
};

int guard_check(const char *name, struct pale_err *e)
{
    char shown[200];
    quote_into(shown, sizeof(shown), name, strlen(name));
    if (!*name || strlen(name) > GUARD_NAME_MAX)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no name of 1 to %d bytes", shown, GUARD_NAME_MAX);
    for (const char *s = name; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return err_set(e, PALE_BAD_INPUT, "\"%s\" holds a control byte", shown);
    for (const char *s = name;; s++) {
        size_t n = strcspn(s, "/");
        if (n == 0 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return err_set(e, PALE_BAD_INPUT, "\"%s\" is no relative name such as .envrc or .git/hooks", shown);
        s += n;
        if (!*s)
            return 0;
    }
}

bool guard_matches(const char *name, const char *path)
{
    size_t n = strlen(name);
    for (const char *at = path; *at; at++) {
        if (strncasecmp(at, name, n) == 0 && (at[n] == 0 || at[n] == '/'))
            return true;
        at += strcspn(at, "/");
        if (!*at)
            return false;
    }
    return false;
}

const char *guard_hit(const struct policy_strings *guard, const char *path)
{
    for (size_t i = 0; i < guard->count; i++)
        if (guard_matches(guard->item[i], path))
            return guard->item[i];
    return NULL;
}

static unsigned mark_of(const char *p, size_t n)
{
    return ((unsigned)n * 37u + (unsigned)tolower((unsigned char)p[0]) * 5u + (unsigned)tolower((unsigned char)p[n - 1])) % 1024u;
}

void guard_set_init(struct guard_set *s, const struct policy_strings *names)
{
    *s = (struct guard_set){.names = names};
    for (size_t i = 0; i < names->count; i++) {
        size_t depth = 0;
        for (const char *at = names->item[i]; *at; depth++) {
            size_t n = strcspn(at, "/");
            unsigned m = mark_of(at, n);
            s->seen[m / 32] |= 1u << m % 32;
            at += n + (at[n] == '/');
        }
        if (depth > s->depth)
            s->depth = depth;
    }
}

/* Does dir end with these components, n bytes of them? */
static bool ends_with(const char *dir, const char *tail, size_t n)
{
    size_t len = strlen(dir);
    return len >= n && strncasecmp(dir + len - n, tail, n) == 0 && (len == n || dir[len - n - 1] == '/');
}

/* Looks at each component of the guard name that could be this one: those before it must be where the folder's path ends. */
static enum guard_kin look_at(const char *guard, const char *dir, const char *name, size_t len)
{
    enum guard_kin kin = GUARD_NO;
    for (const char *at = guard; *at;) {
        size_t n = strcspn(at, "/");
        size_t before = at == guard ? 0 : (size_t)(at - guard) - 1;
        if (n == len && strncasecmp(at, name, n) == 0 && (before == 0 || ends_with(dir, guard, before))) {
            if (at[n] == 0)
                return GUARD_NAME;
            kin = GUARD_ABOVE;
        }
        at += n + (at[n] == '/');
    }
    return kin;
}

enum guard_kin guard_look(const struct guard_set *s, const char *dir, const char *name)
{
    size_t len = strlen(name);
    unsigned m = len ? mark_of(name, len) : 0;
    enum guard_kin kin = GUARD_NO;
    if (len == 0 || !(s->seen[m / 32] >> m % 32 & 1))
        return GUARD_NO;
    for (size_t i = 0; kin != GUARD_NAME && i < s->names->count; i++) {
        enum guard_kin k = look_at(s->names->item[i], dir, name, len);
        if (k > kin)
            kin = k;
    }
    return kin;
}
