/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for fleet/core. */
#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "fleet/core.h"

#define NOW 1000
#define WALL 1700000000000

struct answer {
    int count;
    enum pale_code code;
    char text[PALE_ERR_TEXT_MAX], id[BOX_ID_LEN + 1], name[BOX_NAME_MAX + 1];
    enum core_state state;
    const char *then_use; /* asks for this as soon as it is answered */
    struct answer *then;
};

struct order {
    struct core_deed d;
    char name[BOX_NAME_MAX + 1], new_name[BOX_NAME_MAX + 1];
};

/* A disk of boxes whose ids are sixteen times the first letter of their names, and a database. */
struct host {
    struct core *core;
    struct core_io io;
    int64_t now, wall;
    uint64_t born[256], births;
    bool row_there[256], no_rows;
    struct core_terms rows[256];
    struct order last;
    int orders, links, puts;
    char events[64]; /* p: a row put, d: dropped, o: a deed ordered */
};

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

static const char *id_of(const char *name)
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

static struct core_sight sight(const struct host *h, const char *name)
{
    struct core_sight s = {.born = h->born[place(name)]};
    snprintf(s.name, sizeof(s.name), "%s", name);
    snprintf(s.id, sizeof(s.id), "%s", id_of(name));
    return s;
}

static int io_look(void *arg, const struct core_sight *which, struct core_sight *ret)
{
    struct host *h = arg;
    if (!h->born[place(which->name)])
        return 0;
    *ret = sight(h, which->name);
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
    if (a->box) {
        snprintf(to->id, sizeof(to->id), "%s", a->box->id);
        snprintf(to->name, sizeof(to->name), "%s", a->box->name);
        to->state = a->box->state;
    }
    if (to->then)
        core_use(h->core, to->then_use, to->then);
}

static void begin(struct host *h)
{
    h->core = core_new(&h->io);
    assert_non_null(h->core);
    assert_int_equal(core_start(h->core, NULL), 0);
    for (int i = 'a'; i <= 'z'; i++)
        if (h->born[i]) {
            struct core_sight s = sight(h, (char[]){(char)i, '\0'});
            assert_int_equal(core_seen(h->core, &s, NULL), 0);
            core_down(h->core, s.id);
        }
    core_settle(h->core);
}

static struct host *host_new(void)
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
    begin(h);
    core_alone(h->core);
    return h;
}

static void host_free(struct host *h)
{
    core_free(h->core);
    free(h);
}

static void create_as(struct host *h, const char *name, const char *key, uint8_t what, bool ensure, struct answer *a)
{
    uint8_t asked[SHA256_BYTES] = {what};
    struct core_order o = {.tenant = "", .name = name, .key = key, .asked = asked, .ensure = ensure};
    core_create(h->core, &o, a);
}

/* The last deed ends, and did on the disk what it should if that is said. */
static void done(struct host *h, enum pale_code code, bool effect)
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
    core_deed_done(h->core, o.d.number, code, "as told", id_of(name));
    if (effect && (o.d.kind == CORE_MAKE || o.d.kind == CORE_RENAME))
        core_down(h->core, id_of(name));
    if (effect && o.d.kind == CORE_START)
        core_up(h->core, id_of(name));
}

static void have(struct host *h, const char *name, const char *key)
{
    struct answer a = {0};
    create_as(h, name, key, 1, false, &a);
    done(h, PALE_OK, true);
    assert_int_equal(a.count, 1);
    assert_int_equal(a.code, PALE_OK);
}

static void have_up(struct host *h, const char *name)
{
    struct answer a = {0};
    have(h, name, "");
    core_use(h->core, id_of(name), &a);
    done(h, PALE_OK, true);
    assert_int_equal(a.code, PALE_OK);
    assert_int_equal(a.state, CORE_UP);
}

static void expect(const struct answer *a, enum pale_code code)
{
    assert_int_equal(a->count, 1);
    assert_int_equal(a->code, code);
}

/* --- making --- */

static void create_puts_the_row_before_the_deed_is_ordered(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    create_as(h, "a", "k", 1, false, &a);
    assert_string_equal(h->events, "po");
    assert_int_equal(a.count, 0);
    assert_int_equal(core_find(h->core, "", "a")->state, CORE_MAKING);
    done(h, PALE_OK, true);
    expect(&a, PALE_OK);
    assert_string_equal(a.id, id_of("a"));
    assert_int_equal(a.state, CORE_DOWN);
    assert_int_equal(h->rows['a'].born, h->born['a']);
    host_free(h);
}

static void create_changes_nothing_if_the_row_cannot_be_put(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    h->no_rows = true;
    create_as(h, "a", "k", 1, false, &a);
    expect(&a, PALE_OS);
    assert_int_equal(h->orders, 0);
    assert_null(core_find(h->core, "", "a"));
    assert_int_equal(core_next_due(h->core), -1);
    host_free(h);
}

static void create_with_a_known_key_means_the_same_box(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[4] = {0};
    create_as(h, "a", "k", 1, false, &a[0]);
    create_as(h, "a", "k", 1, false, &a[1]);
    create_as(h, "a", "k", 2, false, &a[2]);
    expect(&a[2], PALE_BAD_INPUT);
    assert_non_null(strstr(a[2].text, "used for another request"));
    done(h, PALE_OK, true);
    create_as(h, "a", "k", 1, false, &a[3]);
    expect(&a[0], PALE_OK);
    expect(&a[1], PALE_OK);
    expect(&a[3], PALE_OK);
    assert_int_equal(h->orders, 1);
    host_free(h);
}

static void create_follows_its_key_to_a_box_that_was_renamed(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    have(h, "a", "k");
    core_rename(h->core, id_of("a"), "b", &a[0]);
    done(h, PALE_OK, true);
    expect(&a[0], PALE_OK);
    create_as(h, "a", "k", 1, false, &a[1]);
    expect(&a[1], PALE_OK);
    assert_string_equal(a[1].name, "b");
    host_free(h);
}

static void create_refuses_a_name_that_is_taken_unless_the_same_was_asked_with_ensure(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    have(h, "a", "");
    create_as(h, "a", "", 1, false, &a[0]);
    create_as(h, "a", "", 2, true, &a[1]);
    create_as(h, "a", "", 1, true, &a[2]);
    expect(&a[0], PALE_EXISTS);
    expect(&a[1], PALE_EXISTS);
    expect(&a[2], PALE_OK);
    host_free(h);
}

static void create_that_fails_leaves_no_row(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    create_as(h, "a", "k", 1, false, &a);
    done(h, PALE_DENIED, false);
    expect(&a, PALE_DENIED);
    assert_string_equal(a.text, "as told");
    assert_false(h->row_there['a']);
    assert_null(core_find(h->core, "", "a"));
    host_free(h);
}

static void create_that_ends_doubtfully_looks_at_the_disk(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[4] = {0};
    create_as(h, "a", "", 1, false, &a[0]);
    done(h, PALE_GONE, true);
    expect(&a[0], PALE_OK);
    create_as(h, "b", "k", 1, false, &a[1]);
    done(h, PALE_TIMEOUT, false);
    expect(&a[1], PALE_TIMEOUT);
    assert_true(h->row_there['b']); /* it may come yet */
    create_as(h, "b", "", 2, false, &a[2]);
    expect(&a[2], PALE_BUSY);
    create_as(h, "b", "k", 1, false, &a[3]);
    done(h, PALE_EXISTS, true);
    expect(&a[3], PALE_OK);
    host_free(h);
}

static void create_waits_for_the_removal_of_its_namesake(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    have(h, "a", "");
    core_remove(h->core, id_of("a"), &a[0]);
    create_as(h, "a", "", 2, false, &a[1]);
    core_remove(h->core, id_of("a"), &a[2]); /* of the first */
    done(h, PALE_OK, true);
    expect(&a[0], PALE_OK);
    expect(&a[2], PALE_OK);
    assert_int_equal(h->last.d.kind, CORE_MAKE);
    done(h, PALE_OK, true);
    expect(&a[1], PALE_OK);
    host_free(h);
}

static void create_again_with_the_key_of_a_removed_box_says_so_for_a_day(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    have(h, "a", "k");
    core_remove(h->core, id_of("a"), &a[0]);
    done(h, PALE_OK, true);
    expect(&a[0], PALE_OK);
    assert_null(core_find(h->core, "", "a"));
    create_as(h, "a", "k", 1, false, &a[1]);
    expect(&a[1], PALE_GONE);
    h->now = core_next_due(h->core);
    assert_int_equal(h->now, NOW + CORE_KEY_KEEP_MS);
    core_tick(h->core);
    assert_false(h->row_there['a']);
    create_as(h, "a", "k", 1, false, &a[2]);
    assert_int_equal(h->last.d.kind, CORE_MAKE);
    host_free(h);
}

static void create_is_bounded_in_all_and_per_tenant(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    core_free(h->core);
    h->io.tenant_boxes_max = 1;
    begin(h);
    have(h, "a", "");
    create_as(h, "b", "", 1, false, &a[0]);
    expect(&a[0], PALE_LIMIT);
    uint8_t asked[SHA256_BYTES] = {1};
    struct core_order o = {.tenant = "acme", .name = "c", .key = "", .asked = asked};
    core_create(h->core, &o, &a[1]);
    assert_int_equal(a[1].count, 0);
    host_free(h);
}

/* --- use, stop, remove, rename --- */

static void use_starts_a_box_once_for_all_who_wait(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    have(h, "a", "");
    core_use(h->core, id_of("a"), &a[0]);
    core_use(h->core, id_of("a"), &a[1]);
    assert_int_equal(core_find(h->core, "", "a")->state, CORE_STARTING);
    assert_int_equal(h->orders, 2);
    core_deed_done(h->core, h->last.d.number, PALE_OK, "", "");
    assert_int_equal(a[0].count, 0); /* until there is a link */
    core_up(h->core, id_of("a"));
    core_use(h->core, id_of("a"), &a[2]);
    for (int i = 0; i < 3; i++)
        expect(&a[i], PALE_OK);
    assert_int_equal(h->orders, 2);
    host_free(h);
}

static void use_tells_of_a_box_that_ended_as_soon_as_it_began(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    have(h, "a", "");
    core_use(h->core, id_of("a"), &a);
    core_deed_done(h->core, h->last.d.number, PALE_OK, "", "");
    core_down(h->core, id_of("a"));
    expect(&a, PALE_GONE);
    host_free(h);
}

static void use_of_a_box_that_is_being_stopped_starts_it_after_that(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    have_up(h, "a");
    core_stop(h->core, id_of("a"), &a[0]);
    core_use(h->core, id_of("a"), &a[1]);
    assert_int_equal(h->last.d.kind, CORE_STOP);
    assert_false(h->last.d.only_idle);
    done(h, PALE_OK, true);
    expect(&a[0], PALE_OK);
    assert_int_equal(h->last.d.kind, CORE_START);
    done(h, PALE_OK, true);
    expect(&a[1], PALE_OK);
    host_free(h);
}

static void use_of_a_box_that_is_being_removed_finds_none(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    have(h, "a", "");
    core_remove(h->core, id_of("a"), &a[0]);
    core_use(h->core, id_of("a"), &a[1]);
    expect(&a[1], PALE_NOT_FOUND);
    done(h, PALE_OS, false);
    expect(&a[0], PALE_OS);
    assert_non_null(core_find(h->core, "", "a"));
    host_free(h);
}

static void stop_is_no_deed_if_the_box_is_down(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    have(h, "a", "");
    core_stop(h->core, id_of("a"), &a);
    expect(&a, PALE_OK);
    assert_int_equal(h->orders, 1);
    host_free(h);
}

static void remove_does_not_touch_a_box_that_took_the_place(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    have_up(h, "a");
    core_stop(h->core, id_of("a"), &a[0]);
    core_remove(h->core, id_of("a"), &a[1]);
    h->born['a'] = ++h->births;
    struct core_sight s = sight(h, "a");
    assert_int_equal(core_seen(h->core, &s, NULL), 0);
    done(h, PALE_NOT_FOUND, false);
    core_down(h->core, id_of("a"));
    expect(&a[1], PALE_OK);
    assert_int_equal(h->last.d.kind, CORE_STOP);
    assert_int_equal(core_find(h->core, "", "a")->born, h->born['a']);
    assert_false(core_find(h->core, "", "a")->has_terms);
    host_free(h);
}

static void rename_needs_a_box_that_is_down_and_takes_the_row_along(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[4] = {0};
    have_up(h, "a");
    have(h, "c", "");
    core_rename(h->core, id_of("a"), "b", &a[0]);
    expect(&a[0], PALE_BUSY);
    core_down(h->core, id_of("a"));
    core_rename(h->core, id_of("a"), "c", &a[1]);
    expect(&a[1], PALE_EXISTS);
    core_rename(h->core, id_of("a"), "b", &a[2]);
    assert_true(h->row_there['a'] && h->row_there['b']); /* whatever happens now, one of them is right */
    core_use(h->core, id_of("a"), &a[3]);
    done(h, PALE_OK, true);
    expect(&a[2], PALE_OK);
    assert_string_equal(a[2].id, id_of("b"));
    assert_false(h->row_there['a']);
    assert_int_equal(h->rows['b'].asked[0], 1);
    assert_int_equal(h->last.d.kind, CORE_START); /* who waited for the box has followed it */
    assert_string_equal(h->last.name, "b");
    host_free(h);
}

static void requests_are_bounded_per_box(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[CORE_WAITERS_MAX + 1] = {0};
    have(h, "a", "");
    for (size_t i = 0; i <= CORE_WAITERS_MAX; i++)
        core_use(h->core, id_of("a"), &a[i]);
    expect(&a[CORE_WAITERS_MAX], PALE_LIMIT);
    done(h, PALE_DENIED, false);
    for (size_t i = 0; i < CORE_WAITERS_MAX; i++)
        expect(&a[i], PALE_DENIED);
    host_free(h);
}

static void answers_may_ask_for_more(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer second = {0}, first = {.then_use = id_of("a"), .then = &second};
    create_as(h, "a", "", 1, false, &first);
    done(h, PALE_OK, true);
    expect(&first, PALE_OK);
    assert_int_equal(h->last.d.kind, CORE_START);
    done(h, PALE_OK, true);
    expect(&second, PALE_OK);
    host_free(h);
}

static void core_that_ends_answers_who_waits(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    have(h, "a", "");
    core_use(h->core, id_of("a"), &a);
    host_free(h);
    expect(&a, PALE_GONE);
}

/* --- time --- */

static void expired_box_is_removed_at_its_time_whatever_runs(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    have_up(h, "a");
    core_jobs(h->core, id_of("a"), 1);
    core_set_terms(h->core, id_of("a"), WALL + 5000, 0, &a[0]);
    expect(&a[0], PALE_OK);
    assert_int_equal(core_next_due(h->core), NOW + 5000);
    h->now = NOW + 4999;
    core_tick(h->core);
    assert_int_equal(h->orders, 2);
    h->now = NOW + 5000;
    core_tick(h->core);
    assert_int_equal(h->last.d.kind, CORE_REMOVE);
    assert_int_equal(core_next_due(h->core), -1);
    done(h, PALE_OS, false);
    core_use(h->core, id_of("a"), &a[1]);
    expect(&a[1], PALE_NOT_FOUND);
    assert_int_equal(core_next_due(h->core), h->now + CORE_RETRY_MS);
    h->now += CORE_RETRY_MS;
    core_tick(h->core);
    done(h, PALE_OS, false);
    assert_int_equal(core_next_due(h->core), h->now + 2 * CORE_RETRY_MS);
    for (int i = 0; i < 20; i++) {
        h->now = core_next_due(h->core);
        core_tick(h->core);
        done(h, PALE_OS, false);
    }
    assert_int_equal(core_next_due(h->core), h->now + CORE_RETRY_MAX_MS);
    h->now = core_next_due(h->core);
    core_tick(h->core);
    done(h, PALE_OK, true);
    assert_null(core_find(h->core, "", "a"));
    assert_false(h->row_there['a']);
    assert_int_equal(core_next_due(h->core), -1);
    host_free(h);
}

static void expiry_follows_the_wall_clock(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    have(h, "a", "");
    core_set_terms(h->core, id_of("a"), WALL + 50000, 0, &a);
    h->wall += 60000;
    assert_int_equal(core_next_due(h->core), h->now);
    core_tick(h->core);
    assert_int_equal(h->last.d.kind, CORE_REMOVE);
    host_free(h);
}

static void idle_box_is_stopped_when_no_job_ran_for_long_enough(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[2] = {0};
    have_up(h, "a");
    core_set_terms(h->core, id_of("a"), 0, 1000, &a[0]);
    assert_int_equal(core_next_due(h->core), NOW + 1000);
    h->now = NOW + 500;
    core_jobs(h->core, id_of("a"), 1);
    assert_int_equal(core_next_due(h->core), -1);
    h->now = NOW + 5000;
    core_jobs(h->core, id_of("a"), 0);
    h->now = NOW + 5500;
    core_used(h->core, id_of("a"));
    assert_int_equal(core_next_due(h->core), NOW + 6500);
    h->now = NOW + 6500;
    core_tick(h->core);
    assert_int_equal(h->last.d.kind, CORE_STOP);
    assert_true(h->last.d.only_idle);
    core_use(h->core, id_of("a"), &a[1]);
    done(h, PALE_BUSY, false); /* a job has begun, of which we have not heard yet */
    expect(&a[1], PALE_OK);
    assert_int_equal(core_find(h->core, "", "a")->state, CORE_UP);
    assert_int_equal(core_next_due(h->core), h->now + 1000);
    host_free(h);
}

/* --- lives --- */

static void row_without_a_box_is_done_again_after_a_crash(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[4] = {0};
    create_as(h, "a", "k", 1, false, &a[0]);
    core_free(h->core);
    begin(h);
    assert_null(core_find(h->core, "", "a"));
    create_as(h, "a", "other", 1, false, &a[1]);
    expect(&a[1], PALE_BUSY);
    create_as(h, "a", "k", 1, false, &a[2]);
    assert_int_equal(h->last.d.kind, CORE_MAKE);
    done(h, PALE_EXISTS, true); /* by the deed of before */
    expect(&a[2], PALE_OK);
    create_as(h, "a", "k", 1, false, &a[3]);
    expect(&a[3], PALE_OK);
    host_free(h);
}

static void row_without_a_key_or_a_box_goes_when_the_doubt_is_over(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    create_as(h, "a", "", 1, false, &a);
    create_as(h, "b", "k", 1, false, &a);
    core_free(h->core);
    begin(h);
    assert_int_equal(core_next_due(h->core), NOW + CORE_DOUBT_MS);
    h->now = NOW + CORE_DOUBT_MS;
    core_tick(h->core);
    assert_false(h->row_there['a']);
    assert_true(h->row_there['b']);
    assert_int_equal(core_next_due(h->core), NOW + CORE_KEY_KEEP_MS);
    host_free(h);
}

static void box_of_a_deed_of_before_gets_its_row(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    create_as(h, "a", "", 1, false, &a);
    core_free(h->core);
    begin(h);
    h->born['a'] = ++h->births;
    struct core_sight s = sight(h, "a");
    assert_int_equal(core_seen(h->core, &s, NULL), 0);
    assert_true(core_find(h->core, "", "a")->has_terms);
    assert_int_equal(h->rows['a'].born, h->births);
    host_free(h);
}

static void box_made_by_somebody_else_inherits_no_terms(void **state)
{
    (void)state;
    struct host *h = host_new();
    have(h, "a", "k");
    core_free(h->core);
    h->born['a'] = ++h->births; /* removed and made again while no daemon was there */
    begin(h);
    assert_false(core_find(h->core, "", "a")->has_terms);
    assert_false(h->row_there['a']);
    host_free(h);
}

static void row_that_cannot_be_dropped_is_dropped_later(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    have(h, "a", "");
    core_remove(h->core, id_of("a"), &a);
    h->no_rows = true;
    done(h, PALE_OK, true);
    expect(&a, PALE_OK);
    assert_int_equal(core_next_due(h->core), NOW + CORE_RETRY_MS);
    h->no_rows = false;
    h->now += CORE_RETRY_MS;
    core_tick(h->core);
    assert_false(h->row_there['a']);
    assert_int_equal(core_next_due(h->core), -1);
    host_free(h);
}

static int many_rows(void *arg, int (*fn)(void *, const char *, const char *, const struct core_terms *), void *fn_arg, struct pale_err *e)
{
    struct core_terms t = {.born = CORE_BORN_GONE};
    int r = 0;
    (void)arg;
    (void)e;
    for (unsigned i = 0; i < CORE_MEMORIES_MAX && r == 0; i++) {
        char name[16];
        snprintf(name, sizeof(name), "x%05u", i);
        snprintf(t.key, sizeof(t.key), "key%u", i);
        t.made_unix_ms = WALL - (i == 500);
        r = fn(fn_arg, "", name, &t);
    }
    return r;
}

static void memories_of_keys_are_bounded_and_the_oldest_goes(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a[3] = {0};
    core_free(h->core);
    h->io.each_terms = many_rows;
    begin(h);
    create_as(h, "a", "k", 1, false, &a[0]);
    assert_string_equal(h->events, "dpo");
    create_as(h, "b", "key499", 0, false, &a[1]);
    expect(&a[1], PALE_GONE);
    create_as(h, "b", "key500", 0, false, &a[2]);
    assert_int_equal(h->last.d.kind, CORE_MAKE);
    assert_string_equal(h->last.name, "b");
    host_free(h);
}

static void requests_before_the_core_is_settled_are_to_come_again(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct answer a = {0};
    core_free(h->core);
    h->core = core_new(&h->io);
    create_as(h, "a", "", 1, false, &a);
    expect(&a, PALE_BUSY);
    host_free(h);
}

/* --- many --- */

static void core_finds_and_lists_thousands_in_order(void **state)
{
    (void)state;
    struct host *h = host_new();
    struct core_sight s = {.born = 1};
    for (unsigned i = 0; i < 10000; i++) {
        unsigned n = i * 7919 % 10000;
        snprintf(s.tenant, sizeof(s.tenant), "%s", n % 3 ? "acme" : "");
        snprintf(s.name, sizeof(s.name), "%s%05u", n % 10 ? "box" : "same", n % 10 ? n : 0);
        snprintf(s.id, sizeof(s.id), "%016x", n);
        s.project = n % 10 == 0;
        assert_int_equal(core_seen(h->core, &s, NULL), 0);
    }
    assert_string_equal(core_find(h->core, "acme", "box04321")->id, "00000000000010e1");
    assert_string_equal(core_find(h->core, "acme", "00000000000010e1")->name, "box04321");
    assert_null(core_find(h->core, "", "box04321"));
    assert_null(core_find(h->core, "", "00000000000010e1")); /* another's */
    size_t n = 0;
    char last[200] = "";
    for (const struct core_box *b = core_after(h->core, "", "", ""); b; b = core_after(h->core, b->tenant, b->name, b->id)) {
        char at[200];
        snprintf(at, sizeof(at), "%s/%s/%s", b->tenant, b->name, b->id);
        assert_true(strcmp(last, at) < 0);
        memcpy(last, at, sizeof(at));
        n++;
    }
    assert_int_equal(n, 10000);
    host_free(h);
}

TESTS(cmocka_unit_test(create_puts_the_row_before_the_deed_is_ordered), cmocka_unit_test(create_changes_nothing_if_the_row_cannot_be_put),
      cmocka_unit_test(create_with_a_known_key_means_the_same_box), cmocka_unit_test(create_follows_its_key_to_a_box_that_was_renamed),
      cmocka_unit_test(create_refuses_a_name_that_is_taken_unless_the_same_was_asked_with_ensure),
      cmocka_unit_test(create_that_fails_leaves_no_row), cmocka_unit_test(create_that_ends_doubtfully_looks_at_the_disk),
      cmocka_unit_test(create_waits_for_the_removal_of_its_namesake),
      cmocka_unit_test(create_again_with_the_key_of_a_removed_box_says_so_for_a_day),
      cmocka_unit_test(create_is_bounded_in_all_and_per_tenant), cmocka_unit_test(use_starts_a_box_once_for_all_who_wait),
      cmocka_unit_test(use_tells_of_a_box_that_ended_as_soon_as_it_began),
      cmocka_unit_test(use_of_a_box_that_is_being_stopped_starts_it_after_that),
      cmocka_unit_test(use_of_a_box_that_is_being_removed_finds_none), cmocka_unit_test(stop_is_no_deed_if_the_box_is_down),
      cmocka_unit_test(remove_does_not_touch_a_box_that_took_the_place),
      cmocka_unit_test(rename_needs_a_box_that_is_down_and_takes_the_row_along), cmocka_unit_test(requests_are_bounded_per_box),
      cmocka_unit_test(answers_may_ask_for_more), cmocka_unit_test(core_that_ends_answers_who_waits),
      cmocka_unit_test(expired_box_is_removed_at_its_time_whatever_runs), cmocka_unit_test(expiry_follows_the_wall_clock),
      cmocka_unit_test(idle_box_is_stopped_when_no_job_ran_for_long_enough),
      cmocka_unit_test(row_without_a_box_is_done_again_after_a_crash),
      cmocka_unit_test(row_without_a_key_or_a_box_goes_when_the_doubt_is_over), cmocka_unit_test(box_of_a_deed_of_before_gets_its_row),
      cmocka_unit_test(box_made_by_somebody_else_inherits_no_terms), cmocka_unit_test(row_that_cannot_be_dropped_is_dropped_later),
      cmocka_unit_test(memories_of_keys_are_bounded_and_the_oldest_goes),
      cmocka_unit_test(requests_before_the_core_is_settled_are_to_come_again), cmocka_unit_test(core_finds_and_lists_thousands_in_order))
