/* SPDX-License-Identifier: Apache-2.0 */
/* What a unit test includes first: cmocka with the headers it wants, and the main() every test shares. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TESTS(...)                                                                                                                         \
    int main(void)                                                                                                                         \
    {                                                                                                                                      \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                                                   \
        return cmocka_run_group_tests(tests, NULL, NULL);                                                                                  \
    }
