/* SPDX-License-Identifier: Apache-2.0 */
/* Every maximum that hostile or careless input can meet, with its reason. */
#pragma once

/* Names: a box name is one path component and one host name label. An id is 128 random bits in hex digits: nobody has the same one twice.
 */
#define BOX_NAME_MAX 63
#define BOX_ID_LEN 32

/* A path inside or outside a box; the kernel's own limit. */
#define PATH_BYTES_MAX 4096

/* Folders that hold what a box may write, and mounts beneath it: each is held open, of the thousand descriptors a process usually may have.
 */
#define ANCESTORS_MAX 700

/* The kernel's tables of mounts and locks, which everybody on the host may add to. */
#define MOUNT_TABLE_BYTES_MAX (32u << 20)

/* One name in a folder; the kernel's own limit. */
#define FILE_NAME_MAX 255

/* Folders that one request watches: a table of pale-init, which allocates nothing. Each is one of the watches that the kernel counts. */
#define WATCH_FOLDERS_MAX 1024

/* File requests of a model's tools. What they tell is read by a model: half a megabyte is more than it wants at once, and a line of five
 * hundred bytes more than a line of search results can use. What they change is held in memory, in the box. */
#define LINES_BYTES_MAX 524288u
#define GREP_LINE_MAX 500u
#define GREP_ITEMS_MAX 5000u
#define GREP_CONTEXT_MAX 100u
#define GLOB_ITEMS_MAX 10000u
#define EDIT_TEXT_MAX 1048576u
#define EDIT_FILE_MAX 16777216u
#define PATCH_TEXT_MAX 1048576u

/* A pattern for names or for a search: a person or a model writes it. */
#define PATTERN_BYTES_MAX 2048

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
#define EGRESS_PATHS_MAX 32
#define EGRESS_PATH_MAX 255
#define ENV_NAME_MAX 128
#define ENV_HELD_MAX 64 /* names in one request of variables that were held back; more are counted by nobody */
#define ENV_VALUE_MAX 32768
#define IMAGE_NAME_MAX 255
#define GUARD_NAME_MAX 255

/* DNS. A datagram without the extension has 512 bytes by the protocol, one with it no more than passes every link unbroken. Names that
 * are served by many hosts have some tens of addresses, and a few are enough to reach one; chains of aliases have two or three links. A
 * server's answer with more records than that is no answer to a question for addresses. */
#define DNS_PLAIN_BYTES_MAX 512u
#define DNS_DATAGRAM_BYTES_MAX 1232u
#define DNS_ADDRESSES_MAX 32u
#define DNS_ALIASES_MAX 8u
#define DNS_RECORDS_MAX 256u
#define DNS_TEXT_MAX 200u /* of a reason that is told to a box */

/* The guard of a live project. Folders that are watched: each costs the kernel about a kilobyte, and the user's editors want some of the
 * watches too; a large project with its dependencies has half as many. Beyond that a box may make some more, which are looked through
 * again and again: a minute's work. Names that are mounted read-only: each takes some tens of
 * microseconds when the box starts. Things that are kept in quarantine, and the bytes of one that must be copied there: nobody looks
 * through more by hand. */
#define GUARD_FOLDERS_MAX 65536u
#define GUARD_LOOK_MAX 524288u
#define GUARD_MOUNTS_MAX 2048u
#define GUARD_KEPT_MAX 1000u
#define GUARD_COPY_MAX 67108864u

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

/* Trees that boxes wrote, looked at by the host. A chain of snapshots is merged long before it has this many layers; overlayfs itself takes
 * 500. The names of the folders on the way down are held sorted: a million names of a hundred bytes fit. Attributes are bounded by the
 * kernel's own limit. */
#define TREE_LAYERS_MAX 500
#define TREE_NAMES_BYTES_MAX 134217728u
#define XATTR_LIST_BYTES_MAX 65536u

/* Text that is compared line by line: beyond it nobody reads a difference, and the tables of a comparison would take more than some
 * hundred megabytes. The steps bound the time to about a second; what is left then is shown as replaced. */
#define TEXT_BYTES_MAX 8388608u
#define TEXT_LINES_MAX 1048576u
#define TEXT_STEPS_MAX 134217728u

/* What the copy of a busy layer remembers between its two passes: two million entries at 64 bytes, in a table at most half full, and the
 * first names of a quarter of a million files that have several. */
#define LAYERCOPY_SEEN_MAX 4194304u
#define LAYERCOPY_TWINS_MAX 524288u

/* Images. The largest in use have half a million entries, and a hundred layers; a hostile one has what it likes. Sixty-four gigabytes of
 * content are more than any root needs; what is always left free on the disk keeps the host going. Names of one folder are held in
 * memory to be sorted. A manifest, an index or a configuration of an image is a few kilobytes; registries take four megabytes at most. */
#define IMAGE_ENTRIES_MAX 2000000u
#define IMAGE_BYTES_MAX (64ull << 30)
#define IMAGE_LAYERS_MAX 128
#define IMAGE_SPARE_BYTES (256u << 20)
#define IMAGE_SPARE_INODES 4096u
#define IMAGE_FOLDER_BYTES_MAX (64u << 20)
#define IMAGE_JSON_MAX (4u << 20)

/* Conflicts of a landing that are tried again with the last commit; more are told at once. */
#define CONFLICTS_MAX 10000u

/* Exports of boxes. As many entries and bytes as an image; what a box has written seldom comes near. What is written out of an archive
 * without being zeros may be that many times what the archive has, beyond the first so many: texts of one line over and over come to
 * a thousand, bombs to more than ten thousand. What an export says of itself holds a policy, whose text has its own maximum. */
#define CARGO_ENTRIES_MAX 2000000u
#define CARGO_BYTES_MAX (64ull << 30)
#define CARGO_RATIO_MAX 2000u
#define CARGO_RATIO_FROM (64u << 20)
#define WAYBILL_BYTES_MAX (2u << 20)
#define ATTRIBUTES_BYTES_MAX 131072u /* of one entry; one value has at most half of it by the kernel's own limit */

/* Paths that one request lands: together they must fit into one order, and who means more means a folder above them. */
#define APPLY_PATHS_MAX 256

/* The first message of a TLS client. With post-quantum keys and a ticket it is two to four kilobytes; sixteen is the most that one record
 * holds, and what servers take. A client sends it in one record, or in a few where something on the way needs it. Some twenty extensions
 * are usual, and every one there is could come once. Protocols are offered by short names, h2 and http/1.1. */
#define HELLO_MESSAGE_MAX 16384u
#define HELLO_RECORDS_MAX 32u
#define HELLO_EXTENSIONS_MAX 64u
#define HELLO_NAME_MAX 255u
#define HELLO_PROTOCOLS_MAX 8u
#define HELLO_PROTOCOL_BYTES_MAX 32u

/* Interim answers of a web server before the one that counts: one is usual, a few are progress, more is a server that never answers. */
#define HTTP_INTERIM_MAX 16u

/* Files that a box may have for each byte of its limits.disk: what a file takes besides its bytes is not counted as such. Few projects have
 * smaller files on average, and the least box has room for some thousand, as tools make them by themselves. */
#define ALLOT_BYTES_PER_FILE 16384u
#define ALLOT_FILES_LEAST 4096u

/* What we and the kernel may take beyond that while nothing runs in the box: some folders for each of four parts, and what an overlay tries
 * out when it is mounted. */
#define ALLOT_SPARE_BYTES 1048576u
#define ALLOT_SPARE_FILES 64u

/* A disk with less than this is full: a write of many pages fails when some of them find no place. */
#define ROOM_BYTES_LEAST 65536u
