/* SPDX-License-Identifier: Apache-2.0 */
/* attack NAME [ARGUMENT …]: runs one attempt out of the tables. `attack list` prints their names. */
#include "attack.h"

static const struct attack *const tables[] = {door_attacks,  socket_attacks, mount_attacks, proc_attacks,    process_attacks, file_attacks,
                                              setid_attacks, ipc_attacks,    ns_attacks,    exhaust_attacks, tty_attacks};

static void __attribute__((noreturn)) say(const char *first, const char *fmt, va_list ap, int status)
{
    char text[400];
    vsnprintf(text, sizeof(text), fmt, ap);
    dprintf(1, "%s %s\n", first, text);
    _exit(status);
}

void leak(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("LEAK", fmt, ap, 0);
}

void held(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("HELD", fmt, ap, 0);
}

void broken(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("BROKEN", fmt, ap, 2);
}

void tried(void)
{
    fflush(stdout);
    dprintf(1, "TRIED\n");
    _exit(0);
}

void judge(const char *what, long result, const int *refusals)
{
    int os = errno;
    if (result >= 0)
        leak("%s: %ld", what, result);
    for (; *refusals; refusals++)
        if (os == *refusals)
            held("%s: %s", what, strerror(os));
    leak("%s: the kernel was reached: %s", what, strerror(os));
}

void judge_any(const char *what, long result)
{
    if (result >= 0)
        leak("%s: %ld", what, result);
    held("%s: %s", what, strerror(errno));
}

char *word(int argc, char **argv, int n)
{
    if (n >= argc)
        broken("%s: argument %d is missing", argv[0], n);
    return argv[n];
}

long number(int argc, char **argv, int n)
{
    return strtol(word(argc, argv, n), NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        broken("usage: attack NAME");
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const struct attack *a = tables[t]; a->name; a++) {
            if (strcmp(argv[1], "list") == 0)
                puts(a->name);
            else if (strcmp(argv[1], a->name) == 0) {
                a->run(argc - 1, argv + 1);
                broken("%s said nothing", a->name);
            }
        }
    if (strcmp(argv[1], "list") != 0)
        broken("there is no attack %s", argv[1]);
    return 0;
}
