/* Buffers that last: arenas, cache regions, budgets, and the addresses that follow from a plan. */
#include "graph/alloc.h"

#include <string.h>

static const double MIB = 1048576.0;

minfer_status mf_alloc_init(mf_alloc *a, mf_device *const *devices, int32_t n_devices, int32_t n_layer,
                            minfer_error *err)
{
    *a = (mf_alloc){.devices = devices, .n_devices = n_devices, .n_layer = n_layer};
    a->layers = mf_calloc((size_t)n_layer, sizeof *a->layers);
    if (!a->layers) return MF_NOMEM(err);
    for (int32_t i = 0; i < n_layer; i++) a->layers[i].device = -1;
    for (int32_t d = 0; d < n_devices; d++) devices[d]->index = d;
    return MINFER_OK;
}

void mf_alloc_free(mf_alloc *a)
{
    for (int32_t d = 0; d < a->n_devices; d++)
        if (a->arena[d].buf) a->devices[d]->ops->buffer_free(a->devices[d], a->arena[d].buf);
    for (int32_t i = 0; a->layers && i < a->n_layer; i++) {
        mf_kv_pair *p = &a->layers[i];
        if (p->k) a->devices[p->device]->ops->buffer_free(a->devices[p->device], p->k);
        if (p->v) a->devices[p->device]->ops->buffer_free(a->devices[p->device], p->v);
    }
    mf_free(a->layers);
    *a = (mf_alloc){0};
}

size_t mf_alloc_class(size_t elements)
{
    size_t c = 256;
    if (elements > 4096) return mf_align_up(elements, 4096);
    while (c < elements) c *= 2;
    return c;
}

static minfer_status within_budget(const mf_alloc *a, int32_t d, size_t more, const char *what,
                                   minfer_error *err)
{
    const mf_device *dev = a->devices[d];
    size_t total;
    if (mf_add_ok(a->used[d], more, &total) && (dev->budget == 0 || total <= dev->budget)) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_NOMEM, "%s: %s needs %.1f MiB, %.1f of %.1f MiB are in use", dev->name,
                   what, (double)more / MIB, (double)a->used[d] / MIB, (double)dev->budget / MIB);
}

static minfer_status buffer(mf_alloc *a, int32_t d, size_t bytes, const char *what, void **buf,
                            minfer_error *err)
{
    *buf = NULL;
    MF_TRY(within_budget(a, d, bytes, what, err));
    MF_TRY(a->devices[d]->ops->buffer_alloc(a->devices[d], bytes, buf, err));
    a->used[d] += bytes;
    return MINFER_OK;
}

static void drop(mf_alloc *a, int32_t d, void **buf, size_t bytes)
{
    if (!*buf) return;
    a->devices[d]->ops->buffer_free(a->devices[d], *buf);
    a->used[d] -= bytes;
    *buf = NULL;
}

minfer_status mf_alloc_commit(mf_alloc *a, const mf_plan *plan, minfer_error *err)
{
    for (int32_t d = 0; d < a->n_devices; d++) {
        size_t need = plan->arena_bytes[d];
        if (need <= a->arena[d].size) continue;
        MF_TRY(a->devices[d]->ops->sync(a->devices[d], err));
        drop(a, d, &a->arena[d].buf, a->arena[d].size);
        a->arena[d].size = 0;
        a->arena[d].generation++;
        MF_TRY(buffer(a, d, need, "working memory", &a->arena[d].buf, err));
        a->arena[d].size = need;
    }
    return MINFER_OK;
}

static bool same_geometry(const mf_attr_kv *a, const mf_attr_kv *b)
{
    return a->n_kv == b->n_kv && a->head_dim == b->head_dim && a->n_ctx == b->n_ctx && a->format == b->format;
}

static minfer_status region(mf_alloc *a, const mf_node *n, const mf_attr_kv *kv, minfer_error *err)
{
    mf_kv_pair *p = &a->layers[kv->layer];
    size_t row, rows;
    if (p->device >= 0) {
        if (p->device != n->device)
            return mf_fail(err, MINFER_ERR_STATE, "node %s runs on %s, the cache of layer %d is on %s",
                           n->name, a->devices[n->device]->name, kv->layer, a->devices[p->device]->name);
        if (!same_geometry(&p->geometry, kv))
            return mf_fail(err, MINFER_ERR_STATE,
                           "node %s: the cache of layer %d has another shape or format", n->name, kv->layer);
        return MINFER_OK;
    }
    if (!mf_type_row_bytes(kv->format, (uint64_t)kv->head_dim, &row) ||
        !mf_mul_ok((size_t)kv->n_kv, (size_t)kv->n_ctx, &rows) || !mf_mul_ok(rows, row, &p->bytes))
        return mf_fail(err, MINFER_ERR_LIMIT, "node %s: a cache of %d cells is too large", n->name,
                       kv->n_ctx);
    MF_TRY(buffer(a, n->device, p->bytes, "the K cache of a layer", &p->k, err));
    minfer_status st = buffer(a, n->device, p->bytes, "the V cache of a layer", &p->v, err);
    if (st != MINFER_OK) {
        drop(a, n->device, &p->k, p->bytes);
        return st;
    }
    p->device = n->device;
    p->geometry = *kv;
    return MINFER_OK;
}

/* Regions made for a graph that is then refused stay: they are empty caches of layers that will be used. */
static minfer_status regions(mf_alloc *a, const mf_graph *g, minfer_error *err)
{
    for (mf_id i = 0; i < g->n_nodes; i++) {
        const mf_attr_kv *kv = mf_node_kv(&g->nodes[i]);
        if (!kv) continue;
        if (kv->layer >= a->n_layer)
            return mf_fail(err, MINFER_ERR_STATE, "node %s: layer %d of %d", g->nodes[i].name, kv->layer,
                           a->n_layer);
        MF_TRY(region(a, &g->nodes[i], kv, err));
    }
    return MINFER_OK;
}

minfer_status mf_alloc_plan(mf_alloc *a, const mf_graph *g, mf_plan *plan, minfer_error *err)
{
    minfer_status st = mf_plan_make(a, g, plan, err);
    for (int32_t d = 0; d < a->n_devices && st == MINFER_OK; d++)
        if (plan->arena_bytes[d] > a->arena[d].size)
            st = within_budget(a, d, plan->arena_bytes[d] - a->arena[d].size, "working memory", err);
    if (st == MINFER_OK) st = regions(a, g, err);
    if (st != MINFER_OK) mf_plan_free(plan);
    return st;
}

const mf_kv_pair *mf_alloc_kv_pair(const mf_alloc *a, int32_t layer)
{
    return layer >= 0 && layer < a->n_layer && a->layers[layer].device >= 0 ? &a->layers[layer] : NULL;
}

size_t mf_alloc_kv_row_bytes(const mf_kv_pair *p)
{
    return p->bytes / (size_t)p->geometry.n_kv / (size_t)p->geometry.n_ctx;
}

static mf_mem kv_at(const mf_kv_pair *p, bool is_v, int32_t head, int32_t cell)
{
    size_t row = (size_t)head * (size_t)p->geometry.n_ctx + (size_t)cell;
    return (mf_mem){is_v ? p->v : p->k, row * mf_alloc_kv_row_bytes(p)};
}

minfer_status mf_alloc_kv_read(const mf_alloc *a, const mf_kv_rows *r, void *dst, minfer_error *err)
{
    const mf_kv_pair *p = &a->layers[r->layer];
    mf_device *d = a->devices[p->device];
    return d->ops->read(d, kv_at(p, r->is_v, r->head, r->cell), dst, (size_t)r->n * mf_alloc_kv_row_bytes(p),
                        err);
}

minfer_status mf_alloc_kv_write(const mf_alloc *a, const mf_kv_rows *r, const void *src, minfer_error *err)
{
    const mf_kv_pair *p = &a->layers[r->layer];
    mf_device *d = a->devices[p->device];
    return d->ops->write(d, kv_at(p, r->is_v, r->head, r->cell), src, (size_t)r->n * mf_alloc_kv_row_bytes(p),
                         err);
}

minfer_status mf_alloc_kv_move(const mf_alloc *a, int32_t from, int32_t to, int32_t n, minfer_error *err)
{
    for (int32_t l = 0; l < a->n_layer; l++) {
        const mf_kv_pair *p = mf_alloc_kv_pair(a, l);
        if (!p) continue;
        mf_device *d = a->devices[p->device];
        size_t bytes = (size_t)n * mf_alloc_kv_row_bytes(p);
        for (int32_t h = 0; h < p->geometry.n_kv; h++) {
            MF_TRY(d->ops->move(d, kv_at(p, false, h, to), kv_at(p, false, h, from), bytes, err));
            MF_TRY(d->ops->move(d, kv_at(p, true, h, to), kv_at(p, true, h, from), bytes, err));
        }
    }
    return MINFER_OK;
}

static mf_mem at(const mf_exec *x, const mf_loc *l)
{
    if (l->place != MF_PLACE_ARENA) return (mf_mem){NULL, 0};
    return (mf_mem){x->alloc->arena[l->device].buf, l->offset};
}

mf_mem mf_exec_value(const mf_exec *x, mf_id node, int32_t device)
{
    const mf_loc *l = &x->plan->value[node];
    if (l->place == MF_PLACE_REGION) {
        const mf_attr_kv *kv = &x->graph->nodes[mf_graph_root(x->graph, node)].attr.kv;
        const mf_kv_pair *p = mf_alloc_kv_pair(x->alloc, kv->layer);
        return (mf_mem){p && p->device == device ? (kv->is_v ? p->v : p->k) : NULL, l->offset};
    }
    if (l->device == device) return at(x, l);
    int32_t s = mf_plan_staged(x->plan, node, device);
    return s < 0 ? (mf_mem){NULL, 0} : at(x, &x->plan->staged[s].loc);
}

mf_mem mf_exec_extra(const mf_exec *x, mf_id node, int32_t device)
{
    if (x->plan->value[node].device == device) return at(x, &x->plan->extra[node]);
    int32_t s = mf_plan_staged(x->plan, node, device);
    return s < 0 ? (mf_mem){NULL, 0} : at(x, &x->plan->staged[s].extra);
}

mf_mem mf_exec_scratch(const mf_exec *x, int32_t device)
{
    return at(x, &x->plan->scratch[device]);
}
