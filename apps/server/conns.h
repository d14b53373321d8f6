/* Open connections, and a thread that watches over them: clients that leave while they wait for an answer,
 * those that take too long to say what they want, and streams that have been silent. Owns the table, not the
 * sockets. */
#ifndef APP_SERVER_CONNS_H
#define APP_SERVER_CONNS_H

#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct srv_conn {
    struct srv_conn *next, *prev;
    uint64_t id;
    int fd;
    int64_t deadline_ns; /* its socket is shut then; 0: never */
    /* While a client waits for an answer: told from the watching thread that it has left, or, every pulse,
     * that time has passed. */
    void (*notice)(void *user, bool left);
    void *user;
} srv_conn;

typedef struct srv_conns {
    pthread_mutex_t lock;
    srv_conn *first;
    size_t n;
    uint64_t last_id;
    int epoll;
    pthread_t thread;
    atomic_bool stop;
} srv_conns;

minfer_status srv_conns_start(srv_conns *t, minfer_error *err);
void srv_conns_stop(srv_conns *t);

/* deadline in seconds from now; 0: none. NULL: out of memory. */
srv_conn *srv_conns_add(srv_conns *t, int fd, int deadline_s);
void srv_conns_remove(srv_conns *t, srv_conn *c);
void srv_conns_deadline(srv_conns *t, srv_conn *c, int deadline_s);
/* notice NULL: nobody waits any more. After the return the old one is not called. */
void srv_conns_watch(srv_conns *t, srv_conn *c, void (*notice)(void *user, bool left), void *user);
size_t srv_conns_count(srv_conns *t);

#endif
