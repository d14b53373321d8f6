/* Numbers from repeated runs. */
#ifndef MF_BENCH_MEASURE_H
#define MF_BENCH_MEASURE_H

#include <stdlib.h>

static inline int measure_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which a share q of the n in v lies (0.5: the median). Sorts v. */
static inline double measure_quantile(double *v, int n, double q)
{
    qsort(v, (size_t)n, sizeof *v, measure_order);
    return v[(int)(q * (n - 1) + 0.5)];
}

#endif
