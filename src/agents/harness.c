/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is the same for every harness: which words and variables pass, where its program is found. */
#include "agents/harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/path.h"
#include "base/quote.h"

extern char **environ;

const struct harness *const harness_all[] = {
    &harness_claude, &harness_codex, &harness_gemini, &harness_qwen, &harness_opencode, &harness_copilot, NULL};

const struct harness *harness_find(const char *name)
{
    for (const struct harness *const *h = harness_all; *h; h++)
        if (strcmp((*h)->name, name) == 0)
            return *h;
    return NULL;
}

/* --- words --- */

static const struct harness_flag *find_flag(const struct harness *h, const char *word, size_t n)
{
    for (const struct harness_flag *f = h->flags; f->name; f++)
        if (strlen(f->name) == n && memcmp(f->name, word, n) == 0)
            return f;
    return NULL;
}

/* Is the word one of a text's, which blanks separate? */
static bool is_among(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; n > 0 && (at = strstr(at, word)); at += n)
        if ((at == text || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
            return true;
    return false;
}

/* Is the key, up to '=', this pattern? Only plain keys are: what is quoted could mean another one. */
static bool is_key(const char *pattern, size_t n, const char *key)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (pattern[i] != '*') {
            if (key[at++] != pattern[i])
                return false;
            continue;
        }
        size_t part = strspn(key + at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
        if (part == 0)
            return false;
        at += part;
    }
    return key[at] == '=';
}

static bool is_setting(const char *keys, const char *value)
{
    for (const char *at = keys; *at;) {
        size_t n = strcspn(at, " ");
        if (is_key(at, n, value))
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

static int refuse(const struct harness *h, const char *word, size_t n, const char *why, struct pale_err *e)
{
    char shown[80];
    quote_into(shown, sizeof(shown), word, n);
    if (why)
        return err_set(e, PALE_DENIED, "%s is not passed on to %s: %s", shown, h->name, why);
    return err_set(e, PALE_DENIED,
                   "%s is not passed on to %s: it is not among the flags known to leave the box the only way to run anything", shown,
                   h->name);
}

/* One flag and its value. Moves *at past them. A value that looks like a flag is refused: readers of command lines differ over it. */
static int pass_flag(const struct harness *h, char *const *word, int count, int *at, struct words *out, struct pale_err *e)
{
    const char *w = word[*at];
    size_t n = strcspn(w, "=");
    const struct harness_flag *f = find_flag(h, w, n);
    const char *value = f && w[n] ? w + n + 1 : NULL;
    if (!f || f->takes == TAKES_NO_PART)
        return refuse(h, w, n, f ? f->text : NULL, e);
    if (value && f->takes == TAKES_NOTHING)
        return err_set(e, PALE_BAD_INPUT, "%s takes no value", f->name);
    ++*at;
    words_add(out, w);
    bool apart = !value && f->takes != TAKES_NOTHING && *at < count && word[*at][0] != '-';
    if (apart) {
        value = word[(*at)++];
        words_add(out, value);
    }
    if (!value && f->takes != TAKES_MAYBE && f->takes != TAKES_NOTHING)
        return err_set(e, PALE_BAD_INPUT, "%s needs a value, and one that begins with '-' is written %s=VALUE", f->name, f->name);
    if (value && f->text && !(f->takes == TAKES_SETTING ? is_setting(f->text, value) : is_among(f->text, value))) {
        char shown[80];
        return err_set(e, PALE_DENIED, "%s %s is not passed on to %s: what passes is %s", f->name,
                       quote_into(shown, sizeof(shown), value, strlen(value)), h->name, f->text);
    }
    return 0;
}

static bool is_id(const char *w)
{
    return strlen(w) >= 8 && w[strspn(w, "0123456789abcdefABCDEF-")] == 0;
}

/* Words of the command line that are no flags, so far. */
struct told {
    int count;
    const struct harness_command *command;
};

static const struct harness_command *find_command(const struct harness *h, const char *w)
{
    for (const struct harness_command *c = h->commands; c && c->name; c++)
        if (strcmp(c->name, w) == 0)
            return c;
    return NULL;
}

/* A prompt, if no command. A single word could be a command of the harness, known to us or not: with a blank after it, it is none. */
static int pass_word(const struct harness *h, const char *w, struct told *t, struct words *out, struct pale_err *e)
{
    int at = t->count++;
    if (at == 0 && (t->command = find_command(h, w))) {
        words_add(out, w);
        if (t->command->adds)
            words_add(out, t->command->adds);
        return 0;
    }
    if (h->needs_command && !t->command)
        return refuse(h, w, strlen(w), "only its command `run` is", e);
    bool below = at == 1 && t->command && t->command->below && strcmp(t->command->below, w) == 0;
    bool whole = below || strpbrk(w, " \t\n") || (t->command && is_id(w));
    words_addf(out, "%s%s", w, whole ? "" : " ");
    return 0;
}

int harness_pass(const struct harness *h, char *const *word, int count, struct words *out, struct pale_err *e)
{
    struct told t = {0};
    for (int at = 0; at < count;) {
        int r;
        if (strcmp(word[at], "--") == 0)
            return refuse(h, "--", 2, "words after it would not be read as flags; write the prompt as one word in quotes", e);
        if (word[at][0] == '-' && word[at][1])
            r = pass_flag(h, word, count, &at, out, e);
        else
            r = pass_word(h, word[at++], &t, out, e);
        if (r < 0)
            return r;
    }
    return out->failed ? err_nomem(e) : 0;
}

/* --- variables --- */

static bool is_listed(const char *const *list, const char *name, size_t n)
{
    for (const char *const *at = list; at && *at; at++) {
        size_t m = strlen(*at);
        bool many = m > 0 && (*at)[m - 1] == '*';
        if (many ? n >= m - 1 && strncmp(*at, name, m - 1) == 0 : m == n && strncmp(*at, name, n) == 0)
            return true;
    }
    return false;
}

/* Folders of PATH that are absolute and not the project's; the rest would find programs that a box has written. */
static void clean_path(const char *path, const char *project, struct buf *out)
{
    for (const char *at = path; *at;) {
        size_t n = strcspn(at, ":");
        char dir[PATH_BYTES_MAX], real[PATH_BYTES_MAX];
        if (n > 0 && n < sizeof(dir) && at[0] == '/') {
            memcpy(dir, at, n);
            dir[n] = 0;
            if (realpath(dir, real) && !path_is_within(real, project))
                buf_addf(out, "%s%s", out->len ? ":" : "", dir);
        }
        at += n + (at[n] == ':');
    }
}

int harness_env(const struct harness *h, const char *project, struct words *out, struct pale_err *e)
{
    for (char **at = environ; *at; at++) {
        size_t n = strcspn(*at, "=");
        if (strncmp(*at, "PATH=", 5) == 0 || (is_listed(h->drops, *at, n) && !is_listed(h->keeps, *at, n)))
            continue;
        words_add(out, *at);
    }
    own_buf path = {0};
    const char *given = getenv("PATH");
    buf_init(&path, 65536);
    clean_path(given ? given : "/usr/local/bin:/usr/bin:/bin", project, &path);
    words_set_env(out, "PATH", buf_text(&path));
    return out->failed || path.failed ? err_nomem(e) : 0;
}

int harness_program(const struct harness *h, const char *project, char *ret, size_t cap, struct pale_err *e)
{
    own_buf path = {0};
    const char *given = getenv("PATH");
    buf_init(&path, 65536);
    clean_path(given ? given : "/usr/local/bin:/usr/bin:/bin", project, &path);
    for (const char *at = buf_text(&path); *at;) {
        char name[PATH_BYTES_MAX], real[PATH_BYTES_MAX];
        struct stat st;
        size_t n = strcspn(at, ":");
        int m = snprintf(name, sizeof(name), "%.*s/%s", (int)n, at, h->name);
        at += n + (at[n] == ':');
        if (m <= 0 || (size_t)m >= sizeof(name) || access(name, X_OK) < 0 || !realpath(name, real) || stat(real, &st) < 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (path_is_within(real, project))
            return err_set(e, PALE_DENIED, "%s is %s, which lies in the project: a box may have written it. Install %s elsewhere", name,
                           real, h->name);
        if (strlen(real) >= cap)
            return err_set(e, PALE_LIMIT, "the path of %s is too long", h->name);
        memcpy(ret, real, strlen(real) + 1);
        return 0;
    }
    return err_set(e, PALE_NOT_FOUND, "there is no %s in PATH outside the project; `npm install -g %s` brings it", h->name, h->package);
}

/* --- tools --- */

bool harness_expects(const struct harness *h, const char *tool)
{
    size_t n = strlen(h->tool_prefix);
    if (strncmp(tool, h->tool_prefix, n) == 0 && tool[n])
        return true;
    for (const char *const *at = h->harmless; at && *at; at++)
        if (strcmp(*at, tool) == 0)
            return true;
    return false;
}
