/* Steps that work row by row or element by element: norms, RoPE, additions, activations, gathers, cache
 * stores. */
#include "backends/cpu/device.h"
#include "backends/cpu/steps.h"

#include <string.h>

static int32_t width(const mf_node *n)
{
    return (int32_t)n->shape[0];
}
static int32_t tokens(const mf_node *n)
{
    return (int32_t)(mf_node_elements(n) / n->shape[0]);
}
static const mf_node *src(const cpu_emit *e, const mf_node *n, int i)
{
    return &e->x->graph->nodes[n->src[i]];
}

/* ---- y = f(a, b)
 * ------------------------------------------------------------------------------------------------ */

static bool run_binary(const cpu_step *s, const cpu_worker *w)
{
    const cpu_rows_args *a = &s->u.rows;
    cpu_part p = cpu_part_of(w, s->key, a->n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++)
        a->binary(a->y + (size_t)t * a->ldy + p.f0, a->a + (size_t)t * a->lda + p.f0,
                  a->b + (size_t)t * a->ldb + p.f0, p.f1 - p.f0);
    return true;
}

static bool run_silu(const cpu_step *s, const cpu_worker *w)
{
    const cpu_rows_args *a = &s->u.rows;
    cpu_part p = cpu_part_of(w, s->key, a->n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++)
        w->k->silu(a->y + (size_t)t * a->ldy + p.f0, a->a + (size_t)t * a->lda + p.f0, p.f1 - p.f0);
    return true;
}

static bool run_scale(const cpu_step *s, const cpu_worker *w)
{
    const cpu_rows_args *a = &s->u.rows;
    cpu_part p = cpu_part_of(w, s->key, a->n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++)
        w->k->scale(a->y + (size_t)t * a->ldy + p.f0, a->a + (size_t)t * a->lda + p.f0, a->f, p.f1 - p.f0);
    return true;
}

/* A step over the rows of n with sources as given; the caller fills what else its kernel reads. */
static minfer_status push_rows(cpu_emit *e, cpu_step_fn *fn, const mf_node *n, cpu_key key,
                               cpu_rows_args **out)
{
    cpu_step *s;
    MF_TRY(cpu_push(e, fn, n, key, &s));
    size_t ld = (size_t)width(n);
    s->u.rows = (cpu_rows_args){.y = cpu_value(e, n->id),
                                .a = cpu_value(e, n->src[0]),
                                .ldy = ld,
                                .lda = ld,
                                .n = width(n),
                                .nt = tokens(n)};
    *out = &s->u.rows;
    MF_TRY(cpu_reads_value(e, n->src[0]));
    return cpu_writes_value(e, n->id);
}

static minfer_status emit_two(cpu_emit *e, const mf_node *n, cpu_binary_fn *fn)
{
    cpu_rows_args *a;
    MF_TRY(push_rows(e, run_binary, n, cpu_key_for(width(n), tokens(n)), &a));
    a->binary = fn;
    a->b = cpu_value(e, n->src[1]);
    a->ldb = (size_t)width(n);
    return cpu_reads_value(e, n->src[1]);
}

minfer_status cpu_emit_add(cpu_emit *e, const mf_node *n)
{
    const cpu_weight *w;
    cpu_rows_args *a;
    if (n->n_src == 2) return emit_two(e, n, e->dev->kernels.add);
    MF_TRY(cpu_weight_need(e, n, n->attr.weight.w, &w));
    MF_TRY(push_rows(e, run_binary, n, cpu_key_for(width(n), tokens(n)), &a));
    a->binary = e->dev->kernels.add;
    a->b = (const float *)(const void *)w->data;
    return MINFER_OK;
}

minfer_status cpu_emit_mul(cpu_emit *e, const mf_node *n)
{
    return emit_two(e, n, e->dev->kernels.mul);
}
minfer_status cpu_emit_swiglu(cpu_emit *e, const mf_node *n)
{
    return emit_two(e, n, e->dev->kernels.swiglu);
}

minfer_status cpu_emit_silu(cpu_emit *e, const mf_node *n)
{
    cpu_rows_args *a;
    return push_rows(e, run_silu, n, cpu_key_for(width(n), tokens(n)), &a);
}

minfer_status cpu_emit_scale(cpu_emit *e, const mf_node *n)
{
    cpu_rows_args *a;
    MF_TRY(push_rows(e, run_scale, n, cpu_key_for(width(n), tokens(n)), &a));
    a->f = n->attr.scale;
    return MINFER_OK;
}

/* ---- norms and softmax: whole rows
 * ------------------------------------------------------------------------------ */

static bool run_rms_norm(const cpu_step *s, const cpu_worker *w)
{
    const cpu_rows_args *a = &s->u.rows;
    cpu_part p = cpu_part_of(w, s->key, a->n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++)
        w->k->rms_norm(a->y + (size_t)t * a->ldy, a->a + (size_t)t * a->lda, a->b, a->n, a->f);
    return true;
}

static bool run_qk_norm(const cpu_step *s, const cpu_worker *w)
{
    const cpu_rows_args *a = &s->u.rows;
    cpu_part p = cpu_part_of(w, s->key, a->n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++)
        for (int32_t h = 0; h < a->n_head; h++) {
            size_t o = (size_t)t * a->ldy + (size_t)h * (size_t)a->head_dim;
            w->k->rms_norm(a->y + o, a->a + o, a->b, a->head_dim, a->f);
        }
    return true;
}

static bool run_softmax(const cpu_step *s, const cpu_worker *w)
{
    const cpu_rows_args *a = &s->u.rows;
    cpu_part p = cpu_part_of(w, s->key, a->n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++)
        w->k->softmax(a->y + (size_t)t * a->ldy, a->a + (size_t)t * a->lda, a->n);
    return true;
}

/* RMS_NORM and QK_NORM. */
minfer_status cpu_emit_norm(cpu_emit *e, const mf_node *n)
{
    const cpu_weight *w;
    cpu_rows_args *a;
    MF_TRY(cpu_weight_need(e, n, n->attr.norm.w, &w));
    MF_TRY(push_rows(e, n->op == MF_OP_QK_NORM ? run_qk_norm : run_rms_norm, n, tokens(n), &a));
    a->b = (const float *)(const void *)w->data;
    a->f = n->attr.norm.eps;
    a->n_head = n->attr.norm.n_head;
    a->head_dim = n->attr.norm.head_dim;
    return MINFER_OK;
}

minfer_status cpu_emit_softmax(cpu_emit *e, const mf_node *n)
{
    cpu_rows_args *a;
    return push_rows(e, run_softmax, n, tokens(n), &a);
}

/* ---- RoPE: angles once per program and kind of rotation, then every head
 * ---------------------------------------- */

static bool run_angles(const cpu_step *s, const cpu_worker *w)
{
    const cpu_angles_args *a = &s->u.angles;
    cpu_part p = cpu_part_of(w, s->key, 2 * a->half, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++)
        w->k->rope_angles(a->cs + (size_t)t * 2 * (size_t)a->half, a->inv_freq, a->half, a->positions[t]);
    return true;
}

static bool run_rope(const cpu_step *s, const cpu_worker *w)
{
    const cpu_rows_args *a = &s->u.rows;
    cpu_part p = cpu_part_of(w, s->key, a->n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++)
        w->k->rope(a->y + (size_t)t * a->ldy, a->a + (size_t)t * a->lda, a->cs + (size_t)t * (size_t)a->n_rot,
                   a->n_head, a->head_dim, a->n_rot, a->interleaved);
    return true;
}

static bool same_angles(const mf_node *a, const mf_node *b)
{
    const mf_attr_rope *x = &a->attr.rope, *y = &b->attr.rope;
    return a->src[1] == b->src[1] && x->n_rot == y->n_rot && x->freq_base == y->freq_base &&
           x->freq_scale == y->freq_scale && x->factors == y->factors;
}

/* The step of this program that made the angles n needs, or NULL. One table at a time is kept. */
static const cpu_step *angles_made(const cpu_emit *e, const mf_node *n)
{
    for (int32_t i = e->p->n_steps; i-- > 0;)
        if (e->p->steps[i].fn == run_angles)
            return same_angles(e->p->steps[i].node, n) ? &e->p->steps[i] : NULL;
    return NULL;
}

minfer_status cpu_rope_frequencies(cpu_emit *e, const mf_node *n, const mf_attr_rope *r, double *inv)
{
    const cpu_weight *f = NULL;
    if (r->factors) MF_TRY(cpu_weight_need(e, n, r->factors, &f));
    for (int32_t i = 0; i < r->n_rot / 2; i++) {
        inv[i] = mf_math_pow((double)r->freq_base, -2.0 * i / r->n_rot) * (double)r->freq_scale;
        if (f) inv[i] /= (double)((const float *)(const void *)f->data)[i];
    }
    return MINFER_OK;
}

static minfer_status emit_angles(cpu_emit *e, const mf_node *n, float **cs)
{
    const cpu_step *made = angles_made(e, n);
    if (made) {
        *cs = made->u.angles.cs;
        return MINFER_OK;
    }
    cpu_step *s;
    double *inv = mf_arena_array(&e->p->arena, (size_t)n->attr.rope.n_rot / 2, sizeof *inv);
    mf_mem m = mf_exec_scratch(e->x, e->dev->base.index);
    cpu_scratch layout;
    cpu_scratch_layout(e->dev, e->x->graph, &layout);
    if (!inv) return MF_NOMEM(e->err);
    MF_TRY(cpu_rope_frequencies(e, n, &n->attr.rope, inv));
    MF_TRY(cpu_push(e, run_angles, n, tokens(n), &s));
    *cs = (float *)(void *)((uint8_t *)m.buf + m.offset + layout.angles);
    s->u.angles = (cpu_angles_args){*cs, (const int32_t *)(void *)cpu_value(e, n->src[1]), inv,
                                    n->attr.rope.n_rot / 2, tokens(n)};
    MF_TRY(cpu_reads_value(e, n->src[1]));
    return cpu_writes(e, *cs, (size_t)tokens(n) * (size_t)n->attr.rope.n_rot * sizeof(float));
}

minfer_status cpu_emit_rope(cpu_emit *e, const mf_node *n)
{
    const mf_attr_rope *r = &n->attr.rope;
    cpu_rows_args *a;
    float *cs = NULL;
    MF_TRY(emit_angles(e, n, &cs));
    MF_TRY(push_rows(e, run_rope, n, tokens(n), &a));
    a->cs = cs;
    a->n_head = r->n_head;
    a->head_dim = r->head_dim;
    a->n_rot = r->n_rot;
    a->interleaved = r->interleaved;
    return cpu_reads(e, cs, (size_t)tokens(n) * (size_t)r->n_rot * sizeof(float));
}

/* ---- rows by number
 * --------------------------------------------------------------------------------------------- */

static bool run_gather(const cpu_step *s, const cpu_worker *w)
{
    const cpu_gather_args *a = &s->u.gather;
    cpu_part p = cpu_part_of(w, s->key, a->n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++) {
        if (a->ids[t] < 0 || a->ids[t] >= a->n_rows) return false;
        mf_dequantize_row(a->type, a->rows + (size_t)a->ids[t] * a->row_bytes,
                          a->y + (size_t)t * (size_t)a->n, (size_t)a->n);
    }
    return true;
}

static minfer_status complain_gather(const cpu_step *s, minfer_error *err)
{
    const cpu_gather_args *a = &s->u.gather;
    int32_t t = 0;
    while (t < a->nt - 1 && a->ids[t] >= 0 && a->ids[t] < a->n_rows) t++;
    return mf_fail(err, MINFER_ERR_ARG, "node %s (get_rows): row %d of %lld", s->node->name, a->ids[t],
                   (long long)a->n_rows);
}

minfer_status cpu_emit_get_rows(cpu_emit *e, const mf_node *n)
{
    cpu_gather_args a = {.y = cpu_value(e, n->id), .n = width(n), .nt = tokens(n), .type = MF_TYPE_F32};
    const cpu_weight *w = NULL;
    mf_id ids = n->src[n->n_src - 1];
    cpu_step *s;
    if (n->n_src == 1) {
        MF_TRY(cpu_weight_need(e, n, n->attr.weight.w, &w));
        a.rows = w->data;
        a.type = w->type;
        a.n_rows = w->dims[1];
    } else {
        a.rows = (const uint8_t *)cpu_value(e, n->src[0]);
        a.n_rows = tokens(src(e, n, 0));
    }
    mf_type_row_bytes(a.type, (uint64_t)a.n, &a.row_bytes);
    a.ids = (const int32_t *)(void *)cpu_value(e, ids);
    /* rows of a value come from any token, so only a weight's rows keep the division by tokens */
    MF_TRY(cpu_push(e, run_gather, n, w ? a.nt : 0, &s));
    s->complain = complain_gather;
    s->u.gather = a;
    MF_TRY(cpu_reads_value(e, ids));
    if (!w) MF_TRY(cpu_reads_value(e, n->src[0]));
    return cpu_writes_value(e, n->id);
}

/* ---- cache
 * ------------------------------------------------------------------------------------------------------ */

static bool run_store(const cpu_step *s, const cpu_worker *w)
{
    const cpu_store_args *a = &s->u.store;
    int32_t n = a->n_kv * a->head_dim;
    cpu_part p = cpu_part_of(w, s->key, n, a->nt);
    for (int32_t t = p.t0; t < p.t1; t++) {
        if (a->cells[t] < 0 || a->cells[t] >= a->n_ctx) return false;
        for (int32_t h = 0; h < a->n_kv; h++) {
            size_t to = (size_t)h * a->head_bytes + (size_t)a->cells[t] * a->row_bytes;
            size_t from = (size_t)t * (size_t)n + (size_t)h * (size_t)a->head_dim;
            w->k->store_row(a->type, a->k + to, a->xk + from, a->head_dim);
            w->k->store_row(a->type, a->v + to, a->xv + from, a->head_dim);
        }
    }
    return true;
}

static minfer_status complain_store(const cpu_step *s, minfer_error *err)
{
    const cpu_store_args *a = &s->u.store;
    int32_t t = 0;
    while (t < a->nt - 1 && a->cells[t] >= 0 && a->cells[t] < a->n_ctx) t++;
    return mf_fail(err, MINFER_ERR_ARG, "node %s (kvcache_store): cell %d of %d", s->node->name, a->cells[t],
                   a->n_ctx);
}

minfer_status cpu_emit_store(cpu_emit *e, const mf_node *n)
{
    const mf_attr_kv *kv = &n->attr.kv;
    const mf_kv_pair *pair = mf_alloc_kv_pair(e->x->alloc, kv->layer);
    cpu_step *s;
    int32_t nt = tokens(src(e, n, 0));
    MF_TRY(cpu_push(e, run_store, n, nt, &s));
    cpu_store_args *a = &s->u.store;
    *a = (cpu_store_args){.k = pair->k,
                          .v = pair->v,
                          .xk = cpu_value(e, n->src[0]),
                          .xv = cpu_value(e, n->src[1]),
                          .type = kv->format,
                          .n_kv = kv->n_kv,
                          .head_dim = kv->head_dim,
                          .n_ctx = kv->n_ctx,
                          .nt = nt};
    s->complain = complain_store;
    a->cells = (const int32_t *)(void *)cpu_value(e, n->src[2]);
    mf_type_row_bytes(kv->format, (uint64_t)kv->head_dim, &a->row_bytes);
    a->head_bytes = a->row_bytes * (size_t)kv->n_ctx;
    for (int i = 0; i < 3; i++) MF_TRY(cpu_reads_value(e, n->src[i]));
    MF_TRY(cpu_writes_anywhere(e, pair->k, pair->bytes));
    return cpu_writes_anywhere(e, pair->v, pair->bytes);
}
