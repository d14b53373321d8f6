#include "ops/bench.h"

#include "base/clock.h"
#include "graph/cache.h"
#include "ops/cases.h"

#include <stdlib.h>

enum { ROUNDS = 15 };

typedef struct {
    op_device *devices;
    size_t n;
    const char *only;
} bench;

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Median time of running the graph of a case, or of its operands alone; -1: it does not run here. */
static int64_t time_graph(op_device *dv, const op_case *c, const op_data *d, bool inputs)
{
    op_model m = {.c = c, .d = d, .inputs = inputs};
    mf_graph_cache cache = {0};
    mf_cached_graph *g;
    mf_assign assign = {.devices = &dv->dev, .n_devices = 1};
    mf_graph_params p = op_params(c);
    minfer_error err = {0};
    int64_t ns[ROUNDS], median = -1;
    size_t nt = (size_t)c->nt;
    mf_inputs in = {.data = {d->ids, d->positions, d->cells, NULL, d->window, d->window},
                    .n = {nt, nt, nt, 0, 2 * nt, 8 * nt}};
    assert_ok(mf_graph_cache_init(&cache, &assign, OP_LAYERS, op_build, &m, &err), &err);
    if (mf_graph_cache_get(&cache, &p, &g, &err) == MINFER_OK) {
        for (int i = -2; i < ROUNDS; i++) {
            int64_t from = mf_clock_ns();
            assert_ok(mf_graph_cache_run(&cache, g, &in, NULL, &err), &err);
            if (i >= 0) ns[i] = mf_clock_ns() - from;
        }
        qsort(ns, ROUNDS, sizeof *ns, by_value);
        median = ns[ROUNDS / 2];
    }
    mf_graph_cache_free(&cache);
    return median;
}

/* Bytes an op must move: operands, result, weights, the cache rows of its windows. */
static double bytes_of(const op_case *c, const op_data *d, double out)
{
    double n = out * sizeof(float), nt = c->nt;
    const op_operand *const all[] = {d->x, d->y, d->z};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i]) n += nt * (double)all[i]->w.dims[0] * sizeof(float);
    if (c->op == MF_OP_GET_ROWS) return n + nt * (double)d->w[0]->bytes / c->rows;
    for (int i = 0; i < 3; i++)
        if (d->w[i]) n += (double)d->w[i]->bytes;
    if (c->op == MF_OP_ATTN) n += 2.0 * c->filled * c->n_kv * (double)d->row_bytes;
    if (c->op == MF_OP_KVCACHE_STORE) n += 2 * nt * c->n_kv * (double)d->row_bytes;
    return n;
}

static double macs_of(const op_case *c, const op_data *d)
{
    double n = 0;
    if (c->op == MF_OP_MATMUL) return (double)c->n * c->rows * c->nt;
    for (int32_t t = 0; t < c->nt && c->op == MF_OP_ATTN; t++)
        n += 2.0 * (d->positions[t] + 1) * c->n_head * c->head_dim;
    return n;
}

static double outputs_of(const op_case *c)
{
    if (c->op == MF_OP_KVCACHE_STORE) return 0;
    if (c->rows && c->op != MF_OP_GET_ROWS) return (double)c->rows * c->nt;
    if (c->n_head) return (double)c->n_head * c->head_dim * c->nt;
    return (double)(c->shape[0] ? c->shape[0] : c->n) * c->nt;
}

static void measure(op_device *dv, const op_case *c, const op_data *d, const char *name)
{
    minfer_error err = {0};
    assert_ok(op_register(dv, d, &err), &err);
    int64_t all = time_graph(dv, c, d, false), base = d->x || d->y ? time_graph(dv, c, d, true) : 0;
    op_forget(dv);
    if (all < 0) return;
    double us = (double)(all > base ? all - base : 1) / 1e3, macs = macs_of(c, d);
    printf("%-24s %-62s %10.1f us %8.2f GB/s", dv->name, name, us, bytes_of(c, d, outputs_of(c)) / us / 1e3);
    if (macs > 0) printf(" %8.1f GMAC/s", macs / us / 1e3);
    printf("\n");
}

static void one(void *user, const op_case *c)
{
    const bench *b = user;
    char name[256];
    op_data d;
    op_case_name(c, name, sizeof name);
    if (b->only && !strstr(name, b->only)) return;
    op_data_make(c, 1, &d);
    for (size_t i = 0; i < b->n; i++)
        if (b->devices[i].dev) measure(&b->devices[i], c, &d, name);
    op_data_free(&d);
}

void op_bench(op_device *devices, size_t n, const char *only)
{
    bench b = {devices, n, only};
    printf("time of an op: a graph with it, less a graph of its operands alone; median of %d\n", (int)ROUNDS);
    op_bench_cases(one, &b);
}
