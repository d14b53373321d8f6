/* Speed of the CPU matmul kernels: GB/s of weights and GMAC/s for each weight type and number of tokens,
 * beside the machine's own limits, which are measured in turn with them. Weights come from memory, not from a
 * cache, unless --mem is small. Correctness is tests/cpu/test_matmul.c. With --cells: of the attention
 * kernels (bench_attn.c). */
#include "backends/cpu/kernels.h"
#include "base/clock.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "bench_attn.h"
#include "common/limits.h"
#include "measure.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIST = 16, UNIT_ROWS = 64 };

typedef struct type_row {
    const char *name;
    mf_type type;
    int32_t values, bytes;
    int scale_at[2]; /* where the half floats of a block are, -1: none */
} type_row;

static const type_row types[] = {
    {"F32", MF_TYPE_F32, 1, 4, {-1, -1}},
    {"F16", MF_TYPE_F16, 1, 2, {-1, -1}},
    {"BF16", MF_TYPE_BF16, 1, 2, {-1, -1}},
    {"Q4_0", MF_TYPE_Q4_0, MF_QK32, MF_BYTES_Q4_0, {0, -1}},
    {"Q4_1", MF_TYPE_Q4_1, MF_QK32, MF_BYTES_Q4_1, {0, 2}},
    {"Q5_0", MF_TYPE_Q5_0, MF_QK32, MF_BYTES_Q5_0, {0, -1}},
    {"Q5_1", MF_TYPE_Q5_1, MF_QK32, MF_BYTES_Q5_1, {0, 2}},
    {"Q8_0", MF_TYPE_Q8_0, MF_QK32, MF_BYTES_Q8_0, {0, -1}},
    {"Q4_K", MF_TYPE_Q4_K, MF_QK256, MF_BYTES_Q4_K, {0, 2}},
    {"Q5_K", MF_TYPE_Q5_K, MF_QK256, MF_BYTES_Q5_K, {0, 2}},
    {"Q6_K", MF_TYPE_Q6_K, MF_QK256, MF_BYTES_Q6_K, {208, -1}},
};

typedef struct list {
    int v[MAX_LIST], n;
} list;

typedef struct options {
    const char *type; /* NULL: all */
    cpu_tier cap;
    int k, rows, threads, rounds, mem_mb;
    list nt, cells;
} options;

typedef struct bench {
    const options *o;
    const type_row *type;
    cpu_kernels kernels;
    mf_pool *pool;
    uint8_t *w;
    size_t matrix_bytes, w_bytes;
    int matrices; /* so many, one after the other, give the memory asked for */
    float *x, *y;
    uint8_t *act_mem, *scratch;
    cpu_act act;
    int nt;
    atomic_int next_unit;
    _Atomic uint64_t sink, products;
} bench;

/* ---- work of the threads */

static cpu_matmul matmul_of(const bench *b, int matrix, int ith)
{
    return (cpu_matmul){.type = b->type->type,
                        .rows = b->o->rows,
                        .k = b->o->k,
                        .nt = b->nt,
                        .w = b->w + (size_t)matrix * b->matrix_bytes,
                        .act = &b->act,
                        .x = b->x,
                        .ldx = (size_t)b->o->k,
                        .y = b->y,
                        .ldy = (size_t)b->o->rows,
                        .scratch = b->scratch + (size_t)ith * CPU_SCRATCH};
}

static const uint8_t *row_of(const bench *b, int matrix, int32_t row)
{
    if (matrix >= b->matrices) return NULL;
    return b->w + (size_t)matrix * b->matrix_bytes + b->matrix_bytes / (size_t)b->o->rows * (size_t)row;
}

/* A fixed share of the rows of every matrix for each thread. */
static void run_shares(void *arg, int ith, int nth)
{
    bench *b = arg;
    int32_t share = (b->o->rows / nth + 15) / 16 * 16, r0 = share * ith,
            r1 = ith == nth - 1 ? b->o->rows : r0 + share;
    if (r0 > b->o->rows) r0 = b->o->rows;
    if (r1 > b->o->rows) r1 = b->o->rows;
    for (int i = 0; i < b->matrices; i++) {
        cpu_matmul m = matmul_of(b, i, ith);
        m.next = row_of(b, i + 1, r0);
        b->kernels.matmul[m.type](&m, r0, r1);
    }
}

/* Units of rows from a counter; a thread claims its next unit before it computes this one. */
static void run_units(void *arg, int ith, int nth)
{
    bench *b = arg;
    int per = (b->o->rows + UNIT_ROWS - 1) / UNIT_ROWS, all = per * b->matrices;
    (void)nth;
    for (int u = atomic_fetch_add(&b->next_unit, 1), next; u < all; u = next) {
        next = atomic_fetch_add(&b->next_unit, 1);
        int32_t r0 = u % per * UNIT_ROWS, r1 = r0 + UNIT_ROWS < b->o->rows ? r0 + UNIT_ROWS : b->o->rows;
        cpu_matmul m = matmul_of(b, u / per, ith);
        m.next = row_of(b, next / per, next % per * UNIT_ROWS);
        b->kernels.matmul[m.type](&m, r0, r1);
    }
}

static void run_read(void *arg, int ith, int nth)
{
    bench *b = arg;
    size_t n = b->w_bytes / (size_t)nth / 64 * 64;
    atomic_fetch_add(&b->sink, app_limit_read(b->w + (size_t)ith * n, n));
}

static void run_products(void *arg, int ith, int nth)
{
    bench *b = arg;
    (void)ith, (void)nth;
    atomic_fetch_add(&b->products, app_limit_products(b->kernels.tier));
}

/* ---- measuring */

static double seconds_of(bench *b, mf_pool_fn *fn)
{
    int64_t t = mf_clock_ns();
    mf_pool_run(b->pool, fn, b);
    return (double)(mf_clock_ns() - t) * 1e-9;
}

static double median(double *v, int n)
{
    return measure_quantile(v, n, 0.5);
}

static void set_tokens(bench *b, int nt)
{
    b->nt = nt;
    cpu_act_bind(&b->act, b->act_mem, b->o->k, nt, b->kernels.few);
    if (b->type->values > 1) b->kernels.quantize(&b->act, b->x, (size_t)b->o->k, 0, nt, 0, b->o->k / 32);
    atomic_store(&b->next_unit, 0);
}

static void measure(bench *b)
{
    static double read[BENCH_MAX_ROUNDS], peak[BENCH_MAX_ROUNDS], time[MAX_LIST][BENCH_MAX_ROUNDS];
    for (int i = 0; i < b->o->rounds; i++) {
        read[i] = (double)b->w_bytes / seconds_of(b, run_read) * 1e-9;
        atomic_store(&b->products, 0);
        double s = seconds_of(b, run_products);
        peak[i] = (double)atomic_load(&b->products) / s * 1e-9;
        for (int j = 0; j < b->o->nt.n; j++) {
            set_tokens(b, b->o->nt.v[j]);
            time[j][i] = seconds_of(b, b->nt <= b->kernels.few ? run_shares : run_units);
        }
    }
    double r = median(read, b->o->rounds), p = median(peak, b->o->rounds);
    printf("%-5s %-7s %6d x %-6d read %6.1f GB/s  int8 %6.0f GMAC/s\n", b->type->name, b->kernels.tier,
           b->o->rows, b->o->k, r, p);
    for (int j = 0; j < b->o->nt.n; j++) {
        double s = median(time[j], b->o->rounds), gb = (double)b->matrix_bytes * b->matrices / s * 1e-9;
        double macs = (double)b->o->rows * b->o->k * b->matrices * b->o->nt.v[j] / s * 1e-9;
        printf("  nt %4d  %7.2f GB/s %4.0f %%  %8.1f GMAC/s", b->o->nt.v[j], gb, 100 * gb / r, macs);
        printf(p > 0 ? " %4.0f %%\n" : "\n", 100 * macs / p);
    }
    fflush(stdout);
}

/* ---- data */

static void fill_weights(bench *b)
{
    mf_rng r;
    mf_rng_seed(&r, 1);
    for (size_t i = 0; i + 8 <= b->w_bytes; i += 8) {
        uint64_t v = mf_rng_u64(&r);
        if (b->type->type == MF_TYPE_F32) v &= 0xbfffffffbfffffffu; /* below 2 */
        if (b->type->values == 1 && b->type->bytes == 2) v &= 0xbfffbfffbfffbfffu;
        memcpy(b->w + i, &v, 8);
    }
    uint16_t scale = mf_f32_to_f16(0.004f);
    for (size_t i = 0; i < b->w_bytes / (size_t)b->type->bytes; i++)
        for (int j = 0; j < 2; j++)
            if (b->type->scale_at[j] >= 0)
                memcpy(b->w + i * (size_t)b->type->bytes + b->type->scale_at[j], &scale, 2);
}

static bool allocate(bench *b)
{
    int nt = 1;
    for (int i = 0; i < b->o->nt.n; i++) nt = b->o->nt.v[i] > nt ? b->o->nt.v[i] : nt;
    size_t n = (size_t)nt * (size_t)b->o->k;
    b->matrix_bytes = (size_t)b->o->k / (size_t)b->type->values * (size_t)b->type->bytes * (size_t)b->o->rows;
    b->matrices = (int)(((size_t)b->o->mem_mb << 20) / b->matrix_bytes) + 1;
    b->w_bytes = b->matrix_bytes * (size_t)b->matrices;
    b->w = mf_malloc_aligned(b->w_bytes + 64);
    b->x = mf_malloc_aligned(n * sizeof *b->x);
    b->y = mf_malloc_aligned((size_t)nt * (size_t)b->o->rows * sizeof *b->y);
    b->act_mem = mf_malloc_aligned(cpu_act_bytes(b->o->k, nt) + 64);
    b->scratch = mf_malloc_aligned((size_t)b->o->threads * CPU_SCRATCH);
    if (!b->w || !b->x || !b->y || !b->act_mem || !b->scratch) return false;
    mf_rng r;
    mf_rng_seed(&r, 2);
    for (size_t i = 0; i < n; i++) b->x[i] = (float)(2 * mf_rng_f64(&r) - 1);
    fill_weights(b);
    return true;
}

static bool bench_type(const options *o, const type_row *type, mf_pool *pool)
{
    bench b = {.o = o, .type = type, .pool = pool};
    cpu_kernels_select(&b.kernels, o->cap);
    bool ok = allocate(&b);
    if (ok)
        measure(&b);
    else
        fprintf(stderr, "bench_kernels: out of memory\n");
    mf_free_aligned(b.w);
    mf_free_aligned(b.x);
    mf_free_aligned(b.y);
    mf_free_aligned(b.act_mem);
    mf_free_aligned(b.scratch);
    return ok;
}

/* ---- options */

static const char usage[] =
    "usage: bench_kernels [OPTION VALUE]...\n"
    "  --type NAME     one weight type, as Q4_K (all)\n"
    "  --tier NAME     scalar, avx2, avx512 or neon: the highest to use (the best there is)\n"
    "  --k N           values in a row (1536); a multiple of 256\n"
    "  --rows N        rows of a matrix (8960)\n"
    "  --nt N,N,...    numbers of tokens (1,2,4,8,16,64,512; with --cells 1,64)\n"
    "  --cells N,N,... attention over so many cells of a cache, instead of matmul\n"
    "  --threads N     (cores)\n"
    "  --mem MB        weights, or cache, to walk over (256)\n"
    "  --rounds N      the median of so many is printed (5)\n";

static bool read_list(list *l, const char *s)
{
    for (l->n = 0; l->n < MAX_LIST; s++) {
        char *end;
        long v = strtol(s, &end, 10);
        if (end == s || v < 1 || v > 65536) return false;
        l->v[l->n++] = (int)v;
        s = end;
        if (!*s) return true;
        if (*s != ',') return false;
    }
    return false;
}

static bool read_number(const char *s, long low, long high, int *out)
{
    char *end;
    long v = strtol(s, &end, 10);
    if (end == s || *end || v < low || v > high) return false;
    *out = (int)v;
    return true;
}

static bool read_tier(const char *s, cpu_tier *out)
{
    for (cpu_tier t = 0; t < CPU_TIER_COUNT; t++)
        if (!strcmp(s, cpu_tier_name(t)) && cpu_tier_usable(t)) {
            *out = t;
            return true;
        }
    return false;
}

static bool read_option(options *o, const char *name, const char *value)
{
    if (!strcmp(name, "--type")) {
        o->type = value;
        return true;
    }
    if (!strcmp(name, "--tier")) return read_tier(value, &o->cap);
    if (!strcmp(name, "--nt")) return read_list(&o->nt, value);
    if (!strcmp(name, "--cells")) return read_list(&o->cells, value);
    if (!strcmp(name, "--k")) return read_number(value, 256, 1 << 20, &o->k) && o->k % 256 == 0;
    if (!strcmp(name, "--rows")) return read_number(value, 1, 1 << 20, &o->rows);
    if (!strcmp(name, "--threads")) return read_number(value, 1, MF_MAX_THREADS, &o->threads);
    if (!strcmp(name, "--mem")) return read_number(value, 0, 1 << 20, &o->mem_mb);
    if (!strcmp(name, "--rounds")) return read_number(value, 1, BENCH_MAX_ROUNDS, &o->rounds);
    return false;
}

static bool run_attn(const options *o, mf_pool *pool)
{
    bench_attn_options a = {.cap = o->cap,
                            .threads = o->threads,
                            .rounds = o->rounds,
                            .mem_mb = o->mem_mb,
                            .cells = o->cells.v,
                            .nt = o->nt.v,
                            .n_cells = o->cells.n,
                            .n_nt = o->nt.n};
    return bench_attn(&a, pool);
}

static bool run_matmuls(const options *o, mf_pool *pool)
{
    bool ok = true, found = false;
    for (size_t i = 0; ok && i < sizeof types / sizeof *types; i++)
        if (!o->type || !strcmp(o->type, types[i].name)) {
            found = true;
            ok = bench_type(o, &types[i], pool);
        }
    if (!found) fprintf(stderr, "bench_kernels: unknown type %s\n", o->type);
    return ok && found;
}

int main(int argc, char **argv)
{
    options o = {.cap = CPU_TIER_COUNT - 1,
                 .k = 1536,
                 .rows = 8960,
                 .threads = mf_cpu_count(),
                 .rounds = 5,
                 .mem_mb = 256};
    for (int i = 1; i < argc; i += 2)
        if (i + 1 >= argc || !read_option(&o, argv[i], argv[i + 1])) {
            fprintf(stderr, "bench_kernels: bad option or value: %s %s\n%s", argv[i],
                    i + 1 < argc ? argv[i + 1] : "", usage);
            return 2;
        }
    if (!o.nt.n) read_list(&o.nt, o.cells.n ? "1,64" : "1,2,4,8,16,64,512");
    mf_pool *pool = NULL;
    minfer_error err;
    if (mf_pool_create(o.threads, &pool, &err) != MINFER_OK) {
        fprintf(stderr, "bench_kernels: %s\n", err.message);
        return 1;
    }
    bool ok = o.cells.n ? run_attn(&o, pool) : run_matmuls(&o, pool);
    mf_pool_free(pool);
    return ok ? 0 : 1;
}
