/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the talk with who shows notifications. */
#include "cli/herald.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "confine/dbus.h"

#define BUS "org.freedesktop.DBus"
#define NOTIFICATIONS "org.freedesktop.Notifications"
#define NOTIFICATIONS_PATH "/org/freedesktop/Notifications"
#define MESSAGE_MAX 4096u
#define SHOWN_MS 120000 /* as long as a connection waits */

static const struct {
    const char *key, *label;
    struct inquiry_answer answer;
} buttons[] = {
    {"once", "Allow once", {.allow = true, .scope = APPLIES_ONCE}},
    {"box", "Allow for this box", {.allow = true, .scope = APPLIES_BOX}},
    {"deny", "Deny", {.allow = false, .scope = APPLIES_ONCE}},
};

void herald_init(struct herald *h)
{
    *h = (struct herald){.fd = -1};
    buf_init(&h->in, 2 * DBUS_MESSAGE_MAX);
}

void herald_close(struct herald *h)
{
    own_close(&h->fd);
    buf_done(&h->in);
}

static void lose(struct herald *h)
{
    own_close(&h->fd);
    buf_clear(&h->in);
}

/* --- the bus --- */

/* Where the session says, or where it usually is. Escaped addresses are none of ours. */
static bool find_bus(struct sockaddr_un *ret, socklen_t *ret_len)
{
    static const char path[] = "unix:path=", abstract[] = "unix:abstract=";
    const char *address = getenv("DBUS_SESSION_BUS_ADDRESS"), *runtime = getenv("XDG_RUNTIME_DIR");
    bool hidden = address && strncmp(address, abstract, sizeof(abstract) - 1) == 0;
    char usual[sizeof(ret->sun_path)];
    size_t n;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (hidden)
        address += sizeof(abstract) - 1;
    else if (address && strncmp(address, path, sizeof(path) - 1) == 0)
        address += sizeof(path) - 1;
    else if (address && address[0])
        return false;
    else if (runtime && runtime[0] == '/' && snprintf(usual, sizeof(usual), "%s/bus", runtime) < (int)sizeof(usual))
        address = usual;
    else
        return false;
    n = strcspn(address, ",;");
    if (n == 0 || n + hidden >= sizeof(ret->sun_path) || memchr(address, '%', n))
        return false;
    memcpy(ret->sun_path + hidden, address, n);
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + hidden + n + !hidden);
    return true;
}

static void put_end(struct herald *h, struct dbus_writer *w)
{
    dbus_end(w);
    if (w->full || !fd_write_full(h->fd, w->mem, w->len))
        lose(h);
}

static void begin(struct herald *h, struct dbus_writer *w, void *mem, const char *member, const char *signature)
{
    const struct dbus_call c = {.serial = ++h->serial,
                                .destination = NOTIFICATIONS,
                                .path = NOTIFICATIONS_PATH,
                                .interface = NOTIFICATIONS,
                                .member = member,
                                .signature = signature};
    dbus_start(w, mem, MESSAGE_MAX);
    dbus_begin(w, &c);
}

void herald_open(struct herald *h)
{
    static const struct dbus_call hello = {
        .serial = 1, .destination = BUS, .path = "/org/freedesktop/DBus", .interface = BUS, .member = "Hello"};
    static const struct dbus_call match = {2, BUS, "/org/freedesktop/DBus", BUS, "AddMatch", "s"};
    struct sockaddr_un to;
    socklen_t len;
    uint8_t mem[MESSAGE_MAX];
    struct dbus_writer w;
    if (!find_bus(&to, &len))
        return;
    h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t n = dbus_greet(mem, sizeof(mem), (unsigned)geteuid());
    if (h->fd < 0 || connect(h->fd, (struct sockaddr *)&to, len) < 0 || n == 0) {
        lose(h);
        return;
    }
    dbus_start(&w, mem + n, sizeof(mem) - n);
    dbus_begin(&w, &hello);
    dbus_end(&w);
    dbus_begin(&w, &match);
    dbus_put_text(&w, "type='signal',interface='" NOTIFICATIONS "'");
    dbus_end(&w);
    h->serial = 2;
    if (w.full || !fd_write_full(h->fd, mem, n + w.len))
        lose(h);
}

/* --- notifications --- */

static struct herald_note *find(struct herald *h, const char *question)
{
    for (size_t i = 0; i < HERALD_NOTES_MAX; i++)
        if (strcmp(h->note[i].question, question) == 0)
            return &h->note[i];
    return NULL;
}

void herald_show(struct herald *h, const struct approval_asked *q)
{
    uint8_t mem[MESSAGE_MAX];
    struct dbus_writer w;
    char text[2 * DOMAIN_NAME_MAX + 32], title[BOX_NAME_MAX + 32];
    struct herald_note *n = h->fd >= 0 ? find(h, "") : NULL;
    if (!n)
        return;
    snprintf(title, sizeof(title), "Box %s asks", q->box_name);
    begin(h, &w, mem, "Notify", "susssasa{sv}i");
    dbus_put_text(&w, "pale");
    dbus_put_u32(&w, 0); /* it takes no other's place */
    dbus_put_text(&w, "");
    dbus_put_text(&w, title);
    dbus_put_text(&w, inquiry_text(q, text, sizeof(text)));
    size_t actions = dbus_open_array(&w, 4);
    for (size_t i = 0; i < sizeof(buttons) / sizeof(buttons[0]); i++) {
        dbus_put_text(&w, buttons[i].key);
        dbus_put_text(&w, buttons[i].label);
    }
    dbus_close_array(&w, actions, 4);
    dbus_close_array(&w, dbus_open_array(&w, 8), 8);
    dbus_put_u32(&w, SHOWN_MS);
    *n = (struct herald_note){.serial = h->serial};
    snprintf(n->question, sizeof(n->question), "%s", q->id);
    put_end(h, &w);
}

void herald_withdraw(struct herald *h, const char *question)
{
    uint8_t mem[MESSAGE_MAX];
    struct dbus_writer w;
    struct herald_note *n = h->fd >= 0 && question[0] ? find(h, question) : NULL;
    if (!n)
        return;
    if (n->id) {
        begin(h, &w, mem, "CloseNotification", "u");
        dbus_put_u32(&w, n->id);
        put_end(h, &w);
    }
    *n = (struct herald_note){0};
}

/* --- what the bus says --- */

static void press(struct herald *h, const char *question, const char *key)
{
    for (size_t i = 0; i < sizeof(buttons) / sizeof(buttons[0]); i++)
        if (strcmp(buttons[i].key, key) == 0)
            h->pressed(h->arg, question, &buttons[i].answer);
}

static void take(struct herald *h, const struct dbus_message *m)
{
    struct dbus_reader r = dbus_body(m);
    uint32_t number = m->signature[0] == 'u' ? dbus_take_u32(&r) : 0;
    char question[QUESTION_ID_LEN + 1];
    for (size_t i = 0; i < HERALD_NOTES_MAX; i++) {
        struct herald_note *n = &h->note[i];
        if (!n->question[0])
            continue;
        if ((m->type == DBUS_RETURN || m->type == DBUS_ERROR) && m->reply_serial == n->serial) {
            n->id = m->type == DBUS_RETURN && !r.bad ? number : 0;
            snprintf(h->shower, sizeof(h->shower), "%.60s", n->id ? m->sender : h->shower);
            if (!n->id)
                *n = (struct herald_note){0};
            return;
        }
        /* Anybody on the bus can send us a signal, but not in the name of who showed it. */
        if (m->type != DBUS_SIGNAL || n->id != number || !n->id || strcmp(m->sender, h->shower) != 0 ||
            strcmp(m->interface, NOTIFICATIONS) != 0)
            continue;
        memcpy(question, n->question, sizeof(question));
        if (strcmp(m->member, "NotificationClosed") == 0)
            n->id = 0;
        if (strcmp(m->member, "ActionInvoked") == 0 && strcmp(m->signature, "us") == 0) {
            const char *key = dbus_take_text(&r);
            if (!r.bad)
                press(h, question, key);
        }
        return;
    }
}

void herald_hear(struct herald *h)
{
    uint8_t block[4096];
    struct dbus_message m;
    size_t at = 0, used = 0;
    int got = 1;
    ssize_t n = recv(h->fd, block, sizeof(block), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    buf_add(&h->in, block, n > 0 ? (size_t)n : 0);
    if (n <= 0 || h->in.failed) {
        lose(h);
        return;
    }
    if (!h->greeted && (got = dbus_hear_greeting(h->in.data, h->in.len, &at)) == 1)
        h->greeted = true;
    while (got == 1 && h->fd >= 0 && (got = dbus_parse(h->in.data + at, h->in.len - at, &m, &used)) == 1) {
        take(h, &m);
        at += used;
    }
    if (got < 0)
        lose(h);
    else
        buf_consume(&h->in, at);
}
