/* SPDX-License-Identifier: Apache-2.0 */
/* System V and POSIX objects, keys: those of the host, and those of another box. */
#include "attack.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

/* shm KEY */
static void shm(int argc, char **argv)
{
    int id = shmget((key_t)number(argc, argv, 1), 0, 0);
    char *at = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);
    if (at != (void *)-1)
        dprintf(1, "%.100s\n", at);
    tried();
}

/* shm-scan: every segment there is, by number. */
static void shm_scan(int argc, char **argv)
{
    struct shmid_ds d;
    (void)argc;
    for (int i = 0; i < 256; i++) {
        int id = shmctl(i, 13 /* SHM_STAT */, &d);
        if (id >= 0 || errno == EACCES)
            leak("%s: there is a segment", argv[0]);
    }
    held("no segment");
}

static void sem(int argc, char **argv)
{
    int id = semget((key_t)number(argc, argv, 1), 0, 0);
    if (id < 0)
        held("semget: %s", strerror(errno));
    leak("the semaphores are here: %d", semctl(id, 0, GETVAL));
}

static void msg(int argc, char **argv)
{
    struct {
        long type;
        char text[128];
    } m = {0};
    int id = msgget((key_t)number(argc, argv, 1), 0);
    if (id >= 0 && msgrcv(id, &m, sizeof(m.text), 0, IPC_NOWAIT) > 0)
        dprintf(1, "%.100s\n", m.text);
    tried();
}

/* mq NAME */
static void mq(int argc, char **argv)
{
    long fd = CALL(__NR_mq_open, word(argc, argv, 1) + 1, O_RDWR, 0, NULL);
    judge_any("mq_open", fd);
}

/* add-key TYPE: real keys in the user's own ring. */
static void add_key(int argc, char **argv)
{
    static const int refusals[] = {EPERM, ENOSYS, 0};
    judge("add_key", CALL(__NR_add_key, word(argc, argv, 1), "plt-key", "x", 1, -2), refusals);
}

/* find-key DESCRIPTION */
static void find_key(int argc, char **argv)
{
    static const int refusals[] = {EPERM, ENOSYS, 0};
    judge("request_key", CALL(__NR_request_key, "user", word(argc, argv, 1), NULL, 0), refusals);
}

static void key_rings(int argc, char **argv)
{
    static const int refusals[] = {EPERM, ENOSYS, 0};
    judge("keyctl", CALL(__NR_keyctl, 0, number(argc, argv, 1), 0), refusals);
}

const struct attack ipc_attacks[] = {
    {"shm", shm},           {"shm-scan", shm_scan},  {"sem", sem}, {"msg", msg}, {"mq", mq}, {"add-key", add_key},
    {"find-key", find_key}, {"key-ring", key_rings}, {0},
};
