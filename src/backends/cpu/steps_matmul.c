/* Steps of matrix products: quantizing an activation once, multiplying; the generic products of the
 * vocabulary. */
#include "backends/cpu/device.h"
#include "backends/cpu/steps.h"

#include <math.h>

minfer_status cpu_weight_need(cpu_emit *e, const mf_node *n, const mf_weight *w, const cpu_weight **out)
{
    *out = cpu_weight_find(e->dev, w->name);
    if (!*out)
        return mf_fail(e->err, MINFER_ERR_STATE, "node %s: weight %s is not registered with the CPU", n->name,
                       w->name);
    if ((*out)->type == w->type && (*out)->dims[0] == w->dims[0] && (*out)->dims[1] == w->dims[1])
        return MINFER_OK;
    return mf_fail(e->err, MINFER_ERR_STATE, "node %s: weight %s is registered as %s [%lld, %lld]", n->name,
                   w->name, mf_type_name((*out)->type), (long long)(*out)->dims[0],
                   (long long)(*out)->dims[1]);
}

/* ---- quantized activations
 * -------------------------------------------------------------------------------------- */

static bool run_quantize(const cpu_step *s, const cpu_worker *w)
{
    const cpu_quantize_args *a = &s->u.quantize;
    cpu_part p = cpu_part_of(w, s->key, a->act.k, a->act.nt);
    if (p.t0 < p.t1 && p.f0 < p.f1) w->k->quantize(&a->act, a->x, a->ldx, p.t0, p.t1, p.f0 / 32, p.f1 / 32);
    return true;
}

minfer_status cpu_act_of(cpu_emit *e, const mf_node *reader, mf_id id, cpu_act *act)
{
    const mf_node *v = &e->x->graph->nodes[id];
    int32_t k = (int32_t)reader->attr.weight.w->dims[0], nt = (int32_t)(mf_node_elements(v) / v->shape[0]);
    mf_mem m = mf_exec_extra(e->x, id, e->dev->base.index);
    cpu_act_bind(act, (uint8_t *)m.buf + m.offset, k, nt, e->dev->kernels.few);
    if (reader->id != cpu_first_act_reader(e->dev, e->x->graph, id)) return MINFER_OK;
    cpu_step *s;
    MF_TRY(cpu_push(e, run_quantize, reader, cpu_key_for(k, nt), &s));
    s->slot = MF_TIME_QUANTIZE;
    s->cost = (int64_t)k * nt;
    s->u.quantize = (cpu_quantize_args){*act, cpu_value(e, id), (size_t)v->shape[0]};
    MF_TRY(cpu_reads_value(e, id));
    return cpu_writes(e, (uint8_t *)m.buf + m.offset, cpu_act_bytes(k, nt));
}

/* ---- matmul
 * ----------------------------------------------------------------------------------------------------- */

enum { ROW_UNIT = 16 }; /* shares of rows are multiples of the widest panel */

static size_t row_bytes(const cpu_matmul *m)
{
    size_t n = 0;
    mf_type_row_bytes(m->type, (uint64_t)m->k, &n); /* checked when the weight was registered */
    return n;
}

/* Where this thread is going to read weights next: in the product that follows in its share, in the next
 * share it will probably take, or in the one of the next phase. */
static const uint8_t *next_weights(const cpu_step *s, const cpu_worker *w)
{
    const cpu_step *to = s->after;
    cpu_worker then = *w;
    if (to->again != s->again || to == s->again) {
        bool more = w->ith + w->threads < w->nth;
        to = more ? s->again : to;
        then.ith = more ? w->ith + w->threads : w->thread;
        then.nth = to->shares;
    }
    int64_t a, b;
    cpu_share(&then, to->u.matmul.rows, ROW_UNIT, &a, &b);
    return to->u.matmul.w + (size_t)a * row_bytes(&to->u.matmul);
}

static bool run_matmul(const cpu_step *s, const cpu_worker *w)
{
    cpu_matmul m = s->u.matmul;
    int64_t a, b;
    cpu_share(w, m.rows, ROW_UNIT, &a, &b);
    m.scratch = w->scratch;
    m.next = next_weights(s, w);
    if (a < b) w->k->matmul[m.type](&m, (int32_t)a, (int32_t)b);
    return true;
}

static void work_matmul(const cpu_step *s, mf_time *t)
{
    const cpu_matmul *m = &s->u.matmul;
    t->bytes += row_bytes(m) * (size_t)m->rows;
    t->macs += (uint64_t)m->k * (uint64_t)m->rows * (uint64_t)m->nt;
}

minfer_status cpu_emit_matmul(cpu_emit *e, const mf_node *n)
{
    const mf_node *x = &e->x->graph->nodes[n->src[0]];
    const cpu_weight *w;
    cpu_step *s;
    cpu_act *act = NULL;
    bool quantized = mf_type_get((uint32_t)n->attr.weight.w->type)->quantized;
    MF_TRY(cpu_weight_need(e, n, n->attr.weight.w, &w));
    if (quantized) {
        act = mf_arena_alloc(&e->p->arena, sizeof *act);
        if (!act) return MF_NOMEM(e->err);
        MF_TRY(cpu_act_of(e, n, x->id, act));
    }
    MF_TRY(cpu_push(e, run_matmul, n, 0, &s));
    s->cost = w->dims[0] * mf_node_elements(n);
    s->work = work_matmul;
    s->reads_weights = true;
    s->u.matmul = (cpu_matmul){.type = w->type,
                               .rows = (int32_t)w->dims[1],
                               .k = (int32_t)w->dims[0],
                               .nt = (int32_t)(mf_node_elements(x) / x->shape[0]),
                               .w = w->data,
                               .act = act,
                               .x = cpu_value(e, x->id),
                               .ldx = (size_t)x->shape[0],
                               .y = cpu_value(e, n->id),
                               .ldy = (size_t)w->dims[1]};
    if (act)
        MF_TRY(cpu_reads(e, act->q, cpu_act_bytes(act->k, act->nt)));
    else
        MF_TRY(cpu_reads_value(e, x->id));
    return cpu_writes_value(e, n->id);
}

/* ---- the rest of the vocabulary: right, not fast
 * ----------------------------------------------------------------- */

static bool run_permute(const cpu_step *s, const cpu_worker *w)
{
    const cpu_permute_args *a = &s->u.permute;
    int64_t j0, j1, rows = a->shape[1] * a->shape[2] * a->shape[3];
    cpu_share(w, rows, 1, &j0, &j1);
    for (int64_t j = j0; j < j1; j++) {
        int64_t i1 = j % a->shape[1], i2 = j / a->shape[1] % a->shape[2], i3 = j / a->shape[1] / a->shape[2];
        const float *x = a->x + i1 * a->stride[1] + i2 * a->stride[2] + i3 * a->stride[3];
        for (int64_t i = 0; i < a->shape[0]; i++) a->y[j * a->shape[0] + i] = x[i * a->stride[0]];
    }
    return true;
}

minfer_status cpu_emit_permute(cpu_emit *e, const mf_node *n)
{
    const mf_node *x = &e->x->graph->nodes[n->src[0]];
    int64_t stride[4] = {1, x->shape[0], x->shape[0] * x->shape[1], x->shape[0] * x->shape[1] * x->shape[2]};
    cpu_step *s;
    MF_TRY(cpu_push(e, run_permute, n, 0, &s));
    s->u.permute = (cpu_permute_args){.y = cpu_value(e, n->id), .x = cpu_value(e, x->id)};
    for (int i = 0; i < 4; i++) {
        s->u.permute.shape[i] = n->shape[i];
        s->u.permute.stride[i] = stride[n->attr.permute[i]];
    }
    MF_TRY(cpu_reads_value(e, x->id));
    return cpu_writes_value(e, n->id);
}

/* The order of a matmul with F32 weights: sixteen chains, one tree. */
static float dot16(const float *a, const float *b, int64_t k)
{
    float l[16] = {0};
    for (int64_t i = 0; i < k; i++) l[i % 16] = fmaf(a[i], b[i], l[i % 16]);
    return mf_math_tree16(l);
}

static bool run_batch_matmul(const cpu_step *s, const cpu_worker *w)
{
    const cpu_bmm_args *a = &s->u.bmm;
    int64_t j0, j1;
    cpu_share(w, a->n * a->batch, 1, &j0, &j1);
    for (int64_t j = j0; j < j1; j++)
        for (int64_t i = 0; i < a->m; i++)
            a->y[j * a->m + i] = dot16(a->a + (j / a->n * a->m + i) * a->k, a->b + j * a->k, a->k);
    return true;
}

minfer_status cpu_emit_batch_matmul(cpu_emit *e, const mf_node *n)
{
    const mf_node *a = &e->x->graph->nodes[n->src[0]], *b = &e->x->graph->nodes[n->src[1]];
    cpu_step *s;
    MF_TRY(cpu_push(e, run_batch_matmul, n, 0, &s));
    s->u.bmm = (cpu_bmm_args){cpu_value(e, n->id), cpu_value(e, a->id), cpu_value(e, b->id), a->shape[0],
                              a->shape[1],         b->shape[1],         a->shape[2]};
    MF_TRY(cpu_reads_value(e, a->id));
    MF_TRY(cpu_reads_value(e, b->id));
    return cpu_writes_value(e, n->id);
}
