/* The worker: one thread that owns the engine and answers jobs, several at once. Owns queue, slots and tasks;
 * knows no sockets and no JSON.
 *
 * A step is one forward pass: the next token of every running answer, and parts of prompts, the oldest first,
 * so many tokens that running answers do not wait long. Which tokens are fed together changes no bit of any
 * answer. */
#ifndef APP_SERVER_WORKER_H
#define APP_SERVER_WORKER_H

#include "server/queue.h"
#include "server/stats.h"
#include "server/vector.h"

typedef struct srv_worker_options {
    size_t n_slots, max_queue;
    size_t chunk;      /* most tokens of prompts in a step */
    size_t chunk_busy; /* ... while answers are running */
    bool batch;        /* false: one sequence after the other, not together */
    srv_pooling pooling;
    bool reuse; /* prompts begin with what slots hold already */
} srv_worker_options;

typedef struct srv_worker srv_worker;

/* e and m must outlive the worker; e belongs to its thread from now on. */
minfer_status srv_worker_start(const minfer_model *m, minfer_engine *e, const srv_worker_options *o,
                               srv_stats *stats, srv_worker **out, minfer_error *err);

srv_admission srv_worker_submit(srv_worker *w, srv_job *j);
/* A client left: what it waited for ends at the next step. */
void srv_worker_stir(srv_worker *w);
size_t srv_worker_queued(srv_worker *w);

/* No new jobs; those that are there are answered. */
void srv_worker_drain(srv_worker *w);
/* Ends at the next step whatever is left, with 503, and waits for the thread. */
void srv_worker_stop(srv_worker *w);
void srv_worker_free(srv_worker *w); /* one that was stopped, or NULL */

#endif
