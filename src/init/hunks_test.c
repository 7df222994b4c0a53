/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for init/hunks. */
#include "base/test.h"

#include <stdlib.h>

#include "init/hunks.h"

#define CASE(f) cmocka_unit_test(f)
#define U "--- a/f\n+++ b/f\n"
#define E(body) "*** Begin Patch\n*** Update File: f\n" body "*** End Patch\n"

static struct changes c;

/* What becomes of a text; NULL and the error if it does not fit. */
static char *become(const char *old, const char *patch, struct pale_err *e)
{
    struct hunks_text t = {old, strlen(old)};
    size_t n = 0;
    assert_int_equal(changes_parse(&c, patch, strlen(patch), e), 0);
    uint32_t *index = malloc(HUNKS_INDEX(t.len) * sizeof(*index));
    char *out = malloc(HUNKS_OUT(t.len, strlen(patch)) + 1);
    assert_true(index && out);
    int r = hunks_apply(&c, &c.row[0], &t, index, out, &n, e);
    free(index);
    out[r == 0 ? n : 0] = 0;
    if (r == 0)
        return out;
    free(out);
    return NULL;
}

static void hunks_fit(void **state)
{
    (void)state;
    static const struct {
        const char *old, *patch, *new;
    } rows[] = {
        {"a\nb\nc\n", U "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"},
        {"x\ny\na\nb\nc\n", U "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "x\ny\na\nB\nc\n"},
        {"a\nb\n", U "@@ -0,0 +1 @@\n+x\n", "x\na\nb\n"},
        {"a\nb\n", U "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n"},
        {"a\nb", U "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "a\nc"},
        {"a\nb", U "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", "a\nc\n"},
        {"a\nb", U "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc\n"},
        {"a\nb\n", U "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb"},
        {"1\n2\n3\n4\n5\n6\n", U "@@ -1 +1,2 @@\n 1\n+1.5\n@@ -5 +6 @@\n-5\n+five\n", "1\n1.5\n2\n3\n4\nfive\n6\n"},
        {"p\nq\np\nq\n", U "@@ -3,2 +3,2 @@\n p\n-q\n+Q\n", "p\nq\np\nQ\n"},
        {"a\r\nb\r\n", U "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n"},
        {"a\n\nb\n", U "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"},
        {"", U "@@ -0,0 +1 @@\n+x\n", "x\n"},
        {"f\n x\ng\n x\n", E("@@ g\n- x\n+ y\n"), "f\n x\ng\n y\n"},
        {"f\n x\ng\n x\n", E("@@ g\n g\n- x\n+ y\n"), "f\n x\ng\n y\n"},
        {"A\n f\n  x\nB\n f\n  x\n", E("@@ B\n@@ f\n-  x\n+  y\n"), "A\n f\n  x\nB\n f\n  y\n"},
        {"a\nx\nb\nx\n", E("@@\n-x\n+y\n*** End of File\n"), "a\nx\nb\ny\n"},
        {"a\n", E("@@\n+z\n"), "a\nz\n"},
        {"a", E("@@\n+z\n"), "a\nz\n"},
        {"a\nb\n", E("@@ a\n+z\n"), "a\nz\nb\n"},
        {"a\nb\nc\nd\n", E("-a\n+A\n b\n@@\n-d\n+D\n"), "A\nb\nc\nD\n"},
        {"-- a\n", E("--- a\n+++ b\n"), "++ b\n"},
    };
    struct pale_err e = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *out = become(rows[i].old, rows[i].patch, &e);
        if (!out)
            fail_msg("%s: %s", rows[i].patch, e.text);
        else
            assert_string_equal(out, rows[i].new);
        free(out);
    }
}

static void hunks_that_do_not_fit_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *old, *patch, *why;
    } rows[] = {
        {"a\nb\n", U "@@ -1,2 +1,2 @@\n a\n-x\n+y\n", "does not stand"},
        {"a \nb\n", U "@@ -1,2 +1,2 @@\n a\n-b\n+y\n", "does not stand"},
        {"a\r\nb\r\n", U "@@ -1,2 +1,2 @@\n a\n-b\n+y\n", "\\r\\n"},
        {"x\nm\nx\n", U "@@ -2 +2 @@\n-x\n+y\n", "in line 1 and in line 3"},
        {"x\nx\n", E("@@\n-x\n+y\n"), "in line 1 and in line 2"},
        {"x\n", E("@@ none\n-x\n+y\n"), "no such line"},
        {"a\nx\nb\n", E("@@\n-x\n+y\n*** End of File\n"), "does not stand"},
        {"b\na\n", E("@@\n-a\n+A\n@@\n-b\n+B\n"), "hunk 2"},
        {"a\nb\n", U "@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n", "does not stand"},
        {"", E("@@\n-a\n"), "does not stand"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pale_err e = {0};
        char *out = become(rows[i].old, rows[i].patch, &e);
        if (out || !strstr(e.text, rows[i].why))
            fail_msg("%s became %s (%s)", rows[i].patch, out ? out : "nothing", e.text);
        free(out);
    }
}

TESTS(CASE(hunks_fit), CASE(hunks_that_do_not_fit_say_why))
