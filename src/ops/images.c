/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the operations on images: listed, looked at, verified, removed, built of what this host has or of an archive that the client sends.
 *
 * All are deeds: the store lies where the daemon cannot look. No path and no address in a request is ever opened on this host. */
#include <stdio.h>
#include <string.h>

#include "base/jsonread.h"
#include "fleet/order.h"
#include "image/store.h"
#include "ops/hearing.h"
#include "ops/ops.h"

#define BUILDS_MAX 4u                   /* at once: each has a disk's and a processor's work to do */
#define ARCHIVE_BYTES_MAX (64ull << 30) /* as much as an image may take unpacked */

static struct msg_deed order(const struct call *c, enum deed_kind kind, const char *name)
{
    return (struct msg_deed){
        .kind = kind, .name = name, .tenant = c->who.scope == CALLER_OPERATOR ? "" : c->who.tenant, .caller = call_caller(c)};
}

static void ask(struct call *c, enum deed_kind kind, const char *name)
{
    const struct msg_deed m = order(c, kind, name);
    const struct hearing_use use = {.type = "application/json"};
    if (c->who.scope == CALLER_BOX)
        return call_refuse(c, PALE_DENIED, "a box's token sees no images");
    hearing_follow(c, &m, &use, name);
}

void op_image_list(struct call *c)
{
    ask(c, DEED_IMAGE_LIST, "");
}

void op_image_inspect(struct call *c)
{
    ask(c, DEED_IMAGE_SHOW, call_param(c, "image"));
}

void op_image_verify(struct call *c)
{
    ask(c, DEED_IMAGE_VERIFY, call_param(c, "image"));
}

/* --- removing --- */

static void tell_event(struct world *w, const char *event, const char *name, const char *digest, const char *caller)
{
    own_buf fields = {0};
    struct json j;
    buf_init(&fields, 400);
    json_start(&j, &fields);
    j.more[0] = true; /* it stands inside an object that has begun */
    if (digest[0])
        json_text(&j, "digest", digest);
    json_text(&j, "image", name);
    json_text(&j, "caller", caller);
    events_tell(&w->fleet.events, event, "", "", "", fields.failed ? "" : buf_text(&fields));
}

static void on_removed(void *arg, const struct msg_deed_done *d)
{
    struct call *c = arg;
    if (d->code != 0) {
        call_refuse(c, d->code < PALE_CODE_COUNT ? (enum pale_code)d->code : PALE_PROTOCOL, "%s", d->text);
    } else {
        tell_event(c->world, "image.removed", call_param(c, "image"), "", call_caller(c));
        call_nothing(c);
    }
    call_drop(c);
}

void op_image_remove(struct call *c)
{
    const struct msg_deed m = order(c, DEED_IMAGE_REMOVE, call_param(c, "image"));
    call_hold(c);
    fleet_deed(&c->world->fleet, &m, on_removed, c);
}

void images_collected(const struct call *c, const char *told)
{
    struct jsonread v, images, item, m, names, name;
    char digest[SHA256_HEX], text[STORE_NAME_MAX + 1];
    if (!jsonread_parse(told, strlen(told), &v) || !jsonread_get(&v, "images", &images))
        return;
    for (size_t pos = 0; jsonread_next(&images, &pos, NULL, &item);) {
        size_t first = 0;
        digest[0] = text[0] = 0;
        if (jsonread_get(&item, "digest", &m))
            jsonread_text(&m, digest, sizeof(digest));
        if (jsonread_get(&item, "names", &names) && jsonread_next(&names, &first, NULL, &name))
            jsonread_text(&name, text, sizeof(text));
        tell_event(c->world, "image.removed", text, digest, call_caller(c));
    }
}

/* --- building --- */

static void on_built(const struct hearing *h, const char *told)
{
    struct jsonread v, m;
    char digest[SHA256_HEX] = "";
    if (!jsonread_parse(told, strlen(told), &v) || !jsonread_get(&v, "digest", &m))
        return; /* it was not built, and whoever followed it has read why */
    jsonread_text(&m, digest, sizeof(digest));
    tell_event(h->world, "image.built", h->about, digest, h->caller);
}

static void on_over(struct world *w)
{
    w->builds--;
}

static void build(struct call *c, const char *name, const char *from, const char *sets, uint64_t takes)
{
    struct msg_deed m = order(c, DEED_IMAGE_BUILD, name);
    struct hearing_use use = {.type = !c->wants_stream  ? "application/json"
                                      : c->wants_events ? "text/event-stream"
                                                        : "application/x-ndjson",
                              .done = on_built,
                              .over = on_over,
                              .takes = takes};
    m.form = from;
    m.sets = sets;
    m.until = !c->wants_stream ? "" : c->wants_events ? "events" : "lines";
    if (c->world->builds == BUILDS_MAX)
        return call_refuse(c, PALE_BUSY, "%u images are being built already; try again when one is done", BUILDS_MAX);
    c->world->builds++;
    hearing_follow(c, &m, &use, name);
}

static int add_set(struct buf *b, const char *key, const char *value, struct pale_err *e)
{
    if (strpbrk(value, "\t\n"))
        return err_set(e, PALE_BAD_INPUT, "%s: it has a tab or a newline in it", key);
    buf_addf(b, "%s\t%s\n", key, value);
    return 0;
}

static int write_packages(const json_t *list, struct buf *sets, struct pale_err *e)
{
    own_buf names = {0};
    size_t i;
    json_t *item;
    buf_init(&names, FRAME_PAYLOAD_MAX / 4);
    json_array_foreach(list, i, item) buf_addf(&names, "%s%s", i ? "," : "", json_string_value(item));
    if (names.failed)
        return err_set(e, PALE_LIMIT, "include: the packages are too many");
    return names.len ? add_set(sets, "include", buf_text(&names), e) : 0;
}

void op_image_build(struct call *c)
{
    static const char *const texts[] = {"suite", "variant"};
    const char *from = call_text(c, "from", "mmdebstrap");
    struct pale_err e;
    own_buf sets = {0};
    int r = 0;
    buf_init(&sets, FRAME_PAYLOAD_MAX / 2);
    if (strcmp(from, "tar") == 0 || strcmp(from, "oci") == 0)
        return call_refuse(c, PALE_BAD_INPUT,
                           "from: an archive is the body of PUT /v1/images/NAME; no file or address is read here for a client");
    for (size_t i = 0; r == 0 && i < sizeof(texts) / sizeof(texts[0]); i++)
        if (call_value(c, texts[i])->given)
            r = add_set(&sets, texts[i], call_text(c, texts[i], ""), &e);
    if (r == 0 && call_value(c, "include")->given)
        r = write_packages(call_value(c, "include")->json, &sets, &e);
    if (r == 0 && call_number(c, "force_copy", 0))
        r = add_set(&sets, "force-copy", "", &e);
    if (r == 0 && sets.failed)
        r = err_set(&e, PALE_LIMIT, "the request is too long");
    if (r < 0)
        return call_fail(c, &e);
    build(c, call_text(c, "name", ""), from, buf_text(&sets), 0);
}

void op_image_import(struct call *c)
{
    const char *from = call_text(c, "from", "tar");
    if (strcmp(from, "tar") != 0 && strcmp(from, "oci") != 0)
        return call_refuse(c, PALE_BAD_INPUT, "from: the body is a tar or an oci archive");
    build(c, call_param(c, "image"), from, "", ARCHIVE_BYTES_MAX);
}
