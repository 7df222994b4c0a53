/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the operations, by the file that owns them. */
#pragma once

#include "ops/call.h"

/* boxes.c */
void op_box_list(struct call *c);
void op_box_create(struct call *c);
void op_box_ensure(struct call *c);
void op_box_inspect(struct call *c);
void op_box_start(struct call *c);
void op_box_stop(struct call *c);
void op_box_remove(struct call *c);
void op_box_freeze(struct call *c);
void op_box_thaw(struct call *c);
void op_box_rename(struct call *c);
void op_box_terms(struct call *c);
/* Lines for a deed's `sets` from an object of texts. */
int boxes_sets(const json_t *map, struct buf *ret, struct pale_err *e) MUST_CHECK;

/* Whom the request's field tenant names; NULL: nobody. False: the call is answered, because only an operator chooses among tenants. */
bool boxes_tenant(struct call *c, const char **ret);

/* parcels.c */
void op_box_export(struct call *c);
void op_box_import(struct call *c);

/* exec.c */
void op_exec(struct call *c);
void op_job_start(struct call *c);

/* jobs.c, attach.c */
void op_job_list(struct call *c);
void op_job_inspect(struct call *c);
void op_job_wait(struct call *c);
void op_job_logs(struct call *c);
void op_job_input(struct call *c);
void op_job_signal(struct call *c);
void op_job_attach(struct call *c);
/* The number of the job in the path; false if the call is answered. */
bool jobs_id(struct call *c, uint64_t *ret);

/* files.c */
void op_file_read(struct call *c);
void op_file_write(struct call *c);
void op_file_list(struct call *c);
void op_file_stat(struct call *c);
void op_file_move(struct call *c);
void op_file_mkdir(struct call *c);
void op_file_remove(struct call *c);
void op_file_watch(struct call *c);

/* looks.c */
void op_file_lines(struct call *c);
void op_file_glob(struct call *c);
void op_file_grep(struct call *c);

/* edits.c */
void op_file_edit(struct call *c);
void op_file_patch(struct call *c);

/* trees.c */
void op_tree_upload(struct call *c);
void op_tree_download(struct call *c);

/* passage.c */
void op_box_wire(struct call *c);
void op_mcp(struct call *c);
void op_mcp_lines(struct call *c);

/* snapshots.c */
void op_snapshot_take(struct call *c);
void op_snapshot_list(struct call *c);
void op_snapshot_remove(struct call *c);
void op_box_restore(struct call *c);
void op_review_discard(struct call *c);
void op_box_fork(struct call *c);
void op_gc(struct call *c);

/* reviews.c */
void op_box_diff(struct call *c);
void op_review_apply(struct call *c);
/* The field paths as an order has it; nothing if there are none. A text that would be cut on its way, or has a NUL, is refused: it would
 * name another file. */
int reviews_paths(const struct call *c, struct buf *ret, struct pale_err *e) MUST_CHECK;

/* images.c */
void op_image_list(struct call *c);
void op_image_inspect(struct call *c);
void op_image_verify(struct call *c);
void op_image_remove(struct call *c);
void op_image_build(struct call *c);
void op_image_import(struct call *c);
/* Tells of the images that a collection has removed. told: what its deed told. */
void images_collected(const struct call *c, const char *told);

/* guards.c */
void op_guard_list(struct call *c);
void op_guard_release(struct call *c);
void op_guard_drop(struct call *c);

/* approvals.c */
void op_approval_list(struct call *c);
void op_approval_answer(struct call *c);

/* policies.c */
void op_policy_show(struct call *c);
void op_policy_narrow(struct call *c);
void op_policy_change(struct call *c);

/* controls.c */
void op_box_quarantine(struct call *c);
void op_box_lift(struct call *c);
void op_panic(struct call *c);
void op_panic_lift(struct call *c);
void op_box_network(struct call *c);

/* records.c */
void op_audit(struct call *c);
void op_receipt(struct call *c);
void op_prove(struct call *c);
void op_doctor(struct call *c);

/* observe.c */
void op_health(struct call *c);
void op_metrics(struct call *c);
void op_events(struct call *c);

/* tokens.c */
void op_token_create(struct call *c);
void op_token_list(struct call *c);
void op_token_revoke(struct call *c);
void op_token_self(struct call *c);

/* openapi.c */
void openapi_write(struct buf *b);
void op_openapi(struct call *c);
