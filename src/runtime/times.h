/* The times of an engine's forward passes, apart for passes of one token and of several. */
#ifndef MF_RUNTIME_TIMES_H
#define MF_RUNTIME_TIMES_H

#include "graph/device.h"
#include "graph/times.h"

typedef struct mf_pass_times {
    mf_time pass, plan; /* plan: finding, or building, the graph */
    mf_step_times steps;
    mf_op_times ops[MF_MAX_DEVICES];
} mf_pass_times;

typedef struct mf_times {
    mf_pass_times prefill, decode;
} mf_times;

/* The counters for a pass over n tokens, which the devices add to from now on; NULL when t is. */
mf_pass_times *mf_times_begin(mf_times *t, mf_device *const *devices, int32_t n_devices, int32_t n_tokens);

/* Rows of one kind of pass, none when there was no such pass. */
void mf_times_tell(const mf_pass_times *p, bool decode, mf_device *const *devices, int32_t n_devices,
                   minfer_time_fn *fn, void *user);

#endif
