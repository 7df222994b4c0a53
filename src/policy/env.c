/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which variables reach a box: those the policy sets, and those of the host that it lets in.
 *
 * How it works: names and values may be hostile. A variable is text for the box's own programs and cannot change ours, with
 * one exception: names beginning with PALE_ are how our programs talk to each other, so no policy may set or pass one. What
 * a policy sets wins over what it passes. */
#include "policy/env.h"

#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "base/quote.h"
#include "base/weak.h"
#include "policy/list.h"
#include "policy/strlist.h"

#define OUR_PREFIX "PALE_"

/* A name that contains one of these, in any case, may hold a secret. Better one too many: such a name still passes when it
 * is written out. */
static const char *const secret_parts[] = {
    "TOKEN", "SECRET", "PASS",   "KEY", "CRED", "AUTH", "COOKIE", "SESSION", "PRIVATE", "CERT",
    "JWT",   "BEARER", "SIGNIN", "DSN", "CONN", "OTP",  "SALT",   "WEBHOOK", "LICENSE", "NONCE",
};

/* So may one that begins with one of these: accounts, model providers, forges, registries, databases, agents. */
static const char *const secret_starts[] = {
    "AWS_",     "AZURE_",    "GOOGLE_", "GCP_",    "GCLOUD_",   "CLOUDSDK_", "ANTHROPIC_", "OPENAI_",    "CLAUDE_",  "CODEX_",
    "GEMINI_",  "MISTRAL_",  "COHERE_", "GROQ_",   "DEEPSEEK_", "XAI_",      "OPENROUTER", "TOGETHER_",  "HF_",      "HUGGING",
    "GITHUB_",  "GH_",       "GITLAB_", "GL_",     "CI_",       "BITBUCKET", "NPM_",       "NODE_AUTH",  "PYPI_",    "TWINE_",
    "DOCKER_",  "REGISTRY_", "KUBE",    "VAULT_",  "CONSUL_",   "NOMAD_",    "DATABASE_",  "DB_",        "PG",       "POSTGRES",
    "MYSQL",    "MARIADB",   "REDIS",   "MONGO",   "RABBITMQ",  "AMQP",      "STRIPE_",    "TWILIO_",    "SENDGRID", "SLACK_",
    "DISCORD_", "TELEGRAM_", "SENTRY_", "DATADOG", "DD_",       "NEWRELIC",  "CLOUDFLARE", "CF_",        "HEROKU_",  "FLY_",
    "VERCEL_",  "NETLIFY_",  "DIGITAL", "SSH_",    "GPG_",      "GNUPG",     "DBUS_",      "XAUTHORITY", "SMTP_",    "MAIL",
    "TF_VAR_",  "PULUMI_",   "ANSIBLE", "SNYK_",   "SONAR",     "OAUTH",     "LDAP_",      "KRB5",       "SUDO_",    "HTTP_PROXY",
    "HTTPS_PR", "ALL_PROXY", "FTP_PRO",
};

static bool contains(const char *name, const char *part)
{
    size_t n = strlen(part);
    for (; *name; name++)
        if (strncasecmp(name, part, n) == 0)
            return true;
    return false;
}

/* And one that ends with one of these. */
static const char *const secret_ends[] = {"_PWD", "_PW", "_PAT", "_PIN", "_SAS", "_SIG", "_SEED", "MNEMONIC"};

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcasecmp(name + n - m, end) == 0;
}

bool policy_is_secret_name(const char *name)
{
    for (size_t i = 0; i < sizeof(secret_ends) / sizeof(secret_ends[0]); i++)
        if (ends_with(name, secret_ends[i]))
            return true;
    for (size_t i = 0; i < sizeof(secret_parts) / sizeof(secret_parts[0]); i++)
        if (contains(name, secret_parts[i]))
            return true;
    for (size_t i = 0; i < sizeof(secret_starts) / sizeof(secret_starts[0]); i++)
        if (strncasecmp(name, secret_starts[i], strlen(secret_starts[i])) == 0)
            return true;
    return false;
}

bool env_is_name(const char *s, size_t len)
{
    if (len == 0 || len > ENV_NAME_MAX || (s[0] >= '0' && s[0] <= '9'))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '_'))
            return false;
    return true;
}

static int check_name(const char *s, size_t len, struct pale_err *e)
{
    char shown[100];
    quote_into(shown, sizeof(shown), s, len);
    if (!env_is_name(s, len))
        return err_set(e, PALE_BAD_INPUT, "\"%s\" is no variable name; letters, digits and _, no digit first, at most %d", shown,
                       ENV_NAME_MAX);
    if (len >= strlen(OUR_PREFIX) && strncasecmp(s, OUR_PREFIX, strlen(OUR_PREFIX)) == 0)
        return err_set(e, PALE_BAD_INPUT, "\"%s\" begins with " OUR_PREFIX ", which is kept for our own programs; take another name",
                       shown);
    return 0;
}

/* The index of the item that sets this name, or count. */
static size_t find_set(const struct policy_strings *l, const char *name, size_t len)
{
    for (size_t i = 0; i < l->count; i++)
        if (strncmp(l->item[i], name, len) == 0 && l->item[i][len] == '=')
            return i;
    return l->count;
}

bool env_is_set(const struct policy *p, const char *name, size_t len)
{
    return find_set(&p->env_set, name, len) < p->env_set.count;
}

static int env_set_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    struct policy_strings *l = field_value(f, p);
    size_t name = strcspn(value, "=");
    char shown[100];
    int r = check_name(value, name, e);
    if (r < 0)
        return r;
    quote_into(shown, sizeof(shown), value, name);
    if (!value[name])
        return err_set(e, PALE_BAD_INPUT, "\"%s\" has no value; write %s=value, or pass it from the host with env.pass", shown, shown);
    if (strlen(value + name + 1) > ENV_VALUE_MAX)
        return err_set(e, PALE_LIMIT, "the value of %s is longer than %d bytes; put it into a file", shown, ENV_VALUE_MAX);
    size_t old = find_set(l, value, name);
    if (old == l->count)
        return strlist_add(l, value, e);
    /* Names are unique, so a new value does not change the order. */
    char *copy = strdup(value);
    if (!copy)
        return err_nomem(e);
    free(l->item[old]);
    l->item[old] = copy;
    return 0;
}

/* Listings end up on screens and in reports: what looks like a secret is named, not shown. */
static void env_set_show(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct policy_strings *l = field_value_const(f, p);
    char name[ENV_NAME_MAX + 1] = {0};
    memcpy(name, l->item[i], strcspn(l->item[i], "="));
    if (policy_is_secret_name(name))
        buf_addf(out, "%s=(hidden)", name);
    else
        list_show(f, p, i, out);
}

static void env_set_json(const struct field *f, const struct policy *p, size_t i, struct json *j, const char *key)
{
    const struct policy_strings *l = field_value_const(f, p);
    size_t name = strcspn(l->item[i], "=");
    char text[ENV_NAME_MAX + 1] = {0};
    (void)key;
    memcpy(text, l->item[i], name);
    json_text(j, text, l->item[i] + name + 1);
}

static int env_set_weight(const struct field *f, const struct policy *p, size_t i)
{
    (void)f, (void)p, (void)i;
    return 0;
}

/* What a box is told widens nothing: the text comes from whoever writes the child's policy and reaches that child alone. But
 * a name that the parent sets hides the host's variable of that name, so it must not become uncovered. */
static bool env_set_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    const struct policy_strings *a = field_value_const(f, parent);
    for (size_t i = 0; i < a->count; i++) {
        char name[ENV_NAME_MAX + 1] = {0};
        memcpy(name, a->item[i], strcspn(a->item[i], "="));
        if (policy_passes_env(child, name))
            return false;
    }
    return true;
}

const struct field_kind env_set_kind = {.shape = SHAPE_PAIRS,
                                        .count = list_count,
                                        .text = list_text,
                                        .show = env_set_show,
                                        .set = env_set_set,
                                        .within = env_set_within,
                                        .weight = env_set_weight,
                                        .json = env_set_json,
                                        .done = list_done};

static int env_pass_set(const struct field *f, struct policy *p, const char *value, struct pale_err *e)
{
    size_t n = strlen(value);
    bool prefix = n > 0 && value[n - 1] == '*';
    if (prefix && n == 1)
        return err_set(e, PALE_BAD_INPUT, "\"*\" would pass the whole environment; name variables, or a prefix such as LC_*");
    int r = check_name(value, n - prefix, e);
    return r < 0 ? r : strlist_add(field_value(f, p), value, e);
}

/* The item of the list that names this variable: written out, else by a prefix. */
static const char *find_item(const struct policy_strings *l, const char *name, bool *ret_written_out)
{
    const char *by_prefix = NULL;
    for (size_t i = 0; i < l->count; i++) {
        const char *item = l->item[i];
        size_t n = strlen(item);
        if (strcmp(item, name) == 0) {
            *ret_written_out = true;
            return item;
        }
        if (n && item[n - 1] == '*' && strncmp(item, name, n - 1) == 0)
            by_prefix = item;
    }
    *ret_written_out = false;
    return by_prefix;
}

struct env_rule env_rule_for(const struct policy *p, const char *name, const char *value)
{
    bool written_out, secret_name = policy_is_secret_name(name);
    struct env_rule r = {0};
    const char *pass = find_item(&p->env_pass, name, &written_out);
    bool is_secret = secret_name || (value && policy_is_secret_value(value));
    if (pass && (written_out || !is_secret)) {
        r.key = "env.pass";
        r.item = pass;
        return r;
    }
    bool any;
    const char *allow = find_item(&p->env_allow, name, &any);
    if (allow && (!is_secret || weak_word("env"))) {
        r.key = "env.allow";
        r.item = allow;
    } else if (pass || allow) {
        r.held_by_key = allow ? "env.allow" : "env.pass";
        r.held_by = allow ? allow : pass;
    }
    return r;
}

enum policy_env policy_env_verdict(const struct policy *p, const char *name, const char *value)
{
    size_t n = strlen(name);
    if (!env_is_name(name, n) || strncasecmp(name, OUR_PREFIX, strlen(OUR_PREFIX)) == 0 || env_is_set(p, name, n))
        return ENV_STAYS_OUT;
    struct env_rule r = env_rule_for(p, name, value);
    return r.item ? ENV_COMES_IN : r.held_by ? ENV_HELD_BACK : ENV_STAYS_OUT;
}

bool policy_passes_env(const struct policy *p, const char *name)
{
    return policy_env_verdict(p, name, NULL) == ENV_COMES_IN;
}

/* Does an item of the list cover this one? */
static bool is_covered(const struct policy_strings *l, const char *item)
{
    for (size_t i = 0; i < l->count; i++) {
        const char *a = l->item[i];
        size_t n = strlen(a);
        if (strcmp(a, item) == 0 || (a[n - 1] == '*' && strncmp(a, item, n - 1) == 0))
            return true;
    }
    return false;
}

/* Does the parent let in every variable that this item of the child lets in? */
static bool is_passed(const struct policy *parent, const char *item)
{
    size_t n = strlen(item);
    bool written_out;
    if (item[n - 1] != '*')
        return find_item(&parent->env_pass, item, &written_out) && (written_out || !policy_is_secret_name(item));
    for (size_t i = 0; i < parent->env_pass.count; i++) {
        const char *a = parent->env_pass.item[i];
        size_t len = strlen(a);
        if (a[len - 1] == '*' && strncmp(a, item, len - 1) == 0)
            return true;
    }
    return false;
}

static bool env_pass_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    const struct policy_strings *b = field_value_const(f, child);
    for (size_t i = 0; i < b->count; i++)
        if (!is_passed(parent, b->item[i]))
            return false;
    return true;
}

const struct field_kind env_pass_kind = {.shape = SHAPE_LIST,
                                         .count = list_count,
                                         .text = list_text,
                                         .show = list_show,
                                         .set = env_pass_set,
                                         .within = env_pass_within,
                                         .weight = field_weight_wider,
                                         .done = list_done};

/* A name is covered by what lets in as much or more: nothing that looks like a secret comes in by either list of patterns. */
static bool env_allow_within(const struct field *f, const struct policy *parent, const struct policy *child)
{
    const struct policy_strings *b = field_value_const(f, child);
    for (size_t i = 0; i < b->count; i++)
        if (!is_covered(&parent->env_allow, b->item[i]) && !is_covered(&parent->env_pass, b->item[i]))
            return false;
    return true;
}

static void env_allow_show(const struct field *f, const struct policy *p, size_t i, struct buf *out)
{
    const struct policy_strings *l = field_value_const(f, p);
    list_show(f, p, i, out);
    if (policy_env_verdict(p, l->item[i], NULL) == ENV_HELD_BACK)
        buf_add_text(out, " (held back: it looks like a secret)");
}

const struct field_kind env_allow_kind = {.shape = SHAPE_LIST,
                                          .count = list_count,
                                          .text = list_text,
                                          .show = env_allow_show,
                                          .set = env_pass_set,
                                          .within = env_allow_within,
                                          .weight = field_weight_wider,
                                          .done = list_done};
