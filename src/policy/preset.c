/* SPDX-License-Identifier: Apache-2.0 */
/* Owns presets: their text, and the key network.presets. Pure; a user's file may be anything. */
#include "policy/preset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/number.h"
#include "base/quote.h"
#include "policy/field.h"
#include "policy/list.h"
#include "policy/strlist.h"

#define VERSION_MAX 1000000

static const struct {
    const char *name, *text;
} presets[] = {
#include "presets.inc"
};
#define PRESET_COUNT (sizeof(presets) / sizeof(presets[0]))

const char *preset_at(size_t i)
{
    return i < PRESET_COUNT ? presets[i].name : NULL;
}

const char *preset_text(const char *name)
{
    for (size_t i = 0; i < PRESET_COUNT; i++)
        if (strcmp(presets[i].name, name) == 0)
            return presets[i].text;
    return NULL;
}

bool preset_is_name(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || (s[i] == '-' && i > 0)))
            return false;
    return len > 0 && len <= PRESET_NAME_MAX;
}

const char *preset_pending(const struct policy *p)
{
    for (size_t i = 0; i < p->presets.count; i++)
        if (!strchr(p->presets.item[i], '@'))
            return p->presets.item[i];
    return NULL;
}

/* Notes what the rules came from, in place of the bare name. A policy has one version of a preset. */
static int note(struct policy *p, const char *name, uint64_t version, struct pale_err *e)
{
    char whole[PRESET_NAME_MAX + 16];
    size_t n = strlen(name);
    snprintf(whole, sizeof(whole), "%s@%" PRIu64, name, version);
    for (size_t i = p->presets.count; i-- > 0;) {
        const char *item = p->presets.item[i];
        if (strncmp(item, name, n) == 0 && item[n] == '@' && strcmp(item, whole) != 0)
            return err_set(e, PALE_BAD_INPUT, "%s is %s here; write %s, or its rules under egress", item, whole, name);
        if (strcmp(item, name) == 0)
            strlist_drop(&p->presets, i);
    }
    return strlist_add(&p->presets, whole, e);
}

/* One line that is neither empty nor for people. Only presets of pale are included, and none of those leads back to itself. */
static int take_line(struct policy *p, const char *name, const char *line, bool *has_version, struct pale_err *e)
{
    static const char version_word[] = "version ", include_word[] = "include ";
    uint64_t version = 0;
    if (strncmp(line, version_word, sizeof(version_word) - 1) == 0) {
        if (*has_version || !number_u64(line + sizeof(version_word) - 1, VERSION_MAX, &version) || version == 0)
            return err_set(e, PALE_BAD_INPUT, "a preset has one line \"version N\", with a number from 1 to %d", VERSION_MAX);
        *has_version = true;
        return note(p, name, version, e);
    }
    if (!*has_version)
        return err_set(e, PALE_BAD_INPUT, "the first line says no version; write \"version 1\"");
    if (strncmp(line, include_word, sizeof(include_word) - 1) != 0)
        return policy_set(p, "network.egress", line, e);
    const char *other = line + sizeof(include_word) - 1, *text = preset_text(other);
    char shown[80];
    if (!text)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" cannot be included; only presets of pale can",
                       quote_into(shown, sizeof(shown), other, strlen(other)));
    return preset_apply(p, other, text, strlen(text), e);
}

int preset_apply(struct policy *p, const char *name, const char *text, size_t len, struct pale_err *e)
{
    const char *end = text + len;
    bool has_version = false;
    size_t number = 0;
    while (text < end) {
        const char *nl = memchr(text, '\n', (size_t)(end - text)), *stop = nl ? nl : end;
        char line[4096];
        size_t n = (size_t)(stop - text);
        int r = 0;
        number++;
        if (n >= sizeof(line) || memchr(text, 0, n))
            return err_set(e, PALE_BAD_INPUT, "preset %s line %zu: it is too long, or no text", name, number);
        memcpy(line, text, n);
        line[n] = 0;
        if (n > 0 && line[0] != '#')
            r = take_line(p, name, line, &has_version, e);
        if (r < 0)
            return err_prefix(e, "preset %s line %zu", name, number);
        text = stop + (nl != NULL);
    }
    return has_version ? 0 : err_set(e, PALE_BAD_INPUT, "preset %s: it says no version; write \"version 1\" as its first line", name);
}

/* --- the key --- */

static int presets_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    size_t n = strcspn(value, "@");
    uint64_t version = 1;
    char shown[80];
    if (!preset_is_name(value, n) || (value[n] && (!number_u64(value + n + 1, VERSION_MAX, &version) || version == 0)))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no name of a preset; `pale presets` lists them",
                       quote_into(shown, sizeof(shown), value, strlen(value)));
    return strlist_add(field_value(f, p), value, e);
}

/* What rules came from opens nothing: the rules are judged by themselves. */
static int presets_weight(const struct field *f, const struct policy *p, size_t i)
{
    (void)f, (void)p, (void)i;
    return 0;
}

const struct field_kind presets_kind = {.shape = SHAPE_LIST,
                                        .count = list_count,
                                        .text = list_text,
                                        .show = list_show,
                                        .set = presets_set,
                                        .weight = presets_weight,
                                        .done = list_done};
