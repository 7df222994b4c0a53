/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for init/changes. */
#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "init/changes.h"

#define CASE(f) cmocka_unit_test(f)

static struct changes c;

/* Kinds, names and hunks in one text: "U a.c 2; A b 1; M old>new 0; R c 1". */
static void show(char *ret, size_t cap)
{
    size_t at = 0;
    for (size_t i = 0; i < c.count; i++) {
        const struct change *ch = &c.row[i];
        at += (size_t)snprintf(ret + at, cap - at, "%s%c %s%s%s %zu", i ? "; " : "", "AURM"[ch->kind], ch -> path, ch -> to[0] ? ">" : "",
                               ch->to, ch->hunks);
    }
}

#define GIT "diff --git a/x.c b/x.c\nindex 1..2 100644\n--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@ f()\n a\n-b\n+c\n"

static const struct {
    const char *text, *means;
} good[] = {
    {GIT, "U x.c 1"},
    {"some words\n\n" GIT "-- \n2.39.0\n\nFrom x\n"
     "diff --git a/y b/y\nnew file mode 100755\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+n\n",
     "U x.c 1; A y 1"},
    {"--- x\t2024-01-01\n+++ x\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n@@ -5 +5 @@\n-a\n+b\n", "U x 2"},
    {"--- a/d/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n", "R d/x 1"},
    {"diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n", "M old>new 0"},
    {"diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\n--- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n",
     "M old>new 1"},
    {"diff --git a/e f b/e f\nnew file mode 100644\nindex 0..e69\n", "A e f 0"},
    {"diff --git a/e b/e\ndeleted file mode 100644\nindex e69..0\n", "R e 0"},
    {"--- \"a/t\\tab\\303\\251\"\n+++ \"b/t\\tab\\303\\251\"\n@@ -1 +1 @@\n-a\n+b\n", "U t\tab\xc3\xa9 1"},
    {"--- a/x\n+++ b/x\n@@ @@\n a\n-b\n\n+c\n@@\n d\n+e\n", "U x 2"},
    {"--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n a\n\n--- gone\n", "U x 1"},
    {"--- ./x\n+++ ./x\n@@ -1 +1 @@\n-a\n+b", "U x 1"},
    {"*** Begin Patch\n*** Update File: a.c\n@@ f()\n x\n-y\n+z\n@@\n-q\n*** End of File\n*** Add File: b\n+one\n+\n*** Delete File: "
     "c\n*** Update File: d\n"
     "*** Move to: e/f\n-x\n+y\n*** End Patch\n",
     "U a.c 2; A b 1; R c 0; M d>e/f 1"},
    {"Here it is:\n*** Begin Patch\r\n*** Update File: a.c\r\n--- x\r\n+++ y\r\n*** End Patch\r\n", "U a.c 1"},
    {"*** Begin Patch\n*** Update File: a\n@@ class A\n@@ def f\n-x\n\n\n+y\n*** End Patch", "U a 2"},
};

static void patches_are_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct pale_err e = {0};
        char shown[500] = "";
        if (changes_parse(&c, good[i].text, strlen(good[i].text), &e) != 0)
            fail_msg("%s: %s", good[i].text, e.text);
        show(shown, sizeof(shown));
        assert_string_equal(shown, good[i].means);
    }
}

/* A part of a patch is refused, or is a smaller patch; it never reads beyond itself. */
static void every_prefix_is_read_within_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        for (size_t n = 0; n <= strlen(good[i].text); n++) {
            struct pale_err e = {0};
            char *copy = malloc(n ? n : 1);
            assert_non_null(copy);
            memcpy(copy, good[i].text, n);
            if (changes_parse(&c, copy, n, &e) < 0)
                assert_true(e.text[0]);
            for (size_t h = 0; h < c.hunks; h++)
                assert_true(c.hunk[h].text >= copy && c.hunk[h].text + c.hunk[h].len <= copy + n);
            free(copy);
        }
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "words",
        "--- a/x\n+++ b/x\n",
        "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n",
        "--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n",
        "--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
        "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n",
        "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n+b\n",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nwords\n",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/x\n+++ b/x\n@@ -9 +9 @@\n-a\n+b\n",
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
        "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
        "diff --git a/x b/x\nrename from x\n",
        "diff --git a/x b/x\nrename to y\n",
        "diff --git a/x b/y\nrename from x\nrename to y\nnew file mode 100644\n",
        "diff --git a/x b/x\nrename from x\nrename to x\n",
        "diff --git a/x b/x\nrename from ../x\nrename to y\n",
        "*** Begin Patch\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n-x\n+y\n",
        "*** Begin Patch\n*** Update File: a\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: /a\n-x\n+y\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a/../b\n-x\n+y\n*** End Patch\n",
        "*** Begin Patch\n*** Add File: a\nx\n*** End Patch\n",
        "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: a\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n*** Move to: b\n-x\n*** Add File: b\n+x\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n@@\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a\n*** End of File\n*** End Patch\n",
        "*** Begin Patch\n*** Add File:\n+x\n*** End Patch\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct pale_err e = {0};
        if (changes_parse(&c, bad[i], strlen(bad[i]), &e) >= 0 || !e.text[0])
            fail_msg("%s was taken", bad[i]);
    }
}

static void limits_hold(void **state)
{
    (void)state;
    struct pale_err e;
    size_t n = 0, cap = 1 << 20;
    char *text = malloc(cap);
    assert_non_null(text);
    n += (size_t)snprintf(text, cap, "*** Begin Patch\n");
    for (size_t i = 0; i <= CHANGES_MAX; i++)
        n += (size_t)snprintf(text + n, cap - n, "*** Delete File: f%zu\n", i);
    assert_int_equal(changes_parse(&c, text, n, &e), -PALE_LIMIT);
    n = (size_t)snprintf(text, cap, "*** Begin Patch\n*** Update File: a\n");
    for (size_t i = 0; i <= CHANGES_HUNKS_MAX; i++)
        n += (size_t)snprintf(text + n, cap - n, "@@\n-a\n");
    assert_int_equal(changes_parse(&c, text, n, &e), -PALE_LIMIT);
    n = (size_t)snprintf(text, cap, "--- a/x\n+++ b/x\n@@\n-a\n");
    memset(text + n, '\n', cap - n);
    assert_int_equal(changes_parse(&c, text, cap, &e), 0);
    free(text);
}

TESTS(CASE(patches_are_understood), CASE(every_prefix_is_read_within_itself), CASE(what_makes_no_sense_is_refused), CASE(limits_hold))
