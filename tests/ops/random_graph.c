#include "ops/random_graph.h"

#include "base/half.h"

enum { MAX_VALUES = 12, ROWS = 48, HEAD = 16 };

static uint32_t below(mf_rng *r, uint32_t n)
{
    return (uint32_t)((mf_rng_u64(r) >> 32) % n);
}

/* ---- weights ---- */

static void fill(mf_rng *r, mf_type type, uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += type == MF_TYPE_F32 ? 4 : MF_BYTES_Q8_0) {
        float f = (float)mf_rng_f64(r) - 0.5f;
        uint16_t d = mf_f32_to_f16(0.004f);
        if (type == MF_TYPE_F32)
            memcpy(p + i, &f, 4);
        else
            memcpy(p + i, &d, 2);
        for (size_t k = 2; k < MF_BYTES_Q8_0 && type != MF_TYPE_F32; k++) p[i + k] = (uint8_t)mf_rng_u64(r);
    }
}

/* The weight of that name and shape; the same one when it is asked for again. */
static const mf_weight *weight(random_graph *g, const char *what, mf_type type, int64_t in, int64_t out)
{
    char name[24];
    mf_rng r;
    size_t row;
    snprintf(name, sizeof name, "%s%d.%d.%d", what, (int)type, (int)in, (int)out);
    for (int i = 0; i < g->n_weights; i++)
        if (strcmp(g->weights[i].name, name) == 0) return &g->weights[i].w;
    assert_true(g->n_weights < RG_MAX_WEIGHTS);
    int i = g->n_weights++;
    memcpy(g->weights[i].name, name, sizeof name);
    g->weights[i].w = (mf_weight){g->weights[i].name, type, {in, out}};
    assert_true(mf_type_row_bytes(type, (uint64_t)in, &row));
    g->weights[i].bytes = row * (size_t)out;
    g->weights[i].data = mf_malloc(g->weights[i].bytes);
    assert_non_null(g->weights[i].data);
    mf_rng_seed(&r, g->seed * 31 + (uint64_t)i);
    fill(&r, type, g->weights[i].data, g->weights[i].bytes);
    return &g->weights[i].w;
}

minfer_status rg_register(const random_graph *r, mf_device *d, minfer_error *err)
{
    for (int i = 0; i < r->n_weights; i++)
        MF_TRY(d->ops->weight_register(d, &r->weights[i].w, r->weights[i].data, r->weights[i].bytes, err));
    return MINFER_OK;
}

/* ---- growing ---- */

typedef struct {
    mf_id id;
    int32_t n, nt;
} value;

/* A graph as it grows. Values that drop out of the list have no further reader, and their memory goes to
 * others. */
typedef struct {
    random_graph *g;
    mf_builder *b;
    mf_rng r;
    value v[MAX_VALUES];
    int n_v, n_nodes;
} growth;

static const char *name(growth *w, const char *what)
{
    static char s[32];
    snprintf(s, sizeof s, "%s%d", what, w->n_nodes++);
    return s;
}

static value any(growth *w)
{
    return w->v[below(&w->r, (uint32_t)w->n_v)];
}

static void push(growth *w, value v)
{
    if (w->n_v < MAX_VALUES)
        w->v[w->n_v++] = v;
    else
        w->v[below(&w->r, MAX_VALUES)] = v;
}

static int32_t random_width(growth *w, int32_t nt)
{
    static const int32_t widths[] = {32, 64, 80, 96, 112, 160, 512, 1024};
    int32_t n = widths[below(&w->r, sizeof widths / sizeof *widths)];
    return nt == 1 && below(&w->r, 4) == 0 ? 4096 : n;
}

static value source(growth *w)
{
    int32_t nt = w->b->p->n_tokens, n = random_width(w, nt);
    const mf_weight *table = weight(w->g, below(&w->r, 2) ? "t" : "u", MF_TYPE_F32, n, ROWS);
    return (value){mf_build_embed(w->b, name(w, "embed"), table, mf_build_input(w->b, MF_INPUT_TOKEN_IDS)), n,
                   nt};
}

static value unary(growth *w, value x)
{
    switch (below(&w->r, 6)) {
    case 0: x.id = mf_build_scale(w->b, name(w, "scale"), x.id, 0.75f); break;
    case 1: x.id = mf_build_unary(w->b, MF_OP_SOFTMAX, name(w, "softmax"), x.id); break;
    case 2:
        x.id = mf_build_rms_norm(w->b, name(w, "norm"), x.id, weight(w->g, "n", MF_TYPE_F32, x.n, 1), 1e-5f);
        break;
    case 3: x.id = mf_build_bias(w->b, name(w, "bias"), x.id, weight(w->g, "b", MF_TYPE_F32, x.n, 1)); break;
    default: x.id = mf_build_unary(w->b, MF_OP_SILU, name(w, "silu"), x.id); break;
    }
    return x;
}

/* With a value of the same shape, or with something made of the value itself: a diamond. */
static value binary(growth *w, value x)
{
    static const mf_op ops[] = {MF_OP_ADD, MF_OP_MUL, MF_OP_SWIGLU};
    value y = any(w);
    if (y.n != x.n || y.nt != x.nt) y = unary(w, x);
    mf_op op = ops[below(&w->r, 3)];
    x.id = mf_build_binary(w->b, op, name(w, "two"), x.id, y.id);
    return x;
}

static value product(growth *w, value x, int32_t out)
{
    mf_type type = x.n % 32 == 0 && below(&w->r, 4) ? MF_TYPE_Q8_0 : MF_TYPE_F32;
    x.id = mf_build_matmul(w->b, name(w, "product"), x.id, weight(w->g, "w", type, x.n, out));
    x.n = out;
    return x;
}

static value rope(growth *w, value x)
{
    mf_attr_rope r = {.head_dim = HEAD, .n_rot = HEAD, .freq_scale = 1};
    if (x.n % HEAD || x.nt != w->b->p->n_tokens) return unary(w, x);
    r.n_head = x.n / HEAD;
    r.n_rot = below(&w->r, 2) ? HEAD : HEAD / 2;
    r.interleaved = below(&w->r, 2);
    r.freq_base = below(&w->r, 2) ? 1e4f : 1e6f;
    x.id = mf_build_rope(w->b, name(w, "rope"), x.id, &r);
    return x;
}

/* The same elements in rows of half the width, through some op, and back. */
static value folded(growth *w, value x)
{
    const int64_t half[4] = {x.n / 2, 2 * x.nt, 1, 1}, whole[4] = {x.n, x.nt, 1, 1};
    value y = {mf_build_view(w->b, name(w, "view"), x.id, 0, half), x.n / 2, 2 * x.nt};
    y = unary(w, y);
    x.id = mf_build_reshape(w->b, name(w, "reshape"), y.id, whole);
    return x;
}

static value turned(growth *w, value x)
{
    const int32_t axes[4] = {1, 0, 2, 3};
    x.id = mf_build_permute(w->b, name(w, "permute"), x.id, axes);
    x.id = mf_build_scale(w->b, name(w, "scale"), x.id, 0.5f);
    x.id = mf_build_permute(w->b, name(w, "permute"), x.id, axes);
    return x;
}

static value gathered(growth *w, value x)
{
    mf_id tail = mf_build_input(w->b, MF_INPUT_TAIL_IDS);
    if (tail < 0 || x.nt != w->b->p->n_tokens) return binary(w, x);
    x.id = mf_build_gather(w->b, name(w, "gather"), x.id, tail);
    x.nt = w->b->p->n_out;
    return x;
}

static value grown(growth *w, value x)
{
    switch (below(&w->r, 12)) {
    case 0:
    case 1: return unary(w, x);
    case 2:
    case 3: return binary(w, x);
    case 4:
    case 5:
    case 6: return product(w, x, random_width(w, x.nt));
    case 7: return rope(w, x);
    case 8: return folded(w, x);
    case 9: return turned(w, x);
    case 10: return gathered(w, x);
    default: return source(w);
    }
}

/* ---- cache ---- */

/* A loaded value with all its rows through an op, the first rows of which come to life as a value. */
static void read_load(growth *w, mf_id first, bool is_v)
{
    const mf_attr_kv *kv = &w->g->kv;
    const int64_t part[4] = {kv->head_dim, w->b->p->n_tokens, 1, 1};
    for (mf_id i = first; i >= 0 && i < w->b->g->n_nodes; i++) {
        const mf_node *n = &w->b->g->nodes[i];
        if (n->op != MF_OP_KVCACHE_LOAD || n->attr.kv.is_v != is_v) continue;
        mf_id x = mf_build_scale(w->b, name(w, "loaded"), i, 0.5f);
        x = mf_build_view(w->b, name(w, "rows"), x, 0, part);
        push(w, (value){mf_build_scale(w->b, name(w, "scale"), x, 2.f), kv->head_dim, w->b->p->n_tokens});
        return;
    }
}

static void attend(growth *w, int32_t layer)
{
    mf_attr_kv kv = w->g->kv;
    kv.layer = layer;
    value x = source(w);
    int32_t heads = 2 * kv.n_kv, nt = w->b->p->n_tokens;
    value q = rope(w, product(w, x, heads * kv.head_dim)), k = rope(w, product(w, x, kv.n_kv * kv.head_dim)),
          v = product(w, x, kv.n_kv * kv.head_dim);
    w->b->layer = layer;
    mf_id first = w->b->g->n_nodes, store = mf_build_kv_store(w->b, name(w, "store"), k.id, v.id, &kv);
    mf_id y = mf_build_attn(w->b, name(w, "attn"), q.id, store, &kv, heads, 0.25f);
    w->b->layer = -1;
    push(w, (value){y, heads * kv.head_dim, nt});
    if (!w->b->p->flash_attn && kv.format == MF_TYPE_F32) read_load(w, first, below(&w->r, 2));
}

/* Everything that is still alive flows into the output. */
static mf_id joined(growth *w)
{
    int32_t nt = w->b->p->n_out;
    mf_id sum = -1;
    for (int i = 0; i < w->n_v; i++) {
        value x = w->v[i];
        if (x.nt != nt) x = gathered(w, x);
        if (x.n != 64) x = product(w, x, 64);
        sum = sum < 0 ? x.id : mf_build_binary(w->b, MF_OP_ADD, name(w, "sum"), sum, x.id);
    }
    return sum;
}

minfer_status rg_build(void *model, mf_builder *b)
{
    growth w = {.g = model, .b = b};
    mf_rng_seed(&w.r, w.g->seed);
    for (int i = 0; i < 3; i++) push(&w, source(&w));
    int steps = 8 + (int)below(&w.r, 16);
    for (int i = 0; i < steps; i++) {
        if (i % 6 == 5 && i / 6 < RG_LAYERS) attend(&w, i / 6);
        value x = grown(&w, any(&w));
        push(&w, x);
    }
    return mf_build_finish(b, joined(&w));
}

/* ---- parameters and inputs ---- */

void rg_init(random_graph *g, uint64_t seed)
{
    static const mf_type formats[] = {MF_TYPE_F32, MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    mf_rng r;
    *g = (random_graph){.seed = seed};
    mf_rng_seed(&r, seed + 77);
    int32_t nt = below(&r, 3) ? 9 + (int32_t)below(&r, RG_MAX_TOKENS - 8) : 1 + (int32_t)below(&r, 8);
    int32_t n_out = nt > 1 && below(&r, 3) ? 1 + (int32_t)below(&r, (uint32_t)nt - 1) : nt;
    bool full = below(&r, 2); /* the cache has a cell for each token, in one head */
    g->kv = (mf_attr_kv){
        .n_kv = full ? 1 : 2, .head_dim = 32, .n_ctx = full ? nt : nt + 260, .format = formats[below(&r, 4)]};
    g->params = (mf_graph_params){.n_tokens = nt,
                                  .n_out = n_out,
                                  .kind = MF_GRAPH_PREFILL,
                                  .n_ctx = g->kv.n_ctx,
                                  .flash_attn = below(&r, 3) == 0,
                                  .kv_format = g->kv.format,
                                  .gpu_layers = -1};
    for (int32_t t = 0; t < nt; t++) {
        g->ids[t] = (int32_t)below(&r, ROWS);
        g->positions[t] = (int32_t)below(&r, (uint32_t)g->kv.n_ctx);
        g->cells[t] = g->kv.n_ctx - 1 - t; /* other threads' tokens write to a thread's rows */
        g->tail[t] = (int32_t)below(&r, (uint32_t)nt);
    }
}

void rg_free(random_graph *r)
{
    for (int i = 0; i < r->n_weights; i++) mf_free(r->weights[i].data);
    r->n_weights = 0;
}

mf_inputs rg_inputs(const random_graph *r)
{
    size_t n = (size_t)r->params.n_tokens;
    return (mf_inputs){.data = {r->ids, r->positions, r->cells, r->tail},
                       .n = {n, n, n, (size_t)r->params.n_out}};
}

void rg_fill_cache(const random_graph *g, void *kv, size_t bytes)
{
    mf_rng r;
    mf_rng_seed(&r, g->seed + 3);
    if (g->kv.format == MF_TYPE_Q8_0) {
        fill(&r, MF_TYPE_Q8_0, kv, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += g->kv.format == MF_TYPE_F32 ? 4 : 2) {
        float f = (float)mf_rng_f64(&r) - 0.5f;
        uint16_t h = mf_f32_to_f16(f);
        if (g->kv.format == MF_TYPE_F32)
            memcpy((uint8_t *)kv + i, &f, 4);
        else
            memcpy((uint8_t *)kv + i, &h, 2);
    }
}
