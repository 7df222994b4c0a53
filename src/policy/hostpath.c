/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rules for paths in a policy.
 *
 * How it works: a path comes from a policy file, which may be hostile. It is only ever compared as text here; symbolic links
 * are the business of whoever opens it, beneath a directory descriptor. The table lists the places that must not be handed
 * over: first what the box's own root is made of, then what would hand the host over with it. */
#include "policy/hostpath.h"

#include <string.h>

#include "base/limits.h"
#include "base/quote.h"
#include "base/weak.h"

enum { SELF = 1, BENEATH = 2, ONE_BENEATH = 4 };

#define ANY_USE (~0u)
#define FROM_HOST (HOSTPATH_READ | HOSTPATH_WRITE | HOSTPATH_PROJECT | HOSTPATH_SOURCE_RO | HOSTPATH_SOURCE_RW)
#define CHANGES (HOSTPATH_WRITE | HOSTPATH_PROJECT | HOSTPATH_SOURCE_RW | HOSTPATH_TARGET)

static const char own_place[] = "every box has its own";
static const char base_place[] = "it is part of what the box's root is made of";
static const char home_place[] = "a home folder holds keys, logins and shell start-up files; name a folder inside it";
static const char shared_place[] = "every program of the host shares it; name a folder inside it";
static const char socket_place[] = "it holds the sockets of the host's services, which would obey the box";

static const struct place {
    const char *path;
    unsigned reach;
    unsigned uses; /* that are refused */
    const char *why;
} places[] = {
    {"/", SELF, ANY_USE, "it is the whole system; name the folders that are needed"},
    {"/proc", SELF | BENEATH, ANY_USE, own_place},
    {"/sys", SELF | BENEATH, ANY_USE, own_place},
    {"/dev", SELF | BENEATH, ANY_USE, own_place},
    {"/run/pale", SELF | BENEATH, HOSTPATH_TARGET, own_place},
    {"/run", SELF, HOSTPATH_TARGET, own_place},
    {"/tmp", SELF, HOSTPATH_TARGET, own_place},
    {"/usr", SELF, ANY_USE, base_place},
    {"/etc", SELF, ANY_USE, base_place},
    {"/usr", BENEATH, CHANGES, base_place},
    {"/etc", BENEATH, CHANGES, base_place},
    {"/bin", SELF | BENEATH, ANY_USE, base_place},
    {"/sbin", SELF | BENEATH, ANY_USE, base_place},
    {"/lib", SELF | BENEATH, ANY_USE, base_place},
    {"/lib32", SELF | BENEATH, ANY_USE, base_place},
    {"/lib64", SELF | BENEATH, ANY_USE, base_place},
    {"/libx32", SELF | BENEATH, ANY_USE, base_place},
    {"/boot", SELF | BENEATH, CHANGES, "the host starts from it"},
    {"/run", SELF | BENEATH, FROM_HOST, socket_place},
    {"/var/run", SELF | BENEATH, FROM_HOST, socket_place},
    {"/tmp", SELF, FROM_HOST, shared_place},
    {"/var/tmp", SELF, FROM_HOST, shared_place},
    {"/var", SELF, FROM_HOST, shared_place},
    {"/home", SELF | ONE_BENEATH, FROM_HOST, home_place},
    {"/root", SELF, FROM_HOST, home_place},
};

bool hostpath_covers(const char *outer, const char *inner)
{
    size_t n = strlen(outer);
    if (strncmp(outer, inner, n) != 0)
        return false;
    return inner[n] == 0 || inner[n] == '/' || (n == 1 && outer[0] == '/');
}

static bool is_at(const struct place *pl, const char *path)
{
    if (strcmp(pl->path, path) == 0)
        return pl->reach & SELF;
    if (!hostpath_covers(pl->path, path))
        return false;
    return (pl->reach & BENEATH) || ((pl->reach & ONE_BENEATH) && !strchr(path + strlen(pl->path) + 1, '/'));
}

/* What keeps the path from being normal, or NULL. */
static const char *trouble_with(const char *path)
{
    if (path[0] != '/')
        return "is not absolute; write it from / on";
    if (strlen(path) >= PATH_BYTES_MAX)
        return "is longer than any path can be";
    for (const char *s = path; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return "holds a control byte";
    if (path[1] == 0)
        return NULL;
    for (const char *s = path; *s;) {
        size_t n = strcspn(++s, "/");
        if (n == 0)
            return "has an empty component; write it without doubled or trailing slashes";
        if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return "has a . or .. component; write where it leads";
        if (n > 255)
            return "has a component longer than any file name can be";
        s += n;
    }
    return NULL;
}

int hostpath_check(const char *path, enum hostpath_use use, struct pale_err *e)
{
    char shown[200];
    const char *why = trouble_with(path);
    quote_into(shown, sizeof(shown), path, strlen(path));
    if (why)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" %s", shown, why);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !weak_word("policy-check"); i++)
        if ((places[i].uses & use) && is_at(&places[i], path))
            return err_set(e, PALE_BAD_INPUT, "\"%s\" cannot be given to a box: %s", shown, places[i].why);
    return 0;
}
