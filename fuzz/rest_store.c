/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the registry of the daemon that is fuzzed: the real one, in a file that has no name any more, put right again after an input that
 * changed it. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/registry.c"

#include "ops/op.h"
#include "rest_rig.h"

static const struct {
    const char *text, *id, *tenant, *box;
    enum registry_scope scope;
    uint64_t rights;
    int64_t expires_ms; /* before now, if negative */
} tokens[] = {
    {"op", "00000000000000a0", "", "", REGISTRY_SCOPE_OPERATOR, ~0ull, 0},
    {"te", "00000000000000a1", "t", "", REGISTRY_SCOPE_TENANT, ~0ull, 0},
    {"bo", "00000000000000a2", "", "000000000000000000000000000000b0", REGISTRY_SCOPE_BOX, ~0ull, 0},
    {"ex", "00000000000000a3", "", "", REGISTRY_SCOPE_OPERATOR, ~0ull, -1},
    {"ro", "00000000000000a4", "t", "", REGISTRY_SCOPE_TENANT, 1ull << RIGHT_BOX_READ | 1ull << RIGHT_JOB_READ, 86400000},
};

UNSEEN static void fill(struct registry *r, int64_t now)
{
    struct pale_err e;
    assert(sqlite3_exec(r->db, "BEGIN; DELETE FROM boxes; DELETE FROM tokens;", NULL, NULL, NULL) == SQLITE_OK);
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        struct registry_token t = {.name = "n", .scope = tokens[i].scope, .tenant = tokens[i].tenant, .rights = tokens[i].rights};
        uint8_t hash[SHA256_BYTES];
        struct sha256 h;
        snprintf(t.id, sizeof(t.id), "%s", tokens[i].id);
        snprintf(t.box, sizeof(t.box), "%s", tokens[i].box);
        t.made_unix_ms = now - 1000;
        t.expires_unix_ms = tokens[i].expires_ms ? now + tokens[i].expires_ms : 0;
        sha256_init(&h);
        sha256_add(&h, tokens[i].text, strlen(tokens[i].text));
        sha256_final(&h, hash);
        assert(registry_token_add(r, &t, hash, &e) == 0);
        assert(registry_token_touch(r, t.id, now, &e) == 0);
    }
    assert(sqlite3_exec(r->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
}

UNSEEN static struct registry *make(int64_t now)
{
    struct pale_err e;
    struct registry *r;
    /* In memory where that is possible: one who revokes a token waits for the disk. */
    char folder[] = "/dev/shm/pale-fuzz-XXXXXX", path[64];
    if (!mkdtemp(folder)) {
        snprintf(folder, sizeof(folder), "/tmp/pale-fuzz-XXXXXX");
        assert(mkdtemp(folder));
    }
    snprintf(path, sizeof(path), "%s/registry", folder);
    assert(registry_open(path, &r, &e) == 0);
    fill(r, now);
    DIR *d = opendir(folder);
    assert(d);
    for (struct dirent *f; (f = readdir(d));)
        (void)!unlinkat(dirfd(d), f->d_name, 0);
    closedir(d);
    (void)!rmdir(folder);
    return r;
}

UNSEEN struct registry *store_fresh(int64_t now_unix_ms)
{
    static struct registry *r;
    static int changes;
    if (!r)
        r = make(now_unix_ms);
    else if (sqlite3_total_changes(r->db) != changes)
        fill(r, now_unix_ms);
    changes = sqlite3_total_changes(r->db);
    return r;
}
