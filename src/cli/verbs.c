/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of the verbs in the overview. */
#include "cli/verbs.h"

/* clang-format off */
const struct verb *const cli_verbs[] = {
    &verb_run, &verb_exec, &verb_shell,
    &verb_create, &verb_ls, &verb_inspect, &verb_stop, &verb_freeze, &verb_thaw, &verb_rename, &verb_rm, &verb_adopt, &verb_forget, &verb_image,
    &verb_diff, &verb_apply, &verb_discard,
    &verb_snapshot, &verb_snapshots, &verb_restore, &verb_fork, &verb_export, &verb_import, &verb_gc,
    &verb_ps, &verb_attach, &verb_kill, &verb_wait, &verb_logs,
    &verb_cp, &verb_cat, &verb_write, &verb_files, &verb_mkdir, &verb_mv, &verb_del, &verb_watch,
    &verb_net, &verb_quarantine, &verb_panic,
    &verb_validate, &verb_policy, &verb_presets, &verb_audit, &verb_guard, &verb_approvals, &verb_prove, &verb_doctor,
    &verb_serve, &verb_token,
    &verb_claude, &verb_codex, &verb_gemini, &verb_qwen, &verb_opencode, &verb_copilot, &verb_agent, &verb_agents, &verb_mcp,
    &verb_completion, &verb_version,
    NULL,
};
/* clang-format on */
