/* The scheduler: cuts a graph into splits by device, moves values across, waits once per copy, runs. It never
 * allocates device memory. */
#ifndef MF_GRAPH_SCHED_H
#define MF_GRAPH_SCHED_H

#include "graph/alloc.h"
#include "graph/times.h"

typedef enum mf_step_kind {
    MF_STEP_RUN,  /* nodes [a, b) on device */
    MF_STEP_COPY, /* enqueue the copy of staged value `staged` on its source's device */
    MF_STEP_WAIT, /* its one wait: issued right before the first node that reads it, or after the last split
                     when nobody did */
} mf_step_kind;

typedef struct mf_step {
    mf_step_kind kind;
    int32_t device;
    mf_id a, b;
    int32_t staged;
    int32_t split;       /* RUN: which */
    void *program;       /* RUN: what the device compiled */
    uint64_t generation; /* of the arenas the program was compiled against */
} mf_step;

typedef struct mf_staged_state {
    bool copied, waited;
    uint64_t ticket;
} mf_staged_state;

typedef struct mf_sched {
    mf_step *steps;
    size_t cap;
    int32_t n_steps, n_splits;
    mf_staged_state *staged; /* [plan->n_staged], per execution */
    mf_step_times *times;    /* set by the caller of a run; NULL: not measured */
} mf_sched;

/* Contiguous partition of the executable nodes by device, no merging. Refuses a node whose buffer is on
 * another device than its split, naming both. */
minfer_status mf_sched_build(mf_sched *s, const mf_exec *x, minfer_error *err);
void mf_sched_free(mf_sched *s, const mf_exec *x);

/* Host data for the inputs of one run; an entry is needed for each input the graph declares. */
typedef struct mf_inputs {
    const int32_t *data[MF_INPUT_COUNT];
    size_t n[MF_INPUT_COUNT]; /* elements, equal to the input's shape */
} mf_inputs;

/* Fills the inputs and executes the steps. The plan must be committed. On an error nothing is left pending.
 */
minfer_status mf_sched_run(mf_sched *s, const mf_exec *x, const mf_inputs *in, minfer_error *err);

/* Text for MINFER_GRAPH_TRACE: one line per split, then node counts per op and device. */
bool mf_sched_trace(const mf_sched *s, const mf_exec *x, mf_buf *out);

/* Nodes a device executes: not inputs, views or dead ones. */
bool mf_node_executes(const mf_node *n);

#endif
