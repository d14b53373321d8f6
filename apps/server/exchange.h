/* An exchange: one HTTP request and its reply, from its headers to its last byte. Made and driven by the
 * transport (http.c), whose thread alone touches it, except for what stands behind its lock. */
#ifndef APP_SERVER_EXCHANGE_H
#define APP_SERVER_EXCHANGE_H

#include "server/conns.h"
#include "server/server.h"

#include <microhttpd.h>

typedef struct srv_http {
    srv_server *s;
    struct MHD_Daemon *daemon;
    srv_conns conns;
    atomic_int n_exchanges;
} srv_http;

typedef struct srv_exchange srv_exchange;

/* What a path does. handle queues a response, or waits (exchange_wait in http.c calls resume later). */
typedef struct srv_route {
    const char *path, *method;
    bool open;     /* needs no key */
    bool early;    /* answered also while the model loads */
    bool of_model; /* a name of the model follows the path */
    enum MHD_Result (*handle)(srv_exchange *x);
    srv_endpoint endpoint; /* of those that take a body */
} srv_route;

struct srv_exchange {
    srv_http *h;
    struct MHD_Connection *c;
    srv_conn *conn;
    const srv_route *route;
    mf_buf body;
    size_t n_seen; /* bytes of the body, also those not kept */
    bool preflight;
    bool refused; /* *error is the reply once the body has been passed over */
    srv_error error;
    const char *allow; /* methods that the path has, where the request's is none */

    srv_job *job; /* NULL: none is needed, or not yet */
    srv_reply *reply;
    srv_thinking thinking;
    srv_mail mail;
    mf_buf out; /* to be sent, from `sent` on */
    size_t sent, n_begun;
    size_t n_generated;     /* tokens that the reply is made of, not those drawn after its end */
    bool ended;             /* nothing will be added to out */
    const char *last_words; /* end of a stream that has no memory to make one, sent behind out */

    pthread_mutex_t lock;
    bool woken, asleep; /* asleep: the connection is suspended */
    bool left;          /* the client has */
    int64_t spoke_ns;   /* when something was last sent */
};

/* The exchange's connection goes on, if it sleeps. Any thread. */
void srv_exchange_wake(srv_exchange *x);
/* Sleeps until the next wake; false: there was one since the last sleep, look again. */
bool srv_exchange_sleep(srv_exchange *x);

/* Queues a reply; body becomes MHD's (body->data from mf_buf). type NULL: JSON. */
enum MHD_Result srv_send(srv_exchange *x, unsigned status, const char *type, mf_buf *body);
enum MHD_Result srv_send_error(srv_exchange *x, const srv_error *e);
/* Headers that all replies have. */
void srv_add_headers(srv_exchange *x, struct MHD_Response *r, const char *type);

/* ---- exchanges that wait for the worker (answer.c) ---- */
/* Reads the body, queues a job. */
enum MHD_Result srv_answer_begin(srv_exchange *x);
/* Called again after each wake, until a response is queued. */
enum MHD_Result srv_answer_go_on(srv_exchange *x);
void srv_answer_free(srv_exchange *x);

extern const srv_route srv_routes[];
extern const size_t srv_n_routes;

#endif
