/* Where the time of forward passes goes: counters that devices and the scheduler add to while the runtime
 * asks for them. Owns nothing; reads the clock only. */
#ifndef MF_GRAPH_TIMES_H
#define MF_GRAPH_TIMES_H

#include "base/clock.h"
#include "graph/ir.h"

typedef struct mf_time {
    uint64_t count;
    int64_t ns;
    uint64_t bytes, macs; /* weights and cache read; multiplications with their additions; 0: not known */
} mf_time;

/* What a device tells apart besides ops: making quantized forms, and waiting for threads. */
enum { MF_TIME_QUANTIZE = MF_OP_COUNT, MF_TIME_BARRIER, MF_TIME_SLOTS };

/* One device. Shares of several threads are not added up: it is the clock of one of them, so the slots
 * together are the time the device was busy. */
typedef struct mf_op_times {
    mf_time slot[MF_TIME_SLOTS];
} mf_op_times;

enum { MF_TIME_SPLITS = 64 };

/* The scheduler: time on its own thread, so a device that only enqueues shows up in waits. */
typedef struct mf_step_times {
    mf_time inputs, copies, waits;
    struct {
        mf_time time;
        int32_t index, device;
    } split[MF_TIME_SPLITS]; /* the last one also takes what does not fit */
    int32_t n_splits;
} mf_step_times;

/* Adds the time since `from` and returns now. */
static inline int64_t mf_time_lap(mf_time *t, int64_t from)
{
    int64_t now = mf_clock_ns();
    t->ns += now - from;
    return now;
}

#endif
