/* Scalar C kernels: the specification, and what every tier falls back to. */
#ifndef MF_BACKENDS_CPU_REF_REF_H
#define MF_BACKENDS_CPU_REF_REF_H

#include "backends/cpu/kernels.h"

cpu_quantize_fn cpu_quantize_ref;
cpu_matmul_fn cpu_matmul_ref; /* every weight type, chosen by m->type */

#endif
