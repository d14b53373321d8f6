/* What a test has to do, counted from the model's tensors. */
#include "cli/bench.h"

#include <stdio.h>
#include <string.h>

static const char embeddings[] = "token_embd.weight", output[] = "output.weight";

static bool has_output(const minfer_model *m, size_t n_tensors)
{
    minfer_tensor_info t;
    for (size_t i = 0; i < n_tensors; i++) {
        minfer_model_tensor(m, i, &t);
        if (strcmp(t.name, output) == 0) return true;
    }
    return false;
}

uint64_t bench_weight_bytes(const minfer_model *m, const minfer_model_info *info)
{
    bool tied = !has_output(m, info->n_tensors);
    uint64_t sum = 0;
    for (size_t i = 0; i < info->n_tensors; i++) {
        minfer_tensor_info t;
        minfer_model_tensor(m, i, &t);
        bool is_embeddings = strcmp(t.name, embeddings) == 0;
        if (is_embeddings && t.dims[1]) sum += t.bytes / t.dims[1];
        if (!is_embeddings || tied) sum += t.bytes;
    }
    return sum;
}

/* Bytes of one token's keys and values in all layers. Blocks of Q8_0 hold 32 numbers in 34 bytes. */
static double cache_bytes(const bench_setup *s)
{
    const char *type = s->engine.cache_type;
    double each = strcmp(type, "f32") == 0 ? 4 : strcmp(type, "q8_0") == 0 ? 34.0 / 32 : 2;
    const minfer_model_info *m = &s->model;
    return 2.0 * m->n_layer * m->n_head_kv * m->head_dim * each;
}

/* Of a prompt only the last token's row goes through the output matrix and the last feed-forward part. */
static bool on_last_row(const char *name, bool tied, int32_t n_layer)
{
    char last[32];
    int n = snprintf(last, sizeof last, "blk.%d.ffn_", n_layer - 1);
    return strncmp(name, last, (size_t)n) == 0 || strcmp(name, tied ? embeddings : output) == 0;
}

static double products(const minfer_model *m, const minfer_model_info *info, double n)
{
    bool tied = !has_output(m, info->n_tensors);
    double sum = 0;
    for (size_t i = 0; i < info->n_tensors; i++) {
        minfer_tensor_info t;
        minfer_model_tensor(m, i, &t);
        if (t.n_dims < 2 || (!tied && strcmp(t.name, embeddings) == 0)) continue;
        sum += (double)t.dims[0] * (double)t.dims[1] * (on_last_row(t.name, tied, info->n_layer) ? 1 : n);
    }
    return sum;
}

bench_work bench_work_of(const minfer_model *m, const bench_setup *s, const bench_test *t)
{
    double n = t->n, cells = n * t->depth + n * (n + 1) / 2; /* a token sees itself, too */
    if (t->kind == BENCH_PREFILL) return (bench_work){.products = products(m, &s->model, n)};
    return (bench_work){.bytes = n * (double)bench_weight_bytes(m, &s->model) +
                                 t->batch * cells * cache_bytes(s)};
}
