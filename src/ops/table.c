/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of operations: who may, what comes in, what goes out. */
#include <assert.h>

#include "base/limits.h"
#include "box/fork.h"
#include "box/stack.h"
#include "image/store.h"
#include "net/httphead.h"
#include "ops/op.h"
#include "ops/ops.h"

#define END                                                                                                                                \
    {                                                                                                                                      \
        0                                                                                                                                  \
    }
#define TEXT_MOST (1u << 20)

/* --- what comes in --- */

static const struct op_field list_fields[] = {
    {"tenant", KIND_TEXT, false, BOX_NAME_MAX, "only this tenant's; for operators", IN_QUERY, NULL},
    END,
};

/* Of a box that is to be made. */
#define MADE_FIELDS                                                                                                                        \
    {"tenant", KIND_TEXT, false, BOX_NAME_MAX, "whose it is to be; for operators", IN_BODY, NULL},                                         \
        {"policy", KIND_OBJECT, false, 0, "as a policy file has it", IN_BODY, NULL},                                                       \
        {"set", KIND_MAP, false, 256, "keys of the policy and their values, on top of it: {\"limits.memory\": \"512M\"}", IN_BODY, NULL},  \
        {"ttl", KIND_TIME, false, 32, "it is removed after so long", IN_BODY, NULL},                                                       \
        {"idle", KIND_TIME, false, 32, "it is stopped after so long without a command", IN_BODY, NULL},                                    \
        {"autosave", KIND_BOOL, false, 0, "keep a snapshot when it is stopped or idle; true", IN_BODY, NULL},                              \
    {                                                                                                                                      \
        "start", KIND_BOOL, false, 0, "start it at once; true", IN_BODY, NULL                                                              \
    }

static const struct op_field create_fields[] = {
    {"name", KIND_TEXT, false, BOX_NAME_MAX, "a-z, 0-9 and '-'; without one it gets one", IN_BODY, NULL},
    MADE_FIELDS,
    {"ensure", KIND_BOOL, false, 0, "a box of that name with the same policy will do", IN_BODY, NULL},
    END,
};

static const struct op_field ensure_fields[] = {MADE_FIELDS, END};

static const struct op_field box_remove_fields[] = {
    {"force", KIND_BOOL, false, 0, "also with work of a project for review that has not landed; else that is 409", IN_QUERY, NULL},
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

static const struct op_field take_fields[] = {
    {"name", KIND_TEXT, false, SNAPSHOT_NAME_MAX, "letters, digits, '-', '_' and '.'; without one it gets one", IN_BODY, NULL},
    END,
};

static const struct op_field restore_fields[] = {
    {"snapshot", KIND_TEXT, true, SNAPSHOT_NAME_MAX, "which one", IN_BODY, NULL},
    {"force", KIND_BOOL, false, 0, "end whatever runs in the box first", IN_BODY, NULL},
    END,
};

static const struct op_field fork_fields[] = {
    {"name", KIND_TEXT, true, BOX_NAME_MAX, "of the new box; with count NAME-1, NAME-2 …", IN_BODY, NULL},
    {"at", KIND_TEXT, false, SNAPSHOT_NAME_MAX, "a snapshot to begin at, not where the box is now", IN_BODY, NULL},
    {"count", KIND_NUMBER, false, FORK_MAX, "how many; 1", IN_BODY, NULL},
    END,
};

static const struct op_field export_fields[] = {
    {"at", KIND_TEXT, false, SNAPSHOT_NAME_MAX, "a snapshot, not the box as it is now", IN_QUERY, NULL},
    {"plain", KIND_BOOL, false, 0, "uncompressed, as application/x-tar", IN_QUERY, NULL},
    END,
};

static const struct op_field arrive_fields[] = {
    {"tenant", KIND_TEXT, false, BOX_NAME_MAX, "whose it is to be; for operators", IN_QUERY, NULL},
    {"policy", KIND_TEXT, false, HTTP_TARGET_MAX, "in place of the export's: JSON, as a policy file has it", IN_QUERY, NULL},
    {"set", KIND_TEXT, false, HTTP_TARGET_MAX, "keys of the policy and their values, on top of it: JSON, as box.create has it", IN_QUERY,
     NULL},
    END,
};

static const struct op_field diff_fields[] = {
    {"path", KIND_TEXT, false, PATH_BYTES_MAX - 1, "only this and what lies below it; the project if it is for review, else the home",
     IN_QUERY, NULL},
    {"from", KIND_TEXT, false, SNAPSHOT_NAME_MAX, "what was at this snapshot, not what the box began with", IN_QUERY, NULL},
    {"to", KIND_TEXT, false, SNAPSHOT_NAME_MAX, "and at this one, not now", IN_QUERY, NULL},
    {"form", KIND_TEXT, false, 8, "patch, stat, names, or json for an object a line; patch", IN_QUERY, NULL},
    END,
};

static const struct op_field apply_fields[] = {
    {"paths", KIND_TEXTS, false, APPLY_PATHS_MAX, "only these and what lies below them; everything", IN_BODY, NULL},
    {"include_guarded", KIND_BOOL, false, 0, "also what the host would run or obey", IN_BODY, NULL},
    {"dry_run", KIND_BOOL, false, 0, "tell what would become of each, change nothing", IN_BODY, NULL},
    END,
};

static const struct op_field discard_fields[] = {
    {"paths", KIND_TEXTS, false, APPLY_PATHS_MAX, "only these and what lies below them; everything", IN_BODY, NULL},
    {"force", KIND_BOOL, false, 0, "end whatever runs in the box first", IN_BODY, NULL},
    END,
};

static const struct op_field answer_fields[] = {
    {"box", KIND_TEXT, true, BOX_ID_LEN, "the id of the box that asks", IN_BODY, NULL},
    {"host", KIND_TEXT, true, DOMAIN_NAME_MAX, "what it asks about", IN_BODY, NULL},
    {"port", KIND_NUMBER, true, UINT16_MAX, "likewise", IN_BODY, NULL},
    {"verdict", KIND_TEXT, true, 8, "allow or deny", IN_BODY, NULL},
    {"scope", KIND_TEXT, false, 8, "once, or whenever it is asked by the box, by a box of its project, or always; once", IN_BODY, NULL},
    {"for", KIND_TIME, false, 32, "how long it stands; for ever", IN_BODY, NULL},
    END,
};

static const struct op_field build_fields[] = {
    {"name", KIND_TEXT, true, STORE_NAME_MAX, "of the image; one that has it loses it", IN_BODY, NULL},
    {"from", KIND_TEXT, false, 16, "mmdebstrap, minimal or host-copy; mmdebstrap", IN_BODY, NULL},
    {"suite", KIND_TEXT, false, 64, "mmdebstrap: a release of the distribution; the host's", IN_BODY, NULL},
    {"variant", KIND_TEXT, false, 64, "mmdebstrap: how much of it; apt", IN_BODY, NULL},
    {"include", KIND_TEXTS, false, 1024, "mmdebstrap: packages besides", IN_BODY, NULL},
    {"force_copy", KIND_BOOL, false, 0, "host-copy: even if it takes more than 1 GiB", IN_BODY, NULL},
    END,
};

static const struct op_field import_fields[] = {
    {"from", KIND_TEXT, false, 16, "tar, or oci for an OCI image layout or a docker archive in one; tar", IN_QUERY, NULL},
    END,
};

static const struct op_field gc_fields[] = {
    {"images", KIND_BOOL, false, 0, "also images that no box is made on", IN_QUERY, NULL},
    {"dry_run", KIND_BOOL, false, 0, "tell what would go, remove nothing", IN_QUERY, NULL},
    END,
};

/* Of a command that is to run. */
#define COMMAND_FIELDS                                                                                                                     \
    {"command", KIND_COMMAND, true, 0, "a list of words, or a text for the shell", IN_BODY, NULL},                                         \
        {"cwd", KIND_TEXT, false, PATH_BYTES_MAX - 1, "where it begins", IN_BODY, NULL},                                                   \
        {"env", KIND_MAP, false, 0, "variables besides those of the policy", IN_BODY, NULL},                                               \
        {"user", KIND_TEXT, false, 64, "who it runs as: a name or a number", IN_BODY, NULL},                                               \
        {"timeout", KIND_TIME, false, 32, "it is ended after so long", IN_BODY, NULL},                                                     \
        {"stdin", KIND_TEXT, false, TEXT_MOST, "its input", IN_BODY, NULL},                                                                \
        {"stdin_base64", KIND_TEXT, false, TEXT_MOST, "its input, for bytes that are no text", IN_BODY, NULL},                             \
        {"merge", KIND_BOOL, false, 0, "stderr goes where stdout goes, so that both keep their order", IN_BODY, NULL},                     \
    {                                                                                                                                      \
        "input", KIND_BOOL, false, 0, "it has an input, which comes by job.input or job.attach", IN_BODY, NULL                             \
    }

static const struct op_field exec_fields[] = {COMMAND_FIELDS, END};

static const struct op_field start_fields[] = {
    COMMAND_FIELDS,
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

static const struct op_field lines_fields[] = {
    PATH_FIELD,
    {"first", KIND_NUMBER, false, INT64_MAX, "the number of the first line wanted; 1", IN_QUERY, NULL},
    {"tail", KIND_NUMBER, false, INT64_MAX, "the last so many instead", IN_QUERY, NULL},
    {"count", KIND_NUMBER, false, INT64_MAX, "how many lines at most; 2000", IN_QUERY, NULL},
    {"bytes", KIND_NUMBER, false, LINES_BYTES_MAX, "how many bytes at most; 65536", IN_QUERY, NULL},
    USER_FIELD,
    END,
};

static const struct op_field edit_fields[] = {
    {"path", KIND_TEXT, true, PATH_BYTES_MAX - 1, "in the box", IN_BODY, NULL},
    {"old", KIND_TEXT, true, EDIT_TEXT_MAX, "what stands there, exactly", IN_BODY, NULL},
    {"new", KIND_TEXT, true, EDIT_TEXT_MAX, "what shall stand there", IN_BODY, NULL},
    {"all", KIND_BOOL, false, 0, "every one of them; else there must be one alone", IN_BODY, NULL},
    {"user", KIND_TEXT, false, 64, "whose rights count", IN_BODY, NULL},
    END,
};

#define FOLDER_FIELD                                                                                                                       \
    {                                                                                                                                      \
        "path", KIND_TEXT, false, PATH_BYTES_MAX - 1, "the folder to look in; where commands begin", IN_QUERY, NULL                        \
    }
#define HIDDEN_FIELD                                                                                                                       \
    {                                                                                                                                      \
        "hidden", KIND_BOOL, false, 0, "in folders whose name begins with a dot too", IN_QUERY, NULL                                       \
    }

static const struct op_field glob_fields[] = {
    {"pattern", KIND_TEXT, true, PATTERN_BYTES_MAX, "* ? [a-z] in a name, ** for any folders, {a,b} for either", IN_QUERY, NULL},
    FOLDER_FIELD,
    {"limit", KIND_NUMBER, false, GLOB_ITEMS_MAX, "how many at most, the newest; 200", IN_QUERY, NULL},
    HIDDEN_FIELD,
    USER_FIELD,
    END,
};

static const struct op_field grep_fields[] = {
    {"pattern", KIND_TEXT, true, PATTERN_BYTES_MAX, "an extended regular expression of POSIX, with \\d \\w \\s \\b besides", IN_QUERY,
     NULL},
    {"path", KIND_TEXT, false, PATH_BYTES_MAX - 1, "the folder or file to look in; where commands begin", IN_QUERY, NULL},
    {"glob", KIND_TEXT, false, PATTERN_BYTES_MAX, "only in files that match; a single name at any depth", IN_QUERY, NULL},
    {"ignore_case", KIND_BOOL, false, 0, "capitals are as small letters", IN_QUERY, NULL},
    {"fixed", KIND_BOOL, false, 0, "the pattern is a text, not an expression", IN_QUERY, NULL},
    {"before", KIND_NUMBER, false, GREP_CONTEXT_MAX, "lines to tell before each match", IN_QUERY, NULL},
    {"after", KIND_NUMBER, false, GREP_CONTEXT_MAX, "lines to tell after each match", IN_QUERY, NULL},
    {"mode", KIND_TEXT, false, 16, "content, files or count; content", IN_QUERY, NULL},
    {"limit", KIND_NUMBER, false, GREP_ITEMS_MAX, "how many matches, or files, at most; 200", IN_QUERY, NULL},
    HIDDEN_FIELD,
    USER_FIELD,
    END,
};

static const struct op_field patch_fields[] = {
    {"patch", KIND_TEXT, true, PATCH_TEXT_MAX, "a unified diff, or *** Begin Patch … *** End Patch", IN_BODY, NULL},
    {"path", KIND_TEXT, false, PATH_BYTES_MAX - 1, "the folder its names are relative to; where commands begin", IN_BODY, NULL},
    {"check", KIND_BOOL, false, 0, "only whether it fits", IN_BODY, NULL},
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
    {"state_dir", KIND_TEXT, false, 0, "the state folder that it serves; for operators", IN_BODY, NULL},
    END,
};

static const struct op_field box_shape[] = {
    {"id", KIND_TEXT, true, 0, "32 hex digits", IN_BODY, NULL},
    {"name", KIND_TEXT, true, 0, "unique among the user's, or a tenant's", IN_BODY, NULL},
    {"scope", KIND_TEXT, true, 0, "user, tenant or project", IN_BODY, NULL},
    {"tenant", KIND_TEXT, false, 0, "whose; for operators", IN_BODY, NULL},
    {"state", KIND_TEXT, true, 0, "making, stopped, starting, ready, running, frozen, stopping or removing", IN_BODY, NULL},
    {"jobs", KIND_NUMBER, true, 0, "commands that run", IN_BODY, NULL},
    {"started", KIND_TEXT, false, 0, "when, if it runs", IN_BODY, NULL},
    {"expires", KIND_TEXT, false, 0, "when it is removed", IN_BODY, NULL},
    {"idle_seconds", KIND_SECONDS, false, 0, "without a command, after which it is stopped", IN_BODY, NULL},
    {"cut", KIND_TEXT, false, 0, "if it is cut off from every network: by quarantine, panic, or both", IN_BODY, NULL},
    {"network", KIND_OBJECT, false, 0, "what was counted, while it runs and has one; of one box", IN_BODY, "Network"},
    {"ended", KIND_NUMBER, false, 0, "commands that have, since it runs; of one box", IN_BODY, NULL},
    {"audit_gaps", KIND_NUMBER, false, INT64_MAX, "if its audit log has gaps: how many; of one box", IN_BODY, NULL},
    {"memory_limit_held_by", KIND_TEXT, false, 0, "while it runs; of one box", IN_BODY, NULL},
    {"keeper_pid", KIND_NUMBER, false, 0, "while it runs; of one box, for operators", IN_BODY, NULL},
    {"init_pid", KIND_NUMBER, false, 0, "while it runs; of one box, for operators", IN_BODY, NULL},
    {"data", KIND_TEXT, false, 0, "its folder; of one box, for operators", IN_BODY, NULL},
    {"state_dir", KIND_TEXT, false, 0, "the folder of its policy and logs; of one box, for operators", IN_BODY, NULL},
    END,
};

static const struct op_field network_shape[] = {
    {"open", KIND_NUMBER, true, 0, "connections now", IN_BODY, NULL},
    {"connections", KIND_NUMBER, true, 0, "in all", IN_BODY, NULL},
    {"refused", KIND_NUMBER, true, 0, "connections, and questions about names", IN_BODY, NULL},
    {"bytes_in", KIND_NUMBER, true, 0, "into the box", IN_BODY, NULL},
    {"bytes_out", KIND_NUMBER, true, 0, "out of it", IN_BODY, NULL},
    {"hosts", KIND_LIST_OF, false, 0, "each; of one box's network", IN_BODY, "Host"},
    END,
};

static const struct op_field host_shape[] = {
    {"host", KIND_TEXT, true, 0, "its name, or an address; quoted", IN_BODY, NULL},
    {"port", KIND_NUMBER, true, 0, "53 for questions about a name", IN_BODY, NULL},
    {"connections", KIND_NUMBER, true, 0, "in all", IN_BODY, NULL},
    {"refused", KIND_NUMBER, true, 0, "in all", IN_BODY, NULL},
    {"bytes_in", KIND_NUMBER, true, 0, "into the box", IN_BODY, NULL},
    {"bytes_out", KIND_NUMBER, true, 0, "out of it", IN_BODY, NULL},
    END,
};

static const struct op_field panic_shape[] = {
    {"cut", KIND_BOOL, true, 0, "how it is now", IN_BODY, NULL},
    {"live", KIND_NUMBER, true, 0, "boxes that run", IN_BODY, NULL},
    {"stopped", KIND_NUMBER, true, 0, "that do not", IN_BODY, NULL},
    {"once", KIND_NUMBER, true, 0, "that run one command, and have no name", IN_BODY, NULL},
    {"failed", KIND_NUMBER, true, 0, "that could not be told; stop them", IN_BODY, NULL},
    END,
};

#define RESULT_FIELDS                                                                                                                      \
    {"exit", KIND_NUMBER, true, 0, "what a shell would show", IN_BODY, NULL},                                                              \
        {"signal", KIND_NUMBER, true, 0, "what ended it, or 0", IN_BODY, NULL},                                                            \
        {"started", KIND_BOOL, true, 0, "if not, message says why", IN_BODY, NULL},                                                        \
        {"timed_out", KIND_BOOL, true, 0, "its time was up", IN_BODY, NULL},                                                               \
        {"cpu_limit", KIND_BOOL, true, 0, "its CPU time was used up", IN_BODY, NULL},                                                      \
        {"out_of_memory", KIND_BOOL, true, 0, "the box's memory was", IN_BODY, NULL},                                                      \
        {"disk_full", KIND_BOOL, true, 0, "it failed, and there was no room for more of its files", IN_BODY, NULL},                        \
        {"killed", KIND_BOOL, true, 0, "somebody ended it", IN_BODY, NULL},                                                                \
        {"truncated", KIND_BOOL, true, 0, "the output limit cut it", IN_BODY, NULL},                                                       \
        {"duration_ms", KIND_SECONDS, true, 0, "it took, in milliseconds", IN_BODY, NULL},                                                 \
        {"cpu_ms", KIND_SECONDS, true, 0, "of CPU it used", IN_BODY, NULL},                                                                \
        {"peak_bytes", KIND_NUMBER, true, 0, "of memory", IN_BODY, NULL},                                                                  \
        {"output_bytes", KIND_NUMBER, true, 0, "it printed", IN_BODY, NULL},                                                               \
        {"dropped_bytes", KIND_NUMBER, true, 0, "beyond the box's output limit", IN_BODY, NULL},                                           \
    {                                                                                                                                      \
        "message", KIND_TEXT, true, 0, "one sentence, or nothing", IN_BODY, NULL                                                           \
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

static const struct op_field lines_shape[] = {
    {"path", KIND_TEXT, true, 0, "as it was asked for", IN_BODY, NULL},
    {"first", KIND_NUMBER, true, 0, "the number of the first line", IN_BODY, NULL},
    {"last", KIND_NUMBER, true, 0, "and of the last; 0 if there is none", IN_BODY, NULL},
    {"total", KIND_NUMBER, false, 0, "lines of the whole file, if it was read to its end", IN_BODY, NULL},
    {"more", KIND_BOOL, true, 0, "there are lines after the last", IN_BODY, NULL},
    {"size", KIND_NUMBER, true, 0, "bytes of the file", IN_BODY, NULL},
    {"binary", KIND_BOOL, true, 0, "it has a NUL among its first 8192 bytes; then there is no text", IN_BODY, NULL},
    {"cut", KIND_BOOL, true, 0, "a single line was longer than wanted and is not whole", IN_BODY, NULL},
    {"text", KIND_TEXT, false, 0, "the lines, with their ends, if they are UTF-8", IN_BODY, NULL},
    {"base64", KIND_TEXT, false, 0, "else", IN_BODY, NULL},
    END,
};

static const struct op_field edited_shape[] = {
    {"path", KIND_TEXT, true, 0, "as it was asked for", IN_BODY, NULL},
    {"replaced", KIND_NUMBER, true, 0, "how often", IN_BODY, NULL},
    {"line", KIND_NUMBER, true, 0, "the number of the line where the first began", IN_BODY, NULL},
    END,
};

static const struct op_field name_shape[] = {
    {"path", KIND_TEXT, true, 0, "as other operations take it", IN_BODY, NULL},
    {"type", KIND_TEXT, true, 0, "file, folder, symlink, fifo, socket, device or other", IN_BODY, NULL},
    {"size", KIND_NUMBER, true, 0, "bytes", IN_BODY, NULL},
    {"mtime", KIND_NUMBER, true, 0, "seconds since 1970", IN_BODY, NULL},
    END,
};

static const struct op_field names_shape[] = {
    {"items", KIND_LIST_OF, true, 0, "the newest first", IN_BODY, "Name"},
    {"more", KIND_BOOL, true, 0, "there are others, or time was up", IN_BODY, NULL},
    {"seen", KIND_NUMBER, true, 0, "names that were looked at", IN_BODY, NULL},
    END,
};

static const struct op_field match_shape[] = {
    {"path", KIND_TEXT, true, 0, "as other operations take it", IN_BODY, NULL},
    {"line", KIND_NUMBER, false, 0, "its number; of content", IN_BODY, NULL},
    {"text", KIND_TEXT, false, 0, "the first 500 bytes of it; of content", IN_BODY, NULL},
    {"kind", KIND_TEXT, false, 0, "match or context; of content", IN_BODY, NULL},
    {"count", KIND_NUMBER, false, 0, "lines that match; of count", IN_BODY, NULL},
    END,
};

static const struct op_field matches_shape[] = {
    {"items", KIND_LIST_OF, true, 0, "by path and line", IN_BODY, "Match"},
    {"files", KIND_NUMBER, true, 0, "that have a match", IN_BODY, NULL},
    {"matches", KIND_NUMBER, true, 0, "lines that were found", IN_BODY, NULL},
    {"more", KIND_BOOL, true, 0, "there are others, or time was up", IN_BODY, NULL},
    {"seen", KIND_NUMBER, true, 0, "files that were looked into", IN_BODY, NULL},
    END,
};

static const struct op_field change_shape[] = {
    {"path", KIND_TEXT, true, 0, "as other operations take it", IN_BODY, NULL},
    {"action", KIND_TEXT, true, 0, "added, changed, removed or moved", IN_BODY, NULL},
    {"to", KIND_TEXT, false, 0, "where what was moved is now", IN_BODY, NULL},
    END,
};

static const struct op_field patched_shape[] = {
    {"files", KIND_LIST_OF, true, 0, "what the patch has done, or would do", IN_BODY, "Change"},
    END,
};

static const struct op_field snapshot_shape[] = {
    {"name", KIND_TEXT, true, 0, "unique in its box", IN_BODY, NULL},
    {"made_unix_ms", KIND_NUMBER, true, 0, "when", IN_BODY, NULL},
    {"kind", KIND_TEXT, true, 0, "asked or automatic", IN_BODY, NULL},
    {"layers", KIND_NUMBER, true, 0, "that it stands on", IN_BODY, NULL},
    {"state", KIND_TEXT, true, 0, "verified, fresh or poisoned", IN_BODY, NULL},
    {"current", KIND_BOOL, true, 0, "the box stands on it", IN_BODY, NULL},
    END,
};

static const struct op_field taken_shape[] = {
    {"snapshot", KIND_TEXT, true, 0, "its name", IN_BODY, NULL},
    {"changed", KIND_BOOL, true, 0, "there was something to keep since the last one", IN_BODY, NULL},
    {"copied", KIND_BOOL, true, 0, "the box worked, and what it had written was copied", IN_BODY, NULL},
    {"pause_us", KIND_NUMBER, true, 0, "how long the box could not work", IN_BODY, NULL},
    END,
};

static const struct op_field restored_shape[] = {
    {"restored", KIND_TEXT, true, 0, "the snapshot that the box is at", IN_BODY, NULL},
    {"kept", KIND_TEXT, true, 0, "the snapshot that it was until now; empty if nothing had changed", IN_BODY, NULL},
    {"pause_us", KIND_NUMBER, true, 0, "how long the box could not work", IN_BODY, NULL},
    END,
};

static const struct op_field imported_shape[] = {
    {"name", KIND_TEXT, true, 0, "as it was asked for", IN_BODY, NULL},
    {"id", KIND_TEXT, true, 0, "32 hex digits", IN_BODY, NULL},
    {"scope", KIND_TEXT, true, 0, "user or tenant", IN_BODY, NULL},
    {"data", KIND_TEXT, false, 0, "where its files are; not of a tenant's", IN_BODY, NULL},
    {"from", KIND_TEXT, true, 0, "the box that was exported", IN_BODY, NULL},
    {"from_id", KIND_TEXT, true, 0, "its id, where it was", IN_BODY, NULL},
    {"digest", KIND_TEXT, true, 0, "SHA-256 of the archive, in hex", IN_BODY, NULL},
    {"left_out", KIND_TEXTS, true, 0, "what of the export's policy belongs to the other host, and was not taken over", IN_BODY, NULL},
    END,
};

static const struct op_field landing_shape[] = {
    {"path", KIND_TEXT, true, 0, "below the project", IN_BODY, NULL},
    {"change", KIND_TEXT, true, 0, "added, changed, deleted, mode, link, type or trouble", IN_BODY, NULL},
    {"result", KIND_TEXT, true, 0, "landed, merged, same, conflict, held, refused, skipped or failed", IN_BODY, NULL},
    {"guarded", KIND_TEXT, false, 0, "why the host would run or obey it, in one word", IN_BODY, NULL},
    {"reason", KIND_TEXT, false, 0, "one sentence", IN_BODY, NULL},
    END,
};

static const struct op_field applied_shape[] = {
    {"items", KIND_LIST_OF, true, 0, "in the order of their paths", IN_BODY, "Landing"},
    {"landed", KIND_NUMBER, true, 0, "as the box has them", IN_BODY, NULL},
    {"merged", KIND_NUMBER, true, 0, "with what the user changed meanwhile", IN_BODY, NULL},
    {"same", KIND_NUMBER, true, 0, "that were so already", IN_BODY, NULL},
    {"conflict", KIND_NUMBER, true, 0, "that both changed: untouched", IN_BODY, NULL},
    {"held", KIND_NUMBER, true, 0, "that the host would run or obey: untouched", IN_BODY, NULL},
    {"refused", KIND_NUMBER, true, 0, "of kinds that never land", IN_BODY, NULL},
    {"skipped", KIND_NUMBER, true, 0, "that somebody said no to", IN_BODY, NULL},
    {"failed", KIND_NUMBER, true, 0, "untouched; the reason says why", IN_BODY, NULL},
    END,
};

static const struct op_field discarded_shape[] = {
    {"kept", KIND_TEXT, true, 0, "the snapshot of what was thrown away; empty if there was nothing", IN_BODY, NULL},
    END,
};

static const struct op_field image_shape[] = {
    {"name", KIND_TEXT, true, 0, "empty if it has none", IN_BODY, NULL},
    {"digest", KIND_TEXT, true, 0, "SHA-256 of what is in it, in hex", IN_BODY, NULL},
    {"root", KIND_TEXT, false, 0, "where it is on the host; for operators", IN_BODY, NULL},
    {"from", KIND_TEXT, true, 0, "mmdebstrap, minimal, host-copy, tar or oci", IN_BODY, NULL},
    {"suite", KIND_TEXT, false, 0, "of mmdebstrap", IN_BODY, NULL},
    {"bytes", KIND_NUMBER, true, 0, "of its files", IN_BODY, NULL},
    {"files", KIND_NUMBER, true, 0, "how many", IN_BODY, NULL},
    {"made", KIND_TEXT, true, 0, "when", IN_BODY, NULL},
    END,
};

static const struct op_field details_shape[] = {
    {"name", KIND_TEXT, true, 0, "empty if it has none", IN_BODY, NULL},
    {"digest", KIND_TEXT, true, 0, "SHA-256 of what is in it, in hex", IN_BODY, NULL},
    {"root", KIND_TEXT, false, 0, "where it is on the host; for operators", IN_BODY, NULL},
    {"format", KIND_NUMBER, true, 0, "of the manifest", IN_BODY, NULL},
    {"from", KIND_TEXT, true, 0, "mmdebstrap, minimal, host-copy, tar or oci", IN_BODY, NULL},
    {"suite", KIND_TEXT, false, 0, "of mmdebstrap", IN_BODY, NULL},
    {"variant", KIND_TEXT, false, 0, "of mmdebstrap", IN_BODY, NULL},
    {"include", KIND_TEXTS, false, 0, "packages besides", IN_BODY, NULL},
    {"file", KIND_TEXT, false, 0, "the last name of the archive", IN_BODY, NULL},
    {"source_sha256", KIND_TEXT, false, 0, "of what it was made of", IN_BODY, NULL},
    {"source_bytes", KIND_NUMBER, false, 0, "how much that was", IN_BODY, NULL},
    {"config", KIND_OBJECT, false, 0, "what an OCI image wants to be run with", IN_BODY, NULL},
    {"bytes", KIND_NUMBER, true, 0, "of its files", IN_BODY, NULL},
    {"files", KIND_NUMBER, true, 0, "how many", IN_BODY, NULL},
    {"folders", KIND_NUMBER, true, 0, "how many", IN_BODY, NULL},
    {"links", KIND_NUMBER, true, 0, "how many", IN_BODY, NULL},
    {"left_out", KIND_OBJECT, true, 0, "what was left out or changed, by its kind", IN_BODY, NULL},
    {"made", KIND_TEXT, true, 0, "when", IN_BODY, NULL},
    {"by", KIND_TEXT, true, 0, "which pale", IN_BODY, NULL},
    END,
};

static const struct op_field built_shape[] = {
    {"name", KIND_TEXT, true, 0, "as it was asked for", IN_BODY, NULL},
    {"digest", KIND_TEXT, true, 0, "SHA-256 of what is in it, in hex", IN_BODY, NULL},
    {"from", KIND_TEXT, true, 0, "mmdebstrap, minimal, host-copy, tar or oci", IN_BODY, NULL},
    {"bytes", KIND_NUMBER, true, 0, "of its files", IN_BODY, NULL},
    {"files", KIND_NUMBER, true, 0, "how many", IN_BODY, NULL},
    {"left_out", KIND_OBJECT, true, 0, "what was left out or changed, by its kind", IN_BODY, NULL},
    END,
};

static const struct op_field verified_shape[] = {
    {"good", KIND_BOOL, true, 0, "every file is as it was built", IN_BODY, NULL},
    {"digest", KIND_TEXT, true, 0, "SHA-256 of what is in it, in hex", IN_BODY, NULL},
    END,
};

static const struct op_field quarantined_shape[] = {
    {"number", KIND_NUMBER, true, 0, "by which it is called", IN_BODY, NULL},
    {"kind", KIND_TEXT, true, 0, "file, folder, symlink, copy or other", IN_BODY, NULL},
    {"taken", KIND_TEXT, true, 0, "when", IN_BODY, NULL},
    {"path", KIND_TEXT, true, 0, "where it stood, below the project", IN_BODY, NULL},
    END,
};

static const struct op_field question_shape[] = {
    {"id", KIND_TEXT, true, 0, "", IN_BODY, NULL},
    {"box", KIND_TEXT, true, 0, "the id of the box that asks", IN_BODY, NULL},
    {"box_name", KIND_TEXT, true, 0, "", IN_BODY, NULL},
    {"host", KIND_TEXT, true, 0, "the name or the address that it is about", IN_BODY, NULL},
    {"via", KIND_TEXT, false, 0, "the name that led to the address", IN_BODY, NULL},
    {"port", KIND_NUMBER, true, 0, "", IN_BODY, NULL},
    {"rule", KIND_TEXT, true, 0, "of the policy, that asks", IN_BODY, NULL},
    {"job", KIND_NUMBER, false, 0, "the command that wants it, where that is known", IN_BODY, NULL},
    {"asked_unix_ms", KIND_NUMBER, true, 0, "", IN_BODY, NULL},
    {"expires_unix_ms", KIND_NUMBER, true, 0, "nobody waits longer", IN_BODY, NULL},
    END,
};

static const struct op_field idle_shape[] = {
    {"names", KIND_TEXTS, true, 0, "those it had", IN_BODY, NULL},
    {"digest", KIND_TEXT, true, 0, "SHA-256 of what is in it, in hex", IN_BODY, NULL},
    {"bytes", KIND_NUMBER, true, 0, "of its files", IN_BODY, NULL},
    END,
};

static const struct op_field collected_shape[] = {
    {"boxes", KIND_NUMBER, true, 0, "that were looked at", IN_BODY, NULL},
    {"layers", KIND_NUMBER, true, 0, "that were removed", IN_BODY, NULL},
    {"orphans", KIND_NUMBER, true, 0, "boxes whose folder was gone, of which the rest was removed", IN_BODY, NULL},
    {"files", KIND_NUMBER, true, 0, "that somebody was writing when he died", IN_BODY, NULL},
    {"staging", KIND_NUMBER, true, 0, "folders in which an image was being built", IN_BODY, NULL},
    {"quarantines", KIND_NUMBER, true, 0, "of one-shot boxes, that are older than 30 days", IN_BODY, NULL},
    {"logs", KIND_NUMBER, true, 0, "of boxes that were removed, older than 30 days, or beyond 1,000 or 256 MiB", IN_BODY, NULL},
    {"images", KIND_LIST_OF, true, 0, "that were removed", IN_BODY, "IdleImage"},
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
    {"Network", "What was counted.", network_shape},
    {"Host", "What was counted for a name, or an address, and a port.", host_shape},
    {"Panic", "Which boxes were told.", panic_shape},
    {"Result", "How a command ended.", result_shape},
    {"Bytes", "Bytes of a box: one of the two.", bytes_shape},
    {"Exec", "How a command ended, and what it printed.", exec_shape},
    {"Started", "A command that has begun.", started_shape},
    {"Job", "A command that runs or ran.", job_shape},
    {"Entry", "A file, or something like it.", entry_shape},
    {"Lines", "Lines of a file.", lines_shape},
    {"Edited", "What an edit has done.", edited_shape},
    {"Name", "What a pattern has matched.", name_shape},
    {"Names", "All that it has.", names_shape},
    {"Match", "A line or a file that matches.", match_shape},
    {"Matches", "What a search has found.", matches_shape},
    {"Change", "What a patch does to a file.", change_shape},
    {"Patched", "What it does to all.", patched_shape},
    {"Snapshot", "A box as it was.", snapshot_shape},
    {"Taken", "A snapshot that was taken.", taken_shape},
    {"Restored", "What going back has done.", restored_shape},
    {"Imported", "A box that was made of an export.", imported_shape},
    {"Landing", "What became of a file that was to land.", landing_shape},
    {"Applied", "What has landed, and what has not.", applied_shape},
    {"Discarded", "What throwing away has done.", discarded_shape},
    {"Image", "A root for boxes.", image_shape},
    {"ImageDetails", "All about one.", details_shape},
    {"Built", "An image that was built.", built_shape},
    {"Verified", "An image that is what it was.", verified_shape},
    {"Quarantined", "What was taken out of a live project.", quarantined_shape},
    {"Question", "What a connection of a box waits to hear from the operator.", question_shape},
    {"IdleImage", "An image that nobody needs.", idle_shape},
    {"Collected", "What was removed, or would be.", collected_shape},
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
#define IMAGE "/v1/images/{image}"

const struct op op_table[] = {
    {"health", "GET", "/v1/health", RIGHT_NONE, "That the daemon serves.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Health", false, op_health},
    {"openapi", "GET", "/openapi.json", RIGHT_NONE, "This description.", NULL, INPUT_NONE, OUTPUT_JSON, 200, NULL, false, op_openapi},

    {"box.list", "GET", "/v1/boxes", RIGHT_BOX_READ, "All boxes that the caller sees.", list_fields, INPUT_NONE, OUTPUT_JSON, 200, "Box[]",
     false, op_box_list},
    {"box.create", "POST", "/v1/boxes", RIGHT_BOX_MAKE, "Make a box. With an Idempotency-Key asking twice makes one.", create_fields,
     INPUT_JSON, OUTPUT_JSON, 201, "Box", false, op_box_create},
    {"box.ensure", "PUT", BOX, RIGHT_BOX_MAKE, "Make a box of that name, unless one with the same policy is there.", ensure_fields,
     INPUT_JSON, OUTPUT_JSON, 200, "Box", false, op_box_ensure},
    {"box.inspect", "GET", BOX, RIGHT_BOX_READ, "How a box stands.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box", false, op_box_inspect},
    {"box.terms", "PATCH", BOX, RIGHT_BOX_END, "Change when it is removed or stopped by itself.", terms_fields, INPUT_JSON, OUTPUT_JSON,
     200, "Box", false, op_box_terms},
    {"box.remove", "DELETE", BOX, RIGHT_BOX_REMOVE, "Stop it and remove its policy and files; its log stays with the host for 30 days.",
     box_remove_fields, INPUT_NONE, OUTPUT_NOTHING, 204, NULL, false, op_box_remove},
    {"box.start", "POST", BOX "/start", RIGHT_BOX_END, "Start it; whatever needs it does so by itself.", NULL, INPUT_NONE, OUTPUT_JSON, 200,
     "Box", false, op_box_start},
    {"box.stop", "POST", BOX "/stop", RIGHT_BOX_END, "End everything in it. Its files stay.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box",
     false, op_box_stop},
    {"box.freeze", "POST", BOX "/freeze", RIGHT_BOX_END, "Every process of it stands still.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box",
     false, op_box_freeze},
    {"box.thaw", "POST", BOX "/thaw", RIGHT_BOX_END, "They go on.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box", false, op_box_thaw},
    {"box.network", "GET", BOX "/network", RIGHT_BOX_READ, "What its network has counted since it was started, by host.", NULL, INPUT_NONE,
     OUTPUT_JSON, 200, "Network", false, op_box_network},
    {"box.quarantine", "PUT", BOX "/quarantine", RIGHT_POLICY_WIDEN,
     "Cut it off from every network, at once and until it is lifted, whatever its policy says.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box",
     true, op_box_quarantine},
    {"box.lift", "DELETE", BOX "/quarantine", RIGHT_POLICY_WIDEN, "Its policy holds again.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Box",
     true, op_box_lift},
    {"box.rename", "POST", BOX "/rename", RIGHT_BOX_MAKE, "Give a stopped box another name, and with it another id.", rename_fields,
     INPUT_JSON, OUTPUT_JSON, 200, "Box", false, op_box_rename},

    {"snapshot.take", "POST", BOX "/snapshots", RIGHT_SNAPSHOT,
     "Keep a box as it is now. Without a name, asking twice with one Idempotency-Key takes one.", take_fields, INPUT_JSON, OUTPUT_JSON, 201,
     "Taken", false, op_snapshot_take},
    {"snapshot.list", "GET", BOX "/snapshots", RIGHT_BOX_READ, "Its snapshots, the oldest first.", NULL, INPUT_NONE, OUTPUT_JSON, 200,
     "Snapshot[]", false, op_snapshot_list},
    {"snapshot.remove", "DELETE", BOX "/snapshots/{snapshot}", RIGHT_BOX_REMOVE, "Forget a snapshot. gc frees what it alone needed.", NULL,
     INPUT_NONE, OUTPUT_NOTHING, 204, NULL, false, op_snapshot_remove},
    {"box.restore", "POST", BOX "/restore", RIGHT_SNAPSHOT, "Make it as it was. What it is now is kept first, so that this can be undone.",
     restore_fields, INPUT_JSON, OUTPUT_JSON, 200, "Restored", false, op_box_restore},
    {"box.fork", "POST", BOX "/fork", RIGHT_BOX_MAKE,
     "Make boxes that begin where it is, or was: all of them or none. They are not started.", fork_fields, INPUT_JSON, OUTPUT_JSON, 201,
     "Box[]", false, op_box_fork},

    {"box.export", "GET", BOX "/export", RIGHT_FILE_READ,
     "Its own files and its policy as one archive, tar by zstd. Needs policy.read too. A client that leaves ends it.", export_fields,
     INPUT_NONE, OUTPUT_ARCHIVE, 200, NULL, false, op_box_export},
    {"box.import", "POST", BOX "/import", RIGHT_BOX_MAKE,
     "Make a box of that name of an export, which is the body and is unpacked in a box. Accept: application/x-ndjson or text/event-stream "
     "streams how "
     "far it is. It is not started. A client that leaves ends it.",
     arrive_fields, INPUT_BYTES, OUTPUT_JSON, 201, "Imported", false, op_box_import},

    {"box.diff", "GET", BOX "/diff", RIGHT_FILE_READ,
     "What it has changed. Except as json, a line that begins with // tells of a path that could not be read.", diff_fields, INPUT_NONE,
     OUTPUT_TEXT, 200, NULL, false, op_box_diff},
    {"review.apply", "POST", BOX "/apply", RIGHT_REVIEW,
     "Land what it has changed in its project, file by file. A tenant may where his boxes may have the project live.", apply_fields,
     INPUT_JSON, OUTPUT_JSON, 200, "Applied", false, op_review_apply},
    {"review.discard", "POST", BOX "/discard", RIGHT_REVIEW,
     "Show it the project as that is, all of it or at some paths. What it had made of it is kept as a snapshot first.", discard_fields,
     INPUT_JSON, OUTPUT_JSON, 200, "Discarded", false, op_review_discard},

    {"guard.list", "GET", BOX "/guard", RIGHT_REVIEW,
     "What was taken out of its live project, because the host would have run or obeyed it.", NULL, INPUT_NONE, OUTPUT_JSON, 200,
     "Quarantined[]", false, op_guard_list},
    {"guard.release", "POST", BOX "/guard/{number}/release", RIGHT_REVIEW, "Give it back to where it was. The box must be stopped.", NULL,
     INPUT_NONE, OUTPUT_NOTHING, 204, NULL, true, op_guard_release},
    {"guard.drop", "DELETE", BOX "/guard/{number}", RIGHT_REVIEW, "Remove it for good.", NULL, INPUT_NONE, OUTPUT_NOTHING, 204, NULL, true,
     op_guard_drop},

    {"approval.list", "GET", "/v1/approvals", RIGHT_BOX_READ, "Questions of boxes that wait for the operator.", NULL, INPUT_NONE,
     OUTPUT_JSON, 200, "Question[]", false, op_approval_list},
    {"approval.answer", "POST", "/v1/approvals/{question}", RIGHT_POLICY_WIDEN,
     "Answer one. The question is cited as it was listed: an answer to one that has changed or is open no longer is refused.",
     answer_fields, INPUT_JSON, OUTPUT_NOTHING, 204, NULL, true, op_approval_answer},

    {"box.wire", "GET", BOX "/wire", RIGHT_WIRE,
     "The protocol of its keeper, as `pale` speaks it: Connection: Upgrade, Upgrade: pale-wire, Pale-Wire-Version.", wire_fields,
     INPUT_NONE, OUTPUT_WIRE, 101, NULL, false, op_box_wire},

    {"mcp", "POST", "/mcp/{box}", RIGHT_NONE,
     "The Model Context Protocol, streamable HTTP: the tools of a box, as far as the caller may use them. One message each.", NULL,
     INPUT_MESSAGE, OUTPUT_JSON, 200, NULL, false, op_mcp},
    {"mcp.lines", "GET", BOX "/mcp", RIGHT_NONE,
     "The same, a message a line, both ways: Connection: Upgrade, Upgrade: pale-wire, Pale-Wire-Version.", NULL, INPUT_NONE, OUTPUT_WIRE,
     101, NULL, false, op_mcp_lines},

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
    {"file.lines", "GET", FILES "/lines", RIGHT_FILE_READ, "Lines of a file, by number or the last ones.", lines_fields, INPUT_NONE,
     OUTPUT_JSON, 200, "Lines", false, op_file_lines},
    {"file.glob", "GET", FILES "/glob", RIGHT_FILE_READ, "Names by pattern, the newest first.", glob_fields, INPUT_NONE, OUTPUT_JSON, 200,
     "Names", false, op_file_glob},
    {"file.grep", "GET", FILES "/grep", RIGHT_FILE_READ, "Search through a file or a tree.", grep_fields, INPUT_NONE, OUTPUT_JSON, 200,
     "Matches", false, op_file_grep},
    {"file.edit", "POST", FILES "/edit", RIGHT_FILE_WRITE, "Replace a text in a file by another, exactly.", edit_fields, INPUT_JSON,
     OUTPUT_JSON, 200, "Edited", false, op_file_edit},
    {"file.patch", "POST", FILES "/patch", RIGHT_FILE_WRITE, "Apply a patch, all of it or nothing.", patch_fields, INPUT_JSON, OUTPUT_JSON,
     200, "Patched", false, op_file_patch},
    {"tree.download", "GET", BOX "/tree", RIGHT_FILE_READ, "A file or a tree as a tar archive.", path_fields, INPUT_NONE, OUTPUT_TAR, 200,
     NULL, false, op_tree_download},
    {"tree.upload", "PUT", BOX "/tree", RIGHT_FILE_WRITE, "Unpack a tar archive into a folder.", path_fields, INPUT_BYTES, OUTPUT_NOTHING,
     204, NULL, false, op_tree_upload},

    {"policy.show", "GET", BOX "/policy", RIGHT_POLICY_READ, "What a box may do.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Policy", false,
     op_policy_show},
    {"policy.narrow", "POST", BOX "/policy/narrow", RIGHT_POLICY_NARROW,
     "Give a box a policy within the one it has. Of one that runs only rules of its network, and they hold at once.", policy_fields,
     INPUT_JSON, OUTPUT_JSON, 200, "Policy", false, op_policy_narrow},
    {"policy.change", "PUT", BOX "/policy", RIGHT_POLICY_WIDEN,
     "Give a box another policy. Of one that runs only rules of its network, and they hold at once.", policy_fields, INPUT_JSON,
     OUTPUT_JSON, 200, "Policy", true, op_policy_change},

    {"audit", "GET", BOX "/audit", RIGHT_AUDIT, "Its audit log, line by line.", audit_fields, INPUT_NONE, OUTPUT_LINES, 200, NULL, false,
     op_audit},
    {"receipt", "GET", BOX "/receipt", RIGHT_PROVE, "The receipt of its last start.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Receipt", false,
     op_receipt},
    {"prove", "POST", BOX "/prove", RIGHT_PROVE, "Try from inside what its policy forbids.", prove_fields, INPUT_JSON, OUTPUT_JSON, 200,
     "Receipt", false, op_prove},

    {"panic", "PUT", "/v1/panic", RIGHT_POLICY_WIDEN,
     "Cut every box off from every network, those that are stopped or made later too, until it is lifted.", NULL, INPUT_NONE, OUTPUT_JSON,
     200, "Panic", true, op_panic},
    {"panic.lift", "DELETE", "/v1/panic", RIGHT_POLICY_WIDEN, "The policies hold again, but of boxes in quarantine.", NULL, INPUT_NONE,
     OUTPUT_JSON, 200, "Panic", true, op_panic_lift},

    {"events", "GET", "/v1/events", RIGHT_EVENTS, "What happens to boxes and commands, as it happens.", events_fields, INPUT_NONE,
     OUTPUT_EVENTS, 200, NULL, false, op_events},
    {"metrics", "GET", "/v1/metrics", RIGHT_METRICS, "Numbers, in the text form of Prometheus.", NULL, INPUT_NONE, OUTPUT_TEXT, 200, NULL,
     true, op_metrics},
    {"doctor", "GET", "/v1/doctor", RIGHT_DOCTOR, "What works on this host.", NULL, INPUT_NONE, OUTPUT_JSON, 200, "Diagnosis", true,
     op_doctor},

    {"image.list", "GET", "/v1/images", RIGHT_IMAGE_READ, "All images. A tenant sees the one that his boxes may be on.", NULL, INPUT_NONE,
     OUTPUT_JSON, 200, "Image[]", false, op_image_list},
    {"image.build", "POST", "/v1/images", RIGHT_IMAGES,
     "Make one of what the host has. Accept: application/x-ndjson or text/event-stream streams how far it is. A client that leaves ends "
     "it.",
     build_fields, INPUT_JSON, OUTPUT_JSON, 201, "Built", true, op_image_build},
    {"image.import", "PUT", IMAGE, RIGHT_IMAGES,
     "Make one of an archive, which is the body and is unpacked in a box. Streams as image.build does. A client that leaves ends it.",
     import_fields, INPUT_BYTES, OUTPUT_JSON, 201, "Built", true, op_image_import},
    {"image.inspect", "GET", IMAGE, RIGHT_IMAGE_READ, "All about one, by its name or sha256:DIGEST.", NULL, INPUT_NONE, OUTPUT_JSON, 200,
     "ImageDetails", false, op_image_inspect},
    {"image.verify", "POST", IMAGE "/verify", RIGHT_IMAGES, "Read all of it again, and name the first thing that is not as it was built.",
     NULL, INPUT_NONE, OUTPUT_JSON, 200, "Verified", true, op_image_verify},
    {"image.remove", "DELETE", IMAGE, RIGHT_IMAGES, "Take away a name, and the image with its last one, unless a box is made on it.", NULL,
     INPUT_NONE, OUTPUT_NOTHING, 204, NULL, true, op_image_remove},

    {"gc", "POST", "/v1/gc", RIGHT_GC,
     "Free the disk of layers that neither a box nor a snapshot stands on, of what the dead have left, and if asked for of images.",
     gc_fields, INPUT_NONE, OUTPUT_JSON, 200, "Collected", true, op_gc},

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
