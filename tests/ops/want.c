#include "ops/want.h"

#include "cpu/matmul_exact.h"

#include <math.h>

typedef void want_fn(const op_case *c, const op_data *d, op_want *w);

static op_num *nums(size_t n)
{
    op_num *p = mf_calloc(n, sizeof *p);
    assert_non_null(p);
    return p;
}

static void room(op_want *w, size_t n)
{
    w->n = n;
    w->y = nums(n);
}

/* Element i of token t of an activation. */
static op_num at(const op_data *d, const op_operand *o, int32_t t, size_t i)
{
    return exact((double)op_row(d, o, t)[i]);
}

static double number(const op_operand *o, size_t i)
{
    return (double)((const float *)o->data)[i];
}

/* ---- elements and rows ---- */

static void want_elements(const op_case *c, const op_data *d, op_want *w)
{
    size_t n = (size_t)d->x->w.dims[0];
    room(w, n * (size_t)c->nt);
    for (int32_t t = 0; t < c->nt; t++)
        for (size_t i = 0; i < n; i++) {
            op_num x = at(d, d->x, t, i), y = d->y ? at(d, d->y, t, i) : x, *to = &w->y[(size_t)t * n + i];
            if (c->op == MF_OP_ADD) *to = exact_add(x, c->bias ? exact(number(d->b[0], i)) : y);
            if (c->op == MF_OP_MUL) *to = exact_mul(x, y);
            if (c->op == MF_OP_SCALE) *to = exact_mul(x, exact((double)c->factor));
            if (c->op == MF_OP_SILU) *to = exact_silu(x);
            if (c->op == MF_OP_SWIGLU) *to = exact_mul(exact_silu(x), y);
        }
}

static void want_softmax(const op_case *c, const op_data *d, op_want *w)
{
    size_t n = (size_t)d->x->w.dims[0];
    room(w, n * (size_t)c->nt);
    for (int32_t t = 0; t < c->nt; t++) exact_softmax(op_row(d, d->x, t), n, w->y + (size_t)t * n);
}

static void copy_row(const op_data *d, const op_operand *o, int32_t t, size_t n, op_num *y)
{
    for (size_t i = 0; i < n; i++) y[i] = at(d, o, t, i);
}

static void want_norm(const op_case *c, const op_data *d, op_want *w)
{
    size_t n = (size_t)d->x->w.dims[0], part = (size_t)d->norm[0]->w.dims[0];
    room(w, n * (size_t)c->nt);
    for (int32_t t = 0; t < c->nt; t++) {
        op_num *y = w->y + (size_t)t * n;
        copy_row(d, d->x, t, n, y);
        for (size_t h = 0; h < n; h += part)
            exact_rms_norm(y + h, d->norm[0]->data, part, (double)c->factor, y + h);
    }
}

static exact_rope_args rope_args(const op_case *c, const op_data *d, int32_t t)
{
    return (exact_rope_args){.n_rot = (size_t)c->n_rot,
                             .head_dim = (size_t)c->head_dim,
                             .interleaved = c->interleaved,
                             .base = c->variant ? 1e6 : 1e4,
                             .scale = (double)c->factor,
                             .factors = d->factors ? d->factors->data : NULL,
                             .position = d->positions[t]};
}

static void rope_heads(const op_case *c, const op_data *d, int32_t t, op_num *y, size_t heads)
{
    exact_rope_args a = rope_args(c, d, t);
    for (size_t h = 0; h < heads; h++) exact_rope(&a, y + h * a.head_dim);
}

static void want_rope(const op_case *c, const op_data *d, op_want *w)
{
    size_t n = (size_t)d->x->w.dims[0];
    room(w, n * (size_t)c->nt);
    for (int32_t t = 0; t < c->nt; t++) {
        copy_row(d, d->x, t, n, w->y + (size_t)t * n);
        rope_heads(c, d, t, w->y + (size_t)t * n, (size_t)c->n_head);
    }
}

/* ---- products ---- */

/* y[rows] = weight times x; loose may be NULL. */
static void product(const exact_weights *w, mf_type type, const float *x, op_num *y, op_num *loose)
{
    if (!mf_type_get((uint32_t)type)->quantized) {
        for (size_t r = 0; r < w->rows; r++) y[r] = exact_product(w->main + r * w->k, x, w->k);
        return;
    }
    exact_act a = exact_act_make(x, w->k);
    for (size_t r = 0; r < w->rows; r++) {
        op_num wide;
        y[r] = exact_quantized_dot(w, r, &a, &wide);
        if (loose) loose[r] = wide;
    }
    exact_act_free(&a);
}

static exact_weights weights_of(const op_operand *o)
{
    return exact_weights_make(o->w.type, o->data, (size_t)o->w.dims[1], (size_t)o->w.dims[0]);
}

static void want_matmul(const op_case *c, const op_data *d, op_want *w)
{
    size_t rows = (size_t)c->rows;
    exact_weights m = weights_of(d->w[0]);
    room(w, rows * (size_t)c->nt);
    if (mf_type_get((uint32_t)c->type)->quantized) w->loose = nums(w->n);
    for (int32_t t = 0; t < c->nt; t++)
        product(&m, c->type, op_row(d, d->x, t), w->y + (size_t)t * rows,
                w->loose ? w->loose + (size_t)t * rows : NULL);
    exact_weights_free(&m);
}

/* shape is k, m, n, batch. */
static void want_batch_matmul(const op_case *c, const op_data *d, op_want *w)
{
    size_t k = (size_t)c->shape[0], m = (size_t)c->shape[1], n = (size_t)c->shape[2],
           batch = (size_t)c->shape[3];
    double *row = mf_calloc(k, sizeof *row);
    assert_non_null(row);
    room(w, m * n * batch);
    for (size_t b = 0; b < batch; b++)
        for (size_t i = 0; i < m; i++) {
            const float *x = op_row(d, d->x, (int32_t)b), *y = op_row(d, d->y, (int32_t)b);
            for (size_t l = 0; l < k; l++) row[l] = (double)x[i * k + l];
            for (size_t j = 0; j < n; j++) w->y[(b * n + j) * m + i] = exact_product(row, y + j * k, k);
        }
    mf_free(row);
}

/* A weight's value is one rounding away where it has a minimum, and exact elsewhere. */
static void want_get_rows(const op_case *c, const op_data *d, op_want *w)
{
    size_t n = (size_t)c->n, bytes;
    assert_true(mf_type_row_bytes(c->type, n, &bytes));
    room(w, n * (size_t)c->nt);
    for (int32_t t = 0; t < c->nt; t++)
        for (size_t i = 0; i < n; i++) {
            op_num *to = &w->y[(size_t)t * n + i];
            if (c->gather) {
                *to = at(d, d->x, d->positions[t], i);
                continue;
            }
            const uint8_t *row = (const uint8_t *)d->w[0]->data + (size_t)d->ids[t] * bytes;
            to->v = exact_weight(c->type, row, i);
            if (exact_minimum(c->type, row, i) != 0) *to = exact((double)(float)to->v);
        }
}

/* ---- shapes ---- */

static void want_view(const op_case *c, const op_data *d, op_want *w)
{
    size_t n = (size_t)c->n;
    room(w, (size_t)(c->to[0] * c->to[1] * c->to[2] * c->to[3]));
    for (size_t i = 0; i < w->n; i++) {
        size_t from = i + (size_t)c->offset;
        w->y[i] = at(d, d->x, (int32_t)(from / n), from % n);
    }
}

static void want_reshape(const op_case *c, const op_data *d, op_want *w)
{
    if (c->type != MF_TYPE_I32) {
        want_view(c, d, w);
        return;
    }
    w->raw = d->ids;
    w->raw_bytes = (size_t)c->nt * sizeof *d->ids;
}

static void want_permute(const op_case *c, const op_data *d, op_want *w)
{
    const int64_t *s = c->shape;
    int64_t out[4], at4[4];
    room(w, (size_t)(s[0] * s[1] * s[2] * s[3]));
    for (int i = 0; i < 4; i++) out[i] = s[c->axes[i]];
    for (size_t i = 0; i < w->n; i++) {
        int64_t left = (int64_t)i;
        for (int a = 0; a < 4; a++) {
            at4[c->axes[a]] = left % out[a];
            left /= out[a];
        }
        w->y[i] = at(d, d->x, (int32_t)((at4[3] * s[2] + at4[2]) * s[1] + at4[1]), (size_t)at4[0]);
    }
}

/* ---- cache ---- */

double op_stored_value(mf_type format, const uint8_t *row, size_t i)
{
    return exact_weight(format, row, i);
}

static void stored_row(mf_type format, const op_num *x, size_t n, op_num *y)
{
    for (size_t i = 0; i < n && format != MF_TYPE_Q8_0; i++) y[i] = exact_stored(format, x[i]);
    for (size_t b = 0; b < n && format == MF_TYPE_Q8_0; b += 32) exact_stored_block(x + b, y + b);
}

static void want_stored(const op_case *c, const op_data *d, op_want *w)
{
    const op_operand *const from[2] = {d->y, d->z};
    size_t n = (size_t)c->n_kv * (size_t)c->head_dim;
    for (int i = 0; i < 2; i++) {
        w->stored[i] = nums(n * (size_t)c->nt);
        for (int32_t t = 0; t < c->nt; t++) {
            op_num *row = w->stored[i] + (size_t)t * n;
            copy_row(d, from[i], t, n, row);
            stored_row(c->cache, row, n, row);
        }
    }
}

/* K or V after the run: its bytes. */
static uint8_t *cache_after(const op_case *c, const op_data *d, int is_v)
{
    const op_operand *from = is_v ? d->z : d->y;
    uint8_t *p = mf_malloc(d->cache_bytes);
    assert_non_null(p);
    memcpy(p, d->cache[is_v], d->cache_bytes);
    for (int32_t t = 0; t < c->nt; t++)
        for (int32_t h = 0; h < c->n_kv; h++)
            exact_stored_bytes(c->cache, op_row(d, from, t) + (size_t)h * (size_t)c->head_dim,
                               (size_t)c->head_dim,
                               p + ((size_t)h * (size_t)c->n_ctx + (size_t)d->cells[t]) * d->row_bytes);
    return p;
}

static void load_product(const op_case *c, const op_data *d, op_want *w)
{
    size_t rows = (size_t)c->n_ctx * (size_t)c->n_kv, dim = (size_t)c->head_dim;
    exact_weights m = weights_of(d->w[0]);
    room(w, rows * OP_LOAD_ROWS);
    for (size_t i = 0; i < rows; i++)
        product(&m, MF_TYPE_Q8_0, (const float *)w->own + i * dim, w->y + i * OP_LOAD_ROWS, NULL);
    exact_weights_free(&m);
}

static void want_load(const op_case *c, const op_data *d, op_want *w)
{
    want_stored(c, d, w);
    w->own = cache_after(c, d, c->is_v);
    if (c->variant == 0) {
        w->raw = w->own;
        w->raw_bytes = d->cache_bytes;
        return;
    }
    if (c->variant == 4) {
        load_product(c, d, w);
        return;
    }
    size_t skip = c->variant == 2 ? (size_t)c->head_dim : 0, rows = (size_t)c->n_ctx * (size_t)c->n_kv;
    room(w, rows * (size_t)c->head_dim - skip);
    for (size_t i = 0; i < w->n; i++) w->y[i] = exact(op_stored_value(MF_TYPE_F32, w->own, i + skip));
}

/* The cells token t sees, in order. */
static size_t window_cells(const op_case *c, const op_data *d, int32_t t, int32_t *cells)
{
    const int32_t causal[2] = {0, d->positions[t] + 1};
    int32_t map[8] = {0};
    if (c->window == MF_WINDOW_MAP)
        memcpy(map, d->window + 8 * t, sizeof map);
    else if (c->window == MF_WINDOW_SPAN)
        map[0] = d->window[2 * t], map[1] = d->window[2 * t + 1] - d->window[2 * t];
    else
        map[0] = causal[0], map[1] = causal[1];
    size_t n = 0;
    for (int s = 0; s < 4; s++)
        for (int32_t i = 0; i < map[2 * s + 1]; i++) cells[n++] = map[2 * s] + i;
    return n;
}

/* All rows of K or V as doubles: [n_kv][n_ctx][head_dim]. */
static double *cache_values(const op_case *c, const op_data *d, int is_v)
{
    size_t rows = (size_t)c->n_kv * (size_t)c->n_ctx, dim = (size_t)c->head_dim;
    uint8_t *bytes = cache_after(c, d, is_v);
    double *v = mf_calloc(rows * dim, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < rows * dim; i++)
        v[i] = op_stored_value(c->cache, bytes + i / dim * d->row_bytes, i % dim);
    mf_free(bytes);
    return v;
}

static void attn_token(const op_case *c, const op_data *d, int32_t t, double *const cache[2], op_num *y)
{
    size_t dim = (size_t)c->head_dim, n_ctx = (size_t)c->n_ctx;
    int32_t *cells = mf_calloc(n_ctx, sizeof *cells);
    const double **rows = mf_calloc(2 * n_ctx, sizeof *rows);
    assert_non_null(cells);
    assert_non_null(rows);
    size_t n = window_cells(c, d, t, cells);
    for (int32_t h = 0; h < c->n_head; h++) {
        size_t kv = (size_t)(h / (c->n_head / c->n_kv));
        for (size_t i = 0; i < n; i++)
            for (int s = 0; s < 2; s++)
                rows[(size_t)s * n_ctx + i] = cache[s] + (kv * n_ctx + (size_t)cells[i]) * dim;
        exact_attn_args a = {.head_dim = dim,
                             .n = n,
                             .q = op_row(d, d->x, t) + (size_t)h * dim,
                             .k = rows,
                             .v = rows + n_ctx,
                             .scale = c->factor != 0 ? (double)c->factor : 0.25,
                             .packed = c->cache == MF_TYPE_Q8_0};
        exact_attn(&a, y + (size_t)h * dim);
    }
    mf_free(cells);
    mf_free(rows);
}

static void want_attn(const op_case *c, const op_data *d, op_want *w)
{
    size_t n = (size_t)c->n_head * (size_t)c->head_dim;
    double *cache[2] = {cache_values(c, d, 0), cache_values(c, d, 1)};
    want_stored(c, d, w);
    room(w, n * (size_t)c->nt);
    for (int32_t t = 0; t < c->nt; t++) attn_token(c, d, t, cache, w->y + (size_t)t * n);
    mf_free(cache[0]);
    mf_free(cache[1]);
}

/* ---- fused ops ---- */

static void add_bias(const op_operand *b, op_num *y, size_t n)
{
    for (size_t i = 0; b && i < n; i++) y[i] = exact_add(y[i], exact(number(b, i)));
}

/* Bias, head norms and RoPE of q (0) or k (1) of token t; v (2) has its bias only. */
static void finish_heads(const op_case *c, const op_data *d, int32_t t, int i, op_num *y)
{
    size_t dim = (size_t)c->head_dim, heads = (size_t)(i ? c->n_kv : c->n_head);
    add_bias(d->b[i], y, heads * dim);
    if (i == 2) return;
    for (size_t h = 0; h < heads && d->norm[i]; h++)
        exact_rms_norm(y + h * dim, d->norm[i]->data, dim, (double)1e-5f, y + h * dim);
    rope_heads(c, d, t, y, heads);
}

/* q, k or v of token t before bias: a product, or an operand. */
static void qkv_source(const op_case *c, const op_data *d, int32_t t, int i, op_num *y)
{
    const op_operand *const from[3] = {d->x, d->y, d->z};
    size_t n = (size_t)(i ? c->n_kv : c->n_head) * (size_t)c->head_dim;
    if (c->op == MF_OP_QKV_BIAS_ROPE_STORE) {
        copy_row(d, from[i], t, n, y);
        return;
    }
    exact_weights w = weights_of(d->w[i]);
    product(&w, d->w[i]->w.type, op_row(d, d->x, t), y, NULL);
    exact_weights_free(&w);
}

static void want_qkv(const op_case *c, const op_data *d, op_want *w)
{
    size_t nq = (size_t)c->n_head * (size_t)c->head_dim, nk = (size_t)c->n_kv * (size_t)c->head_dim;
    room(w, nq * (size_t)c->nt);
    for (int i = 0; i < 2; i++) w->stored[i] = nums(nk * (size_t)c->nt);
    for (int32_t t = 0; t < c->nt; t++)
        for (int i = 0; i < 3; i++) {
            op_num *y = i ? w->stored[i - 1] + (size_t)t * nk : w->y + (size_t)t * nq;
            qkv_source(c, d, t, i, y);
            finish_heads(c, d, t, i, y);
            if (i) stored_row(c->cache, y, nk, y);
        }
    if (c->variant != 2) return;
    mf_free(w->y); /* an attention on top: its formula is that of ATTN, whose inputs are exact */
    w->y = NULL;
}

/* Variant 1, a matmul on top, quantizes what carries an error: it has no formula. */
static void want_ffn(const op_case *c, const op_data *d, op_want *w)
{
    if (c->variant) return;
    size_t n = (size_t)c->rows;
    exact_weights gate = weights_of(d->w[0]), up = weights_of(d->w[1]);
    op_num *u = nums(n);
    room(w, n * (size_t)c->nt);
    for (int32_t t = 0; t < c->nt; t++) {
        op_num *y = w->y + (size_t)t * n;
        product(&gate, c->type, op_row(d, d->x, t), y, NULL);
        product(&up, c->type, op_row(d, d->x, t), u, NULL);
        for (size_t i = 0; i < n; i++) y[i] = exact_mul(exact_silu(y[i]), u[i]);
    }
    mf_free(u);
    exact_weights_free(&gate);
    exact_weights_free(&up);
}

/* ---- the table ---- */

static want_fn *const wants[MF_OP_COUNT] = {
    [MF_OP_ADD] = want_elements,      [MF_OP_MUL] = want_elements,
    [MF_OP_SCALE] = want_elements,    [MF_OP_SILU] = want_elements,
    [MF_OP_SOFTMAX] = want_softmax,   [MF_OP_RMS_NORM] = want_norm,
    [MF_OP_QK_NORM] = want_norm,      [MF_OP_MATMUL] = want_matmul,
    [MF_OP_GET_ROWS] = want_get_rows, [MF_OP_ROPE] = want_rope,
    [MF_OP_ATTN] = want_attn,         [MF_OP_KVCACHE_STORE] = want_stored,
    [MF_OP_KVCACHE_LOAD] = want_load, [MF_OP_VIEW] = want_view,
    [MF_OP_RESHAPE] = want_reshape,   [MF_OP_PERMUTE] = want_permute,
    [MF_OP_SWIGLU] = want_elements,   [MF_OP_BATCH_MATMUL] = want_batch_matmul,
    [MF_OP_FUSED_QKV] = want_qkv,     [MF_OP_QKV_BIAS_ROPE_STORE] = want_qkv,
    [MF_OP_FUSED_FFN] = want_ffn,     [MF_OP_FUSED_QKV_NORM] = want_qkv,
};

void op_want_make(const op_case *c, const op_data *d, op_want *w)
{
    *w = (op_want){0};
    wants[c->op](c, d, w);
}

void op_want_free(op_want *w)
{
    mf_free(w->y);
    mf_free(w->loose);
    mf_free(w->own);
    for (int i = 0; i < 2; i++) mf_free(w->stored[i]);
    *w = (op_want){0};
}

bool op_num_holds(op_num want, float got)
{
    double g = (double)got;
    if (isnan(want.v)) return isnan(g);
    if (isinf(want.v) || (want.e == 0 && want.v != 0)) return g == want.v;
    if (want.e == 0) return g == 0 && !signbit(g) == !signbit(want.v);
    return fabs(g - want.v) <= want.e;
}
