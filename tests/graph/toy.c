#include "graph/toy.h"

#include "base/half.h"

static mf_weight weight(toy_model *m, const char *name, int layer, mf_type type, int64_t in, int64_t out)
{
    char *s = m->names[m->n_names++];
    if (layer < 0)
        snprintf(s, sizeof m->names[0], "%s", name);
    else
        snprintf(s, sizeof m->names[0], "blk.%d.%s", layer, name);
    return (mf_weight){s, type, {in, out}};
}

void toy_model_init(toy_model *m, mf_type type)
{
    int64_t q = TOY_HEADS * TOY_DIM, k = TOY_KV * TOY_DIM;
    *m = (toy_model){0};
    m->embd = weight(m, "embd", -1, type, TOY_EMBD, TOY_VOCAB);
    m->out_norm = weight(m, "out_norm", -1, MF_TYPE_F32, TOY_EMBD, 1);
    for (int il = 0; il < 2; il++) {
        m->norm[il] = weight(m, "norm", il, MF_TYPE_F32, TOY_EMBD, 1);
        m->ffn_norm[il] = weight(m, "ffn_norm", il, MF_TYPE_F32, TOY_EMBD, 1);
        m->wq[il] = weight(m, "q", il, type, TOY_EMBD, q);
        m->wk[il] = weight(m, "k", il, type, TOY_EMBD, k);
        m->wv[il] = weight(m, "v", il, type, TOY_EMBD, k);
        m->wo[il] = weight(m, "o", il, type, q, TOY_EMBD);
        m->gate[il] = weight(m, "gate", il, type, TOY_EMBD, TOY_FF);
        m->up[il] = weight(m, "up", il, type, TOY_EMBD, TOY_FF);
        m->down[il] = weight(m, "down", il, type, TOY_FF, TOY_EMBD);
        m->bq[il] = weight(m, "bq", il, MF_TYPE_F32, q, 1);
    }
}

/* F32 and Q8_0 values; others are not needed here. */
static void *values(const mf_weight *w, size_t *bytes)
{
    mf_rng r;
    size_t row = 0, n = (size_t)(w->dims[0] * w->dims[1]);
    mf_rng_seed(&r, (uint64_t)w->name[0] * 31 + (uint64_t)w->name[strlen(w->name) - 1] + (uint64_t)n);
    assert_true(mf_type_row_bytes(w->type, (uint64_t)w->dims[0], &row));
    *bytes = row * (size_t)w->dims[1];
    uint8_t *p = mf_calloc(*bytes, 1);
    assert_non_null(p);
    if (w->type == MF_TYPE_F32)
        for (size_t i = 0; i < n; i++)
            ((float *)(void *)p)[i] = (float)(mf_rng_f64(&r) - 0.5) * (w->dims[1] == 1 ? 2.f : 0.3f);
    else
        for (size_t b = 0; b < *bytes; b += MF_BYTES_Q8_0) {
            uint16_t d = mf_f32_to_f16(0.002f);
            memcpy(p + b, &d, 2);
            for (int i = 2; i < MF_BYTES_Q8_0; i++) p[b + (size_t)i] = (uint8_t)(mf_rng_u64(&r) % 255 - 127);
        }
    return p;
}

void toy_register(const toy_model *m, toy_store *s, mf_device *d)
{
    minfer_error err = {0};
    const mf_weight *w = &m->embd; /* the weights are one array */
    for (int i = 0; i < m->n_names; i++) {
        size_t bytes;
        s->data[s->n] = values(&w[i], &bytes);
        assert_ok(d->ops->weight_register(d, &w[i], s->data[s->n], bytes, &err), &err);
        s->n++;
    }
}

void toy_store_free(toy_store *s)
{
    for (int i = 0; i < s->n; i++) mf_free(s->data[i]);
    s->n = 0;
}

static mf_id toy_layer(const toy_model *m, mf_builder *b, mf_id x, int il)
{
    mf_attr_kv kv = {
        .layer = il, .n_kv = TOY_KV, .head_dim = TOY_DIM, .n_ctx = b->p->n_ctx, .format = b->p->kv_format};
    mf_attr_rope rq = {.n_head = TOY_HEADS,
                       .head_dim = TOY_DIM,
                       .n_rot = TOY_DIM,
                       .freq_base = 10000.f,
                       .freq_scale = 1.f},
                 rk = rq;
    rk.n_head = TOY_KV;
    mf_id h = mf_build_rms_norm(b, "norm", x, &m->norm[il], 1e-5f);
    mf_id q = mf_build_bias(b, "q_bias", mf_build_matmul(b, "q", h, &m->wq[il]), &m->bq[il]);
    mf_id k = mf_build_matmul(b, "k", h, &m->wk[il]), v = mf_build_matmul(b, "v", h, &m->wv[il]);
    q = mf_build_rope(b, "q_rope", q, &rq);
    k = mf_build_rope(b, "k_rope", k, &rk);
    mf_id store = mf_build_kv_store(b, "store", k, v, &kv);
    h = mf_build_attn(b, "attn", q, store, &kv, TOY_HEADS, 0.25f);
    x = mf_build_binary(b, MF_OP_ADD, "res", mf_build_matmul(b, "o", h, &m->wo[il]), x);
    h = mf_build_rms_norm(b, "ffn_norm", x, &m->ffn_norm[il], 1e-5f);
    mf_id g = mf_build_unary(b, MF_OP_SILU, "silu", mf_build_matmul(b, "gate", h, &m->gate[il]));
    g = mf_build_binary(b, MF_OP_MUL, "mul", mf_build_matmul(b, "up", h, &m->up[il]), g);
    return mf_build_binary(b, MF_OP_ADD, "ffn_res", mf_build_matmul(b, "down", g, &m->down[il]), x);
}

minfer_status toy_build(void *model, mf_builder *b)
{
    const toy_model *m = model;
    mf_id x = mf_build_embed(b, "embd", &m->embd, mf_build_input(b, MF_INPUT_TOKEN_IDS));
    for (b->layer = 0; b->layer < 2; b->layer++) x = toy_layer(m, b, x, b->layer);
    b->layer = -1;
    if (mf_build_input(b, MF_INPUT_TAIL_IDS) >= 0)
        x = mf_build_gather(b, "tail", x, mf_build_input(b, MF_INPUT_TAIL_IDS));
    x = mf_build_rms_norm(b, "out_norm", x, &m->out_norm, 1e-5f);
    return mf_build_finish(b, mf_build_matmul(b, "logits", x, &m->embd));
}

mf_graph_params toy_params(int32_t n_tokens, int32_t n_out)
{
    return (mf_graph_params){.n_tokens = n_tokens,
                             .n_out = n_out,
                             .kind = n_tokens == 1 ? MF_GRAPH_DECODE : MF_GRAPH_PREFILL,
                             .n_ctx = TOY_CTX,
                             .flash_attn = true,
                             .fuse_qkv = true,
                             .fuse_ffn = true,
                             .kv_format = MF_TYPE_F32,
                             .gpu_layers = -1,
                             .weights_version = 1};
}

void toy_run(mf_graph_cache *c, const mf_graph_params *p, int32_t at, float *logits)
{
    minfer_error err = {0};
    int32_t ids[TOY_CTX], pos[TOY_CTX], tail[TOY_CTX], span[2 * TOY_CTX], map[8 * TOY_CTX] = {0};
    mf_cached_graph *g;
    for (int32_t i = 0; i < p->n_tokens; i++) {
        ids[i] = (7 * (at + i) + 3) % TOY_VOCAB;
        pos[i] = at + i;
        span[2 * i] = 0;
        span[2 * i + 1] = at + i + 1;
        map[8 * i + 1] = (at + i + 1) / 2; /* the same window in two spans */
        map[8 * i + 2] = (at + i + 1) / 2;
        map[8 * i + 3] = at + i + 1 - (at + i + 1) / 2;
    }
    for (int32_t i = 0; i < p->n_out; i++) tail[i] = p->n_tokens - p->n_out + i;
    size_t n = (size_t)p->n_tokens;
    mf_inputs in = {.data = {ids, pos, pos, tail, span, map}, .n = {n, n, n, (size_t)p->n_out, 2 * n, 8 * n}};
    assert_ok(mf_graph_cache_get(c, p, &g, &err), &err);
    assert_ok(mf_graph_cache_run(c, g, &in, logits, &err), &err);
}

static bool paper_supports(const mf_device *d, const mf_graph *g, const mf_node *n)
{
    (void)g;
    if (n->op == MF_OP_ATTN && n->attr.attn.window != MF_WINDOW_CAUSAL && !d->explicit_windows) return false;
    return ((const paper_device *)(const void *)d)->ops >> n->op & 1;
}

void paper_device_init(paper_device *d, const char *name, int32_t priority, uint32_t ops)
{
    static const mf_device_ops paper_ops = {.supports = paper_supports};
    *d = (paper_device){
        .base = {.ops = &paper_ops, .name = name, .priority = priority, .explicit_windows = true},
        .ops = ops};
}
