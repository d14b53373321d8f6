#include "ops/graph.h"

typedef mf_id build_fn(mf_builder *b, op_model *m);

static mf_id operand(mf_builder *b, op_model *m, const op_operand *o)
{
    mf_id id = mf_build_embed(b, o->name, &o->w, mf_build_input(b, MF_INPUT_TOKEN_IDS));
    if (id < 0 || m->c->in_place) return id;
    b->g->nodes[id].output = true;
    m->kept[m->n_kept] = id;
    m->kept_of[m->n_kept++] = o;
    return id;
}

/* Operand x in the case's shape, where it has one. */
static mf_id shaped(mf_builder *b, op_model *m)
{
    mf_id x = operand(b, m, m->d->x);
    return m->c->shape[0] ? mf_build_reshape(b, "x_shaped", x, m->c->shape) : x;
}

static const mf_weight *weight(const op_operand *o)
{
    return o ? &o->w : NULL;
}

/* ---- elements and rows ---- */

static mf_id build_add(mf_builder *b, op_model *m)
{
    mf_id x = operand(b, m, m->d->x);
    if (m->c->bias) return mf_build_bias(b, "op", x, &m->d->b[0]->w);
    return mf_build_binary(b, MF_OP_ADD, "op", x, operand(b, m, m->d->y));
}

static mf_id build_mul(mf_builder *b, op_model *m)
{
    mf_id x = operand(b, m, m->d->x);
    return mf_build_binary(b, MF_OP_MUL, "op", x, operand(b, m, m->d->y));
}

/* Variants 1 and 2: as models write it, for the peephole pass to find, the SiLU on either side. */
static mf_id build_swiglu(mf_builder *b, op_model *m)
{
    mf_id x = operand(b, m, m->d->x), y = operand(b, m, m->d->y);
    if (m->c->variant == 0) return mf_build_binary(b, MF_OP_SWIGLU, "op", x, y);
    x = mf_build_unary(b, MF_OP_SILU, "silu", x);
    return mf_build_binary(b, MF_OP_MUL, "op", m->c->variant == 1 ? x : y, m->c->variant == 1 ? y : x);
}

static mf_id build_unary(mf_builder *b, op_model *m)
{
    return mf_build_unary(b, m->c->op, "op", shaped(b, m));
}

static mf_id build_scale(mf_builder *b, op_model *m)
{
    return mf_build_scale(b, "op", shaped(b, m), m->c->factor);
}

static mf_id build_rms_norm(mf_builder *b, op_model *m)
{
    return mf_build_rms_norm(b, "op", shaped(b, m), &m->d->norm[0]->w, m->c->factor);
}

static mf_id build_qk_norm(mf_builder *b, op_model *m)
{
    return mf_build_qk_norm(b, "op", operand(b, m, m->d->x), &m->d->norm[0]->w, m->c->factor, m->c->n_head,
                            m->c->head_dim);
}

static mf_id build_matmul(mf_builder *b, op_model *m)
{
    return mf_build_matmul(b, "op", shaped(b, m), &m->d->w[0]->w);
}

static mf_id build_get_rows(mf_builder *b, op_model *m)
{
    if (!m->c->gather) return mf_build_embed(b, "op", &m->d->w[0]->w, mf_build_input(b, MF_INPUT_TOKEN_IDS));
    return mf_build_gather(b, "op", operand(b, m, m->d->x), mf_build_input(b, MF_INPUT_POSITIONS));
}

static mf_attr_rope rope_of(const op_model *m, int32_t n_head)
{
    const op_case *c = m->c;
    return (mf_attr_rope){.n_head = n_head,
                          .head_dim = c->head_dim,
                          .n_rot = c->n_rot,
                          .interleaved = c->interleaved,
                          .freq_base = c->variant ? 1e6f : 1e4f,
                          .freq_scale = c->factor,
                          .factors = weight(m->d->factors)};
}

static mf_id build_rope(mf_builder *b, op_model *m)
{
    mf_attr_rope r = rope_of(m, m->c->n_head);
    return mf_build_rope(b, "op", operand(b, m, m->d->x), &r);
}

/* ---- shapes ---- */

/* Variant 1: read by another node; 2: a view of a view, read. */
static mf_id build_view(mf_builder *b, op_model *m)
{
    const int64_t all[4] = {(int64_t)m->c->n * m->c->nt - m->c->offset / 2, 1, 1, 1};
    mf_id x = operand(b, m, m->d->x);
    if (m->c->variant < 2) {
        x = mf_build_view(b, "op", x, m->c->offset, m->c->to);
    } else {
        x = mf_build_view(b, "outer", x, m->c->offset / 2, all);
        x = mf_build_view(b, "op", x, m->c->offset - m->c->offset / 2, m->c->to);
    }
    return m->c->variant ? mf_build_scale(b, "read", x, 1.f) : x;
}

static mf_id build_reshape(mf_builder *b, op_model *m)
{
    if (m->c->type == MF_TYPE_I32)
        return mf_build_reshape(b, "op", mf_build_input(b, MF_INPUT_TOKEN_IDS), m->c->to);
    mf_id x = mf_build_reshape(b, "op", operand(b, m, m->d->x), m->c->to);
    return m->c->variant ? mf_build_scale(b, "read", x, 1.f) : x;
}

static mf_id build_permute(mf_builder *b, op_model *m)
{
    return mf_build_permute(b, "op", shaped(b, m), m->c->axes);
}

/* shape is k, m, n, batch. */
static mf_id build_batch_matmul(mf_builder *b, op_model *m)
{
    const int64_t *s = m->c->shape, x[4] = {s[0], s[1], s[3], 1}, y[4] = {s[0], s[2], s[3], 1};
    mf_id a = mf_build_reshape(b, "x_shaped", operand(b, m, m->d->x), x);
    return mf_build_binary(b, MF_OP_BATCH_MATMUL, "op", a,
                           mf_build_reshape(b, "y_shaped", operand(b, m, m->d->y), y));
}

/* ---- cache ---- */

static mf_id build_store(mf_builder *b, op_model *m, const char *name)
{
    mf_id k = operand(b, m, m->d->y);
    return mf_build_kv_store(b, name, k, operand(b, m, m->d->z), &m->d->kv);
}

static mf_id build_kv_store(mf_builder *b, op_model *m)
{
    build_store(b, m, "op");
    return -1;
}

static mf_id find_load(const mf_builder *b, bool is_v)
{
    for (mf_id i = 0; i < b->g->n_nodes; i++)
        if (b->g->nodes[i].op == MF_OP_KVCACHE_LOAD && b->g->nodes[i].attr.kv.is_v == is_v) return i;
    return -1;
}

/* Loads come with an attention that reads them. Variants: 0 the loaded value; 1 read by a node; 2, 3 a view
 * and another shape of it, read; 4 multiplied with a quantized weight. */
static mf_id build_kv_load(mf_builder *b, op_model *m)
{
    const op_case *c = m->c;
    const int64_t part[4] = {c->head_dim, c->n_ctx * c->n_kv - 1, 1, 1},
                  flat[4] = {(int64_t)c->head_dim * c->n_ctx, c->n_kv, 1, 1};
    mf_id k = operand(b, m, m->d->y), v = operand(b, m, m->d->z);
    mf_id store = mf_build_kv_store(b, "store", k, v, &m->d->kv);
    mf_build_attn(b, "attn", k, store, &m->d->kv, c->n_kv, 1.f);
    mf_id load = find_load(b, c->is_v);
    if (c->variant == 4) return mf_build_matmul(b, "op", load, &m->d->w[0]->w);
    if (c->variant == 2) load = mf_build_view(b, "part", load, c->head_dim, part);
    if (c->variant == 3) load = mf_build_reshape(b, "flat", load, flat);
    return c->variant ? mf_build_scale(b, "op", load, 1.f) : load;
}

static float attn_scale(const op_case *c)
{
    return c->factor != 0 ? c->factor : 0.25f;
}

static mf_id build_attn(mf_builder *b, op_model *m)
{
    mf_id q = operand(b, m, m->d->x), store = build_store(b, m, "store");
    return mf_build_attn(b, "op", q, store, &m->d->kv, m->c->n_head, attn_scale(m->c));
}

/* ---- fused ops, and what they are made of ---- */

static mf_attr_qkv qkv_of(const op_model *m)
{
    const op_data *d = m->d;
    return (mf_attr_qkv){.kv = d->kv,
                         .rope = rope_of(m, m->c->n_head),
                         .wq = weight(d->w[0]),
                         .wk = weight(d->w[1]),
                         .wv = weight(d->w[2]),
                         .bq = weight(d->b[0]),
                         .bk = weight(d->b[1]),
                         .bv = weight(d->b[2]),
                         .nq = weight(d->norm[0]),
                         .nk = weight(d->norm[1]),
                         .eps = 1e-5f};
}

/* Head norms, where there are any, and RoPE of q or k. */
static mf_id turned(mf_builder *b, op_model *m, mf_id x, int i, int32_t n_head)
{
    static const char *const names[2][3] = {{"q_bias", "q_norm", "q_rope"}, {"k_bias", "k_norm", "k_rope"}};
    mf_attr_rope r = rope_of(m, n_head);
    x = mf_build_bias(b, names[i][0], x, weight(m->d->b[i]));
    if (m->d->norm[i])
        x = mf_build_qk_norm(b, names[i][1], x, &m->d->norm[i]->w, 1e-5f, n_head, m->c->head_dim);
    return mf_build_rope(b, names[i][2], x, &r);
}

static mf_id plain_qkv(mf_builder *b, op_model *m, mf_id q, mf_id k, mf_id v)
{
    q = turned(b, m, q, 0, m->c->n_head);
    k = turned(b, m, k, 1, m->c->n_kv);
    mf_id store = mf_build_kv_store(b, "store", k, mf_build_bias(b, "v_bias", v, weight(m->d->b[2])),
                                    &m->d->kv);
    return m->c->variant == 2 ? mf_build_attn(b, "attn", q, store, &m->d->kv, m->c->n_head, 0.25f) : q;
}

/* Variant 2: its query is read by attention, as models have it. */
static mf_id build_fused_qkv(mf_builder *b, op_model *m)
{
    static const char *const names[] = {"q", "k", "v"};
    const op_case *c = m->c;
    const int64_t q[4] = {(int64_t)c->n_head * c->head_dim, 1, 1, 1};
    mf_attr_qkv a = qkv_of(m);
    mf_id x = operand(b, m, m->d->x);
    if (m->plain) {
        mf_id from[3];
        for (int i = 0; i < 3; i++) from[i] = mf_build_matmul(b, names[i], x, &m->d->w[i]->w);
        return plain_qkv(b, m, from[0], from[1], from[2]);
    }
    mf_id y = mf_build_fused_qkv(b, c->op, "op", x, &a);
    if (c->variant == 2) return mf_build_attn(b, "attn", y, y, &a.kv, c->n_head, 0.25f);
    return mf_build_view(b, "query", y, 0, q);
}

static mf_id build_qkv_store(mf_builder *b, op_model *m)
{
    mf_attr_qkv a = qkv_of(m);
    mf_id q = operand(b, m, m->d->x), k = operand(b, m, m->d->y), v = operand(b, m, m->d->z);
    if (m->plain) return plain_qkv(b, m, q, k, v);
    mf_id y = mf_build_qkv_store(b, "op", q, k, v, &a);
    return m->c->variant == 2 ? mf_build_attn(b, "attn", y, y, &a.kv, m->c->n_head, 0.25f) : y;
}

/* Variant 1: the product is read by a matmul. */
static mf_id build_fused_ffn(mf_builder *b, op_model *m)
{
    const int64_t shape[4] = {m->c->rows, 1, 1, 1};
    const mf_weight *gate = &m->d->w[0]->w, *up = &m->d->w[1]->w, *down = weight(m->d->w[2]);
    mf_id x = operand(b, m, m->d->x), y;
    if (m->plain) {
        mf_id g = mf_build_matmul(b, "gate", x, gate);
        y = mf_build_binary(b, MF_OP_SWIGLU, "product", g, mf_build_matmul(b, "up", x, up));
        return down ? mf_build_matmul(b, "down", y, down) : y;
    }
    y = mf_build_fused_ffn(b, "op", x, gate, up);
    return down ? mf_build_matmul(b, "down", y, down) : mf_build_view(b, "product", y, 0, shape);
}

/* ---- the table ---- */

static build_fn *const builders[MF_OP_COUNT] = {
    [MF_OP_ADD] = build_add,
    [MF_OP_MUL] = build_mul,
    [MF_OP_SCALE] = build_scale,
    [MF_OP_SILU] = build_unary,
    [MF_OP_SOFTMAX] = build_unary,
    [MF_OP_RMS_NORM] = build_rms_norm,
    [MF_OP_QK_NORM] = build_qk_norm,
    [MF_OP_MATMUL] = build_matmul,
    [MF_OP_GET_ROWS] = build_get_rows,
    [MF_OP_ROPE] = build_rope,
    [MF_OP_ATTN] = build_attn,
    [MF_OP_KVCACHE_STORE] = build_kv_store,
    [MF_OP_KVCACHE_LOAD] = build_kv_load,
    [MF_OP_VIEW] = build_view,
    [MF_OP_RESHAPE] = build_reshape,
    [MF_OP_PERMUTE] = build_permute,
    [MF_OP_SWIGLU] = build_swiglu,
    [MF_OP_BATCH_MATMUL] = build_batch_matmul,
    [MF_OP_FUSED_QKV] = build_fused_qkv,
    [MF_OP_QKV_BIAS_ROPE_STORE] = build_qkv_store,
    [MF_OP_FUSED_FFN] = build_fused_ffn,
    [MF_OP_FUSED_QKV_NORM] = build_fused_qkv,
};

static mf_id build_inputs(mf_builder *b, op_model *m)
{
    const op_operand *const all[] = {m->d->x, m->d->y, m->d->z};
    mf_id last = -1;
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i]) last = operand(b, m, all[i]);
    return last;
}

minfer_status op_build(void *model, mf_builder *b)
{
    op_model *m = model;
    m->n_kept = 0;
    b->layer = OP_LAYER;
    mf_id out = m->inputs ? build_inputs(b, m) : builders[m->c->op](b, m);
    b->layer = -1;
    return mf_build_finish(b, out);
}

mf_graph_params op_params(const op_case *c)
{
    return (mf_graph_params){.n_tokens = c->nt,
                             .n_out = c->nt,
                             .kind = c->nt == 1 ? MF_GRAPH_DECODE : MF_GRAPH_PREFILL,
                             .n_ctx = c->n_ctx ? c->n_ctx : 1,
                             .flash_attn = c->kind == MF_ATTN_FLASH && c->op != MF_OP_KVCACHE_LOAD,
                             .explicit_span = c->window == MF_WINDOW_SPAN,
                             .kv_map = c->window == MF_WINDOW_MAP,
                             .kv_format = c->cache,
                             .gpu_layers = -1,
                             .weights_version = 1};
}
