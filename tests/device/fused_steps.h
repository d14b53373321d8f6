/* Scalar steps of the build-time fused ops, for the test device. */
#ifndef MF_TESTS_FUSED_STEPS_H
#define MF_TESTS_FUSED_STEPS_H

#include "backends/cpu/program.h"

/* The CPU's emitters and those of the fused ops. */
cpu_emit_fn *const *test_emitters(void);

#endif
