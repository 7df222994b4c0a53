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

bool policy_is_secret_name(const char *name)
{
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

const char *env_pass_rule(const struct policy *p, const char *name, const char **ret_withheld)
{
    const char *rule = NULL, *withheld = NULL;
    for (size_t i = 0; i < p->env_pass.count && !rule; i++) {
        const char *item = p->env_pass.item[i];
        size_t n = strlen(item);
        if (strcmp(item, name) == 0)
            rule = item;
        else if (n && item[n - 1] == '*' && strncmp(item, name, n - 1) == 0) {
            if (policy_is_secret_name(name))
                withheld = item;
            else
                rule = item;
        }
    }
    *ret_withheld = withheld;
    return rule;
}

bool policy_passes_env(const struct policy *p, const char *name)
{
    const char *withheld;
    size_t n = strlen(name);
    return env_is_name(name, n) && strncasecmp(name, OUR_PREFIX, strlen(OUR_PREFIX)) != 0 && !env_is_set(p, name, n) &&
           env_pass_rule(p, name, &withheld);
}

/* Does the parent let in every variable that this item of the child lets in? */
static bool is_passed(const struct policy *parent, const char *item)
{
    const char *withheld;
    size_t n = strlen(item);
    if (item[n - 1] != '*')
        return env_pass_rule(parent, item, &withheld);
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
