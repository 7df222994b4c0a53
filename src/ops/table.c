/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of operations: who may, what comes in, what goes out. */
#include <assert.h>

#include "base/limits.h"
#include "ops/op.h"
#include "ops/ops.h"

#define END                                                                                                                                \
    {                                                                                                                                      \
        0                                                                                                                                  \
    }
#define TEXT_MOST (1u << 20)

/* --- what comes in --- */

static const struct op_field list_fields[] = {
    {"tenant", KIND_TEXT, false, BOX_NAME_MAX, "only this tenant's", IN_QUERY, NULL},
    END,
};

static const struct op_field create_fields[] = {
    {"name", KIND_TEXT, false, BOX_NAME_MAX, "a-z, 0-9 and '-'; without one it gets one", IN_BODY, NULL},
    {"tenant", KIND_TEXT, false, BOX_NAME_MAX, "whose it is to be; for operators", IN_BODY, NULL},
    {"policy", KIND_OBJECT, false, 0, "as a policy file has it", IN_BODY, NULL},
    {"set", KIND_MAP, false, 256, "keys of the policy and their values, on top of it: {\"limits.memory\": \"512M\"}", IN_BODY, NULL},
    {"ttl", KIND_TIME, false, 32, "it is removed after so long", IN_BODY, NULL},
    {"idle", KIND_TIME, false, 32, "it is stopped after so long without a command", IN_BODY, NULL},
    {"start", KIND_BOOL, false, 0, "start it at once; true", IN_BODY, NULL},
    {"ensure", KIND_BOOL, false, 0, "one that the same request has made will do", IN_BODY, NULL},
    END,
};

static const struct op_field ensure_fields[] = {
    {"tenant", KIND_TEXT, false, BOX_NAME_MAX, "whose it is to be; for operators", IN_BODY, NULL},
    {"policy", KIND_OBJECT, false, 0, "as a policy file has it", IN_BODY, NULL},
    {"set", KIND_MAP, false, 256, "keys of the policy and their values, on top of it", IN_BODY, NULL},
    {"ttl", KIND_TIME, false, 32, "it is removed after so long", IN_BODY, NULL},
    {"idle", KIND_TIME, false, 32, "it is stopped after so long without a command", IN_BODY, NULL},
    {"start", KIND_BOOL, false, 0, "start it at once; true", IN_BODY, NULL},
    END,
};

static const struct op_field rename_fields[] = {
    {"name", KIND_TEXT, true, BOX_NAME_MAX, "its new name", IN_BODY, NULL},
    END,
};

static const struct op_field terms_fields[] = {
    {"ttl", KIND_TIME, false, 32, "removed so long from now; 0: never", IN_BODY, NULL},
    {"idle", KIND_TIME, false, 32, "stopped after so long without a command; 0: never", IN_BODY, NULL},
    END,
};

static const struct op_field exec_fields[] = {
    {"command", KIND_COMMAND, true, 0, "a list of words, or a text for the shell", IN_BODY, NULL},
    {"cwd", KIND_TEXT, false, PATH_BYTES_MAX - 1, "where it begins", IN_BODY, NULL},
    {"env", KIND_MAP, false, 0, "variables besides those of the policy", IN_BODY, NULL},
    {"user", KIND_TEXT, false, 64, "who it runs as: a name or a number", IN_BODY, NULL},
    {"timeout", KIND_TIME, false, 32, "it is ended after so long", IN_BODY, NULL},
    {"stdin", KIND_TEXT, false, TEXT_MOST, "its input", IN_BODY, NULL},
    {"stdin_base64", KIND_TEXT, false, TEXT_MOST, "its input, for bytes that are no text", IN_BODY, NULL},
    {"input", KIND_BOOL, false, 0, "it has an input, which comes by job.input", IN_BODY, NULL},
    END,
};

static const struct op_field start_fields[] = {
    {"command", KIND_COMMAND, true, 0, "a list of words, or a text for the shell", IN_BODY, NULL},
    {"cwd", KIND_TEXT, false, PATH_BYTES_MAX - 1, "where it begins", IN_BODY, NULL},
    {"env", KIND_MAP, false, 0, "variables besides those of the policy", IN_BODY, NULL},
    {"user", KIND_TEXT, false, 64, "who it runs as: a name or a number", IN_BODY, NULL},
    {"timeout", KIND_TIME, false, 32, "it is ended after so long", IN_BODY, NULL},
    {"stdin", KIND_TEXT, false, TEXT_MOST, "its input", IN_BODY, NULL},
    {"stdin_base64", KIND_TEXT, false, TEXT_MOST, "its input, for bytes that are no text", IN_BODY, NULL},
    {"input", KIND_BOOL, false, 0, "it has an input, which comes by job.input or job.attach", IN_BODY, NULL},
    {"tty", KIND_BOOL, false, 0, "on a terminal of its own; reached by job.attach", IN_BODY, NULL},
    {"rows", KIND_NUMBER, false, 65535, "of the terminal", IN_BODY, NULL},
    {"cols", KIND_NUMBER, false, 65535, "of the terminal", IN_BODY, NULL},
    END,
};

static const struct op_field wire_fields[] = {
    {"start", KIND_BOOL, false, 0, "start the box if need be; true", IN_QUERY, NULL},
    END,
};

static const struct op_field wait_fields[] = {
    {"timeout", KIND_TIME, false, 32, "answer after so long, whether it has ended or not", IN_QUERY, NULL},
    END,
};

static const struct op_field logs_fields[] = {
    {"offset", KIND_NUMBER, false, 0, "the first byte of output wanted, both streams counted", IN_QUERY, NULL},
    {"follow", KIND_BOOL, false, 0, "until the command ends", IN_QUERY, NULL},
    END,
};

static const struct op_field input_fields[] = {
    {"end", KIND_BOOL, false, 0, "the input ends with these bytes", IN_QUERY, NULL},
    END,
};

static const struct op_field signal_fields[] = {
    {"signal", KIND_NUMBER, false, 64, "0, or left out: end it with all it started, at once", IN_BODY, NULL},
    END,
};

static const struct op_field attach_fields[] = {
    {"offset", KIND_NUMBER, false, 0, "bytes of output that were seen already", IN_QUERY, NULL},
    END,
};

#define PATH_FIELD                                                                                                                         \
    {                                                                                                                                      \
        "path", KIND_TEXT, true, PATH_BYTES_MAX - 1, "in the box", IN_QUERY, NULL                                                          \
    }
#define USER_FIELD                                                                                                                         \
    {                                                                                                                                      \
        "user", KIND_TEXT, false, 64, "whose rights count: a name or a number", IN_QUERY, NULL                                             \
    }

static const struct op_field path_fields[] = {PATH_FIELD, USER_FIELD, END};

static const struct op_field read_fields[] = {
    PATH_FIELD,
    {"offset", KIND_NUMBER, false, INT64_MAX, "the first byte wanted; a Range header does as well", IN_QUERY, NULL},
    {"length", KIND_NUMBER, false, INT64_MAX, "how many bytes at most", IN_QUERY, NULL},
    USER_FIELD,
    END,
};

static const struct op_field write_fields[] = {
    PATH_FIELD,
    {"mode", KIND_TEXT, false, 4, "octal permissions; without it those of the file that is there, or 644", IN_QUERY, NULL},
    {"new", KIND_BOOL, false, 0, "only if there is no such file", IN_QUERY, NULL},
    USER_FIELD,
    END,
};

static const struct op_field remove_fields[] = {
    PATH_FIELD,
    {"tree", KIND_BOOL, false, 0, "a folder with all that is in it", IN_QUERY, NULL},
    USER_FIELD,
    END,
};

static const struct op_field stat_fields[] = {
    PATH_FIELD,
    {"follow", KIND_BOOL, false, 0, "what a symlink points at", IN_QUERY, NULL},
    USER_FIELD,
    END,
};

static const struct op_field watch_fields[] = {
    PATH_FIELD,
    {"tree", KIND_BOOL, false, 0, "folders below it too", IN_QUERY, NULL},
    USER_FIELD,
    END,
};

static const struct op_field move_fields[] = {
    {"from", KIND_TEXT, true, PATH_BYTES_MAX - 1, "in the box", IN_BODY, NULL},
    {"to", KIND_TEXT, true, PATH_BYTES_MAX - 1, "in the box", IN_BODY, NULL},
    {"new", KIND_BOOL, false, 0, "only if there is nothing there", IN_BODY, NULL},
    {"user", KIND_TEXT, false, 64, "whose rights count", IN_BODY, NULL},
    END,
};

static const struct op_field mkdir_fields[] = {
    {"path", KIND_TEXT, true, PATH_BYTES_MAX - 1, "in the box", IN_BODY, NULL},
    {"parents", KIND_BOOL, false, 0, "and those above it; no error if it is there", IN_BODY, NULL},
    {"user", KIND_TEXT, false, 64, "whose rights count", IN_BODY, NULL},
    END,
};

static const struct op_field policy_fields[] = {
    {"policy", KIND_OBJECT, false, 0, "a whole one, as a policy file has it", IN_BODY, NULL},
    {"set", KIND_MAP, false, 256, "keys and their values, on top of what there is", IN_BODY, NULL},
    END,
};

static const struct op_field audit_fields[] = {
    {"offset", KIND_NUMBER, false, INT64_MAX,
     "of the log's bytes; X-Next-Offset of the answer says where to go on, X-Audit-Head where the log ends", IN_QUERY, NULL},
    END,
};

static const struct op_field prove_fields[] = {
    {"full", KIND_BOOL, false, 0, "every attempt, not only the short ones; true", IN_BODY, NULL},
    END,
};

static const struct op_field events_fields[] = {
    {"since", KIND_TEXT, false, 60, "an event's id: those after it come first; Last-Event-ID does as well", IN_QUERY, NULL},
    {"box", KIND_TEXT, false, BOX_ID_LEN, "only of this box, by its id", IN_QUERY, NULL},
    END,
};

static const struct op_field token_fields[] = {
    {"name", KIND_TEXT, false, 64, "for people", IN_BODY, NULL},
    {"scope", KIND_TEXT, false, 16, "operator, tenant or box; operator", IN_BODY, NULL},
    {"tenant", KIND_TEXT, false, BOX_NAME_MAX, "whose", IN_BODY, NULL},
    {"box", KIND_TEXT, false, BOX_NAME_MAX, "of a box's token: its name or id", IN_BODY, NULL},
    {"rights", KIND_TEXTS, false, RIGHT_COUNT, "what it is good for; without them all its scope can have", IN_BODY, NULL},
    {"ttl", KIND_TIME, false, 32, "good for so long, at most 365d; 7d", IN_BODY, NULL},
    END,
};

/* --- what goes out --- */

static const struct op_field health_shape[] = {
    {"status", KIND_TEXT, true, 0, "ok", IN_BODY, NULL},
    {"version", KIND_TEXT, true, 0, "of pale", IN_BODY, NULL},
    {"boxes", KIND_NUMBER, true, 0, "that the caller sees", IN_BODY, NULL},
    {"live", KIND_NUMBER, false, 0, "that run; for operators", IN_BODY, NULL},
    {"pid", KIND_NUMBER, false, 0, "of the daemon; for operators", IN_BODY, NULL},
    END,
};

static const struct op_field box_shape[] = {
    {"id", KIND_TEXT, true, 0, "16 hex digits", IN_BODY, NULL},
    {"name", KIND_TEXT, true, 0, "unique among the user's, or a tenant's", IN_BODY, NULL},
    {"scope", KIND_TEXT, true, 0, "user, tenant or project", IN_BODY, NULL},
    {"tenant", KIND_TEXT, false, 0, "whose; for operators", IN_BODY, NULL},
    {"state", KIND_TEXT, true, 0, "making, stopped, starting, ready, running, frozen, stopping or removing", IN_BODY, NULL},
    {"jobs", KIND_NUMBER, true, 0, "commands that run", IN_BODY, NULL},
    {"started", KIND_TEXT, false, 0, "when, if it runs", IN_BODY, NULL},
    {"expires", KIND_TEXT, false, 0, "when it is removed", IN_BODY, NULL},
    {"idle_seconds", KIND_NUMBER, false, 0, "without a command, after which it is stopped", IN_BODY, NULL},
    {"ended", KIND_NUMBER, false, 0, "commands that have, since it runs; of one box", IN_BODY, NULL},
    {"memory_limit_held_by", KIND_TEXT, false, 0, "while it runs; of one box", IN_BODY, NULL},
    {"keeper_pid", KIND_NUMBER, false, 0, "while it runs; of one box, for operators", IN_BODY, NULL},
    {"init_pid", KIND_NUMBER, false, 0, "while it runs; of one box, for operators", IN_BODY, NULL},
    {"data", KIND_TEXT, false, 0, "its folder; of one box, for operators", IN_BODY, NULL},
    {"state_dir", KIND_TEXT, false, 0, "the folder of its policy and logs; of one box, for operators", IN_BODY, NULL},
    END,
};

#define RESULT_FIELDS                                                                                                                      \
    {"exit", KIND_NUMBER, true, 0, "what a shell would show", IN_BODY, NULL},                                                              \
        {"signal", KIND_NUMBER, true, 0, "what ended it, or 0", IN_BODY, NULL},                                                            \
        {"seconds", KIND_NUMBER, true, 0, "it took", IN_BODY, NULL}, {"cpu_seconds", KIND_NUMBER, true, 0, "it used", IN_BODY, NULL},      \
        {"peak_bytes", KIND_NUMBER, true, 0, "of memory", IN_BODY, NULL},                                                                  \
        {"output_bytes", KIND_NUMBER, true, 0, "it printed", IN_BODY, NULL},                                                               \
        {"dropped_bytes", KIND_NUMBER, true, 0, "beyond the box's output limit", IN_BODY, NULL},                                           \
        {"timed_out", KIND_BOOL, true, 0, "its time was up", IN_BODY, NULL},                                                               \
        {"cpu_limit", KIND_BOOL, true, 0, "its CPU time was used up", IN_BODY, NULL},                                                      \
        {"out_of_memory", KIND_BOOL, true, 0, "the box's memory was", IN_BODY, NULL},                                                      \
        {"truncated", KIND_BOOL, true, 0, "the output limit cut it", IN_BODY, NULL},                                                       \
        {"not_started", KIND_BOOL, true, 0, "message says why", IN_BODY, NULL},                                                            \
        {"killed", KIND_BOOL, true, 0, "somebody ended it", IN_BODY, NULL},                                                                \
    {                                                                                                                                      \
        "message", KIND_TEXT, false, 0, "one sentence", IN_BODY, NULL                                                                      \
    }

static const struct op_field result_shape[] = {RESULT_FIELDS, END};

static const struct op_field bytes_shape[] = {
    {"data", KIND_TEXT, false, 0, "the bytes, if they are UTF-8", IN_BODY, NULL},
    {"base64", KIND_TEXT, false, 0, "else", IN_BODY, NULL},
    END,
};

static const struct op_field exec_shape[] = {
    {"job", KIND_NUMBER, true, 0, "its number in the box", IN_BODY, NULL},
    RESULT_FIELDS,
    {"cut_bytes", KIND_NUMBER, true, 0, "of output that this answer has no room for; job.logs has them", IN_BODY, NULL},
    {"stdout", KIND_OBJECT, true, 0, "its output", IN_BODY, "Bytes"},
    {"stderr", KIND_OBJECT, true, 0, "its complaints", IN_BODY, "Bytes"},
    END,
};

static const struct op_field started_shape[] = {
    {"job", KIND_NUMBER, true, 0, "its number in the box", IN_BODY, NULL},
    END,
};

static const struct op_field job_shape[] = {
    {"id", KIND_NUMBER, true, 0, "its number in the box", IN_BODY, NULL},
    {"state", KIND_TEXT, true, 0, "queued, running or ended", IN_BODY, NULL},
    {"command", KIND_TEXT, true, 0, "for people", IN_BODY, NULL},
    {"tty", KIND_BOOL, true, 0, "on a terminal", IN_BODY, NULL},
    {"lasts", KIND_BOOL, true, 0, "goes on without a client", IN_BODY, NULL},
    {"key", KIND_TEXT, false, 0, "the Idempotency-Key of its request", IN_BODY, NULL},
    {"started", KIND_TEXT, false, 0, "when", IN_BODY, NULL},
    {"input_bytes", KIND_NUMBER, true, 0, "it was given", IN_BODY, NULL},
    {"output_bytes", KIND_NUMBER, false, 0, "it has printed so far", IN_BODY, NULL},
    {"result", KIND_OBJECT, false, 0, "once it has ended", IN_BODY, "Result"},
    END,
};

static const struct op_field entry_shape[] = {
    {"name", KIND_TEXT, true, 0, "in its folder; empty for what was asked about", IN_BODY, NULL},
    {"type", KIND_TEXT, true, 0, "file, folder, symlink, fifo, socket, device or other", IN_BODY, NULL},
    {"mode", KIND_TEXT, true, 0, "octal permissions", IN_BODY, NULL},
    {"size", KIND_NUMBER, true, 0, "bytes", IN_BODY, NULL},
    {"mtime", KIND_NUMBER, true, 0, "seconds since 1970", IN_BODY, NULL},
    {"mtime_ns", KIND_NUMBER, true, 0, "and nanoseconds", IN_BODY, NULL},
    {"inode", KIND_NUMBER, true, 0, "its number", IN_BODY, NULL},
    {"target", KIND_TEXT, false, 0, "of a symlink", IN_BODY, NULL},
    END,
};

static const struct op_field policy_shape[] = {
    {"digest", KIND_TEXT, true, 0, "SHA-256 of its canonical text", IN_BODY, NULL},
    {"policy", KIND_OBJECT, true, 0, "all of it", IN_BODY, NULL},
    {"canonical", KIND_TEXT, true, 0, "the same, as the text whose digest it is", IN_BODY, NULL},
    END,
};

static const struct op_field token_shape[] = {
    {"id", KIND_TEXT, true, 0, "its handle, which may be shown", IN_BODY, NULL},
    {"name", KIND_TEXT, true, 0, "for people", IN_BODY, NULL},
    {"scope", KIND_TEXT, true, 0, "operator, tenant or box", IN_BODY, NULL},
    {"tenant", KIND_TEXT, false, 0, "whose", IN_BODY, NULL},
    {"box", KIND_TEXT, false, 0, "the only one it reaches", IN_BODY, NULL},
    {"rights", KIND_TEXTS, true, 0, "what it is good for", IN_BODY, NULL},
    {"made", KIND_NUMBER, true, 0, "seconds since 1970", IN_BODY, NULL},
    {"expires", KIND_NUMBER, false, 0, "seconds since 1970", IN_BODY, NULL},
    {"revoked", KIND_NUMBER, false, 0, "seconds since 1970", IN_BODY, NULL},
    {"last_used", KIND_NUMBER, false, 0, "seconds since 1970, to the minute", IN_BODY, NULL},
    {"token", KIND_TEXT, false, 0, "itself, told once", IN_BODY, NULL},
    END,
};

static const struct op_field any_shape[] = {END};

const struct op_shape op_shapes[] = {
    {"Health", "That it serves.", health_shape},
    {"Box", "A box.", box_shape},
    {"Result", "How a command ended.", result_shape},
    {"Bytes", "Bytes of a box: one of the two.", bytes_shape},
    {"Exec", "How a command ended, and what it printed.", exec_shape},
    {"Started", "A command that has begun.", started_shape},
    {"Job", "A command that runs or ran.", job_shape},
    {"Entry", "A file, or something like it.", entry_shape},
    {"Policy", "What a box may do.", policy_shape},
    {"Receipt", "Expected against observed: what was tried in a box that its policy forbids.", any_shape},
    {"Diagnosis", "What works on this host.", any_shape},
    {"Token", "A token.", token_shape},
    {NULL, NULL, NULL},
};

/* --- the table --- */

#define BOX "/v1/boxes/{box}"
#define JOB BOX "/jobs/{job}"
#define FILES BOX "/files"

const struct op op_table[] = {
    {"health", "GET", "/v1/health", RIGHT_NONE, "That the daemon serves.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Health", false, op_health},
    {"openapi", "GET", "/openapi.json", RIGHT_NONE, "This description.", NULL, INPUT_NONE, OUTPUT_JSON, 200, NULL, false, op_openapi},

    {"box.list", "GET", "/v1/boxes", RIGHT_BOX_READ, "All boxes that the caller sees.", list_fields, INPUT_NONE, OUTPUT_JSON, 200, "Box[]",
     false, op_box_list},
    {"box.create", "POST", "/v1/boxes", RIGHT_BOX_MAKE, "Make a box. With an Idempotency-Key asking twice makes one.", create_fields,
     INPUT_JSON, OUTPUT_JSON, 201, "Box", false, op_box_create},
    {"box.ensure", "PUT", BOX, RIGHT_BOX_MAKE, "Make a box of that name, unless the same request has made it.", ensure_fields, INPUT_JSON,
     OUTPUT_JSON, 200, "Box", false, op_box_ensure},
    {"box.inspect", "GET", BOX, RIGHT_BOX_READ, "How a box stands.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box", false, op_box_inspect},
    {"box.terms", "PATCH", BOX, RIGHT_BOX_END, "Change when it is removed or stopped by itself.", terms_fields, INPUT_JSON, OUTPUT_JSON,
     200, "Box", false, op_box_terms},
    {"box.remove", "DELETE", BOX, RIGHT_BOX_REMOVE, "Stop it and remove its policy, logs and files.", NULL, INPUT_NONE, OUTPUT_NOTHING, 204,
     NULL, false, op_box_remove},
    {"box.start", "POST", BOX "/start", RIGHT_BOX_END, "Start it; whatever needs it does so by itself.", NULL, INPUT_NONE, OUTPUT_JSON, 200,
     "Box", false, op_box_start},
    {"box.stop", "POST", BOX "/stop", RIGHT_BOX_END, "End everything in it. Its files stay.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box",
     false, op_box_stop},
    {"box.freeze", "POST", BOX "/freeze", RIGHT_BOX_END, "Every process of it stands still.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box",
     false, op_box_freeze},
    {"box.thaw", "POST", BOX "/thaw", RIGHT_BOX_END, "They go on.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box", false, op_box_thaw},
    {"box.rename", "POST", BOX "/rename", RIGHT_BOX_MAKE, "Give a stopped box another name, and with it another id.", rename_fields,
     INPUT_JSON, OUTPUT_JSON, 200, "Box", false, op_box_rename},

    {"box.wire", "GET", BOX "/wire", RIGHT_WIRE,
     "The protocol of its keeper, as `pale` speaks it: Connection: Upgrade, Upgrade: pale-wire, Pale-Wire-Version.", wire_fields,
     INPUT_NONE, OUTPUT_WIRE, 101, NULL, false, op_box_wire},

    {"exec", "POST", BOX "/exec", RIGHT_EXEC, "Run a command. Accept: application/x-ndjson or text/event-stream streams it.", exec_fields,
     INPUT_JSON, OUTPUT_JSON, 200, "Exec", false, op_exec},
    {"job.start", "POST", BOX "/jobs", RIGHT_EXEC, "Begin a command and answer at once.", start_fields, INPUT_JSON, OUTPUT_JSON, 202,
     "Started", false, op_job_start},
    {"job.list", "GET", BOX "/jobs", RIGHT_JOB_READ, "Commands that run, and those that ended last.", NULL, INPUT_NONE, OUTPUT_JSON, 200,
     "Job[]", false, op_job_list},
    {"job.inspect", "GET", JOB, RIGHT_JOB_READ, "How a command stands.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Job", false, op_job_inspect},
    {"job.wait", "GET", JOB "/wait", RIGHT_JOB_READ, "Answer when it has ended.", wait_fields, INPUT_NONE, OUTPUT_JSON, 200, "Job", false,
     op_job_wait},
    {"job.logs", "GET", JOB "/logs", RIGHT_JOB_READ, "Its output, the newest 64 MiB.", logs_fields, INPUT_NONE, OUTPUT_LINES, 200, NULL,
     false, op_job_logs},
    {"job.input", "POST", JOB "/input", RIGHT_EXEC, "Give it input; answered when all of it has been taken.", input_fields, INPUT_BYTES,
     OUTPUT_JSON, 200, "Job", false, op_job_input},
    {"job.signal", "POST", JOB "/signal", RIGHT_EXEC, "Send it a signal, or end it with all it started.", signal_fields, INPUT_JSON,
     OUTPUT_JSON, 200, "Job", false, op_job_signal},
    {"job.attach", "GET", JOB "/attach", RIGHT_EXEC, "Its input and output over a WebSocket.", attach_fields, INPUT_NONE, OUTPUT_SOCKET,
     101, NULL, false, op_job_attach},

    {"file.read", "GET", FILES, RIGHT_FILE_READ, "A file's bytes, or some of them.", read_fields, INPUT_NONE, OUTPUT_BYTES, 200, NULL,
     false, op_file_read},
    {"file.write", "PUT", FILES, RIGHT_FILE_WRITE, "Write a file, whole or not at all.", write_fields, INPUT_BYTES, OUTPUT_NOTHING, 204,
     NULL, false, op_file_write},
    {"file.remove", "DELETE", FILES, RIGHT_FILE_WRITE, "Remove a file, an empty folder, or a tree.", remove_fields, INPUT_NONE,
     OUTPUT_NOTHING, 204, NULL, false, op_file_remove},
    {"file.list", "GET", FILES "/list", RIGHT_FILE_READ, "What is in a folder.", path_fields, INPUT_NONE, OUTPUT_JSON, 200, "Entry[]",
     false, op_file_list},
    {"file.stat", "GET", FILES "/stat", RIGHT_FILE_READ, "What a file is.", stat_fields, INPUT_NONE, OUTPUT_JSON, 200, "Entry", false,
     op_file_stat},
    {"file.watch", "GET", FILES "/watch", RIGHT_FILE_READ, "What happens in a folder, as it happens.", watch_fields, INPUT_NONE,
     OUTPUT_LINES, 200, NULL, false, op_file_watch},
    {"file.move", "POST", FILES "/move", RIGHT_FILE_WRITE, "Move or rename.", move_fields, INPUT_JSON, OUTPUT_NOTHING, 204, NULL, false,
     op_file_move},
    {"file.mkdir", "POST", FILES "/mkdir", RIGHT_FILE_WRITE, "Make a folder.", mkdir_fields, INPUT_JSON, OUTPUT_NOTHING, 204, NULL, false,
     op_file_mkdir},
    {"tree.download", "GET", BOX "/tree", RIGHT_FILE_READ, "A file or a tree as a tar archive.", path_fields, INPUT_NONE, OUTPUT_TAR, 200,
     NULL, false, op_tree_download},
    {"tree.upload", "PUT", BOX "/tree", RIGHT_FILE_WRITE, "Unpack a tar archive into a folder.", path_fields, INPUT_BYTES, OUTPUT_NOTHING,
     204, NULL, false, op_tree_upload},

    {"policy.show", "GET", BOX "/policy", RIGHT_POLICY_READ, "What a box may do.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Policy", false,
     op_policy_show},
    {"policy.narrow", "POST", BOX "/policy/narrow", RIGHT_POLICY_NARROW, "Give a stopped box a policy within the one it has.",
     policy_fields, INPUT_JSON, OUTPUT_JSON, 200, "Policy", false, op_policy_narrow},
    {"policy.change", "PUT", BOX "/policy", RIGHT_POLICY_WIDEN, "Give a stopped box another policy.", policy_fields, INPUT_JSON,
     OUTPUT_JSON, 200, "Policy", true, op_policy_change},

    {"audit", "GET", BOX "/audit", RIGHT_AUDIT, "Its audit log, line by line.", audit_fields, INPUT_NONE, OUTPUT_LINES, 200, NULL, false,
     op_audit},
    {"receipt", "GET", BOX "/receipt", RIGHT_PROVE, "The receipt of its last start.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Receipt", false,
     op_receipt},
    {"prove", "POST", BOX "/prove", RIGHT_PROVE, "Try from inside what its policy forbids.", prove_fields, INPUT_JSON, OUTPUT_JSON, 200,
     "Receipt", false, op_prove},

    {"events", "GET", "/v1/events", RIGHT_EVENTS, "What happens to boxes and commands, as it happens.", events_fields, INPUT_NONE,
     OUTPUT_EVENTS, 200, NULL, false, op_events},
    {"metrics", "GET", "/v1/metrics", RIGHT_METRICS, "Numbers, in the text form of Prometheus.", NULL, INPUT_NONE, OUTPUT_TEXT, 200, NULL,
     true, op_metrics},
    {"doctor", "GET", "/v1/doctor", RIGHT_DOCTOR, "What works on this host.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Diagnosis", true,
     op_doctor},

    {"token.create", "POST", "/v1/tokens", RIGHT_TOKENS, "Make a token. Its text is told once.", token_fields, INPUT_JSON, OUTPUT_JSON, 201,
     "Token", true, op_token_create},
    {"token.list", "GET", "/v1/tokens", RIGHT_TOKENS, "All tokens.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Token[]", true, op_token_list},
    {"token.revoke", "DELETE", "/v1/tokens/{token}", RIGHT_TOKENS, "It is good for nothing from now on.", NULL, INPUT_NONE, OUTPUT_NOTHING,
     204, NULL, true, op_token_revoke},
    {"token.self", "GET", "/v1/token", RIGHT_NONE, "Who is calling.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Token", false, op_token_self},
    {0},
};

static_assert(RIGHT_COUNT <= 64, "rights are bits of one number");
static_assert(sizeof(create_fields) / sizeof(create_fields[0]) <= OP_FIELDS_MAX + 1, "a call has room for every field");
static_assert(sizeof(start_fields) / sizeof(start_fields[0]) <= OP_FIELDS_MAX + 1, "a call has room for every field");
