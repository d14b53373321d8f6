/* Fused ops, composed of the same scalar kernels in the same order as the ops they replace, so their bits are
 * the same. */
#include "device/fused_steps.h"

#include "backends/cpu/device.h"
#include "backends/cpu/steps.h"

#include <string.h>

typedef struct {
    cpu_matmul m;
    const float *bias;
} product;

/* A whole fused node as one step: everything happens on the device's one thread. */
typedef struct {
    product parts[3]; /* q, k, v or gate, up */
    int32_t n_parts;
    cpu_act act;
    bool quantize;
    const float *x;
    size_t ldx;
} products;

static void run_products(const products *p, const cpu_worker *w)
{
    if (p->quantize) w->k->quantize(&p->act, p->x, p->ldx, 0, p->act.nt, 0, p->act.k / 32);
    for (int32_t i = 0; i < p->n_parts; i++) {
        cpu_matmul m = p->parts[i].m;
        m.scratch = w->scratch;
        w->k->matmul[m.type](&m, 0, m.rows);
        for (int32_t t = 0; t < m.nt && p->parts[i].bias; t++)
            w->k->add(m.y + (size_t)t * m.ldy, m.y + (size_t)t * m.ldy, p->parts[i].bias, m.rows);
    }
}

/* Extra data of a fused step lies behind the generic arguments, in the program's arena. */
typedef struct {
    products p;
    const mf_node *node;
    const float *from[3]; /* QKV_BIAS_ROPE_STORE: q, k and v as they come */
    float *q, *k, *v;     /* of token 0 */
    size_t ldq, ldk, ldv;
    int32_t nt;
    const float *nq, *nk;
    cpu_angles_args angles;
    cpu_store_args store;
} fused;

static const fused *fused_of(const cpu_step *s)
{
    return (const fused *)(const void *)s->u.rows.a;
}

static minfer_status push_fused(cpu_emit *e, cpu_step_fn *fn, const mf_node *n, fused **out)
{
    cpu_step *s;
    *out = mf_arena_alloc(&e->p->arena, sizeof **out);
    if (!*out) return MF_NOMEM(e->err);
    MF_TRY(cpu_push(e, fn, n, 0, &s));
    s->u.rows.a = (const float *)(void *)*out;
    (*out)->node = n;
    (*out)->nt = (int32_t)n->shape[1];
    return MINFER_OK;
}

static minfer_status add_product(cpu_emit *e, fused *f, const mf_weight *weight, const mf_weight *bias,
                                 float *y, size_t ldy)
{
    const cpu_weight *w, *b = NULL;
    MF_TRY(cpu_weight_need(e, f->node, weight, &w));
    if (bias) MF_TRY(cpu_weight_need(e, f->node, bias, &b));
    product *p = &f->p.parts[f->p.n_parts++];
    *p = (product){.m = {.type = w->type,
                         .rows = (int32_t)w->dims[1],
                         .k = (int32_t)w->dims[0],
                         .nt = f->nt,
                         .w = w->data,
                         .act = &f->p.act,
                         .x = f->p.x,
                         .ldx = f->p.ldx,
                         .y = y,
                         .ldy = ldy},
                   .bias = b ? (const float *)(const void *)b->data : NULL};
    if (!mf_type_get((uint32_t)w->type)->quantized || f->p.quantize) return MINFER_OK;
    void *mem = mf_arena_alloc(&e->p->arena, cpu_act_bytes(p->m.k, f->nt) + 64);
    if (!mem) return MF_NOMEM(e->err);
    cpu_act_bind(&f->p.act, (void *)mf_align_up((size_t)mem, 64), p->m.k, f->nt, e->dev->kernels.few);
    f->p.quantize = true;
    return MINFER_OK;
}

static minfer_status fill_rope(cpu_emit *e, fused *f, const mf_attr_qkv *a, mf_id positions)
{
    size_t half = (size_t)a->rope.n_rot / 2;
    f->angles = (cpu_angles_args){
        .positions = (const int32_t *)(void *)cpu_value(e, positions), .half = (int32_t)half, .nt = f->nt};
    f->angles.inv_freq = mf_arena_array(&e->p->arena, half, sizeof(double));
    f->angles.cs = mf_arena_array(&e->p->arena, 2 * half, sizeof(float));
    if (!f->angles.inv_freq || !f->angles.cs) return MF_NOMEM(e->err);
    return cpu_rope_frequencies(e, f->node, &a->rope, f->angles.inv_freq);
}

static minfer_status fill_store(cpu_emit *e, fused *f, const mf_attr_kv *kv, mf_id cells)
{
    const mf_kv_pair *pair = mf_alloc_kv_pair(e->x->alloc, kv->layer);
    f->store = (cpu_store_args){.k = pair->k,
                                .v = pair->v,
                                .cells = (const int32_t *)(void *)cpu_value(e, cells),
                                .type = kv->format,
                                .n_kv = kv->n_kv,
                                .head_dim = kv->head_dim,
                                .n_ctx = kv->n_ctx};
    mf_type_row_bytes(kv->format, (uint64_t)kv->head_dim, &f->store.row_bytes);
    f->store.head_bytes = f->store.row_bytes * (size_t)kv->n_ctx;
    return MINFER_OK;
}

/* Head norms, RoPE and store of token t. */
static bool finish_token(const fused *f, const cpu_worker *w, int32_t t)
{
    const mf_attr_qkv *a = &f->node->attr.qkv;
    const cpu_store_args *st = &f->store;
    float *q = f->q + (size_t)t * f->ldq, *k = f->k + (size_t)t * f->ldk, *v = f->v + (size_t)t * f->ldv;
    size_t d = (size_t)st->head_dim;
    if (st->cells[t] < 0 || st->cells[t] >= st->n_ctx) return false;
    for (int32_t h = 0; h < a->rope.n_head && f->nq; h++)
        w->k->rms_norm(q + (size_t)h * d, q + (size_t)h * d, f->nq, st->head_dim, a->eps);
    for (int32_t h = 0; h < st->n_kv && f->nk; h++)
        w->k->rms_norm(k + (size_t)h * d, k + (size_t)h * d, f->nk, st->head_dim, a->eps);
    w->k->rope_angles(f->angles.cs, f->angles.inv_freq, f->angles.half, f->angles.positions[t]);
    w->k->rope(q, q, f->angles.cs, a->rope.n_head, st->head_dim, a->rope.n_rot, a->rope.interleaved);
    w->k->rope(k, k, f->angles.cs, st->n_kv, st->head_dim, a->rope.n_rot, a->rope.interleaved);
    for (int32_t h = 0; h < st->n_kv; h++) {
        size_t to = (size_t)h * st->head_bytes + (size_t)st->cells[t] * st->row_bytes;
        w->k->store_row(st->type, st->k + to, k + (size_t)h * d, st->head_dim);
        w->k->store_row(st->type, st->v + to, v + (size_t)h * d, st->head_dim);
    }
    return true;
}

static bool run_qkv(const cpu_step *s, const cpu_worker *w)
{
    const fused *f = fused_of(s);
    bool ok = true;
    run_products(&f->p, w);
    for (int32_t t = 0; t < f->nt; t++) ok = finish_token(f, w, t) && ok;
    return ok;
}

static minfer_status complain(const cpu_step *s, minfer_error *err)
{
    return mf_fail(err, MINFER_ERR_ARG, "node %s: a cell is out of range", s->node->name);
}

static minfer_status emit_fused_qkv(cpu_emit *e, const mf_node *n)
{
    const mf_attr_qkv *a = &n->attr.qkv;
    const cpu_weight *nq = NULL, *nk = NULL;
    size_t q = (size_t)a->rope.n_head * (size_t)a->rope.head_dim,
           k = (size_t)a->kv.n_kv * (size_t)a->kv.head_dim;
    float *y = cpu_value(e, n->id);
    fused *f;
    MF_TRY(push_fused(e, run_qkv, n, &f));
    f->p.x = cpu_value(e, n->src[0]);
    f->p.ldx = (size_t)e->x->graph->nodes[n->src[0]].shape[0];
    f->q = y, f->k = y + q, f->v = y + q + k;
    f->ldq = f->ldk = f->ldv = q + 2 * k;
    MF_TRY(add_product(e, f, a->wq, a->bq, f->q, f->ldq));
    MF_TRY(add_product(e, f, a->wk, a->bk, f->k, f->ldk));
    MF_TRY(add_product(e, f, a->wv, a->bv, f->v, f->ldv));
    if (n->op == MF_OP_FUSED_QKV_NORM) {
        MF_TRY(cpu_weight_need(e, n, a->nq, &nq));
        MF_TRY(cpu_weight_need(e, n, a->nk, &nk));
        f->nq = (const float *)(const void *)nq->data;
        f->nk = (const float *)(const void *)nk->data;
    }
    e->p->steps[e->p->n_steps - 1].complain = complain;
    MF_TRY(fill_rope(e, f, a, n->src[1]));
    return fill_store(e, f, &a->kv, n->src[2]);
}

static bool run_qkv_store(const cpu_step *s, const cpu_worker *w)
{
    const fused *f = fused_of(s);
    size_t nk = (size_t)f->store.n_kv * (size_t)f->store.head_dim;
    for (int32_t t = 0; t < f->nt; t++) {
        float *to[3] = {f->q + (size_t)t * f->ldq, f->k, f->v};
        for (int i = 0; i < 3; i++) {
            size_t n = i ? nk : f->ldq;
            const float *from = f->from[i] + (size_t)t * n, *bias = f->p.parts[i].bias;
            if (to[i] != from) memcpy(to[i], from, n * sizeof *from);
            if (bias) w->k->add(to[i], to[i], bias, (int64_t)n);
        }
        if (!finish_token(f, w, t)) return false;
    }
    return true;
}

/* The op lies over q where it may; k and v of a token are turned in rows of its own. */
static minfer_status emit_qkv_store(cpu_emit *e, const mf_node *n)
{
    const mf_attr_qkv *a = &n->attr.qkv;
    const mf_weight *biases[] = {a->bq, a->bk, a->bv};
    size_t nk = (size_t)a->kv.n_kv * (size_t)a->kv.head_dim;
    fused *f;
    MF_TRY(push_fused(e, run_qkv_store, n, &f));
    for (int i = 0; i < 3; i++) f->from[i] = cpu_value(e, n->src[i]);
    f->q = cpu_value(e, n->id);
    f->ldq = (size_t)n->shape[0];
    f->k = mf_arena_array(&e->p->arena, nk, sizeof *f->k);
    f->v = mf_arena_array(&e->p->arena, nk, sizeof *f->v);
    if (!f->k || !f->v) return MF_NOMEM(e->err);
    for (int i = 0; i < 3; i++) {
        const cpu_weight *b = NULL;
        if (biases[i]) MF_TRY(cpu_weight_need(e, n, biases[i], &b));
        f->p.parts[i].bias = b ? (const float *)(const void *)b->data : NULL;
    }
    e->p->steps[e->p->n_steps - 1].complain = complain;
    MF_TRY(fill_rope(e, f, a, n->src[3]));
    return fill_store(e, f, &a->kv, n->src[4]);
}

static bool run_ffn(const cpu_step *s, const cpu_worker *w)
{
    const fused *f = fused_of(s);
    run_products(&f->p, w);
    for (int32_t t = 0; t < f->nt; t++) {
        float *y = f->q + (size_t)t * f->ldq;
        w->k->swiglu(y, y, y + f->ldq / 2, (int64_t)(f->ldq / 2));
    }
    return true;
}

static minfer_status emit_ffn(cpu_emit *e, const mf_node *n)
{
    fused *f;
    float *y = cpu_value(e, n->id);
    MF_TRY(push_fused(e, run_ffn, n, &f));
    f->p.x = cpu_value(e, n->src[0]);
    f->p.ldx = (size_t)e->x->graph->nodes[n->src[0]].shape[0];
    f->q = y;
    f->ldq = (size_t)n->shape[0];
    MF_TRY(add_product(e, f, n->attr.ffn.gate, NULL, y, f->ldq));
    return add_product(e, f, n->attr.ffn.up, NULL, y + f->ldq / 2, f->ldq);
}

cpu_emit_fn *const *test_emitters(void)
{
    static cpu_emit_fn *all[MF_OP_COUNT];
    for (int i = 0; i < MF_OP_COUNT; i++) all[i] = cpu_emitters[i];
    all[MF_OP_FUSED_QKV] = emit_fused_qkv;
    all[MF_OP_FUSED_QKV_NORM] = emit_fused_qkv;
    all[MF_OP_QKV_BIAS_ROPE_STORE] = emit_qkv_store;
    all[MF_OP_FUSED_FFN] = emit_ffn;
    return all;
}
