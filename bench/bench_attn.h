/* Speed of the attention kernels. */
#ifndef MF_BENCH_ATTN_H
#define MF_BENCH_ATTN_H

#include "backends/cpu/kernels.h"
#include "base/pool.h"

enum { BENCH_MAX_ROUNDS = 99 };

typedef struct bench_attn_options {
    cpu_tier cap;
    int threads, rounds, mem_mb;
    const int *cells, *nt; /* lists */
    int n_cells, n_nt;
} bench_attn_options;

/* Prints GB/s of cache rows, GMAC/s and times relative to F16 for each cache type, measured in turn, for the
 * head layouts of the two real models, each number of cells and of tokens. False when memory is short. */
bool bench_attn(const bench_attn_options *o, mf_pool *pool);

#endif
