/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of offered tools. */
#include "agents/offer.h"

#include <stdio.h>
#include <string.h>

#include "base/jsonread.h"

struct teller {
    void (*tell)(void *arg, const char *name);
    void *arg;
    int count;
};

static void tell(struct teller *t, const char *space, const struct jsonread *name)
{
    char text[OFFER_NAME_MAX], whole[2 * OFFER_NAME_MAX + 2];
    if (name)
        jsonread_text(name, text, sizeof(text));
    bool good = name && name->kind == JSONREAD_TEXT && text[0];
    snprintf(whole, sizeof(whole), "%s%s%s", space, space[0] ? "/" : "", good ? text : "?");
    t->tell(t->arg, whole);
    t->count++;
}

/* A list of objects that have a name. */
static void tell_named(struct teller *t, const char *space, const struct jsonread *list)
{
    struct jsonread item, name;
    if (list->kind != JSONREAD_LIST) {
        tell(t, space, NULL);
        return;
    }
    for (size_t pos = 0; jsonread_next(list, &pos, NULL, &item);)
        tell(t, space, item.kind == JSONREAD_OBJECT && jsonread_get(&item, "name", &name) ? &name : NULL);
}

static void tell_space(struct teller *t, const struct jsonread *item, const struct jsonread *inner)
{
    char space[OFFER_NAME_MAX] = "?";
    struct jsonread name;
    if (jsonread_get(item, "name", &name) && name.kind == JSONREAD_TEXT)
        jsonread_text(&name, space, sizeof(space));
    tell_named(t, space, inner);
}

/* Members of an object of Gemini's: declared functions, and tools of the model's own, each by its key. */
static void tell_members(struct teller *t, const struct jsonread *item)
{
    struct jsonread key, value;
    for (size_t pos = 0; jsonread_next(item, &pos, &key, &value);) {
        char name[OFFER_NAME_MAX];
        jsonread_text(&key, name, sizeof(name));
        if (strcmp(name, "functionDeclarations") == 0)
            tell_named(t, "", &value);
        else
            tell(t, "", &key);
    }
}

static void tell_one(struct teller *t, const struct jsonread *item)
{
    struct jsonread inner, name;
    if (item->kind != JSONREAD_OBJECT)
        tell(t, "", NULL);
    else if (jsonread_get(item, "tools", &inner))
        tell_space(t, item, &inner);
    else if (jsonread_get(item, "function", &inner))
        tell(t, "", inner.kind == JSONREAD_OBJECT && jsonread_get(&inner, "name", &name) ? &name : NULL);
    else if (jsonread_get(item, "name", &name) || jsonread_get(item, "type", &name))
        tell(t, "", &name);
    else
        tell_members(t, item);
}

static void tell_list(struct teller *t, const struct jsonread *list)
{
    struct jsonread item;
    if (list->kind != JSONREAD_LIST && list->kind != JSONREAD_NULL)
        tell(t, "", NULL);
    for (size_t at = 0; list->kind == JSONREAD_LIST && jsonread_next(list, &at, NULL, &item);)
        tell_one(t, &item);
}

static void tell_lines(struct teller *t, const struct jsonread *text)
{
    char lines[OFFER_OUTPUT_MAX];
    size_t mark = strlen(OFFER_MARK);
    jsonread_text(text, lines, sizeof(lines));
    for (char *at = lines; *at;) {
        size_t n = strcspn(at, "\n");
        bool more = at[n];
        at[n] = 0;
        if (strncmp(at, OFFER_MARK, mark) == 0) {
            t->tell(t->arg, n - mark > 0 && n - mark < OFFER_NAME_MAX ? at + mark : "?");
            t->count++;
        }
        at += n + more;
    }
}

/* What a call has put out: a text, or a list of objects that have one. */
static void tell_output(struct teller *t, const struct jsonread *v)
{
    struct jsonread item, text;
    if (v->kind == JSONREAD_TEXT)
        tell_lines(t, v);
    for (size_t at = 0; v->kind == JSONREAD_LIST && jsonread_next(v, &at, NULL, &item);)
        if (item.kind == JSONREAD_OBJECT && jsonread_get(&item, "text", &text) && text.kind == JSONREAD_TEXT)
            tell_lines(t, &text);
}

static void tell_input(struct teller *t, const struct jsonread *list)
{
    struct jsonread item, inner;
    for (size_t at = 0; list->kind == JSONREAD_LIST && jsonread_next(list, &at, NULL, &item);) {
        if (item.kind == JSONREAD_OBJECT && jsonread_get(&item, "tools", &inner))
            tell_list(t, &inner);
        if (item.kind == JSONREAD_OBJECT && jsonread_get(&item, "output", &inner))
            tell_output(t, &inner);
    }
}

int offer_read(const char *body, size_t n, void (*each)(void *arg, const char *name), void *arg)
{
    struct teller t = {each, arg, 0};
    struct jsonread v, key, value;
    if (n > OFFER_BODY_MAX || !jsonread_parse(body, n, &v) || v.kind != JSONREAD_OBJECT)
        return -1;
    for (size_t pos = 0; jsonread_next(&v, &pos, &key, &value);) {
        char name[16];
        jsonread_text(&key, name, sizeof(name));
        if (strcmp(name, "tools") == 0)
            tell_list(&t, &value);
        else if (strcmp(name, "input") == 0)
            tell_input(&t, &value);
    }
    return t.count;
}
