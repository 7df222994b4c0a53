/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/waybill. */
#include "base/test.h"

#include <stdio.h>

#include "base/limits.h"
#include "box/waybill.h"

static void write_one(struct buf *out)
{
    struct waybill w = {.box = "b", .id = "0123456789abcdef0123456789abcdef", .snapshot = "one", .created_ms = 7, .left = 3};
    own_policy p = {0};
    struct pale_err e = {0};
    assert_int_equal(policy_init(&p, &e), 0);
    static const char *const set[][2] = {{"project.mode", "live"},
                                         {"project.path", "/srv/project"},
                                         {"read", "/srv/read"},
                                         {"write", "/srv/write"},
                                         {"volumes", "/srv/v:/mnt/v:ro"},
                                         {"volume_root", "/srv"},
                                         {"env.set", "TOKEN=hush"},
                                         {"env.pass", "LANG"},
                                         {"guard", "-.envrc"},
                                         {"network", "filtered"},
                                         {"network.egress", "x.org:443"},
                                         {"network.egress", "10.0.0.0/8"},
                                         {"network.egress", "10.9.0.0/16=deny"},
                                         {"network.egress", "db.host.pale:5432"},
                                         {"network.publish", "8080:80"},
                                         {"limits.memory", "64M"}};
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
        if (policy_set(&p, set[i][0], set[i][1], &e) < 0)
            fail_msg("%s", e.text);
    for (int i = 0; i < PART_COUNT; i += 2) {
        w.part[i] = (struct waybill_part){.there = true, .entries = 1, .bytes = 2};
        sha256_hex("x", 1, w.part[i].digest);
    }
    buf_init(out, WAYBILL_BYTES_MAX);
    if (waybill_write(&w, &p, out, &e) < 0)
        fail_msg("%s", e.text);
}

static void written_and_read_is_the_same(void **state)
{
    (void)state;
    own_buf b = {0};
    struct waybill w;
    write_one(&b);
    assert_int_equal(waybill_parse((const char *)b.data, b.len, &w, NULL), 0);
    assert_string_equal(w.box, "b");
    assert_string_equal(w.id, "0123456789abcdef0123456789abcdef");
    assert_string_equal(w.snapshot, "one");
    assert_true(w.created_ms == 7 && w.left == 3 && w.part[0].there && !w.part[1].there && w.part[2].there && !w.part[3].there);
    assert_true(w.part[2].entries == 1 && w.part[2].bytes == 2 && strlen(w.part[2].digest) == 64);
}

static void what_belongs_to_this_host_stays_here(void **state)
{
    (void)state;
    own_buf b = {0};
    struct waybill w;
    struct jsonread item;
    char text[200], all[2000] = "";
    write_one(&b);
    assert_null(strstr(buf_text(&b), "hush"));
    assert_int_equal(waybill_parse((const char *)b.data, b.len, &w, NULL), 0);
    for (size_t pos = 0; jsonread_next(&w.left_out, &pos, NULL, &item);)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s;", jsonread_text(&item, text, sizeof(text)));
    assert_string_equal(all, "project.path /srv/project;read /srv/read;write /srv/write;volumes /srv/v:/mnt/v:ro;volume_root "
                             "/srv;env.set TOKEN;env.pass LANG;network.egress db.host.pale:5432;network.egress 10.0.0.0/8;network.publish "
                             "8080:80;guard (a list of its own);");
    snprintf(all, sizeof(all), "%.*s", (int)w.policy.len, w.policy.at);
    assert_true(!strstr(all, "/srv") && !strstr(all, "guard"));
    assert_non_null(strstr(all, "\"memory\""));
    assert_non_null(strstr(all, "\"egress\":[\"x.org:443\",\"10.9.0.0/16=deny\"]}"));
}

static void every_prefix_is_refused(void **state)
{
    (void)state;
    own_buf b = {0};
    struct waybill w;
    write_one(&b);
    for (size_t n = 0; n + 1 < b.len; n++)
        assert_true(waybill_parse((const char *)b.data, n, &w, NULL) < 0);
}

static void what_we_did_not_write_is_refused(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"\"format\":\"pale-export\"", "\"format\":\"other\""},
        {"\"version\":1", "\"version\":2"},
        {"\"version\":1", "\"version\":\"1\""},
        {"\"box\":\"b\"", "\"box\":\"../b\""},
        {"\"box\":\"b\"", "\"box\":\"b\",\"box\":\"c\""},
        {"\"id\":\"0", "\"id\":\"G"},
        {"\"id\":\"0", "\"id\":\""},
        {"\"snapshot\":\"one\"", "\"snapshot\":1"},
        {"\"snapshot\":\"one\"", "\"snap\":\"one\""},
        {"\"created_unix_ms\":7", "\"created_unix_ms\":-7"},
        {"\"left_out\":[", "\"left_out\":[1,"},
        {"\"policy\":{", "\"policy\":[],\"x\":{"},
        {"\"home\":{", "\"house\":{"},
        {"\"project\":{\"entries\"", "\"home\":{\"entries\""},
        {"\"entries\":1", "\"entries\":1.5"},
        {"\"entries\":1", "\"entries\":1,\"more\":1"},
        {"sha256:", "sha512:"},
        {"}}}", "}},\"more\":1}"},
        {"}}}", "}}}x"},
    };
    own_buf b = {0};
    write_one(&b);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        own_buf changed = {0};
        struct waybill w;
        const char *text = buf_text(&b), *at = strstr(text, changes[i][0]);
        buf_init(&changed, WAYBILL_BYTES_MAX);
        assert_non_null(at);
        buf_add(&changed, text, (size_t)(at - text));
        buf_add_text(&changed, changes[i][1]);
        buf_add_text(&changed, at + strlen(changes[i][0]));
        if (waybill_parse((const char *)changed.data, changed.len, &w, NULL) == 0)
            fail_msg("taken with %s", changes[i][1]);
    }
}

TESTS(cmocka_unit_test(written_and_read_is_the_same), cmocka_unit_test(what_belongs_to_this_host_stays_here),
      cmocka_unit_test(every_prefix_is_refused), cmocka_unit_test(what_we_did_not_write_is_refused))
