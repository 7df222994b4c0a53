/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the wording of refusals. */
#include "net/httprefusal.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"

#define PART_MAX 320u /* of each text that is told, so that all fit */

static const char *phrase(unsigned status)
{
    static const struct {
        unsigned status;
        const char *phrase;
    } rows[] = {
        {400, "Bad Request"},
        {403, "Forbidden"},
        {405, "Method Not Allowed"},
        {414, "URI Too Long"},
        {421, "Misdirected Request"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].status == status)
            return rows[i].phrase;
    return "Refused";
}

static const char *shown(char *ret, const char *text)
{
    return quote_into(ret, PART_MAX, text, strlen(text));
}

size_t httprefusal_write(const struct httprefusal *r, char *ret)
{
    char what[PART_MAX], why[PART_MAX], remedy[PART_MAX] = "", body[3 * PART_MAX + 64];
    if (r->remedy)
        shown(remedy, r->remedy);
    int len = snprintf(body, sizeof(body), "pale: %s was refused: %s%s%s\n", shown(what, r->what), shown(why, r->why),
                       r->remedy ? "\n" : "", remedy);
    int all = snprintf(ret, HTTPREFUSAL_BYTES_MAX,
                       "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nCache-Control: no-store\r\n"
                       "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s",
                       r->status, phrase(r->status), len, body);
    return (size_t)all;
}
