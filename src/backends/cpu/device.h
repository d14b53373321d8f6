/* The CPU device's own state. */
#ifndef MF_BACKENDS_CPU_DEVICE_H
#define MF_BACKENDS_CPU_DEVICE_H

#include "backends/cpu/program.h"
#include "base/strmap.h"

struct cpu_device {
    mf_device base;
    mf_pool *pool;
    cpu_kernels kernels;
    cpu_emit_fn *const *emitters; /* by op; cpu_emitters, or a test device's own */
    mf_strmap names;              /* -> index into weights */
    cpu_weight **weights;
    size_t n_weights, cap_weights;
};

extern const mf_device_ops cpu_device_ops;

#endif
