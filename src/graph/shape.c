/* Shape rules. Each refuses with the node's name and the shapes it met. */
#include "graph/shape.h"

typedef minfer_status shape_fn(const mf_graph *g, mf_node *n, minfer_error *err);

static const mf_node *src(const mf_graph *g, const mf_node *n, int i)
{
    return &g->nodes[n->src[i]];
}

static void set_shape(mf_node *n, mf_type dtype, int64_t a, int64_t b, int64_t c, int64_t d)
{
    n->dtype = dtype;
    n->shape[0] = a;
    n->shape[1] = b;
    n->shape[2] = c;
    n->shape[3] = d;
}

static minfer_status mismatch(const mf_node *n, minfer_error *err, const char *what, int64_t got,
                              int64_t want)
{
    return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): %s is %lld, must be %lld", n->name,
                   mf_op_table[n->op].name, what, (long long)got, (long long)want);
}

static minfer_status want_dtype(const mf_graph *g, const mf_node *n, int i, mf_type t, minfer_error *err)
{
    if (src(g, n, i)->dtype == t) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): source %d (%s) is %s, must be %s", n->name,
                   mf_op_table[n->op].name, i, src(g, n, i)->name, mf_type_name(src(g, n, i)->dtype),
                   mf_type_name(t));
}

static minfer_status same_shape(const mf_graph *g, const mf_node *n, minfer_error *err)
{
    const mf_node *a = src(g, n, 0), *b = src(g, n, 1);
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    MF_TRY(want_dtype(g, n, 1, MF_TYPE_F32, err));
    for (int i = 0; i < 4; i++)
        if (a->shape[i] != b->shape[i])
            return mismatch(n, err, "a dimension of the second source", b->shape[i], a->shape[i]);
    return MINFER_OK;
}

static void like(mf_node *n, const mf_node *a)
{
    set_shape(n, MF_TYPE_F32, a->shape[0], a->shape[1], a->shape[2], a->shape[3]);
}

static minfer_status vector_weight(const mf_node *n, const mf_weight *w, int64_t want, minfer_error *err)
{
    if (!w) return MINFER_OK;
    if (w->type != MF_TYPE_F32)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "node %s (%s): weight %s is %s, must be F32", n->name,
                       mf_op_table[n->op].name, w->name, mf_type_name(w->type));
    if (w->dims[0] != want || w->dims[1] != 1)
        return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): weight %s is [%lld, %lld], must be [%lld, 1]",
                       n->name, mf_op_table[n->op].name, w->name, (long long)w->dims[0],
                       (long long)w->dims[1], (long long)want);
    return MINFER_OK;
}

static minfer_status shape_input(const mf_graph *g, mf_node *n, minfer_error *err)
{
    (void)g;
    n->dtype = MF_TYPE_I32;
    return n->shape[0] > 0 ? MINFER_OK : mismatch(n, err, "length", n->shape[0], 1);
}

static minfer_status shape_unary(const mf_graph *g, mf_node *n, minfer_error *err)
{
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    like(n, src(g, n, 0));
    return MINFER_OK;
}

static minfer_status shape_add(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_weight *w = n->attr.weight.w;
    if ((n->n_src == 1) != (w != NULL))
        return mf_fail(err, MINFER_ERR_ARG, "node %s (add): needs two sources, or one and a bias", n->name);
    if (w) {
        MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
        MF_TRY(vector_weight(n, w, src(g, n, 0)->shape[0], err));
    } else {
        MF_TRY(same_shape(g, n, err));
    }
    like(n, src(g, n, 0));
    return MINFER_OK;
}

static minfer_status shape_binary(const mf_graph *g, mf_node *n, minfer_error *err)
{
    MF_TRY(same_shape(g, n, err));
    like(n, src(g, n, 0));
    return MINFER_OK;
}

static minfer_status shape_rms_norm(const mf_graph *g, mf_node *n, minfer_error *err)
{
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    if (!n->attr.norm.w) return mf_fail(err, MINFER_ERR_ARG, "node %s (rms_norm): has no weight", n->name);
    MF_TRY(vector_weight(n, n->attr.norm.w, src(g, n, 0)->shape[0], err));
    like(n, src(g, n, 0));
    return MINFER_OK;
}

static minfer_status shape_qk_norm(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_attr_norm *a = &n->attr.norm;
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    if (!a->w) return mf_fail(err, MINFER_ERR_ARG, "node %s (qk_norm): has no weight", n->name);
    if (src(g, n, 0)->shape[0] != (int64_t)a->n_head * a->head_dim)
        return mismatch(n, err, "width", src(g, n, 0)->shape[0], (int64_t)a->n_head * a->head_dim);
    MF_TRY(vector_weight(n, a->w, a->head_dim, err));
    like(n, src(g, n, 0));
    return MINFER_OK;
}

/* Sources of a fused FFN are wider than the weight reads: [2 nf, nt] with the product in the first nf. */
static minfer_status matmul_weight(const mf_graph *g, const mf_node *n, const mf_weight *w, minfer_error *err)
{
    const mf_node *x = src(g, n, 0);
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    if (!w)
        return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): has no weight", n->name, mf_op_table[n->op].name);
    if (!mf_type_get((uint32_t)w->type)->weight)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "node %s: weight %s has type %s, which no matmul reads",
                       n->name, w->name, mf_type_name(w->type));
    bool wider = x->op == MF_OP_FUSED_FFN;
    if (wider ? x->shape[0] < w->dims[0] : x->shape[0] != w->dims[0])
        return mf_fail(err, MINFER_ERR_ARG, "node %s: source %s has %lld features, weight %s reads %lld",
                       n->name, x->name, (long long)x->shape[0], w->name, (long long)w->dims[0]);
    return MINFER_OK;
}

static minfer_status shape_matmul(const mf_graph *g, mf_node *n, minfer_error *err)
{
    MF_TRY(matmul_weight(g, n, n->attr.weight.w, err));
    const mf_node *x = src(g, n, 0);
    set_shape(n, MF_TYPE_F32, n->attr.weight.w->dims[1], x->shape[1], x->shape[2], x->shape[3]);
    return MINFER_OK;
}

static minfer_status shape_get_rows(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_weight *w = n->attr.weight.w;
    if ((n->n_src == 1) != (w != NULL))
        return mf_fail(err, MINFER_ERR_ARG, "node %s (get_rows): needs ids and a weight, or a source and ids",
                       n->name);
    const mf_node *ids = src(g, n, n->n_src - 1);
    MF_TRY(want_dtype(g, n, n->n_src - 1, MF_TYPE_I32, err));
    if (w && !mf_type_get((uint32_t)w->type)->weight)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED,
                       "node %s: weight %s has type %s, whose rows cannot be read", n->name, w->name,
                       mf_type_name(w->type));
    if (!w) MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    set_shape(n, MF_TYPE_F32, w ? w->dims[0] : src(g, n, 0)->shape[0], ids->shape[0], 1, 1);
    return MINFER_OK;
}

static minfer_status rope_fits(const mf_graph *g, const mf_node *n, const mf_attr_rope *a, int pos,
                               minfer_error *err)
{
    MF_TRY(want_dtype(g, n, pos, MF_TYPE_I32, err));
    if (src(g, n, pos)->shape[0] != src(g, n, 0)->shape[1])
        return mismatch(n, err, "number of positions", src(g, n, pos)->shape[0], src(g, n, 0)->shape[1]);
    if (a->n_rot < 2 || a->n_rot % 2 || a->n_rot > a->head_dim)
        return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): rotates %d of %d values", n->name,
                       mf_op_table[n->op].name, a->n_rot, a->head_dim);
    return vector_weight(n, a->factors, a->n_rot / 2, err);
}

static minfer_status shape_rope(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_attr_rope *a = &n->attr.rope;
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    if (src(g, n, 0)->shape[0] != (int64_t)a->n_head * a->head_dim)
        return mismatch(n, err, "width", src(g, n, 0)->shape[0], (int64_t)a->n_head * a->head_dim);
    MF_TRY(rope_fits(g, n, a, 1, err));
    like(n, src(g, n, 0));
    return MINFER_OK;
}

static minfer_status kv_fits(const mf_node *n, const mf_attr_kv *kv, minfer_error *err)
{
    size_t row;
    if (kv->n_kv < 1 || kv->head_dim < 1 || kv->n_ctx < 1 || kv->layer < 0 ||
        !mf_type_row_bytes(kv->format, (uint64_t)kv->head_dim, &row))
        return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): cache of %d x %d x %d in %s cannot be", n->name,
                       mf_op_table[n->op].name, kv->n_kv, kv->n_ctx, kv->head_dim, mf_type_name(kv->format));
    return MINFER_OK;
}

static minfer_status shape_store(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_attr_kv *kv = &n->attr.kv;
    MF_TRY(kv_fits(n, kv, err));
    MF_TRY(same_shape(g, n, err));
    MF_TRY(want_dtype(g, n, 2, MF_TYPE_I32, err));
    if (src(g, n, 0)->shape[0] != (int64_t)kv->n_kv * kv->head_dim)
        return mismatch(n, err, "width", src(g, n, 0)->shape[0], (int64_t)kv->n_kv * kv->head_dim);
    if (src(g, n, 2)->shape[0] != src(g, n, 0)->shape[1])
        return mismatch(n, err, "number of cells", src(g, n, 2)->shape[0], src(g, n, 0)->shape[1]);
    set_shape(n, MF_TYPE_I32, 1, 1, 1, 1);
    return MINFER_OK;
}

static minfer_status shape_load(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_attr_kv *kv = &n->attr.kv;
    (void)g;
    MF_TRY(kv_fits(n, kv, err));
    set_shape(n, kv->format, kv->head_dim, kv->n_ctx, kv->n_kv, 1);
    return MINFER_OK;
}

static int32_t window_length(mf_window w)
{
    return w == MF_WINDOW_SPAN ? 2 : 8;
}

static minfer_status shape_attn(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_attr_attn *a = &n->attr.attn;
    bool flash = a->kind == MF_ATTN_FLASH, causal = a->window == MF_WINDOW_CAUSAL;
    int pos = flash ? 2 : 3, want = pos + (causal ? 1 : 2);
    MF_TRY(kv_fits(n, &a->kv, err));
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    if (n->n_src != want) return mismatch(n, err, "number of sources", n->n_src, want);
    if (a->n_head < 1 || a->n_head % a->kv.n_kv || (a->kind == MF_ATTN_MHA && a->n_head != a->kv.n_kv))
        return mf_fail(err, MINFER_ERR_ARG, "node %s (attn): %d query heads on %d cache heads", n->name,
                       a->n_head, a->kv.n_kv);
    int64_t width = (int64_t)a->n_head * a->kv.head_dim, nt = src(g, n, 0)->shape[1];
    if (src(g, n, 0)->shape[0] < width)
        return mismatch(n, err, "width of the queries", src(g, n, 0)->shape[0], width);
    MF_TRY(want_dtype(g, n, pos, MF_TYPE_I32, err));
    if (src(g, n, pos)->shape[0] != nt)
        return mismatch(n, err, "number of positions", src(g, n, pos)->shape[0], nt);
    if (!causal && src(g, n, pos + 1)->shape[0] != nt * window_length(a->window))
        return mismatch(n, err, "length of the window", src(g, n, pos + 1)->shape[0],
                        nt * window_length(a->window));
    set_shape(n, MF_TYPE_F32, width, nt, 1, 1);
    return MINFER_OK;
}

static minfer_status shape_view(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_node *x = src(g, n, 0);
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    int64_t room = mf_node_elements(x) - n->attr.view_offset;
    if (n->attr.view_offset < 0 || mf_node_elements(n) > room)
        return mismatch(n, err, "size from its offset on", mf_node_elements(n), room);
    n->dtype = x->dtype;
    return MINFER_OK;
}

static minfer_status shape_reshape(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_node *x = src(g, n, 0);
    if (mf_node_elements(n) != mf_node_elements(x))
        return mismatch(n, err, "number of elements", mf_node_elements(n), mf_node_elements(x));
    n->dtype = x->dtype;
    return MINFER_OK;
}

static minfer_status shape_permute(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_node *x = src(g, n, 0);
    const int32_t *p = n->attr.permute;
    int seen = 0;
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    for (int i = 0; i < 4; i++) seen |= p[i] >= 0 && p[i] < 4 ? 1 << p[i] : 0;
    if (seen != 15)
        return mf_fail(err, MINFER_ERR_ARG, "node %s (permute): axes %d %d %d %d are no permutation", n->name,
                       p[0], p[1], p[2], p[3]);
    set_shape(n, MF_TYPE_F32, x->shape[p[0]], x->shape[p[1]], x->shape[p[2]], x->shape[p[3]]);
    return MINFER_OK;
}

static minfer_status shape_batch_matmul(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_node *a = src(g, n, 0), *b = src(g, n, 1);
    MF_TRY(want_dtype(g, n, 0, MF_TYPE_F32, err));
    MF_TRY(want_dtype(g, n, 1, MF_TYPE_F32, err));
    if (a->shape[0] != b->shape[0]) return mismatch(n, err, "inner size", b->shape[0], a->shape[0]);
    if (a->shape[2] != b->shape[2]) return mismatch(n, err, "batch size", b->shape[2], a->shape[2]);
    if (a->shape[3] != 1 || b->shape[3] != 1)
        return mismatch(n, err, "fourth dimension", a->shape[3] * b->shape[3], 1);
    set_shape(n, MF_TYPE_F32, a->shape[1], b->shape[1], a->shape[2], 1);
    return MINFER_OK;
}

static minfer_status qkv_widths(const mf_node *n, minfer_error *err)
{
    const mf_attr_qkv *a = &n->attr.qkv;
    int64_t nq = (int64_t)a->rope.n_head * a->rope.head_dim, nk = (int64_t)a->kv.n_kv * a->kv.head_dim;
    if (a->rope.head_dim != a->kv.head_dim)
        return mismatch(n, err, "head size", a->rope.head_dim, a->kv.head_dim);
    MF_TRY(vector_weight(n, a->bq, nq, err));
    MF_TRY(vector_weight(n, a->bk, nk, err));
    MF_TRY(vector_weight(n, a->bv, nk, err));
    if (n->op != MF_OP_FUSED_QKV_NORM) return MINFER_OK;
    MF_TRY(vector_weight(n, a->nq, a->kv.head_dim, err));
    return vector_weight(n, a->nk, a->kv.head_dim, err);
}

/* FUSED_QKV and FUSED_QKV_NORM. */
static minfer_status shape_fused_qkv(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_attr_qkv *a = &n->attr.qkv;
    int64_t nq = (int64_t)a->rope.n_head * a->rope.head_dim, nk = (int64_t)a->kv.n_kv * a->kv.head_dim;
    MF_TRY(kv_fits(n, &a->kv, err));
    MF_TRY(matmul_weight(g, n, a->wq, err));
    MF_TRY(matmul_weight(g, n, a->wk, err));
    MF_TRY(matmul_weight(g, n, a->wv, err));
    if (a->wq->dims[1] != nq) return mismatch(n, err, "rows of the query weight", a->wq->dims[1], nq);
    if (a->wk->dims[1] != nk) return mismatch(n, err, "rows of the key weight", a->wk->dims[1], nk);
    if (a->wv->dims[1] != nk) return mismatch(n, err, "rows of the value weight", a->wv->dims[1], nk);
    MF_TRY(qkv_widths(n, err));
    MF_TRY(rope_fits(g, n, &a->rope, 1, err));
    MF_TRY(want_dtype(g, n, 2, MF_TYPE_I32, err));
    set_shape(n, MF_TYPE_F32, nq + 2 * nk, src(g, n, 0)->shape[1], 1, 1);
    return MINFER_OK;
}

static minfer_status shape_qkv_store(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_attr_qkv *a = &n->attr.qkv;
    int64_t nq = (int64_t)a->rope.n_head * a->rope.head_dim, nk = (int64_t)a->kv.n_kv * a->kv.head_dim;
    MF_TRY(kv_fits(n, &a->kv, err));
    for (int i = 0; i < 3; i++) {
        MF_TRY(want_dtype(g, n, i, MF_TYPE_F32, err));
        if (src(g, n, i)->shape[0] != (i ? nk : nq))
            return mismatch(n, err, "width of a source", src(g, n, i)->shape[0], i ? nk : nq);
    }
    MF_TRY(qkv_widths(n, err));
    MF_TRY(rope_fits(g, n, &a->rope, 3, err));
    MF_TRY(want_dtype(g, n, 4, MF_TYPE_I32, err));
    like(n, src(g, n, 0));
    return MINFER_OK;
}

static minfer_status shape_fused_ffn(const mf_graph *g, mf_node *n, minfer_error *err)
{
    const mf_attr_ffn *a = &n->attr.ffn;
    MF_TRY(matmul_weight(g, n, a->gate, err));
    MF_TRY(matmul_weight(g, n, a->up, err));
    if (a->gate->dims[1] != a->up->dims[1])
        return mismatch(n, err, "rows of the up weight", a->up->dims[1], a->gate->dims[1]);
    set_shape(n, MF_TYPE_F32, 2 * a->gate->dims[1], src(g, n, 0)->shape[1], 1, 1);
    return MINFER_OK;
}

static shape_fn *const rules[MF_OP_COUNT] = {
    [MF_OP_INPUT] = shape_input,
    [MF_OP_ADD] = shape_add,
    [MF_OP_MUL] = shape_binary,
    [MF_OP_SCALE] = shape_unary,
    [MF_OP_SILU] = shape_unary,
    [MF_OP_SOFTMAX] = shape_unary,
    [MF_OP_RMS_NORM] = shape_rms_norm,
    [MF_OP_QK_NORM] = shape_qk_norm,
    [MF_OP_MATMUL] = shape_matmul,
    [MF_OP_GET_ROWS] = shape_get_rows,
    [MF_OP_ROPE] = shape_rope,
    [MF_OP_ATTN] = shape_attn,
    [MF_OP_KVCACHE_STORE] = shape_store,
    [MF_OP_KVCACHE_LOAD] = shape_load,
    [MF_OP_VIEW] = shape_view,
    [MF_OP_RESHAPE] = shape_reshape,
    [MF_OP_PERMUTE] = shape_permute,
    [MF_OP_SWIGLU] = shape_binary,
    [MF_OP_BATCH_MATMUL] = shape_batch_matmul,
    [MF_OP_FUSED_QKV] = shape_fused_qkv,
    [MF_OP_QKV_BIAS_ROPE_STORE] = shape_qkv_store,
    [MF_OP_FUSED_FFN] = shape_fused_ffn,
    [MF_OP_FUSED_QKV_NORM] = shape_fused_qkv,
};

static minfer_status check_sources(const mf_graph *g, const mf_node *n, minfer_error *err)
{
    const mf_op_info *info = &mf_op_table[n->op];
    if (n->n_src < info->min_src || n->n_src > info->max_src)
        return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): has %d sources, takes %d to %d", n->name,
                       info->name, n->n_src, info->min_src, info->max_src);
    for (int i = 0; i < n->n_src; i++)
        if (n->src[i] < 0 || n->src[i] >= g->n_nodes)
            return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): source %d is %d, the graph has %d nodes",
                           n->name, info->name, i, n->src[i], g->n_nodes);
    return MINFER_OK;
}

minfer_status mf_shape_infer(const mf_graph *g, mf_node *n, minfer_error *err)
{
    if ((uint32_t)n->op >= MF_OP_COUNT)
        return mf_fail(err, MINFER_ERR_ARG, "node %s: op %d is unknown", n->name, (int)n->op);
    MF_TRY(check_sources(g, n, err));
    MF_TRY(rules[n->op](g, n, err));
    int64_t total = 1;
    for (int i = 0; i < 4; i++)
        if (n->shape[i] < 1 || __builtin_mul_overflow(total, n->shape[i], &total) || total > INT64_MAX / 8)
            return mf_fail(err, MINFER_ERR_ARG, "node %s (%s): shape [%lld, %lld, %lld, %lld] cannot be",
                           n->name, mf_op_table[n->op].name, (long long)n->shape[0], (long long)n->shape[1],
                           (long long)n->shape[2], (long long)n->shape[3]);
    return MINFER_OK;
}
