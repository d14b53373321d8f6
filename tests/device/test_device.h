/* The test device: a backend in the tests that behaves as a GPU would, on any machine. Its memory is an
 * address space of its own that the host cannot touch between operations; its queue runs as late as the rules
 * allow; fresh memory and the targets of pending copies are poisoned; waits are counted. Kernels are the
 * CPU's scalar ones, and it offers the build-time fused ops the CPU never builds. */
#ifndef MF_TESTS_TEST_DEVICE_H
#define MF_TESTS_TEST_DEVICE_H

#include "graph/device.h"

typedef struct test_device_stats {
    int runs, copies, waits, syncs, writes, reads,
        drained;            /* calls; drained: queued operations that have run */
    int waits_without_copy; /* tickets waited for twice, or never given */
} test_device_stats;

typedef struct test_device_options {
    const char *name;   /* NULL: "test" */
    int priority;       /* default 200 */
    uint32_t fused_ops; /* which build-time fused ops to offer */
    bool no_swiglu;     /* do not support SWIGLU: no peephole fusion */
    bool causal_only;   /* do not read explicit windows */
    size_t budget;      /* bytes; 0 = none */
    int fail_run_at;    /* the n-th queued run fails (1 = the first); 0 = never */
} test_device_options;

#define TEST_FUSED_ALL                                                                 \
    (1u << MF_OP_FUSED_QKV | 1u << MF_OP_QKV_BIAS_ROPE_STORE | 1u << MF_OP_FUSED_FFN | \
     1u << MF_OP_FUSED_QKV_NORM)

minfer_status test_device_open(const test_device_options *o, mf_device **out, minfer_error *err);
test_device_stats *test_device_get_stats(mf_device *d);

/* Fills a buffer with NaN bytes, as if it had never been written. */
void test_device_poison(mf_device *d, void *buf, size_t bytes);

/* Buffers that are allocated now. */
int test_device_buffers(mf_device *d);

#endif
