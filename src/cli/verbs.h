/* SPDX-License-Identifier: Apache-2.0 */
/* Every verb, by the file that owns it. */
#pragma once

#include "cli/cli.h"

extern const struct verb verb_run, verb_exec, verb_shell;                        /* verb_exec.c */
extern const struct verb verb_create, verb_ls, verb_inspect, verb_stop, verb_rm; /* verb_box.c */
extern const struct verb verb_freeze, verb_thaw, verb_rename;                    /* verb_life.c */
extern const struct verb verb_prove;                                             /* verb_prove.c */
extern const struct verb verb_ps, verb_attach, verb_kill, verb_wait, verb_logs;  /* verb_job.c */
extern const struct verb verb_cp;                                                /* verb_cp.c */
extern const struct verb verb_cat, verb_write, verb_files;                       /* verb_file.c */
extern const struct verb verb_mkdir, verb_mv, verb_del;                          /* verb_names.c */
extern const struct verb verb_watch;                                             /* verb_watch.c */
extern const struct verb verb_audit;                                             /* verb_audit.c */
extern const struct verb verb_validate, verb_policy;                             /* verb_policy.c */
extern const struct verb verb_doctor;                                            /* verb_doctor.c */
extern const struct verb verb_completion, verb_version;                          /* verb_self.c */
extern const struct verb verb_serve;                                             /* verb_serve.c */
extern const struct verb verb_token;                                             /* verb_token.c */
