/* Measuring the machine's limits. What depends on the processor stands in limits_x86.c, limits_arm.c and
 * limits_none.c. */
#include "common/limits.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

uint64_t app_limit_read(const void *p, size_t n)
{
    const uint64_t *v = p;
    uint64_t s[8] = {0};
    for (size_t i = 0; i < n / 8; i += 8)
        for (size_t j = 0; j < 8; j++) s[j] ^= v[i + j];
    for (size_t j = 1; j < 8; j++) s[0] ^= s[j];
    return s[0];
}

enum { ROUNDS = 5 };
static const uint64_t least_bytes = 1 << 20, most_bytes = 256 << 20;

typedef struct job {
    const char *tier;
    uint8_t *memory;
    size_t share; /* bytes of each thread */
    _Atomic uint64_t sink, products;
} job;

static void touch(void *arg, int ith, int nth)
{
    job *j = arg;
    (void)nth;
    memset(j->memory + (size_t)ith * j->share, ith + 1, j->share);
}

static void read_share(void *arg, int ith, int nth)
{
    job *j = arg;
    (void)nth;
    atomic_fetch_add(&j->sink, app_limit_read(j->memory + (size_t)ith * j->share, j->share));
}

static void multiply(void *arg, int ith, int nth)
{
    job *j = arg;
    (void)ith, (void)nth;
    atomic_fetch_add(&j->products, app_limit_products(j->tier));
}

static double ns_of(mf_pool *pool, mf_pool_fn *fn, job *j)
{
    int64_t start = mf_clock_ns();
    mf_pool_run(pool, fn, j);
    int64_t ns = mf_clock_ns() - start;
    return ns > 0 ? (double)ns : 1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double v[ROUNDS])
{
    qsort(v, ROUNDS, sizeof *v, by_value);
    return v[ROUNDS / 2];
}

static void measure(mf_pool *pool, job *j, app_limits *out)
{
    double read[ROUNDS], int8[ROUNDS];
    size_t bytes = j->share * (size_t)mf_pool_threads(pool);
    mf_pool_run(pool, touch, j);
    for (int i = 0; i < ROUNDS; i++) {
        read[i] = (double)bytes / ns_of(pool, read_share, j);
        atomic_store(&j->products, 0);
        double ns = ns_of(pool, multiply, j);
        int8[i] = (double)atomic_load(&j->products) / ns;
    }
    *out = (app_limits){median(read), median(int8)};
}

minfer_status app_limits_measure(int threads, const char *tier, uint64_t bytes, app_limits *out,
                                 minfer_error *err)
{
    mf_pool *pool;
    job j = {.tier = tier};
    if (bytes < least_bytes) bytes = least_bytes;
    if (bytes > most_bytes) bytes = most_bytes;
    MF_TRY(mf_pool_create(threads, &pool, err));
    j.share = mf_align_up((size_t)bytes / (size_t)threads, 64);
    j.memory = mf_malloc_aligned(j.share * (size_t)threads);
    if (j.memory) measure(pool, &j, out);
    minfer_status st = j.memory ? MINFER_OK : MF_NOMEM(err);
    mf_free_aligned(j.memory);
    mf_pool_free(pool);
    return st;
}
