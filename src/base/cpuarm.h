/* Optional instructions of 64-bit ARM processors. False on every other processor. */
#ifndef MF_BASE_CPUARM_H
#define MF_BASE_CPUARM_H

#include <stdbool.h>

bool mf_cpu_has_dotprod(void); /* dot products of bytes (FEAT_DotProd) */
bool mf_cpu_has_i8mm(void);    /* matrix products of bytes (FEAT_I8MM) */

#endif
