/* A job: one request that the worker answers, and the mailbox in which its answers come back. The transport
 * makes it, the worker works on it, and whichever of the two is the last to let go frees it. What stands
 * under "given" does not change once the job is submitted; the rest is behind the lock. Knows no HTTP. */
#ifndef APP_SERVER_JOB_H
#define APP_SERVER_JOB_H

#include "server/reply.h"

#include <pthread.h>
#include <stdatomic.h>

/* What the worker says about a choice: a token, text, or its end. */
typedef struct srv_event {
    size_t choice;
    int32_t id;            /* the token; -1: none */
    size_t text, n_text;   /* place in the mail's text */
    float logprob;         /* of id, where the request asked for it */
    size_t ranks, n_ranks; /* place in the mail's ranks */
    bool ended;
    minfer_finish finish; /* with ended */
} srv_event;

typedef struct srv_mail {
    srv_event *events;
    size_t n, cap;
    mf_buf text;
    srv_rank *ranks;
    size_t n_ranks, cap_ranks;
} srv_mail;
void srv_mail_free(srv_mail *m);

typedef struct srv_ids {
    int32_t *v; /* for minfer_free */
    size_t n;
} srv_ids;

typedef struct srv_job {
    /* given */
    srv_request request;
    srv_ids *prompts; /* request.n_prompts, or one for a chat */
    size_t n_prompts, n_choices;
    minfer_grammar *grammar; /* NULL: none */
    float *vectors;          /* embeddings: n_prompts rows, filled by the worker */
    int64_t made_ns;

    atomic_int refs;
    atomic_bool left;     /* the client wants nothing more */
    atomic_bool *dropped; /* [n_choices] the client wants no more of this one */

    pthread_mutex_t lock;
    srv_mail mail;
    srv_error error;          /* status 0: none; final */
    bool over;                /* nothing more will come */
    size_t n_cached;          /* tokens of the prompts */
    void (*wake)(void *user); /* called with the lock held, when there is something new; NULL: nobody waits */
    void *wake_user;

    /* the worker's alone */
    struct srv_job *next;
    size_t n_begun, n_ended; /* choices */
    bool news;               /* posted since the last wake */
    int64_t begun_ns, first_ns;
} srv_job;

/* Takes over r's contents, also on failure. n_choices as srv_reply_choices has them. NULL: out of memory. */
srv_job *srv_job_create(srv_request *r, size_t n_prompts, size_t n_choices);
void srv_job_unref(srv_job *j);

/* ---- for the transport ---- */
/* From now on the worker stops at its next step, and wakes nobody. */
void srv_job_leave(srv_job *j);
/* Takes what has come since the last call, in exchange for *m, whose contents are forgotten. *over: it was
 * the last; then *e says whether the job failed. */
void srv_job_take(srv_job *j, srv_mail *m, bool *over, srv_error *e, size_t *n_cached);

/* ---- for the worker ---- */
typedef struct srv_post { /* srv_event, with pointers */
    size_t choice;
    minfer_piece piece;
    float logprob;
    const srv_rank *ranks;
    size_t n_ranks;
    bool ended;
    minfer_finish finish;
} srv_post;
/* A job that has no memory for its mail fails. Nothing is posted to a job that is over. */
void srv_job_post(srv_job *j, const srv_post *p);
void srv_job_fail(srv_job *j, const srv_error *e);
void srv_job_end(srv_job *j);
void srv_job_count_cached(srv_job *j, size_t n);
bool srv_job_is_over(srv_job *j); /* ended, failed, or its client has left */
/* Wakes who waits, if anything was posted since the last time. */
void srv_job_wake(srv_job *j);

#endif
