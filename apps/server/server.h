/* What the parts of the server share: what it was told, the state it is in, and what it serves. */
#ifndef APP_SERVER_SERVER_H
#define APP_SERVER_SERVER_H

#include "server/worker.h"

typedef struct srv_texts {
    const char *const *v;
    size_t n;
} srv_texts;

typedef struct srv_options {
    const char *host;
    uint16_t port;      /* 0: any free one */
    srv_texts keys;     /* none: no key is asked for */
    srv_texts origins;  /* whose pages may ask; "*": all */
    char *cert, *key;   /* PEM, both or none */
    size_t max_body;    /* bytes */
    unsigned max_conns; /* open connections */
    int header_s;       /* seconds for the headers of a request; a body has six times that */
    int idle_s;         /* seconds that a connection may be silent while its client is to read or to ask */
    int pulse_s;        /* seconds of silence in a stream after which a comment is sent */
} srv_options;

typedef enum srv_state {
    SRV_LOADING,
    SRV_READY,
    SRV_LEAVING, /* /health says that it drains, and requests are still taken */
    SRV_DRAINING
} srv_state;

typedef struct srv_server {
    const srv_options *o;
    srv_stats stats;
    _Atomic(srv_state) state;

    /* from SRV_READY on */
    const minfer_model *model;
    srv_worker *worker;
    srv_context context; /* what requests are read against */
    const char *name;    /* of the model, as replies give it */
    minfer_model_info info;
    int32_t n_ctx;
    size_t n_slots;
    int64_t loaded_at; /* seconds since 1970 */
} srv_server;

const char *srv_state_name(srv_state s);

#endif
