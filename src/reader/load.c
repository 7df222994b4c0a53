/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from the bytes of a policy file to a tree.
 *
 * How it works: the bytes are hostile. First every byte is checked to be UTF-8 without control or line-splitting
 * characters. JSON is then judged by jansson, strictly and with duplicate keys refused, only for its verdict: jansson keeps no
 * places. Since JSON is YAML, the same bytes go through libyaml, which does; the two points where libyaml reads JSON
 * differently (surrogate pairs, tabs between tokens) are rewritten before. libyaml's events become nodes on a stack of
 * bounded depth. Anchors, aliases, tags, merge keys, directives, second documents and duplicate keys are errors: each is
 * a way for a file to mean something else than it seems to. */
#include "reader/load.h"

#include <jansson.h>
#include <string.h>
#include <yaml.h>

#include "base/quote.h"

void load_prepare(void)
{
    json_object_seed(0);
}

static bool is_allowed(unsigned point, bool first)
{
    if (point == 0xfeff)
        return first;
    return point == '\n' || point == '\t' || point == '\r' || (point >= 0x20 && point < 0x7f) ||
           (point >= 0xa0 && point != 0x2028 && point != 0x2029 && (point & 0xfffe) != 0xfffe);
}

static bool check_bytes(const char *text, size_t len, struct complaints *c)
{
    struct place at = {1, 1};
    for (size_t i = 0; i < len;) {
        unsigned point = 0;
        size_t n = quote_utf8((const unsigned char *)text + i, len - i, &point);
        if (n == 0) {
            complain(c, at, "", "byte 0x%02x is not UTF-8; save the file as UTF-8", (unsigned char)text[i]);
            return false;
        }
        if (!is_allowed(point, i == 0)) {
            complain(c, at, "", "character U+%04X does not belong in a policy; write it as an escape in double quotes", point);
            return false;
        }
        at.column++;
        if (point == '\n')
            at = (struct place){at.line + 1, 1};
        i += n;
    }
    return true;
}

static bool check_json(const char *text, size_t len, struct complaints *c)
{
    json_error_t why;
    json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (value) {
        json_decref(value);
        return true;
    }
    char shown[200];
    struct place at = {why.line > 0 ? (size_t)why.line : 1, why.column > 0 ? (size_t)why.column : 1};
    complain(c, at, "", "not valid JSON, which a file is read as that begins with { or is named .json: %s",
             quote_into(shown, sizeof(shown), why.text, strlen(why.text)));
    return false;
}

static unsigned hex4(const char *s)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | (unsigned)(s[i] <= '9' ? s[i] - '0' : (s[i] | 0x20) - 'a' + 10);
    return v;
}

/* Spells valid JSON so that libyaml reads it alike: tabs between tokens become blanks, and a surrogate pair \uD83D\uDE00
 * becomes \U0001F600, which is two bytes shorter (places after it on its line are off by two). Returns the new length. */
static size_t json_as_yaml(char *s, size_t len)
{
    size_t out = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        if (quoted && s[i] == '\\' && i + 11 < len && s[i + 1] == 'u' && (hex4(s + i + 2) & 0xfc00) == 0xd800) {
            char pair[11];
            unsigned point = 0x10000 + ((hex4(s + i + 2) & 0x3ff) << 10) + (hex4(s + i + 8) & 0x3ff);
            snprintf(pair, sizeof(pair), "\\U%08X", point);
            memcpy(s + out, pair, 10);
            out += 10;
            i += 11;
        } else if (quoted && s[i] == '\\') {
            s[out++] = s[i++];
            s[out++] = s[i];
        } else {
            quoted ^= s[i] == '"';
            s[out++] = !quoted && s[i] == '\t' ? ' ' : s[i];
        }
    }
    return out;
}

/* The state of the walk over libyaml's events. */
struct loader {
    struct complaints *c;
    struct node *root;                   /* NULL until the first node */
    struct node *open[POLICY_DEPTH_MAX]; /* lists and maps that are not closed; owned through root */
    size_t depth;
    char *key; /* read in the innermost map, its value is next */
    struct place key_place;
    size_t documents;
    bool stop;
};

static void loader_done(struct loader *l)
{
    node_free(l->root);
    free(l->key);
}

static struct place place_of(const yaml_mark_t *m)
{
    return (struct place){m->line + 1, m->column + 1};
}

static void refuse(struct loader *l, struct place at, const char *text)
{
    complain(l->c, at, l->key ? l->key : "", "%s", text);
}

/* Hangs a node where the walk stands; takes it. NULL if memory ran out. */
static struct node *attach(struct loader *l, struct node *n)
{
    struct node *in = l->depth ? l->open[l->depth - 1] : NULL;
    if (!n)
        return NULL;
    if (in && in->count >= POLICY_LIST_MAX) {
        complain(l->c, n->place, in->key ? in->key : "", "more than %d items; use fewer, wider ones", POLICY_LIST_MAX);
        l->stop = true;
    }
    n->key = take_mem(&l->key);
    if (n->key)
        n->key_place = l->key_place;
    if (!in && !l->root) {
        l->root = n;
        return n;
    }
    if (!in || !node_add(in, n)) {
        node_free(n);
        return NULL;
    }
    return n;
}

static void check_properties(struct loader *l, struct place at, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        refuse(l, at, "anchors (&name) are not used in policies; write the value where it is needed");
    if (tag)
        refuse(l, at, "tags (!name) are not used in policies; write the plain value");
}

/* Is the next text a key? */
static bool wants_key(const struct loader *l)
{
    return l->depth && l->open[l->depth - 1]->kind == NODE_MAP && !l->key;
}

static int take_key(struct loader *l, struct place at, const char *text, bool plain, struct pale_err *e)
{
    struct node *map = l->open[l->depth - 1];
    if (plain && strcmp(text, "<<") == 0)
        complain(l->c, at, text, "merge keys are not used in policies; write the keys out");
    const struct node *old = node_get(map, text);
    if (old)
        complain(l->c, at, text, "the key stands twice; it is on line %zu already", old->key_place.line);
    l->key = strdup(text);
    l->key_place = at;
    return l->key ? 0 : err_nomem(e);
}

static int on_scalar(struct loader *l, const yaml_event_t *ev, struct pale_err *e)
{
    struct place at = place_of(&ev->start_mark);
    const char *text = (const char *)ev->data.scalar.value;
    bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    check_properties(l, at, ev->data.scalar.anchor, ev->data.scalar.tag);
    bool has_nul = strlen(text) != ev->data.scalar.length;
    if (has_nul)
        refuse(l, at, "a NUL character cannot be part of a policy");
    if (wants_key(l))
        return take_key(l, at, text, plain, e);
    struct node *n = attach(l, node_new(has_nul ? NODE_BROKEN : NODE_TEXT, at));
    if (!n)
        return err_nomem(e);
    n->text = strdup(text);
    n->plain = plain;
    return n->text ? 0 : err_nomem(e);
}

static int on_alias(struct loader *l, const yaml_event_t *ev, struct pale_err *e)
{
    struct place at = place_of(&ev->start_mark);
    refuse(l, at, "aliases (*name) are not used in policies; write the value out");
    if (wants_key(l))
        return take_key(l, at, "*", false, e);
    return attach(l, node_new(NODE_BROKEN, at)) ? 0 : err_nomem(e);
}

static int on_open(struct loader *l, enum node_kind kind, struct place at, struct pale_err *e)
{
    if (wants_key(l) || l->depth == POLICY_DEPTH_MAX) {
        refuse(l, at, l->depth == POLICY_DEPTH_MAX ? "nested too deeply; no policy goes that deep" : "a key must be a plain name");
        l->stop = true;
        return 0;
    }
    struct node *n = attach(l, node_new(kind, at));
    if (!n)
        return err_nomem(e);
    l->open[l->depth++] = n;
    return 0;
}

static void on_document(struct loader *l, const yaml_event_t *ev)
{
    struct place at = place_of(&ev->start_mark);
    if (ev->data.document_start.version_directive ||
        ev->data.document_start.tag_directives.start != ev->data.document_start.tag_directives.end)
        refuse(l, at, "directives (%NAME) are not used in policies; take the line out");
    if (++l->documents > 1) {
        refuse(l, at, "a second document (---) begins here; a policy is one document");
        l->stop = true;
    }
}

static int on_event(struct loader *l, const yaml_event_t *ev, struct pale_err *e)
{
    struct place at = place_of(&ev->start_mark);
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        on_document(l, ev);
        return 0;
    case YAML_SCALAR_EVENT:
        return on_scalar(l, ev, e);
    case YAML_ALIAS_EVENT:
        return on_alias(l, ev, e);
    case YAML_SEQUENCE_START_EVENT:
        check_properties(l, at, ev->data.sequence_start.anchor, ev->data.sequence_start.tag);
        return on_open(l, NODE_LIST, at, e);
    case YAML_MAPPING_START_EVENT:
        check_properties(l, at, ev->data.mapping_start.anchor, ev->data.mapping_start.tag);
        return on_open(l, NODE_MAP, at, e);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        l->depth--;
        return 0;
    default:
        return 0;
    }
}

static void syntax_error(const yaml_parser_t *y, struct complaints *c)
{
    char shown[200];
    const char *why = y->problem ? y->problem : "it cannot be read";
    complain(c, place_of(&y->problem_mark), "", "not valid YAML: %s", quote_into(shown, sizeof(shown), why, strlen(why)));
}

static int walk(struct loader *l, yaml_parser_t *y, struct pale_err *e)
{
    int r = 0;
    for (bool end = false; !end && !l->stop && r == 0;) {
        yaml_event_t ev;
        if (!yaml_parser_parse(y, &ev)) {
            if (y->error == YAML_MEMORY_ERROR)
                return err_nomem(e);
            syntax_error(y, l->c);
            return 0;
        }
        end = ev.type == YAML_STREAM_END_EVENT;
        r = on_event(l, &ev, e);
        yaml_event_delete(&ev);
    }
    return r;
}

int load_tree(char *text, size_t len, bool is_json, struct node **ret, struct complaints *c, struct pale_err *e)
{
    CLEANUP(loader_done) struct loader l = {.c = c};
    CLEANUP(yaml_parser_delete) yaml_parser_t y = {0};
    *ret = NULL;
    if (!check_bytes(text, len, c) || (is_json && !check_json(text, len, c)))
        return 0;
    if (is_json)
        len = json_as_yaml(text, len);
    if (!yaml_parser_initialize(&y))
        return err_nomem(e);
    yaml_parser_set_encoding(&y, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y, (const unsigned char *)text, len);
    int r = walk(&l, &y, e);
    if (r < 0)
        return r;
    *ret = l.root;
    l.root = NULL;
    return 0;
}
