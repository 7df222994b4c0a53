/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the verbs about pale itself: version, completion. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/verbs.h"
#include "wire/message.h"

static int run_version(struct args *a)
{
    if (a->json)
        printf("{\"version\":\"%s\",\"wire\":%u}\n", PALE_VERSION, WIRE_VERSION);
    else
        printf("pale %s\n", PALE_VERSION);
    return 0;
}

static void each_option(const struct verb *v, const char *format)
{
    for (const struct option *const *t = v->options; *t; t++)
        for (const struct option *o = *t; o->name; o++)
            printf(format, o->name);
}

static bool takes_box(const struct verb *v)
{
    return strstr(v->usage, "BOX") != NULL;
}

static void bash(void)
{
    printf("# bash completion for pale\n_pale() {\n  local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}\n"
           "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W \"help");
    for (const struct verb *const *v = cli_verbs; *v; v++)
        printf(" %s", (*v)->name);
    printf("\" -- \"$cur\"))\n    return\n  fi\n  case $verb in\n");
    for (const struct verb *const *v = cli_verbs; *v; v++) {
        printf("  %s) words=\"", (*v)->name);
        each_option(*v, "--%s ");
        printf("\" boxes=%d ;;\n", takes_box(*v));
    }
    printf("  *) words= boxes=0 ;;\n  esac\n  if [[ $cur != -* && $boxes -eq 1 ]]; then\n"
           "    words=$(pale ls 2>/dev/null | awk 'NR>1{print $1}')\n  fi\n"
           "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n}\ncomplete -F _pale pale\n");
}

static void zsh(void)
{
    printf("#compdef pale\n_pale() {\n  local -a verbs\n  verbs=(\n");
    for (const struct verb *const *v = cli_verbs; *v; v++)
        printf("    '%s:%s'\n", (*v)->name, (*v)->summary);
    printf("  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n  case $words[2] in\n");
    for (const struct verb *const *v = cli_verbs; *v; v++) {
        printf("  %s) compadd -- ", (*v)->name);
        each_option(*v, "--%s ");
        printf("%s ;;\n", takes_box(*v) ? "$(pale ls 2>/dev/null | awk 'NR>1{print $1}')" : "");
    }
    printf("  esac\n  _files\n}\ncompdef _pale pale\n");
}

static void fish(void)
{
    for (const struct verb *const *v = cli_verbs; *v; v++) {
        printf("complete -c pale -n __fish_use_subcommand -a %s -d '%s'\n", (*v)->name, (*v)->summary);
        for (const struct option *const *t = (*v)->options; *t; t++)
            for (const struct option *o = *t; o->name; o++)
                printf("complete -c pale -n '__fish_seen_subcommand_from %s' -l %s%s\n", (*v)->name, o->name, o->value ? " -r" : "");
        if (takes_box(*v))
            printf("complete -c pale -n '__fish_seen_subcommand_from %s' -a '(pale ls 2>/dev/null | awk \"NR>1{print \\$1}\")'\n",
                   (*v)->name);
    }
}

static int run_completion(struct args *a)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    struct pale_err e;
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(a->word[0], shells[i].name) == 0) {
            shells[i].print();
            return 0;
        }
    err_set(&e, PALE_BAD_INPUT, "completions are there for bash, zsh and fish");
    return cli_fail(a, &e);
}

static const struct option *const tables[] = {common_options, NULL};

const struct verb verb_version = {
    "version", "Self", "print the version", "", "The version of pale and of the protocol between its programs.", tables, 0,
    0,         -1,     run_version};
const struct verb verb_completion = {"completion",
                                     "Self",
                                     "print shell completions",
                                     "bash|zsh|fish",
                                     "For example: pale completion bash > /usr/share/bash-completion/completions/pale",
                                     tables,
                                     1,
                                     1,
                                     -1,
                                     run_completion};
