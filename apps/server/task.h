/* A task: one choice of a job, being answered. It owns its tokens, sampler and answer, so that it can lose
 * its session when cells run short and go on in another one later, with the same bits. Belongs to the
 * worker's thread. */
#ifndef APP_SERVER_TASK_H
#define APP_SERVER_TASK_H

#include "server/job.h"
#include "server/slots.h"
#include "server/vector.h"

typedef struct srv_task {
    srv_job *job;
    size_t choice;
    int32_t *tokens; /* prompt and answer so far */
    size_t n, cap, n_prompt;
    size_t n_generated;
    minfer_sampler *sampler;
    minfer_answer *answer;
    srv_slot *slot; /* NULL: none now */
    size_t n_fed;   /* tokens that the slot's session holds */
    size_t n_cached;
    bool counted;  /* n_cached has been */
    bool alone;    /* shares no cells: sharing has failed */
    bool parked;   /* lost its session; waits until another task ends */
    bool over;     /* nothing more to do; the slot is to be given back */
    bool drop;     /* ... and forgotten */
    double *sum;   /* embeddings: of the states so far */
    float *rows;   /* what the running step gives: logits, or states */
    size_t n_take; /* tokens fed in the running step */
} srv_task;

/* Choice `choice` of j, whose reference the task takes over when it succeeds. n_embd: floats of a vector. */
minfer_status srv_task_open(srv_task *t, const minfer_model *m, srv_job *j, size_t choice, size_t n_embd,
                            minfer_error *err);
void srv_task_close(srv_task *t); /* not its slot */

bool srv_task_wants_vector(const srv_task *t); /* embeddings: no answer */
/* The client has left, or wants no more of this choice, or the job failed. */
bool srv_task_unwanted(srv_task *t);

/* Draws a token behind what has been fed, posts it, and ends the answer where it ends; n_ctx: tokens at most.
 * Returns how many tokens were drawn. */
size_t srv_task_draw(srv_task *t, int32_t n_ctx, int32_t n_vocab);
/* Takes the states of what the step has fed; behind the last token the vector is made. */
void srv_task_pool(srv_task *t, size_t n_embd, srv_pooling p);
/* The job fails, with 500 and the library's error. */
void srv_task_fail(srv_task *t, const minfer_error *err);
/* The choice has ended; the last one ends the job. */
void srv_task_end(srv_task *t);

#endif
