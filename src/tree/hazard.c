/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of what the host would run or obey. */
#include "tree/hazard.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/quote.h"
#include "base/weak.h"
#include "policy/guard.h"

static const char *const words[] = {
    [HAZARD_NONE] = "none",     [HAZARD_GUARD] = "guard", [HAZARD_GIT] = "git",   [HAZARD_AGENT] = "agent",
    [HAZARD_EDITOR] = "editor", [HAZARD_SHELL] = "shell", [HAZARD_CI] = "ci",     [HAZARD_PACKAGE] = "package",
    [HAZARD_SETID] = "setid",   [HAZARD_LINK] = "link",   [HAZARD_NAME] = "name", [HAZARD_EXECUTABLE] = "executable",
};
static_assert(sizeof(words) / sizeof(words[0]) == HAZARD_CLASS_COUNT, "a word for every class");

const char *hazard_word(enum hazard_class class)
{
    return (unsigned)class < HAZARD_CLASS_COUNT ? words[class] : words[HAZARD_NONE];
}

/* Names by class, in the order of classes. "*x" is the end of a last name. */
static const struct rule {
    enum hazard_class class;
    const char *reason;
    const char *names; /* parted by blanks */
} rules[] = {
    {HAZARD_GIT, "git runs hooks and programs that its folder names", ".git git~1 .gitconfig"},
    {HAZARD_GIT, "git obeys it: filters, submodules and where they come from", ".gitattributes .gitmodules .lfsconfig"},
    {HAZARD_AGENT, "an agent takes settings, hooks, tools or instructions from it",
     ".claude .mcp.json CLAUDE.md CLAUDE.local.md AGENTS.md AGENTS.override.md AGENT.md .agents GEMINI.md QWEN.md .codex .gemini "
     ".geminiignore .qwen .opencode opencode.json opencode.jsonc .cursor .cursorrules .copilot .github/hooks "
     ".github/copilot-instructions.md "
     ".github/instructions .github/prompts .github/agents .github/chatmodes .windsurf .windsurfrules .continue .kiro .amazonq "
     ".aider.conf.yml "
     ".aider.model.settings.yml .roo .roomodes .clinerules .goosehints .crush.json crush.json .junie .augment .pale"},
    {HAZARD_EDITOR, "an editor obeys it when the folder is opened",
     ".vscode .idea .zed .fleet .helix .vs .devcontainer .devcontainer.json .exrc .nvimrc .nvim.lua .vimrc .gvimrc .lvimrc .dir-locals.el "
     ".dir-locals-2.el .editorconfig *.code-workspace *.sublime-project"},
    {HAZARD_SHELL, "a shell, debugger or tool reads it on entering the folder or starting there",
     ".envrc .direnv .env .mise .mise.toml mise.toml .tool-versions .autoenv .autoenv.zsh .bashrc .bash_profile .bash_login .bash_logout "
     ".bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .gdbinit .lldbinit .ripgreprc "
     ".python-version .node-version .nvmrc .ruby-version .sdkmanrc flake.nix shell.nix default.nix"},
    {HAZARD_CI, "a build server runs it, with secrets of its own",
     ".github/workflows .github/actions .github/dependabot.yml action.yml action.yaml .gitlab-ci.yml .gitlab .circleci .travis.yml "
     "azure-pipelines.yml .azure-pipelines Jenkinsfile .drone.yml .woodpecker .woodpecker.yml .buildkite bitbucket-pipelines.yml "
     "appveyor.yml "
     ".appveyor.yml .cirrus.yml .forgejo .gitea .teamcity .semaphore cloudbuild.yaml buildspec.yml .ci renovate.json"},
    {HAZARD_PACKAGE, "an install, build, test or commit runs what it says",
     "package.json .npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs pnpm-workspace.yaml bunfig.toml deno.json deno.jsonc gulpfile.js "
     "Gruntfile.js "
     "*.config.js *.config.cjs *.config.mjs *.config.ts .eslintrc.js .eslintrc.cjs .babelrc.js .mocharc.js .prettierrc.js Makefile "
     "GNUmakefile Makefile.am Makefile.in *.mk justfile .justfile Taskfile.yml Taskfile.yaml CMakeLists.txt CMakePresets.json *.cmake "
     "meson.build configure configure.ac SConstruct SConscript wscript BUILD BUILD.bazel WORKSPACE WORKSPACE.bazel MODULE.bazel .bazelrc "
     "*.bzl pyproject.toml setup.py setup.cfg conftest.py sitecustomize.py usercustomize.py tox.ini noxfile.py pytest.ini *.pth Cargo.toml "
     "build.rs .cargo rust-toolchain rust-toolchain.toml build.gradle build.gradle.kts settings.gradle settings.gradle.kts "
     "gradle.properties gradlew gradlew.bat gradle/wrapper pom.xml .mvn mvnw mvnw.cmd Gemfile Rakefile *.gemspec composer.json go.work "
     "mix.exs "
     "rebar.config build.zig build.sbt Dockerfile Containerfile *.dockerfile docker-compose.yml docker-compose.yaml compose.yml "
     "compose.yaml "
     "Vagrantfile Procfile .husky .pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml .lefthook.yml .lintstagedrc.js"},
};

/* --- names as the most careless reader takes them --- */

/* The end of one name that a file system may drop: dots, blanks, and from a colon on the name of a stream. */
static size_t trim_end(const char *at, size_t n)
{
    const char *colon = n > 1 ? memchr(at + 1, ':', n - 1) : NULL;
    n = colon ? (size_t)(colon - at) : n;
    while (n > 1 && (at[n - 1] == '.' || at[n - 1] == ' ') && !(n == 2 && at[0] == '.'))
        n--;
    return n;
}

/* Writes one name folded; returns its length. *odd if it is not what it looks like. */
static size_t fold_name(const char *name, size_t n, char *ret, bool *odd)
{
    size_t made = 0;
    for (size_t i = 0; i < n;) {
        unsigned point = 0;
        size_t len = quote_utf8((const unsigned char *)name + i, n - i, &point);
        if (len == 0) {
            ret[made++] = name[i++];
            *odd = true;
            continue;
        }
        if (quote_is_deceptive(point)) {
            *odd = true;
        } else if (point == 0x212a || point == 0x17f) { /* the Kelvin sign and the long s */
            ret[made++] = point == 0x17f ? 's' : 'k';
            *odd = true;
        } else {
            memcpy(ret + made, name + i, len);
            made += len;
        }
        i += len;
    }
    size_t kept = trim_end(ret, made);
    *odd = *odd || kept != made;
    return kept;
}

static void fold_path(const char *path, char ret[PATH_BYTES_MAX], bool *odd)
{
    size_t made = 0;
    *odd = false;
    assert(strlen(path) < PATH_BYTES_MAX); /* and folding never makes it longer */
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, "/");
        made += fold_name(at, n, ret + made, odd);
        at += n;
        if (*at == '/')
            ret[made++] = *at++;
    }
    ret[made] = 0;
}

/* --- rules --- */

static bool ends_with(const char *path, const char *end, size_t n)
{
    size_t len = strlen(path);
    return len > n && strncasecmp(path + len - n, end, n) == 0;
}

static bool rule_hits(const struct rule *r, const char *path)
{
    for (const char *at = r->names; *at;) {
        char name[GUARD_NAME_MAX + 1];
        size_t n = strcspn(at, " ");
        if (at[0] == '*') {
            if (ends_with(path, at + 1, n - 1))
                return true;
        } else {
            memcpy(name, at, n);
            name[n] = 0;
            if (guard_matches(name, path))
                return true;
        }
        at += n;
        at += strspn(at, " ");
    }
    return false;
}

static struct hazard by_name(const struct policy_strings *guard, const char *folded)
{
    if (guard && guard_hit(guard, folded))
        return (struct hazard){HAZARD_GUARD, "the policy guards this name"};
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rule_hits(&rules[i], folded))
            return (struct hazard){rules[i].class, rules[i].reason};
    return (struct hazard){HAZARD_NONE, NULL};
}

/* --- links --- */

/* Where a link leads, by its text alone: false if that is out of the tree, or cannot be known as it goes up again after going down,
 * and what it went down by may be a link as well. */
static bool resolve(const char *link, const char *to, size_t n, char ret[PATH_BYTES_MAX])
{
    const char *slash = strrchr(link, '/');
    size_t len = slash ? (size_t)(slash - link) : 0;
    bool down = false;
    memcpy(ret, link, len);
    for (size_t at = 0; at < n;) {
        size_t step = 0;
        while (at + step < n && to[at + step] != '/')
            step++;
        if (step == 2 && to[at] == '.' && to[at + 1] == '.') {
            if (down || len == 0)
                return false;
            while (len > 0 && ret[len - 1] != '/')
                len--;
            len -= len > 0;
        } else if (step > 0 && !(step == 1 && to[at] == '.')) {
            if (len + step + 2 > PATH_BYTES_MAX)
                return false;
            if (len > 0)
                ret[len++] = '/';
            memcpy(ret + len, to + at, step);
            len += step;
            down = true;
        }
        at += step + 1;
    }
    ret[len] = 0;
    return true;
}

static struct hazard of_link(const struct hazard_question *q)
{
    char target[PATH_BYTES_MAX], folded[PATH_BYTES_MAX];
    const char *to = q->head;
    bool odd;
    if (q->head_len == 0 || to[0] == '/')
        return (struct hazard){HAZARD_LINK, "the link is absolute: it leads out of the tree"};
    if (memchr(to, 0, q->head_len) || !resolve(q->path, to, q->head_len, target))
        return (struct hazard){HAZARD_LINK, "the link leads out of the tree, or cannot be shown to stay in it"};
    fold_path(target, folded, &odd);
    enum hazard_class class = by_name(q->guard, folded).class;
    if (class != HAZARD_NONE && class != HAZARD_PACKAGE)
        return (struct hazard){HAZARD_LINK, "the link leads to something that the host would obey"};
    return (struct hazard){HAZARD_NONE, NULL};
}

/* --- all of it --- */

static bool can_run(const struct hazard_question *q)
{
    return (q->mode & 0111) != 0 || (q->head_len >= 2 && memcmp(q->head, "#!", 2) == 0);
}

struct hazard hazard_of(const struct hazard_question *q)
{
    char folded[PATH_BYTES_MAX];
    bool odd;
    if (weak_word("hazard"))
        return (struct hazard){HAZARD_NONE, NULL};
    fold_path(q->path, folded, &odd);
    struct hazard h = by_name(q->guard, folded);
    if (h.class != HAZARD_NONE)
        return h;
    if (q->in_repository)
        return (struct hazard){HAZARD_GIT, "it lies in a folder that git takes for a repository, with hooks and config"};
    if (q->kind == LEAF_LINK && (h = of_link(q)).class != HAZARD_NONE)
        return h;
    if ((q->kind == LEAF_FILE || q->kind == LEAF_FOLDER) && (q->mode & 06000))
        return (struct hazard){HAZARD_SETID, "it would run as its owner or group; these bits are never landed"};
    if (odd)
        return (struct hazard){HAZARD_NAME, "its name holds marks that are not seen, or that some file systems drop"};
    if (q->kind == LEAF_FILE && can_run(q) && (q->is_new || !(q->was_mode & 0111)))
        return (struct hazard){HAZARD_EXECUTABLE, "it is new, and can be run"};
    return h;
}

static bool has(const int *fds, size_t count, const char *folder, const char *name)
{
    char path[PATH_BYTES_MAX];
    struct leaf l;
    int n = snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", name);
    for (size_t i = 0; n > 0 && (size_t)n < sizeof(path) && i < count; i++) {
        int r = fds[i] < 0 ? -PALE_BUSY : leaf_look(fds[i], path, false, &l, NULL);
        /* Below a link a tree has nothing: the folder that takes its place is another. What cannot be looked at otherwise may be there. */
        if ((r != -PALE_BUSY || weak_word("review-link")) && (r < 0 || (l.kind != LEAF_NONE && l.kind != LEAF_WHITEOUT)))
            return true;
    }
    return false;
}

bool hazard_is_repository(const int *tree_fds, size_t count, const char *folder)
{
    return has(tree_fds, count, folder, "HEAD") &&
           (has(tree_fds, count, folder, "commondir") || (has(tree_fds, count, folder, "objects") && has(tree_fds, count, folder, "refs")));
}
