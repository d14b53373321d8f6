/* The table of connections and its watch. */
#include "server/conns.h"

#include "base/clock.h"
#include "base/mem.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PULSE_MS = 200, MAX_EVENTS = 64 };

static srv_conn *find(const srv_conns *t, uint64_t id)
{
    srv_conn *c = t->first;
    while (c && c->id != id) c = c->next;
    return c;
}

static int64_t in_seconds(int s)
{
    return s ? mf_clock_ns() + (int64_t)s * 1000000000 : 0;
}

/* A client that says it will send nothing more has left, as it is with most servers. */
static void tell_left(srv_conns *t, const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        srv_conn *c = find(t, events[i].data.u64);
        if (c && c->notice) c->notice(c->user, true);
    }
}

/* A socket that is shut is closed by its owner, who finds it at its end. */
static void tell_time(srv_conns *t)
{
    int64_t now = mf_clock_ns();
    for (srv_conn *c = t->first; c; c = c->next) {
        if (c->notice) c->notice(c->user, false);
        if (!c->deadline_ns || now < c->deadline_ns) continue;
        c->deadline_ns = 0;
        shutdown(c->fd, SHUT_RDWR);
    }
}

static void *watch(void *arg)
{
    srv_conns *t = arg;
    struct epoll_event events[MAX_EVENTS];
    int64_t told = mf_clock_ns();
    while (!atomic_load(&t->stop)) {
        int n = epoll_wait(t->epoll, events, MAX_EVENTS, PULSE_MS);
        pthread_mutex_lock(&t->lock);
        if (n > 0) tell_left(t, events, n);
        if (mf_clock_ns() - told >= PULSE_MS * INT64_C(1000000)) {
            tell_time(t);
            told = mf_clock_ns();
        }
        pthread_mutex_unlock(&t->lock);
    }
    return NULL;
}

minfer_status srv_conns_start(srv_conns *t, minfer_error *err)
{
    *t = (srv_conns){.epoll = epoll_create1(EPOLL_CLOEXEC)};
    pthread_mutex_init(&t->lock, NULL);
    if (t->epoll < 0) return mf_fail(err, MINFER_ERR_IO, "epoll is not to be had");
    if (pthread_create(&t->thread, NULL, watch, t) == 0) return MINFER_OK;
    close(t->epoll);
    return mf_fail(err, MINFER_ERR_NOMEM, "the watching thread could not be made");
}

void srv_conns_stop(srv_conns *t)
{
    atomic_store(&t->stop, true);
    pthread_join(t->thread, NULL);
    close(t->epoll);
    while (t->first) srv_conns_remove(t, t->first);
    pthread_mutex_destroy(&t->lock);
}

srv_conn *srv_conns_add(srv_conns *t, int fd, int deadline_s)
{
    srv_conn *c = mf_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->fd = fd;
    c->deadline_ns = in_seconds(deadline_s);
    pthread_mutex_lock(&t->lock);
    c->id = ++t->last_id;
    c->next = t->first;
    if (c->next) c->next->prev = c;
    t->first = c;
    t->n++;
    pthread_mutex_unlock(&t->lock);
    return c;
}

void srv_conns_remove(srv_conns *t, srv_conn *c)
{
    if (!c) return;
    pthread_mutex_lock(&t->lock);
    if (c->next) c->next->prev = c->prev;
    *(c->prev ? &c->prev->next : &t->first) = c->next;
    t->n--;
    pthread_mutex_unlock(&t->lock);
    mf_free(c);
}

void srv_conns_deadline(srv_conns *t, srv_conn *c, int deadline_s)
{
    if (!c) return;
    pthread_mutex_lock(&t->lock);
    c->deadline_ns = in_seconds(deadline_s);
    pthread_mutex_unlock(&t->lock);
}

void srv_conns_watch(srv_conns *t, srv_conn *c, void (*notice)(void *user, bool left), void *user)
{
    if (!c) return;
    pthread_mutex_lock(&t->lock);
    struct epoll_event e = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.u64 = c->id};
    if (notice && !c->notice) epoll_ctl(t->epoll, EPOLL_CTL_ADD, c->fd, &e);
    if (!notice && c->notice) epoll_ctl(t->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    c->notice = notice;
    c->user = user;
    pthread_mutex_unlock(&t->lock);
}

size_t srv_conns_count(srv_conns *t)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->n;
    pthread_mutex_unlock(&t->lock);
    return n;
}
