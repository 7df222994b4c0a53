/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: answers of file requests. What is taken is what stands there, byte for byte; no part of it is an answer, and its paths
 * lead nowhere but down. */
#include <assert.h>
#include <stdlib.h>

#include "input.h"
#include "wire/answer.h"

UNSEEN static void check_path(const char *path)
{
    assert(path[0] != '/' && strlen(path) < PATH_BYTES_MAX && !strstr(path, "//"));
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        assert(strncmp(at, "../", 3) != 0 && strcmp(at, "..") != 0 && strncmp(at, "./", 2) != 0 && strcmp(at, ".") != 0);
}

/* A copy of its own size, so that a step beyond it is seen. */
UNSEEN static int parse_copy(const uint8_t *p, size_t n)
{
    struct answer a;
    size_t used = 0;
    char *copy = malloc(n ? n : 1);
    assert(copy);
    memcpy(copy, p, n);
    int r = answer_parse(copy, n, &a, &used);
    free(copy);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer a;
    size_t used = 0;
    static char again[ANSWER_HEAD_MAX];
    int r;
    while ((r = answer_parse(data, size, &a, &used)) == 1) {
        size_t head = answer_head_write(&a, again);
        assert(used <= size && used == head + a.text_len && memcmp(again, data, head) == 0);
        assert(a.text_len == 0 || a.text == (const char *)data + head);
        check_path(a.path);
        check_path(a.other);
        for (size_t n = 0; n < used; n += 1 + n / 64)
            assert(parse_copy(data, n) == 0);
        assert(parse_copy(data, used) == 1);
        data += used;
        size -= used;
    }
    if (r < 0)
        assert(parse_copy(data, size) < 0);
    return 0;
}
