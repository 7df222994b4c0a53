/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for box/intake and box/presetfile: what flags make of a network. */
#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "box/intake.h"
#include "box/presetfile.h"

/* The lines of the policy's network, after key, value, …, NULL. */
static const char *network_of(const char *const *pairs, struct buf *out)
{
    own_policy p = {0};
    struct pale_err e = {0};
    own_buf text = {0};
    buf_init(&text, POLICY_TEXT_MAX);
    buf_init(out, POLICY_TEXT_MAX);
    for (; *pairs; pairs += 2)
        if (intake_set(&p, pairs[0], pairs[1], &e) < 0) {
            buf_add_text(out, e.text);
            return buf_text(out);
        }
    policy_write(&p, &text);
    for (const char *s = buf_text(&text), *nl; (nl = strchr(s, '\n')); s = nl + 1)
        if (strncmp(s, "network.", 8) == 0)
            buf_addf(out, "%.*s\n", (int)(nl - s - 8), s + 8);
    return buf_text(out);
}
#define NETWORK(out, ...) network_of((const char *const[]){__VA_ARGS__, NULL}, out)

static void intake_puts_the_verdict_of_a_flag_into_its_rule(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *want;
    } cases[] = {
        {"network.allow", "x.org", "mode filtered\negress x.org\n"},
        {"network.ask", "x.org:80,443@5", "mode filtered\negress x.org:80,443=ask@5\n"},
        {"network.ask", "x.org+out=1M", "mode filtered\negress x.org=ask+out=1M\n"},
        {"network.deny", "[fd00::/8]:80", "mode none\negress [fd00::/8]:80=deny\n"},
        {"network.ask", "[fd00::/8]", "mode filtered\negress [fd00::/8]=ask\n"},
        {"network.publish", "8080:80", "mode filtered\npublish 8080:80\n"},
        {"network.presets", "none", "mode filtered\npresets none@1\n"},
        {"network.egress", "x.org", "mode none\negress x.org\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        own_buf out = {0};
        assert_string_equal(NETWORK(&out, cases[i].key, cases[i].value), cases[i].want);
    }
    own_buf bad = {0};
    assert_non_null(strstr(NETWORK(&bad, "network.deny", "x.org=allow"), "the flag says deny already"));
}

static void intake_keeps_a_mode_that_was_said(void **state)
{
    (void)state;
    own_buf a = {0}, b = {0};
    assert_string_equal(NETWORK(&a, "network.mode", "open", "network.deny", "x.org"), "mode open\negress x.org=deny\n");
    assert_string_equal(NETWORK(&b, "network.allow", "x.org", "network.mode", "none"), "mode none\negress x.org\n");
}

static void write_preset(const char *dir, const char *name, const char *text)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/pale/presets/%s", dir, name);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void remove_preset(const char *dir, const char *name)
{
    char path[PATH_BYTES_MAX];
    snprintf(path, sizeof(path), "%s/pale/presets/%s", dir, name);
    assert_int_equal(unlink(path), 0);
}

static void presets_of_the_user_stand_beside_those_of_pale(void **state)
{
    (void)state;
    char dir[] = "/tmp/pale-presets-XXXXXX", path[PATH_BYTES_MAX];
    own_buf a = {0}, b = {0}, c = {0}, d = {0}, f = {0};
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/pale", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/pale/presets", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    setenv("XDG_CONFIG_HOME", dir, 1);
    write_preset(dir, "mine", "# ours\nversion 7\nx.org:443\ninclude none\n");
    write_preset(dir, "broken", "version 1\nx_y\n");
    write_preset(dir, "dev", "version 1\nevil.org\n");
    assert_string_equal(NETWORK(&a, "network.presets", "mine"), "mode filtered\npresets mine@7\npresets none@1\negress x.org:443\n");
    assert_non_null(strstr(NETWORK(&b, "network.presets", "mine@6"), "mine@6 is mine@7 here; write mine, or its rules under egress"));
    assert_non_null(strstr(NETWORK(&c, "network.presets", "broken"), "preset broken line 2: network.egress"));
    assert_non_null(strstr(NETWORK(&d, "network.presets", "dev"), "pale has a preset of this name"));
    assert_non_null(strstr(NETWORK(&f, "network.presets", "nonesuch"), "there is no preset \"nonesuch\""));
    remove_preset(dir, "mine");
    remove_preset(dir, "broken");
    remove_preset(dir, "dev");
    rmdir(path);
    snprintf(path, sizeof(path), "%s/pale", dir);
    rmdir(path);
    rmdir(dir);
    unsetenv("XDG_CONFIG_HOME");
}

TESTS(cmocka_unit_test(intake_puts_the_verdict_of_a_flag_into_its_rule), cmocka_unit_test(intake_keeps_a_mode_that_was_said),
      cmocka_unit_test(presets_of_the_user_stand_beside_those_of_pale))
