/* SPDX-License-Identifier: Apache-2.0 */
/* Answers questions about names, addresses and DNS messages, one a line, by what src/net says of them. Bytes are written in hexadecimal,
 * and
 * "-" is none of them. Tests ask; what they send is trusted to be well formed. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/dnslookup.h"

#define WORDS_MAX 8

struct bytes {
    size_t len;
    uint8_t at[70000];
};

static void read_bytes(const char *hex, struct bytes *ret)
{
    ret->len = 0;
    if (strcmp(hex, "-") == 0)
        return;
    for (; hex[0] && hex[1]; hex += 2) {
        char two[3] = {hex[0], hex[1], 0};
        assert(ret->len < sizeof(ret->at));
        ret->at[ret->len++] = (uint8_t)strtoul(two, NULL, 16);
    }
}

static void print_bytes(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%02x", p[i]);
    puts(n ? "" : "-");
}

static unsigned number(const char *word)
{
    return (unsigned)strtoul(word, NULL, 10);
}

static void print_address(const struct address *a)
{
    char text[ADDRESS_TEXT_MAX];
    printf(" %s", address_text(a, text));
}

static struct bytes b;

/* canon BYTES: the name, or "no". */
static void do_canon(char **word)
{
    struct hostname h;
    read_bytes(word[1], &b);
    puts(hostname_canon((const char *)b.at, b.len, true, &h) == HOSTNAME_GOOD ? h.text : "no");
}

/* text BYTES: how the address that is written so is written here, and its class; or "no". */
static void do_text(char **word)
{
    struct address a;
    char text[ADDRESS_TEXT_MAX];
    read_bytes(word[1], &b);
    if (address_parse((const char *)b.at, b.len, &a))
        printf("%s %s\n", address_text(&a, text), address_class_text(address_class(&a)));
    else
        puts("no");
}

/* raw BYTES: the same of an address of four or sixteen bytes. */
static void do_raw(char **word)
{
    struct address a = {0};
    char text[ADDRESS_TEXT_MAX];
    read_bytes(word[1], &b);
    a.family = b.len == 4 ? ADDRESS_V4 : ADDRESS_V6;
    memcpy(a.byte, b.at, b.len);
    printf("%s %s\n", address_text(&a, text), address_class_text(address_class(&a)));
}

/* in RANGE ADDRESS, both as text: "yes", "no", or "none" if that is no range. */
static void do_in(char **word)
{
    struct address_range r;
    struct address a;
    if (!address_range_parse(word[1], strlen(word[1]), &r) || !address_parse(word[2], strlen(word[2]), &a))
        puts("none");
    else
        puts(address_is_in(&a, &r) ? "yes" : "no");
}

/* query MESSAGE: the fault, or id, type, flags, size and host. */
static void do_query(char **word)
{
    struct dns_query q;
    read_bytes(word[1], &b);
    int r = dnsmsg_parse(b.at, b.len, &q);
    if (r < 0)
        printf("fault %d\n", -r);
    else
        printf("%u %u%s%s%s%s %u %s\n", q.question.id, q.question.type, q.recursion_desired ? " rd" : "", q.checking_disabled ? " cd" : "",
               q.extended ? " edns" : "", q.dnssec_ok ? " do" : "", q.datagram_bytes, q.trouble == HOSTNAME_GOOD ? q.host.text : "-");
}

/* answer MESSAGE RESULT TTL STREAM REASON TEXT ADDRESSES: the answer to that query; TEXT in bytes, ADDRESSES with commas. */
static void do_answer(char **word)
{
    static uint8_t out[DNS_ANSWER_BYTES];
    struct address list[64];
    struct dns_query q;
    struct bytes text = {0};
    read_bytes(word[1], &b);
    read_bytes(word[6], &text);
    text.at[text.len] = 0;
    struct dns_answer a = {.result = (enum dns_result)number(word[2]),
                           .address = list,
                           .ttl = number(word[3]),
                           .reason = (enum dns_reason)number(word[5]),
                           .text = text.len ? (const char *)text.at : NULL};
    for (char *next = word[7], *one; (one = strsep(&next, ","));)
        if (a.count < 64 && address_parse(one, strlen(one), &list[a.count]))
            a.count++;
    int r = dnsmsg_parse(b.at, b.len, &q);
    print_bytes(out, r < 0 ? dnsmsg_fault(b.at, b.len, r, number(word[4]), out) : dnsmsg_answer(&q, &a, number(word[4]), out));
}

static void make_question(char **word, struct dns_question *ret)
{
    struct hostname h;
    if (hostname_canon(word[3], strlen(word[3]), true, &h) != HOSTNAME_GOOD)
        abort();
    dnslookup_question((uint16_t)number(word[1]), (enum dns_type)number(word[2]), &h, ret);
}

/* ask ID TYPE HOST: a question of ours. */
static void do_ask(char **word)
{
    uint8_t out[DNS_LOOKUP_BYTES];
    struct dns_question q;
    make_question(word, &q);
    print_bytes(out, dnslookup_write(&q, false, out));
}

/* reply ID TYPE HOST MESSAGE: what a server's answer says: "other", "bad …", or result, truncation, time and addresses. */
static void do_reply(char **word)
{
    struct pale_err e = {0};
    struct dns_question q;
    struct dns_found f;
    make_question(word, &q);
    read_bytes(word[4], &b);
    int r = dnslookup_parse(&q, b.at, b.len, &f, &e);
    if (r != 1) {
        printf("%s%s\n", r == 0 ? "other" : "bad ", e.text);
        return;
    }
    printf("%u %d %u", f.result, f.truncated, f.ttl);
    for (size_t i = 0; i < f.count; i++)
        print_address(&f.address[i]);
    puts("");
}

static const struct {
    const char *name;
    size_t words;
    void (*deed)(char **word);
} verbs[] = {{"canon", 2, do_canon}, {"text", 2, do_text},     {"raw", 2, do_raw}, {"in", 3, do_in},
             {"query", 2, do_query}, {"answer", 8, do_answer}, {"ask", 4, do_ask}, {"reply", 5, do_reply}};

static bool do_line(char *line)
{
    char *word[WORDS_MAX] = {NULL};
    size_t n = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *one; n < WORDS_MAX && (one = strsep(&line, " "));)
        word[n++] = one;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(verbs[i].name, word[0]) == 0 && verbs[i].words == n) {
            verbs[i].deed(word);
            return true;
        }
    return false;
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0)
        if (!do_line(line)) {
            fprintf(stderr, "names: no such question\n");
            return 2;
        }
    free(line);
    return 0;
}
