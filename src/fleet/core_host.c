/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the host of the core's tests. */
#include "fleet/core_host.h"

static void note(struct host *h, char what)
{
    size_t n = strlen(h->events);
    if (n + 1 < sizeof(h->events))
        h->events[n] = what;
}

static unsigned char place(const char *name)
{
    return (unsigned char)name[0];
}

const char *host_id(const char *name)
{
    static char ids[256][BOX_ID_LEN + 1];
    memset(ids[place(name)], name[0], BOX_ID_LEN);
    return ids[place(name)];
}

static int64_t io_now(void *arg)
{
    return ((struct host *)arg)->now;
}

static int64_t io_unix(void *arg)
{
    return ((struct host *)arg)->wall + ((struct host *)arg)->now - NOW;
}

static uint64_t io_chance(void *arg)
{
    (void)arg;
    return 0;
}

static void *io_grow(void *arg, void *p, size_t n)
{
    (void)arg;
    return realloc(p, n);
}

static int io_put(void *arg, const char *tenant, const char *name, const struct core_terms *t, struct pale_err *e)
{
    struct host *h = arg;
    (void)tenant;
    if (h->no_rows)
        return err_set(e, PALE_OS, "the database is full");
    note(h, 'p');
    h->puts++;
    h->row_there[place(name)] = true;
    h->rows[place(name)] = *t;
    return 0;
}

static int io_drop(void *arg, const char *tenant, const char *name, struct pale_err *e)
{
    struct host *h = arg;
    (void)tenant;
    if (h->no_rows)
        return err_set(e, PALE_OS, "the database is full");
    note(h, 'd');
    h->row_there[place(name)] = false;
    return 0;
}

static int io_each(void *arg, int (*fn)(void *, const char *, const char *, const struct core_terms *), void *fn_arg, struct pale_err *e)
{
    struct host *h = arg;
    int r = 0;
    (void)e;
    for (int i = 0; i < 256 && r == 0; i++)
        if (h->row_there[i])
            r = fn(fn_arg, "", (char[]){(char)i, '\0'}, &h->rows[i]);
    return r;
}

struct core_sight host_sight(const struct host *h, const char *name)
{
    struct core_sight s = {.born = h->born[place(name)]};
    snprintf(s.name, sizeof(s.name), "%s", name);
    snprintf(s.id, sizeof(s.id), "%s", host_id(name));
    return s;
}

static int io_look(void *arg, const struct core_sight *which, struct core_sight *ret)
{
    struct host *h = arg;
    if (!h->born[place(which->name)])
        return 0;
    *ret = host_sight(h, which->name);
    return 1;
}

static int io_order(void *arg, const struct core_deed *d, struct pale_err *e)
{
    struct host *h = arg;
    (void)e;
    note(h, 'o');
    h->orders++;
    h->last.d = *d;
    snprintf(h->last.name, sizeof(h->last.name), "%s", d->name);
    snprintf(h->last.new_name, sizeof(h->last.new_name), "%s", d->new_name ? d->new_name : "");
    return 0;
}

static void io_link(void *arg, const char *id)
{
    (void)id;
    ((struct host *)arg)->links++;
}

static void io_answer(void *arg, void *waiter, const struct core_answer *a)
{
    struct host *h = arg;
    struct answer *to = waiter;
    to->count++;
    to->code = a->code;
    snprintf(to->text, sizeof(to->text), "%s", a->text);
    snprintf(to->told, sizeof(to->told), "%s", a->told);
    if (a->box) {
        snprintf(to->id, sizeof(to->id), "%s", a->box->id);
        snprintf(to->name, sizeof(to->name), "%s", a->box->name);
        to->state = a->box->state;
    }
    if (to->then)
        core_use(h->core, to->then_use, to->then);
}

void host_begin(struct host *h)
{
    h->core = core_new(&h->io);
    assert_non_null(h->core);
    assert_int_equal(core_start(h->core, NULL), 0);
    for (int i = 'a'; i <= 'z'; i++)
        if (h->born[i]) {
            struct core_sight s = host_sight(h, (char[]){(char)i, '\0'});
            assert_int_equal(core_seen(h->core, &s, NULL), 0);
            core_down(h->core, s.id);
        }
    core_settle(h->core);
}

struct host *host_new(void)
{
    struct host *h = calloc(1, sizeof(*h));
    assert_non_null(h);
    h->now = NOW;
    h->wall = WALL;
    h->io = (struct core_io){.arg = h,
                             .now_ms = io_now,
                             .unix_ms = io_unix,
                             .chance = io_chance,
                             .grow = io_grow,
                             .put_terms = io_put,
                             .drop_terms = io_drop,
                             .each_terms = io_each,
                             .look = io_look,
                             .order = io_order,
                             .link = io_link,
                             .answer = io_answer};
    host_begin(h);
    core_alone(h->core);
    return h;
}

void host_free(struct host *h)
{
    core_free(h->core);
    free(h);
}

void host_create(struct host *h, const char *name, const char *key, uint8_t what, bool ensure, struct answer *a)
{
    uint8_t asked[SHA256_BYTES] = {what};
    struct core_order o = {.tenant = "", .name = name, .key = key, .asked = asked, .ensure = ensure};
    core_create(h->core, &o, a);
}

void host_done(struct host *h, enum pale_code code, bool effect)
{
    const struct order o = h->last;
    const char *name = o.d.kind == CORE_RENAME ? o.new_name : o.name;
    if (effect && o.d.kind == CORE_MAKE)
        h->born[place(name)] = ++h->births;
    if (effect && o.d.kind == CORE_REMOVE)
        h->born[place(name)] = 0;
    if (effect && o.d.kind == CORE_RENAME) {
        h->born[place(name)] = h->born[place(o.name)];
        h->born[place(o.name)] = 0;
    }
    core_deed_done(h->core, o.d.number, code, "as told", host_id(name));
    if (effect && (o.d.kind == CORE_MAKE || o.d.kind == CORE_RENAME))
        core_down(h->core, host_id(name));
    if (effect && o.d.kind == CORE_START)
        core_up(h->core, host_id(name), 0);
}

void host_have(struct host *h, const char *name, const char *key)
{
    struct answer a = {0};
    host_create(h, name, key, 1, false, &a);
    host_done(h, PALE_OK, true);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.code, PALE_OK);
}

void host_have_up(struct host *h, const char *name)
{
    struct answer a = {0};
    host_have(h, name, "");
    core_use(h->core, host_id(name), &a);
    host_done(h, PALE_OK, true);
    assert_int_equal(a.code, PALE_OK);
    assert_int_equal(a.state, CORE_UP);
}

void host_expect(const struct answer *a, enum pale_code code)
{
    assert_int_equal(a->count, 1);
    assert_int_equal(a->code, code);
}
