/* SPDX-License-Identifier: Apache-2.0 */
/* Cases for agents/offer. */
#include "base/test.h"

#include <stdlib.h>

#include "agents/offer.h"
#include "base/buf.h"

static void add(void *arg, const char *name)
{
    buf_addf(arg, "%s,", name);
}

static void means(const char *body, int count, const char *names)
{
    own_buf b = {0};
    buf_init(&b, 65536);
    assert_int_equal(offer_read(body, strlen(body), add, &b), count);
    assert_string_equal(buf_text(&b), names);
}

static void offer_reads_every_dialect(void **state)
{
    (void)state;
    means("{\"tools\":[{\"name\":\"Bash\",\"input_schema\":{}},{\"name\":\"mcp__pale__exec\"}]}", 2, "Bash,mcp__pale__exec,");
    means("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a\"}}]}", 1, "a,");
    means("{\"tools\":[{\"type\":\"function\",\"name\":\"b\"},{\"type\":\"web_search\"}]}", 2, "b,web_search,");
    means("{\"tools\":[{\"type\":\"namespace\",\"name\":\"mcp__pale\",\"tools\":[{\"name\":\"exec\"},{\"name\":\"read\"}]}]}", 2,
          "mcp__pale/exec,mcp__pale/read,");
    means("{\"input\":[{\"output\":\"pale-offers:a\\nb\\npale-offers:c/d\"},{\"output\":[{\"text\":\"x\\npale-offers:\"}]}]}", 3,
          "a,c/d,?,");
    means("{\"input\":[{\"type\":\"tool_search_output\",\"tools\":[{\"type\":\"namespace\",\"name\":\"s\",\"tools\":[{\"name\":\"a\"}]}]},"
          "7]}",
          1, "s/a,");
    means("{\"tools\":[{\"functionDeclarations\":[{\"name\":\"x\"},{\"name\":\"y\"}]},{\"googleSearch\":{}}]}", 3, "x,y,googleSearch,");
    means("{\"tools\":[{\"functionDeclarations\":[{\"name\":\"x\"}],\"codeExecution\":{}}]}", 2, "x,codeExecution,");
}

static void offer_of_nothing_is_empty(void **state)
{
    (void)state;
    means("{}", 0, "");
    means("{\"tools\":null,\"messages\":[{\"tools\":[{\"name\":\"x\"}]}]}", 0, "");
    means("{\"tools\":[]}", 0, "");
}

static void offer_names_what_it_cannot_name(void **state)
{
    (void)state;
    means("{\"tools\":[1]}", 1, "?,");
    means("{\"tools\":{\"name\":\"x\"}}", 1, "?,");
    means("{\"tools\":[{\"name\":7},{\"name\":\"\"},{\"function\":{}},{\"function\":3}]}", 4, "?,?,?,?,");
    means("{\"tools\":[{\"name\":\"n\",\"tools\":7}]}", 1, "n/?,");
    means("{\"tools\":[{\"functionDeclarations\":{}}]}", 1, "?,");
}

static void offer_counts_doubled_keys_twice(void **state)
{
    (void)state;
    means("{\"tools\":[{\"name\":\"a\"}],\"tools\":[{\"name\":\"b\"}]}", 2, "a,b,");
}

static void offer_refuses_every_prefix(void **state)
{
    (void)state;
    static const char text[] =
        "{\"tools\":[{\"type\":\"namespace\",\"name\":\"s\",\"tools\":[{\"name\":\"\\u0041\"}]},{\"functionDeclarations\":[]}]}";
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        own_buf b = {0};
        char *copy = malloc(n + 1);
        buf_init(&b, 65536);
        memcpy(copy, text, n);
        assert_int_equal(offer_read(copy, n, add, &b), -1);
        assert_int_equal(b.len, 0);
        free(copy);
    }
    means(text, 1, "s/A,");
}

TESTS(cmocka_unit_test(offer_reads_every_dialect), cmocka_unit_test(offer_of_nothing_is_empty),
      cmocka_unit_test(offer_names_what_it_cannot_name), cmocka_unit_test(offer_counts_doubled_keys_twice),
      cmocka_unit_test(offer_refuses_every_prefix))
