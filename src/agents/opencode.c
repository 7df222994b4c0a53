/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how opencode is wired.
 *
 * How it works: permissions deny every tool but the box's, and what is denied is not offered. Plugins run whatever flags it gets if they
 * lie in its working folder, its configuration or its home; so all three are empty ones in the shadow folder, while its data (login,
 * sessions), state and cache stay the user's. The shell mode starts SHELL, which is one of the box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/harness.h"
#include "agents/usersettings.h"
#include "base/json.h"
#include "base/limits.h"

#define MINE "pale sets it, so that the box stays the only place where anything runs"
#define SETTINGS ".config/opencode/opencode.json"
#define BUILT_IN "@ai-sdk/"
#define SERVER "others could drive it past the box"

static const struct harness_flag flags[] = {
    {"-m", TAKES_VALUE, NULL},
    {"--model", TAKES_VALUE, NULL},
    {"-c", TAKES_NOTHING, NULL},
    {"--continue", TAKES_NOTHING, NULL},
    {"-s", TAKES_NO_PART, "write --session"},
    {"--session", TAKES_VALUE, NULL},
    {"--fork", TAKES_NOTHING, NULL},
    {"--prompt", TAKES_VALUE, NULL},
    {"--format", TAKES_VALUE, "default json"},
    {"--title", TAKES_VALUE, NULL},
    {"--variant", TAKES_VALUE, NULL},
    {"--thinking", TAKES_NOTHING, NULL},
    {"--mini", TAKES_NOTHING, NULL},
    {"-v", TAKES_NOTHING, NULL},
    {"--version", TAKES_NOTHING, NULL},
    {"-h", TAKES_NOTHING, NULL},
    {"--help", TAKES_NOTHING, NULL},
    {"--auto", TAKES_NO_PART, "not needed: the box's tools are allowed, and there are no others"},
    {"--agent", TAKES_NO_PART, "agents have permissions of their own"},
    {"--command", TAKES_NO_PART, "commands run programs on the host"},
    {"-f", TAKES_NO_PART, "the harness would read the file on the host; name it, and the model reads it in the box"},
    {"--file", TAKES_NO_PART, "the harness would read the file on the host; name it, and the model reads it in the box"},
    {"--dir", TAKES_NO_PART, "start pale in the folder instead"},
    {"--attach", TAKES_NO_PART, "it would use a session that pale has not wired"},
    {"--port", TAKES_NO_PART, SERVER},
    {"--hostname", TAKES_NO_PART, SERVER},
    {"--share", TAKES_NO_PART, MINE},
    {0},
};
static const struct harness_command commands[] = {{"run", NULL, NULL}, {0}};
static const char *const drops[] = {"OPENCODE_*", "XDG_CONFIG_HOME", NULL};
static const char *const keeps[] = {"OPENCODE_API_KEY", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", NULL};
static const char *const instructions[] = {"AGENTS.md", "CLAUDE.md", "CONTEXT.md", NULL};
#define SITE "applies to it too; what it starts runs on the host, as the site wants"
static const struct managed_file managed[] = {
    {"/etc/opencode/opencode.json", NULL, false, SITE},
    {"/etc/opencode/opencode.jsonc", NULL, false, SITE},
    {0},
};

static void server(const struct wiring_facts *f, struct json *j)
{
    json_begin_object(j, "mcp");
    json_begin_object(j, "pale");
    json_text(j, "type", "local");
    json_begin_list(j, "command");
    json_text(j, NULL, f->pale);
    json_text(j, NULL, "mcp");
    json_text(j, NULL, f->box_id);
    json_end_list(j);
    wiring_environment(f, j, "environment");
    json_bool(j, "enabled", true);
    json_end_object(j);
    json_end_object(j);
}

static void config(const struct wiring_facts *f, struct buf *out)
{
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    server(f, &j);
    json_end_object(&j);
}

static void stub(const struct wiring_facts *f, struct json *j)
{
    json_text(j, "model", "stub/stub");
    json_text(j, "small_model", "stub/stub");
    json_begin_object(j, "provider");
    json_begin_object(j, "stub");
    json_text(j, "npm", "@ai-sdk/openai-compatible");
    json_begin_object(j, "options");
    json_text(j, "baseURL", f->model_url);
    json_text(j, "apiKey", "none");
    json_end_object(j);
    json_begin_object(j, "models");
    json_begin_object(j, "stub");
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
    json_end_object(j);
}

/* The user's own providers, but for those that bring code: the ones named so are built in. */
static void add_providers(struct json *j)
{
    static const char *const path[] = {"provider", NULL};
    own_buf text = {0};
    struct jsonread all, key, one, npm;
    buf_init(&text, USERSETTINGS_MAX);
    if (!usersettings_get(SETTINGS, path, &text, &all) || all.kind != JSONREAD_OBJECT)
        return;
    json_begin_object(j, "provider");
    for (size_t pos = 0; jsonread_next(&all, &pos, &key, &one);) {
        char name[128], module[128] = BUILT_IN;
        jsonread_text(&key, name, sizeof(name));
        if (one.kind == JSONREAD_OBJECT && jsonread_get(&one, "npm", &npm))
            jsonread_text(&npm, module, sizeof(module));
        if (one.kind == JSONREAD_OBJECT && strncmp(module, BUILT_IN, strlen(BUILT_IN)) == 0)
            json_raw(j, name, one.at, one.len);
    }
    json_end_object(j);
}

static void add_users(struct json *j)
{
    static const char *const models[] = {"model", "small_model"};
    for (size_t i = 0; i < 2; i++) {
        const char *path[] = {models[i], NULL};
        char name[128];
        usersettings_text(SETTINGS, path, name, sizeof(name));
        if (name[0])
            json_text(j, models[i], name);
    }
    add_providers(j);
}

static void settings(const struct wiring_facts *f, struct buf *out)
{
    char path[PATH_BYTES_MAX];
    struct json j;
    snprintf(path, sizeof(path), "%s/instructions.md", f->shadow);
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_begin_object(&j, "permission");
    json_text(&j, "*", "deny");
    json_text(&j, "pale_*", "allow");
    json_end_object(&j);
    server(f, &j);
    json_bool(&j, "autoupdate", false);
    json_bool(&j, "lsp", false);
    json_bool(&j, "formatter", false);
    json_bool(&j, "snapshot", false);
    json_text(&j, "share", "disabled");
    json_begin_list(&j, "instructions");
    json_text(&j, NULL, path);
    json_end_list(&j);
    if (f->model_url)
        stub(f, &j);
    else
        add_users(&j);
    json_end_object(&j);
}

/* Where the user's own is, for a home that is another. */
static void keep_place(struct wiring *w, const char *variable, const char *below)
{
    const char *given = getenv(variable), *home = getenv("HOME");
    char path[PATH_BYTES_MAX];
    if (given && given[0] == '/')
        return;
    snprintf(path, sizeof(path), "%s/%s", home ? home : "/", below);
    words_set_env(&w->env, variable, path);
}

static void wire(struct wiring *w, const struct wiring_facts *f)
{
    own_buf text = {0};
    if (!f->home) {
        keep_place(w, "XDG_DATA_HOME", ".local/share");
        keep_place(w, "XDG_STATE_HOME", ".local/state");
        keep_place(w, "XDG_CACHE_HOME", ".cache");
    }
    buf_init(&text, WIRING_FILE_BYTES);
    buf_addf(&text, "%s/home", f->shadow);
    words_set_env(&w->env, "HOME", buf_text(&text));
    buf_clear(&text);
    buf_addf(&text, "%s/config", f->shadow);
    words_set_env(&w->env, "XDG_CONFIG_HOME", buf_text(&text));
    buf_clear(&text);
    settings(f, &text);
    words_set_env(&w->env, "OPENCODE_CONFIG_CONTENT", buf_text(&text));
    words_set_env(&w->env, "OPENCODE_DISABLE_PROJECT_CONFIG", "1");
    words_set_env(&w->env, "OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
    words_set_env(&w->env, "OPENCODE_DISABLE_CLAUDE_CODE", "1");
    words_add(&w->argv, "--pure");
    buf_add_text(wiring_file(w, "instructions.md", 0600), f->instructions);
    wiring_shells(w, f);
    w->failed = w->failed || text.failed;
}

static void ask_stub(struct wiring *w, const struct wiring_facts *f)
{
    (void)f;
    words_set_env(&w->env, "OPENCODE_DISABLE_MODELS_FETCH", "1");
    words_add(&w->argv, "run");
    words_add(&w->argv, "Say ok.");
}

const struct harness harness_opencode = {
    .name = "opencode",
    .title = "opencode",
    .package = "opencode-ai",
    .oldest = "1.18.33",
    .newest = "1.18.33",
    .closed = "native tools, settings, plugins, commands, other servers; ! goes to the box",
    .flags = flags,
    .commands = commands,
    .needs_command = true,
    .drops = drops,
    .keeps = keeps,
    .instructions = instructions,
    .home_instructions = ".config/opencode/AGENTS.md",
    .tool_prefix = "pale_",
    .managed = managed,
    .wire = wire,
    .ask_stub = ask_stub,
    .config = config,
    .config_place = "opencode.json of the project, or ~/.config/opencode/opencode.json",
};
