/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of a verb's words against its tables. */
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/quote.h"
#include "cli/cli.h"
#include "cli/foreign.h"

const struct option common_options[] = {
    {"json", 0, NULL, "answer in JSON", NULL},
    {"host", 0, "URL", "ask a daemon: unix:///…, http://127.0.0.1:PORT, https://… (PALE_HOST)", NULL},
    {"help", 'h', NULL, "show this text", NULL},
    {0},
};

static const struct option *find_long(const struct verb *v, const char *name, size_t n)
{
    for (const struct option *const *t = v->options; *t; t++)
        for (const struct option *o = *t; o->name; o++)
            if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
                return o;
    return NULL;
}

static const struct option *find_letter(const struct verb *v, char c)
{
    for (const struct option *const *t = v->options; *t; t++)
        for (const struct option *o = *t; o->name; o++)
            if (o->letter == c)
                return o;
    return NULL;
}

static int unknown(const struct verb *v, const char *word, size_t n, struct pale_err *e)
{
    char shown[80], name[64];
    struct nearest near;
    quote_into(shown, sizeof(shown), word, strlen(word));
    if (n >= sizeof(name))
        n = sizeof(name) - 1;
    memcpy(name, word + 2, n);
    name[n] = 0;
    nearest_init(&near, name);
    for (const struct option *const *t = v->options; *t; t++)
        for (const struct option *o = *t; o->name; o++)
            nearest_offer(&near, o->name);
    if (word[1] == '-' && near.best)
        return err_set(e, PALE_BAD_INPUT, "%s: unknown option; did you mean --%s?", shown, near.best);
    return err_set(e, PALE_BAD_INPUT, "%s: unknown option; `pale %s --help` lists them", shown, v->name);
}

static int give(struct args *a, const struct option *o, const char *value, struct pale_err *e)
{
    if (a->given_count == ARGS_OPTIONS_MAX)
        return err_set(e, PALE_LIMIT, "more than %d options", ARGS_OPTIONS_MAX);
    a->given[a->given_count].option = o;
    a->given[a->given_count++].value = value;
    if (strcmp(o->name, "json") == 0)
        a->json = true;
    return 0;
}

static int needs_value(const struct option *o, struct pale_err *e)
{
    return err_set(e, PALE_BAD_INPUT, "--%s needs a value: %s", o->name, o->value);
}

/* --name, --name=value, --name value. Moves *at past what it took. */
static int take_long(struct args *a, int argc, char **argv, int *at, struct pale_err *e)
{
    const char *word = argv[*at];
    size_t n = strcspn(word + 2, "=");
    const struct option *o = find_long(a->verb, word + 2, n);
    const char *inline_value = word[2 + n] == '=' ? word + 3 + n : NULL;
    const struct foreign *other = o ? NULL : foreign_find(a->verb->name, word + 2, n);
    if (other && other->told)
        return err_set(e, PALE_BAD_INPUT, "--%s %s", other->word, other->told);
    if (other)
        o = find_long(a->verb, other->means, strlen(other->means));
    if (!o)
        return unknown(a->verb, word, n, e);
    ++*at;
    if (other && other->value)
        return inline_value ? err_set(e, PALE_BAD_INPUT, "--%s takes no value", other->word) : give(a, o, other->value, e);
    if (!o->value)
        return inline_value ? err_set(e, PALE_BAD_INPUT, "--%s takes no value", o->name) : give(a, o, "", e);
    if (inline_value)
        return give(a, o, inline_value, e);
    if (*at >= argc)
        return needs_value(o, e);
    return give(a, o, argv[(*at)++], e);
}

/* -it, -w DIR, -wDIR. */
static int take_letters(struct args *a, int argc, char **argv, int *at, struct pale_err *e)
{
    const char *word = argv[(*at)++];
    for (const char *c = word + 1; *c; c++) {
        const struct option *o = find_letter(a->verb, *c);
        int r;
        if (!o)
            return unknown(a->verb, word, 0, e);
        if (!o->value) {
            if ((r = give(a, o, "", e)) < 0)
                return r;
            continue;
        }
        if (c[1])
            return give(a, o, c + 1, e);
        if (*at >= argc)
            return needs_value(o, e);
        return give(a, o, argv[(*at)++], e);
    }
    return 0;
}

int args_parse(const struct verb *v, int argc, char **argv, struct args *ret, struct pale_err *e)
{
    struct args *a = ret;
    int at = 0, r;
    a->verb = v;
    a->word = argv; /* positionals are moved to the front as we go */
    a->count = a->given_count = 0;
    a->command = -1;
    a->json = false;
    while (at < argc) {
        const char *word = argv[at];
        if (strcmp(word, "--") == 0) {
            at++;
            if (v->command_after >= 0)
                a->command = a->count;
            break;
        }
        if (word[0] == '-' && word[1] == '-')
            r = take_long(a, argc, argv, &at, e);
        else if (word[0] == '-' && word[1])
            r = take_letters(a, argc, argv, &at, e);
        else if (v->command_after >= 0 && a->count == v->command_after)
            break;
        else
            r = (argv[a->count++] = argv[at++], 0);
        if (r < 0)
            return r;
    }
    if (v->command_after >= 0)
        a->command = a->count;
    while (at < argc)
        argv[a->count++] = argv[at++];
    if (a->command < 0)
        a->command = a->count;
    if (args_has(a, "help"))
        return 0;
    if (a->count < v->min)
        return err_set(e, PALE_BAD_INPUT, "something is missing: pale %s %s", v->name, v->usage);
    if (v->max >= 0 && a->count > v->max) {
        char shown[80];
        return err_set(e, PALE_BAD_INPUT, "%s is one word too many: pale %s %s",
                       quote_into(shown, sizeof(shown), a->word[v->max], strlen(a->word[v->max])), v->name, v->usage);
    }
    return 0;
}

void args_set_host(struct args *a, const char *early)
{
    const char *given = args_get(a, "host"), *usual = getenv("PALE_HOST");
    a->host = given ? given : early ? early : usual;
    if (a->host && !a->host[0])
        a->host = NULL;
}

const char *args_get(const struct args *a, const char *name)
{
    for (int i = a->given_count - 1; i >= 0; i--)
        if (strcmp(a->given[i].option->name, name) == 0)
            return a->given[i].value;
    return NULL;
}

bool args_has(const struct args *a, const char *name)
{
    return args_get(a, name) != NULL;
}
