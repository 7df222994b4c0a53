/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how Codex is wired.
 *
 * How it works: it gets a home of its own (CODEX_HOME) in the shadow folder, so that none of the user's settings is read (servers,
 * notifiers, hooks, profiles), with links to the user's login and sessions. In it environments.toml leaves it without an environment to
 * execute in: native tools that cannot be unlisted, and the shell mode of '!', answer that there is none. The local one stays known,
 * because without it no MCP server by stdio starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/harness.h"
#include "agents/offer.h"
#include "base/json.h"
#include "base/limits.h"

#define MINE "pale sets it, so that the box stays the only place where anything runs"
#define KEYS                                                                                                                               \
    "model model_reasoning_effort model_reasoning_summary model_verbosity service_tier model_provider model_providers.*.name "             \
    "model_providers.*.base_url model_providers.*.env_key model_providers.*.wire_api model_providers.*.requires_openai_auth"
#define SETTINGS "settings name programs that run on the host"

static const struct harness_flag flags[] = {
    {"-m", TAKES_VALUE, NULL},
    {"--model", TAKES_VALUE, NULL},
    {"--json", TAKES_NOTHING, NULL},
    {"--color", TAKES_VALUE, NULL},
    {"--ephemeral", TAKES_NOTHING, NULL},
    {"--last", TAKES_NOTHING, NULL},
    {"--all", TAKES_NOTHING, NULL},
    {"--no-alt-screen", TAKES_NOTHING, NULL},
    {"-o", TAKES_VALUE, NULL},
    {"--output-last-message", TAKES_VALUE, NULL},
    {"-h", TAKES_NOTHING, NULL},
    {"--help", TAKES_NOTHING, NULL},
    {"-V", TAKES_NOTHING, NULL},
    {"--version", TAKES_NOTHING, NULL},
    {"-c", TAKES_SETTING, KEYS},
    {"--config", TAKES_SETTING, KEYS},
    {"-p", TAKES_NO_PART, SETTINGS},
    {"--profile", TAKES_NO_PART, SETTINGS},
    {"--enable", TAKES_NO_PART, MINE},
    {"--disable", TAKES_NO_PART, MINE},
    {"-s", TAKES_NO_PART, MINE},
    {"--sandbox", TAKES_NO_PART, MINE},
    {"-a", TAKES_NO_PART, MINE},
    {"--ask-for-approval", TAKES_NO_PART, MINE},
    {"--dangerously-bypass-approvals-and-sandbox", TAKES_NO_PART, "not needed: the box's tools are approved, and the others are dead"},
    {"--dangerously-bypass-hook-trust", TAKES_NO_PART, "hooks run on the host"},
    {"-C", TAKES_NO_PART, "start pale in the folder instead"},
    {"--cd", TAKES_NO_PART, "start pale in the folder instead"},
    {"--add-dir", TAKES_NO_PART, "give folders to the box with --read, --write or --volume before the --"},
    {"--worktree", TAKES_NO_PART, "it runs git on the host; make the worktree first and start pale there"},
    {"--remote", TAKES_NO_PART, "it would use a session that pale has not wired"},
    {0},
};
static const struct harness_command commands[] = {{"exec", "--skip-git-repo-check", "resume"}, {"resume", NULL, NULL}, {0}};
static const char *const drops[] = {"CODEX_*", NULL};
static const char *const keeps[] = {"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "CODEX_CA_CERTIFICATE", NULL};
static const char *const instructions[] = {"AGENTS.md", "AGENTS.override.md", NULL};
/* apply_patch cannot be unlisted; it has no environment to write in, and the trial calls it to see that. Newer models get one tool,
 * functions/exec, a JavaScript without files or network that calls the other tools: the trial has it list them. Other agents have the
 * same tools. */
static const char *const harmless[] = {"apply_patch",
                                       "update_plan",
                                       "tool_search",
                                       "request_user_input",
                                       "create_goal",
                                       "get_goal",
                                       "update_goal",
                                       "list_mcp_resources",
                                       "list_mcp_resource_templates",
                                       "read_mcp_resource",
                                       "functions/exec",
                                       "functions/wait",
                                       "functions/request_user_input",
                                       "functions/request_user_input_async",
                                       "clock/sleep",
                                       "clock__curr_time",
                                       "collaboration/spawn_agent",
                                       "collaboration/send_message",
                                       "collaboration/followup_task",
                                       "collaboration/wait_agent",
                                       "collaboration/interrupt_agent",
                                       "collaboration/list_agents",
                                       NULL};
#define SITE "applies to it too, also here; what it starts runs on the host, as the site wants"
static const struct managed_file managed[] = {
    {"/etc/codex/config.toml", NULL, false, SITE},
    {"/etc/codex/managed_config.toml", NULL, false, SITE},
    {"/etc/codex/requirements.toml", NULL, false, "may forbid what pale sets; if it does, the trial says so"},
    {0},
};

static void server(const struct wiring_facts *f, struct buf *b)
{
    buf_add_text(b, "[mcp_servers.pale]\ncommand = ");
    wiring_text(b, f->pale);
    buf_addf(b,
             "\nargs = [\"mcp\", \"%s\"]\nrequired = true\ndefault_tools_approval_mode = \"approve\"\nstartup_timeout_sec = "
             "20\ntool_timeout_sec = 86400\n",
             f->box_id);
    buf_add_text(b, "[mcp_servers.pale.env]\n");
    for (size_t i = 0; i < f->mcp_env->count; i++) {
        const char *word = f->mcp_env->item[i], *value = strchr(word, '=');
        buf_addf(b, "%.*s = ", (int)(value - word), word);
        wiring_text(b, value + 1);
        buf_add_text(b, "\n");
    }
}

static void settings(const struct wiring_facts *f, struct buf *b)
{
    static const char *const off[] = {"shell_tool",
                                      "unified_exec",
                                      "view_image",
                                      "shell_snapshot",
                                      "hooks",
                                      "plugins",
                                      "remote_plugin",
                                      "apps",
                                      "browser_use",
                                      "browser_use_external",
                                      "computer_use",
                                      "in_app_browser",
                                      "in_app_local_automation",
                                      "image_generation",
                                      "multi_agent",
                                      "daemon_auto_start",
                                      "skill_mcp_dependency_install",
                                      "skill_search",
                                      "tool_suggest",
                                      "workspace_dependencies",
                                      "memories",
                                      NULL};
    buf_add_text(
        b, "approval_policy = \"never\"\nsandbox_mode = \"read-only\"\nweb_search = \"disabled\"\ncheck_for_update_on_startup = false\n"
           "project_doc_max_bytes = 0\n[features]\n");
    for (const char *const *k = off; *k; k++)
        buf_addf(b, "%s = false\n", *k);
    buf_add_text(b, "[projects.");
    wiring_text(b, f->work);
    buf_add_text(b, "]\ntrust_level = \"trusted\"\n"); /* it is empty, and ours */
    server(f, b);
}

/* Where the user's own is. */
static const char *users_home(char *ret, size_t cap)
{
    const char *given = getenv("CODEX_HOME"), *home = getenv("HOME");
    snprintf(ret, cap, "%s%s", given && given[0] ? given : home ? home : "/", given && given[0] ? "" : "/.codex");
    return ret;
}

static void wire(struct wiring *w, const struct wiring_facts *f)
{
    static const char *const shared[] = {"sessions", "archived_sessions"};
    char home[PATH_BYTES_MAX], path[PATH_BYTES_MAX + 32], name[64];
    words_addf(&w->env, "CODEX_HOME=%s/codex", f->shadow);
    buf_add_text(wiring_file(w, "codex/environments.toml", 0600), "default = \"none\"\ninclude_local = true\n");
    settings(f, wiring_file(w, "codex/config.toml", 0600));
    buf_add_text(wiring_file(w, "codex/AGENTS.md", 0600), f->instructions);
    if (f->home)
        return;
    users_home(home, sizeof(home));
    snprintf(path, sizeof(path), "%s/auth.json", home);
    wiring_link(w, "codex/auth.json", path, false);
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", home, shared[i]);
        snprintf(name, sizeof(name), "codex/%s", shared[i]);
        wiring_link(w, name, path, true);
    }
}

static void ask_stub(struct wiring *w, const struct wiring_facts *f)
{
    words_add(&w->argv, "-c");
    words_add(&w->argv, "model_provider=\"stub\"");
    words_add(&w->argv, "-c");
    words_addf(&w->argv, "model_providers.stub={name=\"stub\",base_url=\"%s\",wire_api=\"responses\",env_key=\"PALE_STUB\"}", f->model_url);
    words_add(&w->argv, "exec");
    words_add(&w->argv, "--skip-git-repo-check");
    words_add(&w->argv, "Say ok.");
    words_add(&w->env, "PALE_STUB=none");
}

static void add_call(struct json *j, const char *type, const char *id)
{
    json_begin_object(j, NULL);
    json_text(j, "type", type);
    json_text(j, "id", id);
    json_text(j, "call_id", id);
    json_text(j, "status", "completed");
}

/* For models that have functions/exec: every tool by its name, and the native ones tried. */
static void add_script(const struct wiring_facts *f, struct buf *b)
{
    buf_addf(b,
             "for (const t of ALL_TOOLS) text(\"" OFFER_MARK "\" + t.name.replace(/^mcp__pale__/, \"mcp__pale/\"));\n"
             "try { await tools.apply_patch(\"*** Begin Patch\\n*** Add File: %s/tripped\\n+x\\n*** End Patch\") } catch (e) { }\n"
             "try { await tools.exec_command({cmd: \"touch %s/tripped\"}) } catch (e) { }\n",
             f->work, f->work);
}

static void probe(const struct wiring_facts *f, struct buf *out)
{
    char patch[PATH_BYTES_MAX + 128];
    struct json j;
    own_buf script = {0};
    buf_init(&script, 8192);
    add_script(f, &script);
    json_start(&j, out);
    json_begin_list(&j, NULL);
    add_call(&j, "tool_search_call", "a");
    json_text(&j, "execution", "client");
    json_begin_object(&j, "arguments");
    json_text(&j, "query", "exec run commands box pale");
    json_end_object(&j);
    json_end_object(&j);
    snprintf(patch, sizeof(patch), "*** Begin Patch\n*** Add File: %s/tripped\n+x\n*** End Patch", f->work);
    add_call(&j, "custom_tool_call", "b");
    json_text(&j, "name", "apply_patch");
    json_text(&j, "input", patch);
    json_end_object(&j);
    snprintf(patch, sizeof(patch), "{\"cmd\":\"touch %s/tripped\"}", f->work);
    add_call(&j, "custom_tool_call", "d");
    json_text(&j, "namespace", "functions");
    json_text(&j, "name", "exec");
    json_text(&j, "input", buf_text(&script));
    json_end_object(&j);
    add_call(&j, "function_call", "c");
    json_text(&j, "name", "exec_command");
    json_text(&j, "arguments", patch);
    json_end_object(&j);
    json_end_list(&j);
}

const struct harness harness_codex = {
    .name = "codex",
    .title = "Codex",
    .package = "@openai/codex",
    .oldest = "0.166.0",
    .newest = "0.166.0",
    .closed = "no environment to execute in; settings, hooks, notifiers, plugins, other servers",
    .flags = flags,
    .commands = commands,
    .drops = drops,
    .keeps = keeps,
    .instructions = instructions,
    .home_instructions = ".codex/AGENTS.md",
    .harmless = harmless,
    .tool_prefix = "mcp__pale/",
    .hint = "They are found with tool_search and are called in the namespace mcp__pale. The native apply_patch has no files to work on.",
    .managed = managed,
    .wire = wire,
    .ask_stub = ask_stub,
    .probe = probe,
    .config = server,
    .config_place = "~/.codex/config.toml",
};
