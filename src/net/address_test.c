/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for net/address: the addresses of threat E2 in every form among them. tests/system/test_names.py compares with Python's. */
#include "base/test.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "net/address.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct address parsed(const char *text)
{
    struct address a = {0};
    if (!address_parse(text, strlen(text), &a))
        fail_msg("%s is an address", text);
    return a;
}

static void addresses_are_written_in_one_form(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"192.0.2.1", "192.0.2.1"},
        {"::", "::"},
        {"::1", "::1"},
        {"1::", "1::"},
        {"0:0:0:0:0:0:0:0", "::"},
        {"2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
        {"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
        {"2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
        {"2001:0db8::0001", "2001:db8::1"},
        {"1:0:0:2:0:0:0:3", "1:0:0:2::3"},
        {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
        {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
        {"1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.1"},
        {"::ffff:c000:201", "::ffff:192.0.2.1"},
        {"64:ff9b::192.0.2.33", "64:ff9b::c000:221"},
        {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
        {"::1.2.3.4", "::102:304"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[ADDRESS_TEXT_MAX];
        struct address a = parsed(rows[i][0]), again;
        assert_string_equal(address_text(&a, text), rows[i][1]);
        again = parsed(text);
        assert_memory_equal(&a, &again, sizeof(a));
    }
}

static void what_other_readers_take_for_an_address_is_none(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "1",
        "1.2",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.4.",
        ".1.2.3.4",
        "1..2.3",
        "256.1.1.1",
        "1.2.3.256",
        "01.2.3.4",
        "1.2.3.04",
        "00.0.0.0",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "127.1",
        "0177.0.0.1",
        " 1.2.3.4",
        "1.2.3.4 ",
        "1.2.3.4\n",
        "+1.2.3.4",
        "1.2.3.-4",
        "1.2.3.4:80",
        ":",
        ":::",
        "1:",
        ":1",
        "1::2::3",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "::1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8::",
        "1:2:3:4::5:6:7:8",
        "12345::",
        "::g",
        "fe80::1%eth0",
        "fe80::1%1",
        "[::1]",
        "::1/128",
        "::1.2.3",
        "::1.2.3.4.5",
        "::01.2.3.4",
        "1.2.3.4::",
        "::1.2.3.4:5",
        "1:2:3:4:5:6:7:1.2.3.4",
        "::ffff:0x7f.0.0.1",
        "1:2:3:4:5:6:7:8:",
        "0.0.0.0.0.0.0.0",
        "::00001",
        "1:::2",
        "\xef\xbc\x91.2.3.4",
        "1.2.3.4\xff",
        "00000000000000000000000000000000000000000000::1",
    };
    struct address a;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (address_parse(rows[i], strlen(rows[i]), &a))
            fail_msg("\"%s\" is taken", rows[i]);
    assert_false(address_parse("1.2.3.4\0", 8, &a));
    assert_false(address_parse("::1\0", 4, &a));
}

/* What we take inet_pton takes, and it means the same: looked at for every prefix and every changed byte of some texts. */
static void what_is_taken_is_what_inet_pton_takes(void **state)
{
    (void)state;
    static const char *const texts[] = {"192.0.2.130", "2001:db8:0:1::ff:1.2.3.4", "::ffff:10.0.0.1", "1:2:3:4:5:6:7:8", "1::8", "::"};
    static const char bytes[] = "0129afgF:.-% x";
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t at = 0; at <= strlen(texts[i]); at++)
            for (size_t b = 0; b < sizeof(bytes); b++) {
                char text[64] = {0};
                struct address a = {0};
                uint8_t other[16] = {0};
                memcpy(text, texts[i], strlen(texts[i]));
                text[at] = bytes[b]; /* the last of them cuts it */
                int family = strchr(text, ':') ? AF_INET6 : AF_INET;
                bool ours = address_parse(text, strlen(text), &a), theirs = inet_pton(family, text, other) == 1;
                if (ours != theirs)
                    fail_msg("\"%s\": %d here, %d there", text, ours, theirs);
                if (ours)
                    assert_memory_equal(a.byte, other, 16);
            }
}

static void ranges_hold_what_is_in_them(void **state)
{
    (void)state;
    static const struct {
        const char *range, *address;
        bool in;
    } rows[] = {
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"172.16.0.0/12", "172.31.0.1", true},
        {"172.16.0.0/12", "172.32.0.1", false},
        {"0.0.0.0/0", "8.8.8.8", true},
        {"0.0.0.0/0", "::8", false},
        {"::/0", "8.8.8.8", false},
        {"::/0", "ff::", true},
        {"1.2.3.4", "1.2.3.4", true},
        {"1.2.3.4", "1.2.3.5", false},
        {"2001:db8::/33", "2001:db8:7fff::", true},
        {"2001:db8::/33", "2001:db8:8000::", false},
        {"::1/128", "::1", true},
        {"10.0.0.0/8", "::ffff:10.0.0.1", false},
        {"1.2.3.4/31", "1.2.3.5", true},
    };
    struct address_range r;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct address a = parsed(rows[i].address);
        assert_true(address_range_parse(rows[i].range, strlen(rows[i].range), &r));
        assert_int_equal(address_is_in(&a, &r), rows[i].in);
    }
    static const char *const bad[] = {
        "",       "/8",      "10.0.0.0/",    "10.0.0.0/33", "10.0.0.1/8",  "10.0.0.0/08", "10.0.0.0/-1", "10/8",
        "::/129", "::1/127", "10.0.0.0/8/8", "10.0.0.0/8 ", "1.2.3.4/030", "::/0x8",      "/",           "10.0.0.0/255.0.0.0"};
    for (size_t i = 0; i < COUNT(bad); i++)
        if (address_range_parse(bad[i], strlen(bad[i]), &r))
            fail_msg("\"%s\" is taken", bad[i]);
}

static const struct {
    const char *address;
    enum address_class class;
} kinds[] = {
    {"8.8.8.8", ADDRESS_PUBLIC},
    {"0.0.0.0", ADDRESS_UNSPECIFIED},
    {"0.0.0.1", ADDRESS_RESERVED},
    {"0.255.255.255", ADDRESS_RESERVED},
    {"1.0.0.0", ADDRESS_PUBLIC},
    {"9.255.255.255", ADDRESS_PUBLIC},
    {"10.0.0.0", ADDRESS_PRIVATE},
    {"10.255.255.255", ADDRESS_PRIVATE},
    {"11.0.0.0", ADDRESS_PUBLIC},
    {"100.63.255.255", ADDRESS_PUBLIC},
    {"100.64.0.0", ADDRESS_SHARED},
    {"100.127.255.255", ADDRESS_SHARED},
    {"100.128.0.0", ADDRESS_PUBLIC},
    {"126.255.255.255", ADDRESS_PUBLIC},
    {"127.0.0.1", ADDRESS_LOOPBACK},
    {"127.255.255.255", ADDRESS_LOOPBACK},
    {"128.0.0.0", ADDRESS_PUBLIC},
    {"169.253.255.255", ADDRESS_PUBLIC},
    {"169.254.0.0", ADDRESS_LINK_LOCAL},
    {"169.255.0.0", ADDRESS_PUBLIC},
    {"172.15.255.255", ADDRESS_PUBLIC},
    {"172.16.0.0", ADDRESS_PRIVATE},
    {"172.31.255.255", ADDRESS_PRIVATE},
    {"172.32.0.0", ADDRESS_PUBLIC},
    {"192.0.0.1", ADDRESS_RESERVED},
    {"192.0.0.171", ADDRESS_RESERVED},
    {"192.0.1.0", ADDRESS_PUBLIC},
    {"192.0.2.1", ADDRESS_DOCUMENTATION},
    {"192.88.99.1", ADDRESS_TRANSLATED},
    {"192.167.255.255", ADDRESS_PUBLIC},
    {"192.168.0.0", ADDRESS_PRIVATE},
    {"192.169.0.0", ADDRESS_PUBLIC},
    {"198.17.255.255", ADDRESS_PUBLIC},
    {"198.18.0.0", ADDRESS_BENCHMARK},
    {"198.19.255.255", ADDRESS_BENCHMARK},
    {"198.20.0.0", ADDRESS_PUBLIC},
    {"198.51.100.9", ADDRESS_DOCUMENTATION},
    {"203.0.113.9", ADDRESS_DOCUMENTATION},
    {"223.255.255.255", ADDRESS_PUBLIC},
    {"224.0.0.1", ADDRESS_MULTICAST},
    {"239.255.255.255", ADDRESS_MULTICAST},
    {"240.0.0.0", ADDRESS_RESERVED},
    {"255.255.255.254", ADDRESS_RESERVED},
    {"255.255.255.255", ADDRESS_BROADCAST},
    {"::", ADDRESS_UNSPECIFIED},
    {"::1", ADDRESS_LOOPBACK},
    {"::2", ADDRESS_TRANSLATED},
    {"100::1", ADDRESS_RESERVED},
    {"1fff::", ADDRESS_RESERVED},
    {"2000::", ADDRESS_PUBLIC},
    {"2001:1::1", ADDRESS_RESERVED},
    {"2001:2::1", ADDRESS_BENCHMARK},
    {"2001:2:1::1", ADDRESS_RESERVED},
    {"2001:10::1", ADDRESS_RESERVED},
    {"2001:20::1", ADDRESS_RESERVED},
    {"2001:1ff:ffff::", ADDRESS_RESERVED},
    {"2001:200::", ADDRESS_PUBLIC},
    {"2001:db7:ffff::", ADDRESS_PUBLIC},
    {"2001:db8::1", ADDRESS_DOCUMENTATION},
    {"2001:db9::", ADDRESS_PUBLIC},
    {"2001:4860:4860::8888", ADDRESS_PUBLIC},
    {"2a00:1450:4001:81b::200e", ADDRESS_PUBLIC},
    {"3ffe:ffff::", ADDRESS_PUBLIC},
    {"3fff::1", ADDRESS_DOCUMENTATION},
    {"3fff:1000::1", ADDRESS_PUBLIC},
    {"4000::", ADDRESS_RESERVED},
    {"5f00::1", ADDRESS_RESERVED},
    {"fbff::", ADDRESS_RESERVED},
    {"fc00::1", ADDRESS_PRIVATE},
    {"fdff::1", ADDRESS_PRIVATE},
    {"fe00::", ADDRESS_RESERVED},
    {"fe80::1", ADDRESS_LINK_LOCAL},
    {"febf::1", ADDRESS_LINK_LOCAL},
    {"fec0::1", ADDRESS_PRIVATE},
    {"ff02::1", ADDRESS_MULTICAST},
    /* Where clouds hand their credentials out. */
    {"169.254.169.254", ADDRESS_METADATA},
    {"169.254.170.2", ADDRESS_METADATA},
    {"100.100.100.200", ADDRESS_METADATA},
    {"168.63.129.16", ADDRESS_METADATA},
    {"168.63.129.17", ADDRESS_PUBLIC},
    {"192.0.0.192", ADDRESS_METADATA},
    {"fd00:ec2::254", ADDRESS_METADATA},
    {"fd00:ec2::23", ADDRESS_METADATA},
    {"fd20:ce::254", ADDRESS_METADATA},
    {"fd00:c1::a9fe:a9fe", ADDRESS_METADATA},
    {"fd00:42::42", ADDRESS_METADATA},
    {"fd00:a9fe:a9fe::1", ADDRESS_METADATA},
    {"fd00:100::100:200", ADDRESS_METADATA},
    /* The same in other clothes. */
    {"::ffff:169.254.169.254", ADDRESS_METADATA},
    {"::ffff:a9fe:a9fe", ADDRESS_METADATA},
    {"::169.254.169.254", ADDRESS_METADATA},
    {"::ffff:0:169.254.169.254", ADDRESS_METADATA},
    {"64:ff9b::169.254.169.254", ADDRESS_METADATA},
    {"64:ff9b::a9fe:a9fe", ADDRESS_METADATA},
    {"64:ff9b:1::169.254.169.254", ADDRESS_METADATA},
    {"64:ff9b:1:a9fe:a9:fe00::", ADDRESS_METADATA},
    {"64:ff9b:1:a9:fe:a9fe::", ADDRESS_METADATA},
    {"64:ff9b:1:0:a9:fea9:fe00:0", ADDRESS_METADATA},
    {"64:ff9b:1:ff:a9:fea9:fe00:0", ADDRESS_METADATA},
    {"2002:a9fe:a9fe::1", ADDRESS_METADATA},
    {"2001:0:a9fe:a9fe::1", ADDRESS_METADATA},
    {"2001:0:808:808:0:0:5601:5601", ADDRESS_METADATA},
    {"fe80::5efe:169.254.169.254", ADDRESS_METADATA},
    {"2a00:1450::5efe:169.254.169.254", ADDRESS_METADATA},
    {"2a00:1450::200:5efe:169.254.169.254", ADDRESS_METADATA},
    /* Other places in other clothes. */
    {"::ffff:127.0.0.1", ADDRESS_LOOPBACK},
    {"::ffff:0.0.0.0", ADDRESS_UNSPECIFIED},
    {"::ffff:10.0.0.1", ADDRESS_PRIVATE},
    {"::ffff:8.8.8.8", ADDRESS_TRANSLATED},
    {"::127.0.0.1", ADDRESS_LOOPBACK},
    {"64:ff9b::8.8.8.8", ADDRESS_PUBLIC},
    {"64:ff9b::10.0.0.1", ADDRESS_PRIVATE},
    {"64:ff9b::0.0.0.0", ADDRESS_UNSPECIFIED},
    {"64:ff9b::1:808:808", ADDRESS_RESERVED},
    {"64:ff9b:1::8.8.8.8", ADDRESS_TRANSLATED},
    {"64:ff9b:2::8.8.8.8", ADDRESS_RESERVED},
    {"2002:808:808::1", ADDRESS_TRANSLATED},
    {"2002:7f00:1::1", ADDRESS_LOOPBACK},
    {"2001:0:808:808:0:0:f7f7:f7f7", ADDRESS_TRANSLATED},
    {"2001:0:808:808:0:0:80ff:fffe", ADDRESS_LOOPBACK},
    {"2a00:1450::5efe:127.0.0.1", ADDRESS_LOOPBACK},
    {"2a00:1450::5efe:8.8.8.8", ADDRESS_PUBLIC},
};

static void every_address_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct address a = parsed(kinds[i].address);
        if (address_class(&a) != kinds[i].class)
            fail_msg("%s: %s", kinds[i].address, address_class_text(address_class(&a)));
    }
    for (int c = 0; c < ADDRESS_CLASSES; c++)
        assert_true(strlen(address_class_text((enum address_class)c)) > 3);
}

/* What no public IPv4 address may hide is not public in any of the ways to write it. */
static void no_way_to_write_an_address_makes_it_better(void **state)
{
    (void)state;
    static const char *const forms[] = {"::ffff:%s",     "::%s",          "::ffff:0:%s",  "64:ff9b::%s",
                                        "64:ff9b:1::%s", "2a00::5efe:%s", "fe80::5efe:%s"};
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t k = 0; k < COUNT(forms) && !strchr(kinds[i].address, ':'); k++) {
            char text[64];
            snprintf(text, sizeof(text), forms[k], kinds[i].address);
            struct address a = parsed(text);
            bool zero = k == 4 && kinds[i].class == ADDRESS_UNSPECIFIED; /* which is the prefix itself */
            if (!zero && address_class(&a) < kinds[i].class)
                fail_msg("%s: %s", text, address_class_text(address_class(&a)));
        }
}

static void range_text_reads_back_and_covers_what_is_within(void **state)
{
    (void)state;
    static const struct {
        const char *outer, *inner;
        bool covers;
    } cases[] = {
        {"10.0.0.0/8", "10.1.0.0/16", true}, {"10.0.0.0/8", "10.0.0.0/8", true},   {"10.1.0.0/16", "10.0.0.0/8", false},
        {"0.0.0.0/0", "10.1.2.3/32", true},  {"0.0.0.0/0", "::/0", false},         {"::/0", "fd00::1/128", true},
        {"fd00::/8", "fe00::/8", false},     {"fc00::/7", "fd12:3456::/32", true}, {"10.1.2.3/32", "10.1.2.2/32", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct address_range outer, inner;
        char text[ADDRESS_RANGE_MAX];
        assert_true(address_range_parse(cases[i].outer, strlen(cases[i].outer), &outer));
        assert_true(address_range_parse(cases[i].inner, strlen(cases[i].inner), &inner));
        assert_int_equal(address_range_covers(&outer, &inner), cases[i].covers);
        assert_string_equal(address_range_text(&inner, text), cases[i].inner);
    }
    struct address_range one;
    char text[ADDRESS_RANGE_MAX];
    assert_true(address_range_parse("10.1.2.3", 8, &one));
    assert_string_equal(address_range_text(&one, text), "10.1.2.3/32");
}

TESTS(cmocka_unit_test(range_text_reads_back_and_covers_what_is_within), cmocka_unit_test(addresses_are_written_in_one_form),
      cmocka_unit_test(what_other_readers_take_for_an_address_is_none), cmocka_unit_test(what_is_taken_is_what_inet_pton_takes),
      cmocka_unit_test(ranges_hold_what_is_in_them), cmocka_unit_test(every_address_has_its_class),
      cmocka_unit_test(no_way_to_write_an_address_makes_it_better))
