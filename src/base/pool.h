/* A persistent pool of threads that run one function together. Waiting threads spin briefly, then sleep. */
#ifndef MF_BASE_POOL_H
#define MF_BASE_POOL_H

#include "base/status.h"

#define MF_MAX_THREADS 256

typedef struct mf_pool mf_pool;
typedef void mf_pool_fn(void *arg, int ith, int nth);

/* n_threads in 1..MF_MAX_THREADS, the caller of mf_pool_run being one of them. */
minfer_status mf_pool_create(int n_threads, mf_pool **out, minfer_error *err);
void mf_pool_free(mf_pool *p);
int mf_pool_threads(const mf_pool *p);

/* Runs fn(arg, ith, nth) on every thread, ith = 0 on the caller; returns when all have returned. Not
 * reentrant, and one caller at a time. What was written before the call is seen by all, and what they wrote
 * is seen after it. */
void mf_pool_run(mf_pool *p, mf_pool_fn *fn, void *arg);

/* Inside fn: work in phases, without a thread that all must wait for. The shares of all phases of a run are
 * numbered from 0 on; a phase is the shares [.., end). Thread ith takes shares with mf_pool_claim until it
 * says no: its own (ith, ith + threads, ...) while there are some, then what others have not begun. After
 * each it calls mf_pool_finish, which says true to one thread, when all shares of this phase and of those
 * before are finished: this one may do what is to be done alone, and must then call mf_pool_end_phase. "No"
 * means that the phase was ended so. A thread that the system has put aside holds up nothing but the share it
 * has. Orders memory between phases and what is done alone. */
bool mf_pool_claim(mf_pool *p, int ith, uint32_t end, uint32_t *share);
bool mf_pool_finish(mf_pool *p, uint32_t end);
void mf_pool_end_phase(mf_pool *p, uint32_t end);

/* Threads this process may use to advantage: physical cores within the affinity mask and the cgroup's CPU
 * quota, at least 1. Reads /sys, not the environment. */
int mf_cpu_count(void);

#endif
