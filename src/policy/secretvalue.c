/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the judgement whether a value looks like a secret, whatever the variable is called.
 *
 * How it works: three signs. A token that begins as those of a known issuer do, anywhere in the text; a URL with a password; a run of
 * letters and digits too long and too mixed to be words or a path. Better one too many: who means it says so by name. Nothing here is a
 * promise that the rest is no secret. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "policy/policy.h"

#define RANDOM_LEAST 24 /* characters of both cases and digits */
#define HEX_LEAST 32

/* How tokens of known issuers begin, and how many characters follow at least. */
static const struct {
    const char *begin;
    size_t least;
} issuers[] = {
    {"sk-", 16},     {"sk_live_", 8}, {"sk_test_", 8}, {"rk_live_", 8},  {"pk_live_", 8},    {"ghp_", 16},
    {"gho_", 16},    {"ghu_", 16},    {"ghs_", 16},    {"ghr_", 16},     {"glpat-", 8},      {"gldt-", 8},
    {"xoxa-", 8},    {"xoxb-", 8},    {"xoxp-", 8},    {"xoxs-", 8},     {"xapp-", 8},       {"AKIA", 12},
    {"ASIA", 12},    {"AIza", 20},    {"ya29.", 8},    {"npm_", 16},     {"pypi-", 16},      {"hf_", 16},
    {"dop_v1_", 16}, {"SG.", 16},     {"shpat_", 16},  {"shpss_", 16},   {"sq0", 12},        {"gsk_", 16},
    {"xai-", 16},    {"r8_", 16},     {"hvs.", 8},     {"dckr_pat_", 8}, {"github_pat_", 8}, {"AGE-SECRET-KEY-", 8},
    {"eyJ", 16},     {"Bearer ", 8},  {"Basic ", 8},
};

static bool is_token_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-_.+/=", c) != NULL);
}

static bool begins_token(const char *at)
{
    for (size_t i = 0; i < sizeof(issuers) / sizeof(issuers[0]); i++) {
        size_t n = strlen(issuers[i].begin), follow = 0;
        if (strncmp(at, issuers[i].begin, n) != 0)
            continue;
        while (is_token_char(at[n + follow]))
            follow++;
        if (follow >= issuers[i].least)
            return true;
    }
    return false;
}

/* scheme://user:password@host */
static bool has_password(const char *value)
{
    for (const char *at = strstr(value, "://"); at; at = strstr(at + 3, "://")) {
        size_t n = strcspn(at + 3, "/?# \t");
        const char *sign = memchr(at + 3, '@', n), *colon = memchr(at + 3, ':', n);
        if (sign && colon && colon < sign && colon + 1 < sign)
            return true;
    }
    return false;
}

/* A run of what keys are written in. Paths and words have one case, few digits or many slashes. */
static bool is_random(const char *run, size_t n)
{
    size_t upper = 0, lower = 0, digits = 0, hex = 0, slashes = 0, dashes = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)run[i];
        upper += isupper(c) != 0;
        lower += islower(c) != 0;
        digits += isdigit(c) != 0;
        hex += isxdigit(c) != 0;
        slashes += c == '/';
        dashes += c == '-';
    }
    if (n >= HEX_LEAST && hex + dashes == n && digits && digits < hex)
        return true;
    return n >= RANDOM_LEAST && upper && lower && digits && run[0] != '/' && slashes <= n / 12;
}

bool policy_is_secret_value(const char *value)
{
    if (strstr(value, "-----BEGIN ") || has_password(value))
        return true;
    for (const char *at = value; *at; at++)
        if ((at == value || !isalnum((unsigned char)at[-1])) && begins_token(at))
            return true;
    for (const char *at = value; *at;) {
        size_t n = 0;
        while (isalnum((unsigned char)at[n]) || (at[n] && strchr("-_+/=", at[n])))
            n++;
        if (is_random(at, n))
            return true;
        at += n + (at[n] != 0);
    }
    return false;
}
