/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how Claude Code is wired.
 *
 * How it works: --tools lists the native tools there are, --strict-mcp-config the servers, --setting-sources leaves out every file
 * of settings that a project or a user has. What a person types after '!' is a shell command, and the variable for a prefix sends it
 * into the box; the same prefix stands before the MCP server, which must stay on the host and is known by a variable that only its
 * own entry sets. */
#include <stdio.h>

#include "agents/harness.h"
#include "base/json.h"

#define MINE "pale sets it, so that the box stays the only place where anything runs"
#define OTHER_WAY "it starts a session that pale has not wired"

static const struct harness_flag flags[] = {
    {"-p", TAKES_NOTHING, NULL},
    {"--print", TAKES_NOTHING, NULL},
    {"-c", TAKES_NOTHING, NULL},
    {"--continue", TAKES_NOTHING, NULL},
    {"-r", TAKES_MAYBE, NULL},
    {"--resume", TAKES_MAYBE, NULL},
    {"--fork-session", TAKES_NOTHING, NULL},
    {"--session-id", TAKES_VALUE, NULL},
    {"--no-session-persistence", TAKES_NOTHING, NULL},
    {"-n", TAKES_VALUE, NULL},
    {"--name", TAKES_VALUE, NULL},
    {"--model", TAKES_VALUE, NULL},
    {"--fallback-model", TAKES_VALUE, NULL},
    {"--effort", TAKES_VALUE, NULL},
    {"--autocompact", TAKES_VALUE, NULL},
    {"--max-budget-usd", TAKES_VALUE, NULL},
    {"--max-turns", TAKES_VALUE, NULL},
    {"--output-format", TAKES_VALUE, NULL},
    {"--input-format", TAKES_VALUE, NULL},
    {"--json-schema", TAKES_VALUE, NULL},
    {"--include-partial-messages", TAKES_NOTHING, NULL},
    {"--replay-user-messages", TAKES_NOTHING, NULL},
    {"--forward-subagent-text", TAKES_NOTHING, NULL},
    {"--system-prompt", TAKES_VALUE, NULL},
    {"--permission-mode", TAKES_VALUE, "manual dontAsk plan acceptEdits auto"},
    {"--permission-prompts", TAKES_VALUE, "none"},
    {"--disable-slash-commands", TAKES_NOTHING, NULL},
    {"--ax-screen-reader", TAKES_NOTHING, NULL},
    {"--verbose", TAKES_NOTHING, NULL},
    {"-d", TAKES_MAYBE, NULL},
    {"--debug", TAKES_MAYBE, NULL},
    {"-h", TAKES_NOTHING, NULL},
    {"--help", TAKES_NOTHING, NULL},
    {"-v", TAKES_NOTHING, NULL},
    {"--version", TAKES_NOTHING, NULL},
    {"--tools", TAKES_NO_PART, MINE},
    {"--allowedTools", TAKES_NO_PART, MINE},
    {"--allowed-tools", TAKES_NO_PART, MINE},
    {"--mcp-config", TAKES_NO_PART, "a server of its own would run on the host, or offer tools that do"},
    {"--strict-mcp-config", TAKES_NO_PART, MINE},
    {"--settings", TAKES_NO_PART, "settings name programs that run on the host (hooks, helpers)"},
    {"--setting-sources", TAKES_NO_PART, "settings name programs that run on the host (hooks, helpers)"},
    {"--add-dir", TAKES_NO_PART, "the harness has no file tools; give folders to the box with --read, --write or --volume before the --"},
    {"--plugin-dir", TAKES_NO_PART, "plugins bring hooks and servers that run on the host"},
    {"--plugin-url", TAKES_NO_PART, "plugins bring hooks and servers that run on the host"},
    {"--agents", TAKES_NO_PART, "agents bring hooks and servers that run on the host"},
    {"--dangerously-skip-permissions", TAKES_NO_PART, "not needed: the box's tools are allowed, and there are no others"},
    {"--allow-dangerously-skip-permissions", TAKES_NO_PART, "not needed: the box's tools are allowed, and there are no others"},
    {"--append-system-prompt", TAKES_NO_PART, "pale uses it for the project's instructions; --system-prompt passes"},
    {"--append-system-prompt-file", TAKES_NO_PART, "pale uses it for the project's instructions; --system-prompt passes"},
    {"--worktree", TAKES_NO_PART, "it runs git on the host; make the worktree first and start pale there"},
    {"-w", TAKES_NO_PART, "it runs git on the host; make the worktree first and start pale there"},
    {"--bg", TAKES_NO_PART, OTHER_WAY},
    {"--background", TAKES_NO_PART, OTHER_WAY},
    {"--cloud", TAKES_NO_PART, OTHER_WAY},
    {"--remote-control", TAKES_NO_PART, OTHER_WAY},
    {"--teleport", TAKES_NO_PART, OTHER_WAY},
    {"--chrome", TAKES_NO_PART, "it drives a browser on the host"},
    {"--ide", TAKES_NO_PART, "it drives an editor on the host"},
    {0},
};

static const char *const drops[] = {"CLAUDE_CODE_*", "CLAUDE_ENV_FILE", "CLAUDE_BASH_*", "MCP_*", "CLAUDECODE", NULL};
/* Where the model is, how one logs in, how much is asked for. */
static const char *const keeps[] = {"CLAUDE_CODE_USE_BEDROCK",
                                    "CLAUDE_CODE_USE_VERTEX",
                                    "CLAUDE_CODE_USE_FOUNDRY",
                                    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
                                    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
                                    "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
                                    "CLAUDE_CODE_OAUTH_TOKEN",
                                    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
                                    "CLAUDE_CODE_SUBAGENT_MODEL",
                                    "CLAUDE_CODE_EFFORT_LEVEL",
                                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
                                    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE",
                                    "CLAUDE_CODE_CLIENT_CERT",
                                    "CLAUDE_CODE_CLIENT_KEY",
                                    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
                                    "MCP_TIMEOUT",
                                    "MCP_TOOL_TIMEOUT",
                                    NULL};
static const char *const instructions[] = {"CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", NULL};
/* A subagent has no other tools; a question goes to the person; the placeholder is sent to be never called. */
static const char *const harmless[] = {"Agent", "Task", "AskUserQuestion", "DeferredToolPlaceholder", NULL};

#define ONLY_MANAGED "lets only the site's MCP servers load, so the box's tools would be missing; ask the site to add `pale` to them"
static const struct managed_key settings_keys[] = {
    {"allowManagedMcpServersOnly", true, ONLY_MANAGED},
    {"allowedMcpServers", true,
     "lists the MCP servers that may load, so the box's tools would be missing; ask the site to add `pale` to them"},
    {"disableSideloadFlags", true, "forbids --mcp-config and --settings, which bring the box's tools; ask the site to allow them"},
    {"allowManagedPermissionRulesOnly", false, "ignores our permission rules: the harness will ask before it uses the box's tools"},
    {"hooks", false, "has hooks; they run on the host, as the site wants"},
    {"apiKeyHelper", false, "has a helper; it runs on the host, as the site wants"},
    {"statusLine", false, "has a status line; it runs on the host, as the site wants"},
    {0},
};
static const struct managed_file managed[] = {
    {"/etc/claude-code/managed-mcp.json", NULL, true, ONLY_MANAGED},
    {"/etc/claude-code/managed-settings.json", settings_keys, false, NULL},
    {"/etc/claude-code/managed-settings.d/", settings_keys, false, NULL},
    {0},
};

static void servers(const struct wiring_facts *f, struct buf *out)
{
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    json_begin_object(&j, "mcpServers");
    json_begin_object(&j, "pale");
    json_text(&j, "type", "stdio");
    wiring_server(f, &j);
    json_end_object(&j);
    json_end_object(&j);
    json_end_object(&j);
}

static void settings(struct buf *out)
{
    static const char *const on[] = {"disableAllHooks",
                                     "disableSkillShellExecution",
                                     "disableAgentView",
                                     "disableWorkflows",
                                     "disableRemoteControl",
                                     "disableClaudeAiConnectors",
                                     NULL};
    static const char *const deny[] = {"Bash", "PowerShell", "Monitor",  "Read",  "Edit",     "Write",      "NotebookEdit",  "Glob",
                                       "Grep", "LSP",        "WebFetch", "Skill", "Workflow", "CronCreate", "EnterWorktree", NULL};
    struct json j;
    json_start(&j, out);
    json_begin_object(&j, NULL);
    for (const char *const *k = on; *k; k++)
        json_bool(&j, *k, true);
    json_text(&j, "disableDeepLinkRegistration", "disable");
    json_begin_object(&j, "permissions");
    json_begin_list(&j, "allow");
    json_text(&j, NULL, "mcp__pale__*");
    json_end_list(&j);
    json_begin_list(&j, "deny"); /* a second lock; the first is that they are not there */
    for (const char *const *k = deny; *k; k++)
        json_text(&j, NULL, *k);
    json_end_list(&j);
    json_text(&j, "disableBypassPermissionsMode", "disable");
    json_end_object(&j);
    json_end_object(&j);
}

/* What a person types after '!', and the MCP server, whose entry sets PALE_MCP_BOX, come as one word. */
static void shell(const struct wiring_facts *f, struct buf *b)
{
    buf_add_text(b, "#!/bin/sh\n# Commands that are typed after ! run in the box.\nif [ \"$PALE_MCP_BOX\" = ");
    wiring_quote(b, f->box_id);
    buf_add_text(b, " ]; then\n    exec ");
    wiring_quote(b, f->pale);
    buf_addf(b, " mcp %s\nfi\nexec ", f->box_id);
    wiring_quote(b, f->pale);
    buf_add_text(b, " exec -q --cwd ");
    wiring_quote(b, f->project);
    buf_addf(b, " %s -- /bin/sh -c 'if [ -x /bin/bash ]; then exec /bin/bash -c \"$1\"; else exec /bin/sh -c \"$1\"; fi' sh \"$*\"\n",
             f->box_id);
}

static void wire(struct wiring *w, const struct wiring_facts *f)
{
    static const char *const on[] = {"CLAUDE_CODE_DISABLE_FILE_MENTIONS",
                                     "CLAUDE_CODE_DISABLE_AGENT_VIEW",
                                     "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
                                     "CLAUDE_CODE_DISABLE_CRON",
                                     "CLAUDE_CODE_DISABLE_WORKFLOWS",
                                     "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
                                     NULL};
    static const char *const fixed[] = {"--restricted",        "--tools", "Agent,AskUserQuestion", "--allowedTools", "mcp__pale__*",
                                        "--strict-mcp-config", NULL};
    for (const char *const *v = on; *v; v++)
        words_set_env(&w->env, *v, "1");
    words_addf(&w->env, "CLAUDE_CODE_SHELL_PREFIX=%s/shell", f->shadow);
    for (const char *const *v = fixed; *v; v++)
        words_add(&w->argv, *v);
    words_addf(&w->argv, "--mcp-config=%s/mcp.json", f->shadow);
    words_addf(&w->argv, "--settings=%s/settings.json", f->shadow);
    words_add(&w->argv, "--setting-sources=");
    words_addf(&w->argv, "--append-system-prompt-file=%s/instructions.md", f->shadow);
    words_add(&w->argv, "--no-chrome"); /* takes no list of words, so what follows is the user's */
    servers(f, wiring_file(w, "mcp.json", 0600));
    settings(wiring_file(w, "settings.json", 0600));
    buf_add_text(wiring_file(w, "instructions.md", 0600), f->instructions);
    shell(f, wiring_file(w, "shell", 0700));
}

static void ask_stub(struct wiring *w, const struct wiring_facts *f)
{
    words_addf(&w->env, "CLAUDE_CONFIG_DIR=%s", f->home);
    words_addf(&w->env, "ANTHROPIC_BASE_URL=%s", f->model_url);
    words_add(&w->env, "ANTHROPIC_AUTH_TOKEN=none");
    words_add(&w->env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1");
    words_add(&w->env, "DISABLE_AUTOUPDATER=1");
    words_add(&w->argv, "-p");
    words_add(&w->argv, "Say ok.");
}

const struct harness harness_claude = {
    .name = "claude",
    .title = "Claude Code",
    .package = "@anthropic-ai/claude-code",
    .oldest = "2.1.325",
    .newest = "2.1.325",
    .closed = "native tools, settings, hooks, plugins, other servers; ! and @ go to the box or nowhere",
    .flags = flags,
    .drops = drops,
    .keeps = keeps,
    .instructions = instructions,
    .home_instructions = ".claude/CLAUDE.md",
    .harmless = harmless,
    .tool_prefix = "mcp__pale__",
    .question = "it may ask whether you trust its working folder: that is an empty one of pale's, and yes is right",
    .managed = managed,
    .wire = wire,
    .ask_stub = ask_stub,
    .config = servers,
    .config_place = ".mcp.json of the project, or a file for --mcp-config",
};
