/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how GitHub Copilot CLI is wired.
 *
 * How it works: --available-tools lists what a model is offered, by the very names of the box's tools. Its home (COPILOT_HOME) is one of
 * its own, so that hooks, servers, plugins, agents and skills of the user's are not read; who is logged in is copied there, sessions are a
 * link. The working folder is empty, so trust in it opens nothing. The shell mode starts the shell of SHELL or PATH, which is one of the
 * box. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/harness.h"
#include "agents/usersettings.h"
#include "base/json.h"
#include "base/limits.h"

#define MINE "pale sets it, so that the box stays the only place where anything runs"
#define NOT_NEEDED "not needed: the box's tools are allowed, and there are no others"
#define REMOTE "others could drive it from elsewhere"

static const struct harness_flag flags[] = {
    {"-p", TAKES_VALUE, NULL},
    {"--prompt", TAKES_VALUE, NULL},
    {"-i", TAKES_VALUE, NULL},
    {"--interactive", TAKES_VALUE, NULL},
    {"-s", TAKES_NO_PART, "write --silent"},
    {"--silent", TAKES_NOTHING, NULL},
    {"--model", TAKES_VALUE, NULL},
    {"--reasoning-effort", TAKES_VALUE, NULL},
    {"--context", TAKES_VALUE, NULL},
    {"--auto-tier", TAKES_VALUE, NULL},
    {"-r", TAKES_MAYBE, NULL},
    {"--resume", TAKES_MAYBE, NULL},
    {"--continue", TAKES_NOTHING, NULL},
    {"-n", TAKES_VALUE, NULL},
    {"--name", TAKES_VALUE, NULL},
    {"--session-id", TAKES_VALUE, NULL},
    {"--max-ai-credits", TAKES_VALUE, NULL},
    {"--max-autopilot-continues", TAKES_VALUE, NULL},
    {"--mode", TAKES_VALUE, "interactive plan autopilot"},
    {"--plan", TAKES_NOTHING, NULL},
    {"--no-ask-user", TAKES_NOTHING, NULL},
    {"--no-color", TAKES_NOTHING, NULL},
    {"--banner", TAKES_NOTHING, NULL},
    {"--screen-reader", TAKES_NOTHING, NULL},
    {"--stream", TAKES_VALUE, "on off"},
    {"--output-format", TAKES_VALUE, "text json"},
    {"-v", TAKES_NOTHING, NULL},
    {"--version", TAKES_NOTHING, NULL},
    {"-h", TAKES_NOTHING, NULL},
    {"--help", TAKES_NOTHING, NULL},
    {"--allow-all-tools", TAKES_NO_PART, NOT_NEEDED},
    {"--allow-all-paths", TAKES_NO_PART, NOT_NEEDED},
    {"--allow-all", TAKES_NO_PART, NOT_NEEDED},
    {"--yolo", TAKES_NO_PART, NOT_NEEDED},
    {"--allow-tool", TAKES_NO_PART, MINE},
    {"--available-tools", TAKES_NO_PART, MINE},
    {"--additional-mcp-config", TAKES_NO_PART, "a server of its own would run on the host, or offer tools that do"},
    {"--trust-folder", TAKES_NO_PART, "what a folder configures (hooks, servers) would run on the host"},
    {"--add-dir", TAKES_NO_PART, "give folders to the box with --read, --write or --volume before the --"},
    {"--plugin-dir", TAKES_NO_PART, "plugins bring hooks and servers that run on the host"},
    {"--agent", TAKES_NO_PART, "agents bring servers that run on the host"},
    {"--attachment", TAKES_NO_PART, "the harness would read the file on the host; name it, and the model reads it in the box"},
    {"-C", TAKES_NO_PART, "start pale in the folder instead"},
    {"--remote", TAKES_NO_PART, REMOTE},
    {"--connect", TAKES_NO_PART, REMOTE},
    {"--acp", TAKES_NO_PART, "an editor would drive it past the box"},
    {0},
};
static const char *const drops[] = {"COPILOT_*", "USE_TGREP*", "USE_BUILTIN_RIPGREP", "BASH_ENV", NULL};
static const char *const keeps[] = {"COPILOT_GITHUB_TOKEN",
                                    "COPILOT_GH_HOST",
                                    "COPILOT_MODEL",
                                    "COPILOT_AUTO_TIER",
                                    "COPILOT_OFFLINE",
                                    "COPILOT_PROVIDER_BASE_URL",
                                    "COPILOT_PROVIDER_TYPE",
                                    "COPILOT_PROVIDER_API_KEY",
                                    "COPILOT_PROVIDER_BEARER_TOKEN",
                                    "COPILOT_PROVIDER_WIRE_API",
                                    "COPILOT_PROVIDER_TRANSPORT",
                                    "COPILOT_PROVIDER_AZURE_API_VERSION",
                                    "COPILOT_PROVIDER_MODEL_ID",
                                    "COPILOT_PROVIDER_WIRE_MODEL",
                                    "COPILOT_PROVIDER_MAX_PROMPT_TOKENS",
                                    "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS",
                                    "COPILOT_PROVIDER_HEADERS",
                                    NULL};
static const char *const instructions[] = {".github/copilot-instructions.md", "AGENTS.md", NULL};

static void servers(const struct wiring_facts *f, struct buf *out)
{
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_begin_object(&j, "mcpServers");
    json_begin_object(&j, "pale");
    json_text(&j, "type", "local");
    wiring_server(f, &j);
    json_begin_list(&j, "tools");
    json_text(&j, NULL, "*");
    json_end_list(&j);
    json_end_object(&j);
    json_end_object(&j);
    json_end_object(&j);
}

/* Who is logged in, as the user's own file has it, and that the empty working folder needs no question. */
static void settings(const struct wiring_facts *f, struct buf *out)
{
    static const char *const login[] = {"loggedInUsers",   "lastLoggedInUser",    "copilotTokens",
                                        "logged_in_users", "last_logged_in_user", "copilot_tokens"};
    static const char *const trusted[] = {"trustedFolders", "trusted_folders"};
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    for (size_t i = 0; i < 2; i++) {
        json_begin_list(&j, trusted[i]);
        json_text(&j, NULL, f->work);
        json_end_list(&j);
    }
    for (size_t i = 0; !f->home && i < sizeof(login) / sizeof(login[0]); i++) {
        const char *path[] = {login[i], NULL};
        own_buf text = {0};
        struct jsonread v;
        buf_init(&text, USERSETTINGS_MAX);
        if (!usersettings_get(".copilot/config.json", path, &text, &v))
            continue;
        bool quoted = v.kind == JSONREAD_TEXT;
        json_raw(&j, login[i], v.at - quoted, v.len + 2u * quoted);
    }
    json_end_object(&j);
}

static void wire(struct wiring *w, const struct wiring_facts *f)
{
    static const char *const fixed[] = {"--disable-builtin-mcps", "--allow-tool=pale", "--disallow-temp-dir",
                                        "--no-auto-update",       "--no-remote",       "--no-remote-export",
                                        "--no-bash-env",          "--no-experimental", NULL};
    static const char *const tools[] = {WIRING_TOOLS};
    const char *home = getenv("HOME");
    char path[PATH_BYTES_MAX];
    own_buf list = {0};
    buf_init(&list, 4096);
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        buf_addf(&list, "%spale-%s", i ? "," : "", tools[i]);
    words_addf(&w->env, "COPILOT_HOME=%s/copilot", f->shadow);
    words_addf(&w->argv, "--additional-mcp-config=@%s/mcp.json", f->shadow);
    words_addf(&w->argv, "--available-tools=%s", buf_text(&list));
    for (const char *const *v = fixed; *v; v++)
        words_add(&w->argv, *v);
    servers(f, wiring_file(w, "mcp.json", 0600));
    settings(f, wiring_file(w, "copilot/config.json", 0600));
    buf_add_text(wiring_file(w, "copilot/copilot-instructions.md", 0600), f->instructions);
    wiring_shells(w, f);
    w->failed = w->failed || list.failed;
    if (f->home || !home)
        return;
    snprintf(path, sizeof(path), "%s/.copilot/session-state", home);
    wiring_link(w, "copilot/session-state", path, true);
}

static void ask_stub(struct wiring *w, const struct wiring_facts *f)
{
    words_addf(&w->env, "COPILOT_PROVIDER_BASE_URL=%s", f->model_url);
    words_add(&w->env, "COPILOT_PROVIDER_API_KEY=none");
    words_add(&w->env, "COPILOT_MODEL=gpt-4.1");
    words_add(&w->env, "COPILOT_OFFLINE=true");
    words_add(&w->argv, "-p");
    words_add(&w->argv, "Say ok.");
}

const struct harness harness_copilot = {
    .name = "copilot",
    .title = "GitHub Copilot CLI",
    .package = "@github/copilot",
    .oldest = "1.0.102",
    .newest = "1.0.102",
    .closed = "native tools, settings, hooks, plugins, other servers; ! goes to the box",
    .flags = flags,
    .drops = drops,
    .keeps = keeps,
    .instructions = instructions,
    .home_instructions = ".copilot/copilot-instructions.md",
    .tool_prefix = "pale-",
    .wire = wire,
    .ask_stub = ask_stub,
    .config = servers,
    .config_place = "~/.copilot/mcp-config.json",
};
