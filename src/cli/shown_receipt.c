/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the showing of a stored receipt. */
#include "cli/shown_receipt.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/quote.h"
#include "cli/cli.h"

#define RECEIPT_MAX 65536

void shown_receipt_read(const struct place *p, struct buf *ret)
{
    char path[PATH_BYTES_MAX + 16];
    buf_init(ret, RECEIPT_MAX);
    snprintf(path, sizeof(path), "%s/receipt", p->state);
    own_fd fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fd_read_all(fd, ret, NULL) < 0)
        buf_clear(ret);
}

void shown_receipt_line(struct buf *receipt)
{
    char probe[16], took[16], good[8], proved[80], safe[3][100]; /* it may have come from a daemon elsewhere */
    size_t attempts = 0;
    if (receipt->len == 0)
        return;
    const char *text = buf_text(receipt);
    cli_field(text, "probe", probe, sizeof(probe));
    cli_field(text, "took_us", took, sizeof(took));
    cli_field(text, "good", good, sizeof(good));
    cli_field(text, "proved_by", proved, sizeof(proved));
    for (const char *at = text; (at = strstr(at, "\"expected\":")); at++)
        attempts++;
    printf("receipt   %s: %zu attempts of a %s probe in %s us%s%.12s\n", strcmp(good, "true") == 0 ? "good" : "BAD", attempts,
           quote_into(safe[0], sizeof(safe[0]), probe, strlen(probe)), quote_into(safe[1], sizeof(safe[1]), took, strlen(took)),
           proved[0] ? ", proved in full by " : "", quote_into(safe[2], sizeof(safe[2]), proved, strlen(proved)));
}
