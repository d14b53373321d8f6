/* Attention kernels on caches that lie in memory, as layer after layer of a forward pass meets them: tiles of
 * every KV head against the query rows of its group, then the merge. Correctness is tests/cpu/test_attn.c. */
#include "bench_attn.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "common/limits.h"
#include "measure.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

typedef struct layout {
    const char *name;
    int32_t n_head, n_kv, dim;
} layout;

static const layout layouts[] = {{"SmolLM2-135M", 9, 3, 64}, {"Qwen2.5-1.5B", 12, 2, 128}};
static const mf_type types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
enum { TYPES = 3, F16 = 1, MOST_ROWS = 48, FEW_TOKENS = 8 };

typedef struct bench {
    const bench_attn_options *o;
    const layout *l;
    cpu_kernels k;
    mf_pool *pool;
    int32_t cells, nt, layers;
    int type;
    size_t row, layer; /* bytes of a cell's head; of K or V of a layer */
    uint8_t *kv[TYPES];
    float *q, *part, *y; /* part: [thread][row of a call][tile] */
    _Atomic uint64_t sink;
} bench;

static int32_t group_of(const bench *b)
{
    return b->l->n_head / b->l->n_kv;
}

static int32_t tiles_of(const bench *b)
{
    return (b->cells + CPU_ATTN_TILE - 1) / CPU_ATTN_TILE;
}

static size_t part_floats(const bench *b)
{
    return 2 + (size_t)b->l->dim;
}

/* All tiles of one KV head for `rows` query rows, and their merge. */
static void head_run(const bench *b, const uint8_t *k, const uint8_t *v, int32_t rows, float *part, float *y)
{
    const float *q[MOST_ROWS];
    int32_t n[MOST_ROWS], tiles = tiles_of(b), dim = b->l->dim;
    size_t stride = (size_t)rows * part_floats(b);
    for (int32_t i = 0; i < rows; i++) q[i] = b->q + (size_t)i * (size_t)dim;
    for (int32_t t = 0; t < tiles; t++) {
        int32_t from = t * CPU_ATTN_TILE,
                seen = b->cells - from < CPU_ATTN_TILE ? b->cells - from : CPU_ATTN_TILE;
        for (int32_t i = 0; i < rows; i++) n[i] = seen;
        cpu_attn_tile a = {.head_dim = dim,
                           .rows = rows,
                           .scale = 1 / sqrtf((float)dim),
                           .kv_type = types[b->type],
                           .k = k + (size_t)from * b->row,
                           .v = v + (size_t)from * b->row,
                           .cell_bytes = b->row,
                           .q = q,
                           .n = n,
                           .part = part + (size_t)t * stride};
        b->k.attn_tile(&a);
    }
    for (int32_t i = 0; i < rows; i++)
        b->k.attn_merge(part + (size_t)i * part_floats(b), stride, tiles, dim, y + (size_t)i * (size_t)dim);
}

/* A thread's share: some heads of all layers. */
static void run_heads(void *arg, int ith, int nth)
{
    bench *b = arg;
    size_t per_thread = (size_t)MOST_ROWS * (size_t)tiles_of(b) * part_floats(b);
    int32_t group = group_of(b), at_once = MOST_ROWS / group;
    float *part = b->part + (size_t)ith * per_thread, *y = b->y + (size_t)ith * MOST_ROWS * (size_t)b->l->dim;
    for (int32_t u = ith; u < b->layers * b->l->n_kv; u += nth) {
        const uint8_t *k = b->kv[b->type] + (size_t)(u / b->l->n_kv) * 2 * b->layer +
                           (size_t)(u % b->l->n_kv) * (size_t)b->cells * b->row;
        for (int32_t t = 0; t < b->nt; t += at_once) {
            int32_t take = b->nt - t < at_once ? b->nt - t : at_once;
            head_run(b, k, k + b->layer, take * group, part, y);
        }
    }
}

static void run_read(void *arg, int ith, int nth)
{
    bench *b = arg;
    size_t all = 2 * b->layer * (size_t)b->layers, n = all / (size_t)nth / 64 * 64;
    atomic_fetch_add(&b->sink, app_limit_read(b->kv[b->type] + (size_t)ith * n, n));
}

static double seconds_of(bench *b, mf_pool_fn *fn)
{
    int64_t t = mf_clock_ns();
    mf_pool_run(b->pool, fn, b);
    return (double)(mf_clock_ns() - t) * 1e-9;
}

static void set_type(bench *b, int type)
{
    b->type = type;
    mf_type_row_bytes(types[type], (uint64_t)b->l->dim, &b->row);
    b->layer = b->row * (size_t)b->cells * (size_t)b->l->n_kv;
}

/* As many layers as give the memory asked for in F16. */
static void set_layers(bench *b)
{
    set_type(b, F16);
    b->layers = b->nt > FEW_TOKENS ? 1 : (int32_t)(((size_t)b->o->mem_mb << 20) / (2 * b->layer)) + 1;
}

static bool allocate(bench *b)
{
    mf_rng r;
    float row[CPU_ATTN_HEAD];
    size_t threads = (size_t)b->o->threads, rows = (size_t)MOST_ROWS * (size_t)b->l->dim;
    mf_rng_seed(&r, 1);
    b->q = mf_malloc_aligned(rows * sizeof(float));
    b->y = mf_malloc_aligned(threads * rows * sizeof(float));
    b->part = mf_malloc_aligned(threads * MOST_ROWS * (size_t)tiles_of(b) * part_floats(b) * sizeof(float));
    if (!b->q || !b->y || !b->part) return false;
    for (size_t i = 0; i < rows; i++) b->q[i] = (float)(2 * mf_rng_f64(&r) - 1);
    for (int t = 0; t < TYPES; t++) {
        set_type(b, t);
        size_t bytes = 2 * b->layer * (size_t)b->layers;
        if (!(b->kv[t] = mf_malloc_aligned(bytes + 64))) return false;
        for (int i = 0; i < b->l->dim; i++) row[i] = (float)(2 * mf_rng_f64(&r) - 1);
        for (size_t at = 0; at < bytes; at += b->row) b->k.store_row(types[t], b->kv[t] + at, row, b->l->dim);
    }
    return true;
}

static void release(bench *b)
{
    for (int t = 0; t < TYPES; t++) mf_free_aligned(b->kv[t]);
    mf_free_aligned(b->q);
    mf_free_aligned(b->y);
    mf_free_aligned(b->part);
}

/* The types take turns, so that what else the machine does meets all of them. */
static void measure(bench *b)
{
    static double read[TYPES][BENCH_MAX_ROUNDS], time[TYPES][BENCH_MAX_ROUNDS],
        ratio[TYPES][BENCH_MAX_ROUNDS];
    int n = b->o->rounds;
    for (int i = 0; i < n; i++) {
        for (int t = 0; t < TYPES; t++) {
            set_type(b, t);
            read[t][i] = seconds_of(b, run_read);
            time[t][i] = seconds_of(b, run_heads);
        }
        for (int t = 0; t < TYPES; t++) ratio[t][i] = time[t][i] / time[F16][i];
    }
    for (int t = 0; t < TYPES; t++) {
        set_type(b, t);
        double s = measure_quantile(time[t], n, 0.5), gb = 2e-9 * (double)b->layer * b->layers;
        double macs = 2e-9 * (double)b->cells * b->l->n_head * b->l->dim * b->layers * b->nt;
        printf("  %-5s %7.2f GB/s %4.0f %%  %7.1f GMAC/s  time %5.2f of F16's (%.2f to %.2f)\n",
               mf_type_name(types[t]), gb / s, 100 * measure_quantile(read[t], n, 0.5) / s, macs / s,
               measure_quantile(ratio[t], n, 0.5), measure_quantile(ratio[t], n, 0.25),
               measure_quantile(ratio[t], n, 0.75));
    }
    fflush(stdout);
}

static bool bench_one(const bench_attn_options *o, mf_pool *pool, const layout *l, int cells, int nt)
{
    bench b = {.o = o, .l = l, .pool = pool, .cells = cells, .nt = nt};
    cpu_kernels_select(&b.k, o->cap);
    set_layers(&b);
    printf("%s %d/%d heads of %d, %s, %d cells, %d tokens\n", l->name, l->n_head, l->n_kv, l->dim, b.k.tier,
           cells, nt);
    bool ok = allocate(&b);
    if (ok)
        measure(&b);
    else
        fprintf(stderr, "bench_kernels: out of memory\n");
    release(&b);
    return ok;
}

bool bench_attn(const bench_attn_options *o, mf_pool *pool)
{
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
        for (int c = 0; c < o->n_cells; c++)
            for (int t = 0; t < o->n_nt; t++)
                if (!bench_one(o, pool, &layouts[l], o->cells[c], o->nt[t])) return false;
    return true;
}
