/* Layout of one graph: last uses, aliases, offsets in size classes, staging. Execution follows build order,
 * and so does this. */
#include "graph/alloc.h"

#include <string.h>

typedef struct {
    size_t offset, bytes;
} span;

/* Offsets of one device: a bump mark and freed spans, reused by exact class. */
typedef struct {
    size_t mark;
    span *free;
    size_t n_free, cap;
} heap;

typedef struct {
    const mf_alloc *a;
    const mf_graph *g;
    mf_plan *p;
    minfer_error *err;
    heap heaps[MF_MAX_DEVICES];
    int32_t *n_readers; /* live readers of each node itself, not through views */
} ctx;

static minfer_status take(ctx *c, int32_t device, size_t bytes, mf_loc *loc)
{
    heap *h = &c->heaps[device];
    size_t size;
    *loc = (mf_loc){MF_PLACE_ARENA, device, 0, bytes};
    if (bytes > SIZE_MAX / 4)
        return mf_fail(c->err, MINFER_ERR_LIMIT, "a value of %zu bytes is too large", bytes);
    size = mf_alloc_class((bytes + 3) / 4) * 4;
    for (size_t i = h->n_free; i-- > 0;)
        if (h->free[i].bytes == size) {
            loc->offset = h->free[i].offset;
            h->free[i] = h->free[--h->n_free];
            return MINFER_OK;
        }
    loc->offset = h->mark;
    if (!mf_add_ok(h->mark, size, &h->mark))
        return mf_fail(c->err, MINFER_ERR_LIMIT, "the graph's values are too large together");
    return MINFER_OK;
}

static minfer_status give(ctx *c, const mf_loc *loc)
{
    if (loc->place != MF_PLACE_ARENA) return MINFER_OK;
    heap *h = &c->heaps[loc->device];
    if (!mf_grow((void **)&h->free, &h->cap, h->n_free + 1, sizeof *h->free)) return MF_NOMEM(c->err);
    h->free[h->n_free++] = (span){loc->offset, mf_alloc_class((loc->bytes + 3) / 4) * 4};
    return MINFER_OK;
}

static void find_uses(ctx *c)
{
    const mf_graph *g = c->g;
    mf_id *last = c->p->last_use, never = g->n_nodes;
    for (mf_id i = 0; i < g->n_nodes; i++) {
        c->p->alias_of[i] = -1;
        last[i] = i;
    }
    for (mf_id i = 0; i < g->n_nodes; i++) {
        const mf_node *n = &g->nodes[i];
        if (n->output || n->op == MF_OP_INPUT) last[mf_graph_root(g, i)] = never;
        for (int32_t k = 0; k < n->n_src && !n->dead; k++) {
            mf_id root = mf_graph_root(g, n->src[k]);
            c->n_readers[n->src[k]]++;
            if (last[root] < never) last[root] = i;
        }
    }
}

static bool has_buffer(const mf_node *n)
{
    return !n->dead && n->op != MF_OP_KVCACHE_STORE && n->op != MF_OP_KVCACHE_LOAD;
}

/* In place: the op may, its first source is a computed value of the same device and size, and nobody else
 * reads it. */
static bool may_alias(const ctx *c, const mf_node *n)
{
    if (!mf_op_table[n->op].alias) return false;
    const mf_node *s = &c->g->nodes[n->src[0]];
    return s->op != MF_OP_INPUT && !s->output && s->device == n->device && c->n_readers[s->id] == 1 &&
           mf_graph_root(c->g, s->id) == s->id && has_buffer(s) && c->p->last_use[s->id] == n->id &&
           mf_node_bytes(s) == mf_node_bytes(n);
}

static minfer_status stage(ctx *c, const mf_node *n, mf_id id)
{
    mf_plan *p = c->p;
    const mf_node *v = &c->g->nodes[id];
    if (v->device == n->device || mf_plan_staged(p, id, n->device) >= 0) return MINFER_OK;
    if (v->op == MF_OP_KVCACHE_LOAD || v->op == MF_OP_KVCACHE_STORE)
        return mf_fail(c->err, MINFER_ERR_STATE, "node %s on %s reads %s, which stays on %s", n->name,
                       c->a->devices[n->device]->name, v->name, c->a->devices[v->device]->name);
    mf_staged *s = &p->staged[p->n_staged++];
    *s = (mf_staged){.node = id, .device = n->device};
    MF_TRY(take(c, n->device, mf_node_bytes(v), &s->loc));
    mf_device *d = c->a->devices[n->device];
    size_t extra = d->ops->value_extra ? d->ops->value_extra(d, c->g, id) : 0;
    return extra ? take(c, n->device, extra, &s->extra) : MINFER_OK;
}

/* Staging copies are made from the node that is read, view or not, so that a reader needs no arithmetic. */
static minfer_status place_staged(ctx *c)
{
    for (mf_id i = 0; i < c->g->n_nodes; i++) {
        const mf_node *n = &c->g->nodes[i];
        for (int32_t k = 0; k < n->n_src && !n->dead; k++) MF_TRY(stage(c, n, n->src[k]));
    }
    return MINFER_OK;
}

static minfer_status place_value(ctx *c, const mf_node *n)
{
    mf_plan *p = c->p;
    mf_id root = mf_graph_root(c->g, n->id);
    p->value[n->id] = (mf_loc){MF_PLACE_NONE, n->device, 0, 0};
    p->extra[n->id] = p->value[n->id];
    if (n->dead || n->op == MF_OP_KVCACHE_STORE) return MINFER_OK;
    if (n->op == MF_OP_KVCACHE_LOAD) {
        p->value[n->id].place = MF_PLACE_REGION;
        return MINFER_OK;
    }
    if (root != n->id) {
        p->value[n->id] = p->value[n->src[0]];
        p->value[n->id].bytes = mf_node_bytes(n);
        if (n->op == MF_OP_VIEW) p->value[n->id].offset += (size_t)n->attr.view_offset * sizeof(float);
    } else if (may_alias(c, n)) {
        p->alias_of[n->id] = n->src[0];
        p->value[n->id] = p->value[n->src[0]];
    } else {
        MF_TRY(take(c, n->device, mf_node_bytes(n), &p->value[n->id]));
    }
    mf_device *d = c->a->devices[n->device];
    size_t extra = d->ops->value_extra ? d->ops->value_extra(d, c->g, n->id) : 0;
    return extra ? take(c, n->device, extra, &p->extra[n->id]) : MINFER_OK;
}

static bool was_aliased(const ctx *c, mf_id id)
{
    mf_id user = c->p->last_use[id];
    return user < c->g->n_nodes && c->p->alias_of[user] == id;
}

/* Gives back what node i was the last to read; companions go with the last use of the node itself. */
static minfer_status release_after(ctx *c, mf_id i, const mf_id *by_use, const int32_t *first)
{
    for (int32_t e = first[i]; e < first[i + 1]; e++) {
        mf_id v = by_use[e];
        if (mf_graph_root(c->g, v) == v && !was_aliased(c, v)) MF_TRY(give(c, &c->p->value[v]));
        MF_TRY(give(c, &c->p->extra[v]));
    }
    return MINFER_OK;
}

/* Nodes sorted by the node after which they are free: by_use[first[i]..first[i+1]). A view lives as long as
 * its root. */
static void sort_by_use(const ctx *c, mf_id *by_use, int32_t *first)
{
    int32_t n = c->g->n_nodes;
    for (mf_id v = 0; v < n; v++) {
        mf_id use = c->p->last_use[mf_graph_root(c->g, v)];
        if (use < n) first[use + 2]++;
    }
    for (int32_t i = 2; i < n + 2; i++) first[i] += first[i - 1];
    for (mf_id v = 0; v < n; v++) {
        mf_id use = c->p->last_use[mf_graph_root(c->g, v)];
        if (use < n) by_use[first[use + 1]++] = v;
    }
}

static minfer_status place_scratch(ctx *c)
{
    for (int32_t d = 0; d < c->a->n_devices; d++) {
        mf_device *dev = c->a->devices[d];
        size_t bytes = dev->ops->graph_scratch ? dev->ops->graph_scratch(dev, c->g) : 0;
        if (bytes) MF_TRY(take(c, d, bytes, &c->p->scratch[d]));
    }
    return MINFER_OK;
}

static minfer_status place_all(ctx *c, mf_id *by_use, int32_t *first)
{
    find_uses(c);
    sort_by_use(c, by_use, first);
    MF_TRY(place_scratch(c));
    MF_TRY(place_staged(c));
    for (mf_id i = 0; i < c->g->n_nodes; i++)
        if (c->g->nodes[i].op == MF_OP_INPUT) MF_TRY(place_value(c, &c->g->nodes[i]));
    for (mf_id i = 0; i < c->g->n_nodes; i++) {
        if (c->g->nodes[i].op != MF_OP_INPUT) MF_TRY(place_value(c, &c->g->nodes[i]));
        MF_TRY(release_after(c, i, by_use, first));
    }
    return MINFER_OK;
}

minfer_status mf_plan_make(const mf_alloc *a, const mf_graph *g, mf_plan *plan, minfer_error *err)
{
    size_t n = (size_t)g->n_nodes;
    ctx c = {.a = a, .g = g, .p = plan, .err = err};
    *plan = (mf_plan){.n_nodes = g->n_nodes};
    plan->value = mf_calloc(n, sizeof *plan->value);
    plan->extra = mf_calloc(n, sizeof *plan->extra);
    plan->alias_of = mf_calloc(n, sizeof *plan->alias_of);
    plan->last_use = mf_calloc(n, sizeof *plan->last_use);
    plan->staged = mf_calloc(n * MF_MAX_DEVICES, sizeof *plan->staged);
    c.n_readers = mf_calloc(n, sizeof *c.n_readers);
    mf_id *by_use = mf_calloc(n, sizeof *by_use);
    int32_t *first = mf_calloc(n + 2, sizeof *first);
    bool ok = plan->value && plan->extra && plan->alias_of && plan->last_use && plan->staged && c.n_readers &&
              by_use && first;
    minfer_status st = ok ? place_all(&c, by_use, first) : MF_NOMEM(err);
    for (int32_t d = 0; d < MF_MAX_DEVICES; d++) {
        plan->arena_bytes[d] = c.heaps[d].mark;
        mf_free(c.heaps[d].free);
    }
    mf_free(c.n_readers);
    mf_free(by_use);
    mf_free(first);
    if (st != MINFER_OK) mf_plan_free(plan);
    return st;
}

void mf_plan_free(mf_plan *plan)
{
    mf_free(plan->value);
    mf_free(plan->extra);
    mf_free(plan->alias_of);
    mf_free(plan->last_use);
    mf_free(plan->staged);
    *plan = (mf_plan){0};
}

int32_t mf_plan_staged(const mf_plan *plan, mf_id node, int32_t device)
{
    for (int32_t i = 0; i < plan->n_staged; i++)
        if (plan->staged[i].node == node && plan->staged[i].device == device) return i;
    return -1;
}
