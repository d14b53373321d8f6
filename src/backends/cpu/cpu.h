/* The CPU backend: always there, runs every op that models build. Weights are used in place from the mapped
 * file. */
#ifndef MF_BACKENDS_CPU_CPU_H
#define MF_BACKENDS_CPU_CPU_H

#include "backends/backend.h"

extern const mf_caps mf_cpu_caps;

minfer_status mf_cpu_usable(minfer_error *why);
minfer_status mf_cpu_open(const mf_backend_options *o, mf_device **out, minfer_error *err);

/* Tests: the tier an open CPU device runs, and its number of threads. */
const char *mf_cpu_tier(const mf_device *d);
int32_t mf_cpu_threads(const mf_device *d);

#endif
