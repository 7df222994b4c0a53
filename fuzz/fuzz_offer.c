/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: agents/offer, with what a harness sends to a model. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agents/offer.h"
#include "input.h"

static int told;

static void count(void *arg, const char *name)
{
    (void)arg;
    assert(name[0] && strlen(name) <= 2 * OFFER_NAME_MAX + 1);
    told++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    told = 0;
    int n = offer_read((const char *)data, size, count, NULL);
    assert(n < 0 ? n == -1 && told == 0 : n == told);
    /* An object is whole only at its end, but for blanks. */
    while (size > 0 && strchr(" \t\r\n", data[size - 1]) && data[size - 1])
        size--;
    for (size_t cut = 0; n >= 0 && cut < size; cut++)
        assert(offer_read((const char *)data, cut, count, NULL) == -1);
    return 0;
}
