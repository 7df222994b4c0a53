/* SPDX-License-Identifier: Apache-2.0 */
/* Every verb, by the file that owns it. */
#pragma once

#include "cli/cli.h"

/* verb_exec.c */
extern const struct verb verb_run, verb_exec, verb_shell;
/* verb_box.c */
extern const struct verb verb_create, verb_ls, verb_inspect, verb_stop, verb_rm;
/* verb_life.c */
extern const struct verb verb_freeze, verb_thaw, verb_rename, verb_adopt, verb_forget;
/* verb_snapshot.c */
extern const struct verb verb_snapshot, verb_snapshots, verb_restore, verb_fork, verb_gc;
/* verb_export.c, verb_import.c */
extern const struct verb verb_export, verb_import;
/* verb_review.c */
extern const struct verb verb_diff, verb_apply, verb_discard;
/* verb_approvals.c */
extern const struct verb verb_approvals;
/* verb_guard.c */
extern const struct verb verb_guard;
/* verb_prove.c */
extern const struct verb verb_prove;
/* verb_job.c */
extern const struct verb verb_ps, verb_attach, verb_kill, verb_wait, verb_logs;
/* verb_cp.c */
extern const struct verb verb_cp;
/* verb_file.c */
extern const struct verb verb_cat, verb_write, verb_files;
/* verb_names.c */
extern const struct verb verb_mkdir, verb_mv, verb_del;
/* verb_watch.c */
extern const struct verb verb_watch;
/* verb_control.c, verb_net.c */
extern const struct verb verb_quarantine, verb_panic, verb_net;
/* verb_audit.c */
extern const struct verb verb_audit;
/* verb_policy.c */
extern const struct verb verb_validate, verb_policy;
/* verb_presets.c */
extern const struct verb verb_presets;
/* verb_image.c */
extern const struct verb verb_image;
/* verb_doctor.c */
extern const struct verb verb_doctor;
/* verb_self.c */
extern const struct verb verb_completion, verb_version;
/* verb_serve.c */
extern const struct verb verb_serve;
/* verb_token.c */
extern const struct verb verb_token;
extern const struct verb verb_claude, verb_codex, verb_gemini, verb_qwen, verb_opencode, verb_copilot, verb_agent,
    verb_agents; /* verb_agent.c */
/* verb_mcp.c */
extern const struct verb verb_mcp;
