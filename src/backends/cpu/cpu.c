/* The CPU as a device: memory is the host's, weights stay where the file is mapped, programs run on a pool.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/device.h"

#include <string.h>

enum {
    F32_BIT = 1 << MF_TYPE_F32,
    I32_BIT = 1 << MF_TYPE_I32,
    CACHE_BITS = 1 << MF_TYPE_F32 | 1 << MF_TYPE_F16 | 1 << MF_TYPE_Q8_0,
    WEIGHT_BITS = 1 << MF_TYPE_F32 | 1 << MF_TYPE_F16 | 1 << MF_TYPE_BF16 | 1 << MF_TYPE_Q4_0 |
                  1 << MF_TYPE_Q4_1 | 1 << MF_TYPE_Q5_0 | 1 << MF_TYPE_Q5_1 | 1 << MF_TYPE_Q8_0 |
                  1 << MF_TYPE_Q4_K | 1 << MF_TYPE_Q5_K | 1 << MF_TYPE_Q6_K,
};

const mf_caps mf_cpu_caps = {
    .types =
        {
            [MF_OP_INPUT] = I32_BIT,
            [MF_OP_ADD] = F32_BIT,
            [MF_OP_MUL] = F32_BIT,
            [MF_OP_SCALE] = F32_BIT,
            [MF_OP_SILU] = F32_BIT,
            [MF_OP_SOFTMAX] = F32_BIT,
            [MF_OP_RMS_NORM] = F32_BIT,
            [MF_OP_QK_NORM] = F32_BIT,
            [MF_OP_MATMUL] = WEIGHT_BITS,
            [MF_OP_GET_ROWS] = WEIGHT_BITS,
            [MF_OP_ROPE] = F32_BIT,
            [MF_OP_ATTN] = CACHE_BITS,
            [MF_OP_KVCACHE_STORE] = CACHE_BITS,
            [MF_OP_KVCACHE_LOAD] = CACHE_BITS,
            [MF_OP_VIEW] = F32_BIT,
            [MF_OP_RESHAPE] = F32_BIT | I32_BIT,
            [MF_OP_PERMUTE] = F32_BIT,
            [MF_OP_SWIGLU] = F32_BIT,
            [MF_OP_BATCH_MATMUL] = F32_BIT,
        },
    .explicit_windows = true,
};

static cpu_device *self(mf_device *d)
{
    return (cpu_device *)d;
}

static bool supports(const mf_device *d, const mf_graph *g, const mf_node *n)
{
    (void)d;
    (void)g;
    return mf_caps_has(&mf_cpu_caps, n);
}

static minfer_status buffer_alloc(mf_device *d, size_t bytes, void **buf, minfer_error *err)
{
    (void)d;
    *buf = mf_malloc_aligned(bytes);
    if (*buf) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_NOMEM, "cpu: cannot allocate %.1f MiB", (double)bytes / 1048576.0);
}

static void buffer_free(mf_device *d, void *buf)
{
    (void)d;
    mf_free_aligned(buf);
}

static minfer_status write(mf_device *d, mf_mem dst, const void *src, size_t n, minfer_error *err)
{
    (void)d;
    (void)err;
    if (n) memcpy((uint8_t *)dst.buf + dst.offset, src, n);
    return MINFER_OK;
}

static minfer_status read(mf_device *d, mf_mem src, void *dst, size_t n, minfer_error *err)
{
    (void)d;
    (void)err;
    if (n) memcpy(dst, (const uint8_t *)src.buf + src.offset, n);
    return MINFER_OK;
}

static minfer_status copy_across(mf_device *d, mf_mem src, mf_device *to, mf_mem dst, size_t n,
                                 uint64_t *ticket, minfer_error *err)
{
    (void)d;
    *ticket = 0;
    return to->ops->write(to, dst, (const uint8_t *)src.buf + src.offset, n, err);
}

static minfer_status wait(mf_device *d, uint64_t ticket, minfer_error *err)
{
    (void)d;
    (void)ticket;
    (void)err;
    return MINFER_OK;
}

static minfer_status move(mf_device *d, mf_mem dst, mf_mem src, size_t n, minfer_error *err)
{
    (void)d;
    (void)err;
    memmove((uint8_t *)dst.buf + dst.offset, (const uint8_t *)src.buf + src.offset, n);
    return MINFER_OK;
}

static minfer_status sync(mf_device *d, minfer_error *err)
{
    return wait(d, 0, err);
}

const cpu_weight *cpu_weight_find(const cpu_device *d, const char *name)
{
    uint32_t i = mf_strmap_get(&d->names, name, strlen(name));
    return i == MF_STRMAP_NONE ? NULL : d->weights[i];
}

static void weight_free(cpu_weight *w)
{
    if (w) mf_free(w->name);
    mf_free(w);
}

static minfer_status weight_register(mf_device *dev, const mf_weight *w, const void *data, size_t bytes,
                                     minfer_error *err)
{
    cpu_device *d = self(dev);
    size_t row, total;
    if (cpu_weight_find(d, w->name)) return MINFER_OK;
    if (!mf_type_row_bytes(w->type, (uint64_t)w->dims[0], &row) ||
        !mf_mul_ok(row, (size_t)w->dims[1], &total) || total != bytes)
        return mf_fail(err, MINFER_ERR_ARG, "weight %s: %zu bytes do not hold %s [%lld, %lld]", w->name,
                       bytes, mf_type_name(w->type), (long long)w->dims[0], (long long)w->dims[1]);
    if (!mf_grow((void **)&d->weights, &d->cap_weights, d->n_weights + 1, sizeof *d->weights))
        return MF_NOMEM(err);
    cpu_weight *c = mf_calloc(1, sizeof *c);
    if (c) *c = (cpu_weight){mf_strndup(w->name, strlen(w->name)), w->type, {w->dims[0], w->dims[1]}, data};
    if (!c || !c->name || !mf_strmap_add(&d->names, c->name, strlen(c->name), (uint32_t)d->n_weights, NULL)) {
        weight_free(c);
        return MF_NOMEM(err);
    }
    d->weights[d->n_weights++] = c;
    return MINFER_OK;
}

static bool weight_known(const mf_device *d, const mf_weight *w)
{
    return cpu_weight_find((const cpu_device *)d, w->name) != NULL;
}

/* Names that stay are entered again; the map had room for them. */
static void weights_forget(mf_device *dev, const char *prefix)
{
    cpu_device *d = self(dev);
    size_t kept = 0;
    mf_strmap names = {d->names.slots, d->names.cap, 0};
    if (names.cap) memset(names.slots, 0, names.cap * sizeof *names.slots);
    for (size_t i = 0; i < d->n_weights; i++) {
        cpu_weight *w = d->weights[i];
        if (strncmp(w->name, prefix, strlen(prefix)) == 0) {
            weight_free(w);
        } else {
            mf_strmap_add(&names, w->name, strlen(w->name), (uint32_t)kept, NULL);
            d->weights[kept++] = w;
        }
    }
    d->names = names;
    d->n_weights = kept;
}

mf_id cpu_first_act_reader(const cpu_device *d, const mf_graph *g, mf_id id)
{
    for (mf_id i = id + 1; i < g->n_nodes; i++) {
        const mf_node *n = &g->nodes[i];
        if (n->op == MF_OP_MATMUL && !n->dead && n->src[0] == id && n->device == d->base.index &&
            mf_type_get((uint32_t)n->attr.weight.w->type)->quantized)
            return i;
    }
    return -1;
}

static size_t value_extra(const mf_device *dev, const mf_graph *g, mf_id id)
{
    const mf_node *n = &g->nodes[id];
    if (n->dtype != MF_TYPE_F32 || cpu_first_act_reader((const cpu_device *)dev, g, id) < 0) return 0;
    return cpu_act_bytes((int32_t)n->shape[0], (int32_t)(mf_node_elements(n) / n->shape[0]));
}

static size_t graph_scratch(const mf_device *d, const mf_graph *g)
{
    cpu_scratch s;
    cpu_scratch_layout((const cpu_device *)d, g, &s);
    return s.total;
}

static minfer_status prepare(mf_device *d, const mf_exec *x, mf_id a, mf_id b, void **program,
                             minfer_error *err)
{
    cpu_program *p;
    MF_TRY(cpu_program_make(self(d), x, a, b, &p, err));
    *program = p;
    return MINFER_OK;
}

static minfer_status run(mf_device *d, const mf_exec *x, void *program, minfer_error *err)
{
    return cpu_program_run(self(d), x, program, err);
}

static void discard(mf_device *d, void *program)
{
    (void)d;
    cpu_program_free(program);
}

static void close_device(mf_device *dev)
{
    cpu_device *d = self(dev);
    for (size_t i = 0; i < d->n_weights; i++) weight_free(d->weights[i]);
    mf_free(d->weights);
    mf_strmap_free(&d->names);
    mf_pool_free(d->pool);
    mf_free(d);
}

const mf_device_ops cpu_device_ops = {
    .supports = supports,
    .buffer_alloc = buffer_alloc,
    .buffer_free = buffer_free,
    .write = write,
    .read = read,
    .copy_across = copy_across,
    .move = move,
    .wait = wait,
    .sync = sync,
    .weight_register = weight_register,
    .weight_known = weight_known,
    .weights_forget = weights_forget,
    .value_extra = value_extra,
    .graph_scratch = graph_scratch,
    .prepare = prepare,
    .run = run,
    .discard = discard,
    .close = close_device,
};

minfer_status mf_cpu_usable(minfer_error *why)
{
    (void)why;
    return MINFER_OK;
}

minfer_status mf_cpu_open(const mf_backend_options *o, mf_device **out, minfer_error *err)
{
    *out = NULL;
    int32_t cap = o->cpu_tier < 0 ? CPU_TIER_COUNT - 1 : o->cpu_tier;
    if (cap >= CPU_TIER_COUNT) return mf_fail(err, MINFER_ERR_ARG, "cpu: tier %d is unknown", cap);
    cpu_device *d = mf_calloc(1, sizeof *d);
    if (!d) return MF_NOMEM(err);
    d->base = (mf_device){.ops = &cpu_device_ops,
                          .name = "cpu",
                          .id = MF_BACKEND_CPU,
                          .priority = mf_backend_table[MF_BACKEND_CPU].priority,
                          .budget = o->budget,
                          .explicit_windows = mf_cpu_caps.explicit_windows,
                          .fused_ops = mf_cpu_caps.fused_ops};
    d->emitters = cpu_emitters;
    cpu_kernels_select(&d->kernels, (cpu_tier)cap);
    minfer_status st = mf_pool_create(o->n_threads > 0 ? o->n_threads : mf_cpu_count(), &d->pool, err);
    if (st != MINFER_OK) {
        close_device(&d->base);
        return st;
    }
    *out = &d->base;
    return MINFER_OK;
}

const char *mf_cpu_tier(const mf_device *d)
{
    return ((const cpu_device *)d)->kernels.tier;
}
int32_t mf_cpu_threads(const mf_device *d)
{
    return mf_pool_threads(((const cpu_device *)d)->pool);
}
