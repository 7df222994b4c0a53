/* SPDX-License-Identifier: Apache-2.0 */
/* Every maximum that hostile or careless input can meet, with its reason. */
#pragma once

/* Names: a box name is one path component and one host name label. */
#define BOX_NAME_MAX 63
#define BOX_ID_LEN 16

/* A path inside or outside a box; the kernel's own limit. */
#define PATH_BYTES_MAX 4096

/* One name in a folder; the kernel's own limit. */
#define FILE_NAME_MAX 255

/* Folders that one request watches: a table of pale-init, which allocates nothing. Each is one of the watches that the kernel counts. */
#define WATCH_FOLDERS_MAX 1024

/* One frame on any wire of ours. Data frames stay small so that no stream holds up another; the larger bound is
 * for an exec request, which carries a whole argument list. */
#define FRAME_DATA_MAX 32768u
#define FRAME_PAYLOAD_MAX 262144u

/* Arguments and environment of one command. The kernel allows more; no tool we met sends more. */
#define EXEC_STRINGS_MAX 4096

/* Commands at once in a box (init's table is static) and clients at once on a keeper's socket. */
#define JOBS_MAX 256
#define CLIENTS_MAX 1024

/* Bytes of output a command may have under way before its reader must take some. */
#define STREAM_WINDOW 262144u

/* Bytes of standard input init holds for a command that does not read. */
#define STDIN_WINDOW 16384u

/* Policy text: a person writes it, so a hundred kilobytes is already a mistake. */
#define POLICY_TEXT_MAX 262144u
#define POLICY_LIST_MAX 512
#define POLICY_DEPTH_MAX 8

/* Errors told about one policy file: more than a screenful helps nobody. */
#define POLICY_ERRORS_MAX 20

/* Parts of a policy. A host name is bounded by DNS, a label likewise; a variable by what shells and people use; a guard
 * name is a path component or a few. */
#define DOMAIN_NAME_MAX 253
#define DOMAIN_LABEL_MAX 63
#define EGRESS_PORTS_MAX 64
#define ENV_NAME_MAX 128
#define ENV_VALUE_MAX 32768
#define IMAGE_NAME_MAX 255
#define GUARD_NAME_MAX 255

/* One audit record; longer fields are cut and say so. */
#define AUDIT_RECORD_MAX 16384u

/* One D-Bus message from systemd. Answers and signals about one unit are a few kilobytes. */
#define DBUS_MESSAGE_MAX 65536u

/* What the daemon remembers. A tenant is named as a box is. A key that makes asking twice harmless is a client's choice, most take a
 * UUID; a token's name is a label for people. Sixteen times the thousand boxes of a large server, and as many tokens; both fill
 * less than half of the file that is still taken for ours. */
#define TENANT_NAME_MAX 63
#define REQUEST_KEY_MAX 128
#define TOKEN_NAME_MAX 64
#define TOKEN_ID_LEN 16
#define REGISTRY_BOXES_MAX 16384
#define REGISTRY_TOKENS_MAX 16384
#define REGISTRY_FILE_MAX 67108864
