/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for tree/tarwriter, tree/carriage, tree/markup and tree/bare: a layer written as an archive, judged as one that came from a
 * stranger. */
#include "tree/treetest.h"

#include <errno.h>
#include <sys/mman.h>

#include "net/cargo.h"
#include "tree/bare.h"
#include "tree/layerdigest.h"
#include "tree/markup.h"
#include "tree/tarwriter.h"

static struct pale_err e;
static char told[65536];

/* Reads an archive back by the rules of an import, and tells its members in a line. */
static void read_back(int fd)
{
    static struct cargo cargo;
    static struct tarpax pax;
    uint8_t block[TAR_BLOCK];
    struct tar_head h;
    off_t at = 0;
    cargo = (struct cargo){0};
    pax = (struct tarpax){0};
    told[0] = 0;
    while (pread(fd, block, TAR_BLOCK, at) == (ssize_t)TAR_BLOCK && tar_head_parse(block, &h, &e) > 0) {
        char path[PATH_BYTES_MAX];
        enum cargo_kind kind;
        at += TAR_BLOCK;
        if (h.type == TAR_PAX) {
            own_mem uint8_t *records = malloc((size_t)h.size + 1);
            assert_true(pread(fd, records, (size_t)h.size, at) == h.size);
            assert_ok(tarpax_take(&pax, records, (size_t)h.size, &e));
        } else {
            const struct cargo_member m = {.head = &h,
                                           .pax = &pax,
                                           .name = pax.has[TARPAX_PATH] ? pax.path : h.name,
                                           .link = pax.has[TARPAX_LINK] ? pax.link : h.link,
                                           .size = (uint64_t)h.size};
            assert_ok(cargo_judge(&cargo, &m, &kind, path, &e));
            size_t n = strlen(told);
            snprintf(told + n, sizeof(told) - n, "%c%s%s%.40s ", h.type,
                     kind == CARGO_IS_GONE     ? "-"
                     : kind == CARGO_IS_OPAQUE ? "!"
                                               : "",
                     h.type == TAR_HARD_LINK ? "=" : "", strlen(path) > 100 ? "long" : path);
            pax = (struct tarpax){0};
        }
        at += h.size + tar_padding((uint64_t)h.size);
    }
    assert_ok(cargo_end(&cargo, &e));
}

static int write_part(const char *layer, const char *name)
{
    own_tarwriter w = {0};
    own_fd from = folder(layer), out = memfd_create("archive", MFD_CLOEXEC);
    assert_ok(tarwriter_init(&w, out, &e));
    assert_ok(tarwriter_text(&w, CARGO_BILL, "{}", 2, 7, &e));
    int r = tarwriter_part(&w, name, from, !cargo_lies_on(name), &e);
    if (r == 0) {
        assert_ok(tarwriter_end(&w, &e));
        read_back(out);
    }
    return r;
}

static void digest_of(const char *layer, bool lowest, char ret[SHA256_HEX])
{
    struct carriage carriage = {.lowest = lowest};
    struct layerdigest d = {.carry = &carriage};
    own_fd fd = folder(layer);
    assert_ok(layerdigest_run(&d, fd, &e));
    sha256_to_hex(d.digest, ret);
}

static void members_come_sorted_and_a_folder_after_what_is_in_it(void **state)
{
    (void)state;
    put("l/b/z", "1");
    put("l/b/y/x", "2");
    put("l/b.c", "3");
    put("l/a", "4");
    put_link("l/c", "nowhere");
    close(folder("l/empty"));
    assert_int_equal(linkat(top_fd, "l/a", top_fd, "l/d", 0), 0);
    assert_ok(write_part("l", "home"));
    assert_string_equal(told, "0pale-export.json 0home/a 0home/b/y/x 5home/b/y 0home/b/z 5home/b 0home/b.c 2home/c 1=home/d "
                              "5home/empty 5home ");
}

static void deletions_are_carried_where_something_lies_below(void **state)
{
    (void)state;
    char name[300] = "l/";
    memset(name + 2, 'n', 255);
    put_whiteout("l/gone");
    put_whiteout("l/d/inner");
    put_whiteout(name);
    put_fifo("l/pipe");
    set_attribute("l/d", "user.overlay.opaque", "y");
    assert_ok(write_part("l", "project"));
    assert_string_equal(told, "0pale-export.json 0-project/d/inner 0!project/d 5project/d 0-project/gone 0-long 5project ");
    assert_ok(write_part("l", "home"));
    assert_string_equal(told, "0pale-export.json 5home/d 5home ");
}

static void a_whiteout_that_is_a_file_is_one_like_any_other(void **state)
{
    (void)state;
    char one[SHA256_HEX], two[SHA256_HEX];
    put("l/x", "");
    put("l/y", "y");
    set_attribute("l/x", "user.overlay.whiteout", "y");
    set_attribute("l", "user.overlay.opaque", "x");
    put_whiteout("m/x");
    put("m/y", "y");
    assert_ok(write_part("l", "project"));
    assert_string_equal(told, "0pale-export.json 0-project/x 0project/y 5project ");
    digest_of("l", false, one);
    digest_of("m", false, two);
    assert_string_equal(one, two);
}

/* So many folders in one another. */
static void dig(int depth)
{
    own_fd at = folder("deep");
    for (int i = 0; i < depth; i++) {
        assert_true(mkdirat(at, "d", 0755) == 0 || errno == EEXIST);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        own_close(&at);
        at = next;
    }
}

static void what_has_no_form_is_refused(void **state)
{
    (void)state;
    put("l/d/.wh.x", "");
    assert_int_equal(write_part("l", "home"), -PALE_UNSUPPORTED);
    assert_non_null(strstr(e.text, ".wh.x"));
    close(folder("m/.wh.d"));
    assert_int_equal(write_part("m", "home"), -PALE_UNSUPPORTED);
    dig(126);
    assert_ok(write_part("deep", "home"));
    dig(127);
    assert_int_equal(write_part("deep", "home"), -PALE_UNSUPPORTED);
}

/* --- marks --- */

static int apply(const char *list, size_t n)
{
    own_fd root = folder("r"), fd = memfd_create("list", MFD_CLOEXEC);
    assert_true(fd_write_full(fd, list, n) && lseek(fd, 0, SEEK_SET) == 0);
    return markup_apply(root, fd, &e);
}

static void marks_are_made_and_folders_stay_as_they_were(void **state)
{
    (void)state;
    static const char list[] = "wproject/gone\0oproject/d\0wproject/shut/x\0wroot/y";
    char value[2] = "";
    struct stat st;
    put("r/project/d/f", "");
    close(folder("r/project/shut"));
    close(folder("r/root"));
    assert_int_equal(fchmodat(top_fd, "r/project/shut", 0555, 0), 0);
    set_attribute("r", "user.test", "x"); /* or there is nothing to try */
    assert_ok(apply(list, sizeof(list)));
    assert_true(fstatat(top_fd, "r/project/gone", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == 0);
    assert_true(fstatat(top_fd, "r/project/shut/x", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode));
    assert_int_equal(mode_of("r/project/shut"), 0555);
    own_fd d = openat(top_fd, "r/project/d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fgetxattr(d, "user.overlay.opaque", value, sizeof(value)) == 1 && value[0] == 'y');
}

static void a_list_that_is_none_is_refused(void **state)
{
    (void)state;
#define ROW(text)                                                                                                                          \
    {                                                                                                                                      \
        text, sizeof(text)                                                                                                                 \
    }
    static const struct {
        const char *text;
        size_t n;
    } rows[] = {
        ROW("whome/x"),
        ROW("wproject"),
        ROW("w/etc/x"),
        ROW("wproject/../x"),
        ROW("wproject/./x"),
        ROW("xproject/x"),
        ROW(""),
        ROW("oproject"),
        ROW("w"),
        ROW("wproject/none/x"),
        ROW("oproject/none"),
        ROW("oproject/f"),
        ROW("wproject/f"),
        ROW("wproject/link/x"),
        ROW("oproject/link"),
        {"wproject/cut", 12},
        ROW("wetc/x"),
    };
    put("r/project/f", "");
    close(folder("other"));
    put_link("r/project/link", "../../other");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (apply(rows[i].text, rows[i].n) == 0)
            fail_msg("%s was taken", rows[i].text);
    assert_false(is_there("other/x"));
}

static void an_attribute_where_none_may_be_is_found(void **state)
{
    (void)state;
    static const char *const names[] = {"user.overlay.x", "user.overlay.origin", "user.overlay.overlay.opaque"};
    put("r/d/f", "x");
    put_link("r/link", "d");
    own_fd root = folder("r");
    set_attribute("r/d/f", "user.x", "y");
    assert_ok(bare_check(root, NULL, &e));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        set_attribute("r/d/f", names[i], "y");
        assert_int_equal(bare_check(root, NULL, &e), -PALE_CORRUPT);
        assert_non_null(strstr(e.text, names[i]));
        own_fd f = openat(top_fd, "r/d/f", O_RDONLY | O_CLOEXEC);
        assert_int_equal(fremovexattr(f, names[i]), 0);
    }
    set_attribute("r/d", "user.overlay.opaque", "y");
    assert_int_equal(bare_check(root, NULL, &e), -PALE_CORRUPT);
}

TESTS(CASE(members_come_sorted_and_a_folder_after_what_is_in_it), CASE(deletions_are_carried_where_something_lies_below),
      CASE(a_whiteout_that_is_a_file_is_one_like_any_other), CASE(what_has_no_form_is_refused),
      CASE(marks_are_made_and_folders_stay_as_they_were), CASE(a_list_that_is_none_is_refused),
      CASE(an_attribute_where_none_may_be_is_found))
