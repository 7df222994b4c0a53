/* SPDX-License-Identifier: Apache-2.0 */
/* pale: the command. Links libc and our own code alone, so that it starts in a millisecond. */
#include <stdio.h>
#include <string.h>

#include <stdint.h>
#include <sys/mman.h>

#include "base/nearest.h"
#include "base/quote.h"
#include "cli/cli.h"

static const struct verb *find_verb(const char *name)
{
    for (const struct verb *const *v = cli_verbs; *v; v++)
        if (strcmp((*v)->name, name) == 0)
            return *v;
    return NULL;
}

/* With no verb there is no table to read the words by; --json is honoured wherever it stands. */
static int unknown_verb(const char *name, int argc, char **argv)
{
    static struct args plain;
    struct pale_err e;
    struct nearest near;
    char shown[80];
    nearest_init(&near, name);
    for (const struct verb *const *v = cli_verbs; *v; v++)
        nearest_offer(&near, (*v)->name);
    quote_into(shown, sizeof(shown), name, strlen(name));
    if (near.best)
        err_set(&e, PALE_BAD_INPUT, "there is no verb %s; did you mean %s?", shown, near.best);
    else
        err_set(&e, PALE_BAD_INPUT, "there is no verb %s; `pale help` lists them", shown);
    for (int i = 0; i < argc; i++)
        plain.json = plain.json || strcmp(argv[i], "--json") == 0;
    return cli_fail(&plain, &e);
}

static int show_help(int argc, char **argv)
{
    if (argc == 0) {
        cli_overview();
        return 0;
    }
    const struct verb *v = find_verb(argv[0]);
    if (!v)
        return unknown_verb(argv[0], argc, argv);
    cli_help(v);
    return 0;
}

#define STACK_BYTES (10 * 4096)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* A command here lives for a millisecond, and a fault for each page of stack it comes to was a tenth of that: they are asked for
 * at once. Older kernels cannot, and nothing is lost by it. */
static void warm_stack(void)
{
    uintptr_t top = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)4095;
    (void)madvise((void *)(top - STACK_BYTES), STACK_BYTES, MADV_POPULATE_WRITE);
}

/* --host may stand before the verb, as --host URL or --host=URL. Moves past it. */
static int take_host(int *argc, char ***argv, const char **ret, struct pale_err *e)
{
    while (*argc > 1 && strncmp((*argv)[1], "--host", 6) == 0 && ((*argv)[1][6] == 0 || (*argv)[1][6] == '=')) {
        bool apart = (*argv)[1][6] == 0;
        if (apart && *argc < 3)
            return err_set(e, PALE_BAD_INPUT, "--host needs a value: unix:///PATH, http://127.0.0.1:PORT or https://NAME");
        *ret = apart ? (*argv)[2] : (*argv)[1] + 7;
        *argc -= apart ? 2 : 1;
        *argv += apart ? 2 : 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct args args;
    struct pale_err e;
    const char *host = NULL;
    warm_stack();
    if (take_host(&argc, &argv, &host, &e) < 0)
        return cli_fail(&args, &e);
    if (argc < 2) {
        cli_overview();
        return 125;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return show_help(argc - 2, argv + 2);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    const struct verb *v = find_verb(name);
    if (!v)
        return unknown_verb(name, argc - 2, argv + 2);
    if (args_parse(v, argc - 2, argv + 2, &args, &e) < 0)
        return cli_fail(&args, &e);
    if (args_has(&args, "help")) {
        cli_help(v);
        return 0;
    }
    args_set_host(&args, host);
    int status = v->run(&args);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        err_os(&e, "write our standard output");
        int failed = cli_fail(&args, &e);
        return status ? status : failed;
    }
    return status;
}
