/* Building and reusing graphs. */
#include "graph/cache.h"
#include "graph/fuse.h"
#include "graph/validate.h"

#include <string.h>

minfer_status mf_graph_cache_init(mf_graph_cache *c, const mf_assign *assign, int32_t n_layer,
                                  mf_build_fn *build, void *model, minfer_error *err)
{
    *c = (mf_graph_cache){
        .assign = *assign, .build = build, .model = model, .n_layer = n_layer, .fuse = true, .next_uid = 1};
#ifndef NDEBUG
    c->check_reuse = true;
#endif
    return mf_alloc_init(&c->alloc, assign->devices, assign->n_devices, n_layer, err);
}

static void slot_free(mf_cached_graph *g)
{
    mf_sched_free(&g->sched, &g->exec);
    mf_plan_free(&g->plan);
    mf_graph_free(&g->graph);
    mf_free(g->built);
    *g = (mf_cached_graph){0};
}

void mf_graph_cache_free(mf_graph_cache *c)
{
    for (int i = 0; i < MF_GRAPH_CACHE_SIZE; i++)
        if (c->slots[i].last_used) slot_free(&c->slots[i]);
    if (c->alloc.devices) mf_alloc_free(&c->alloc);
    *c = (mf_graph_cache){0};
}

static minfer_status build_nodes(mf_graph_cache *c, const mf_graph_params *p, mf_graph *g, minfer_error *err)
{
    mf_builder b;
    mf_graph_init(g);
    mf_build_begin(&b, g, p, c->n_layer, err);
    minfer_status st = c->build(c->model, &b);
    if (st != MINFER_OK) mf_graph_free(g);
    return st;
}

static minfer_status place(mf_graph_cache *c, mf_cached_graph *g, minfer_error *err)
{
    int32_t *home = mf_calloc((size_t)c->n_layer, sizeof *home);
    if (!home) return MF_NOMEM(err);
    for (int32_t i = 0; i < c->n_layer; i++) {
        const mf_kv_pair *p = mf_alloc_kv_pair(&c->alloc, i);
        home[i] = p ? p->device : -1;
    }
    minfer_status st = mf_assign_devices(&g->graph, &g->params, &c->assign, home, err);
    mf_free(home);
    return st;
}

static minfer_status keep_built(mf_cached_graph *g, minfer_error *err)
{
    size_t n = (size_t)g->graph.n_nodes;
    g->built = mf_calloc(n, sizeof *g->built);
    if (!g->built) return MF_NOMEM(err);
    memcpy(g->built, g->graph.nodes, n * sizeof *g->built);
    return MINFER_OK;
}

static minfer_status build(mf_graph_cache *c, const mf_graph_params *p, mf_cached_graph *g, minfer_error *err)
{
    minfer_status st = MINFER_OK;
    *g = (mf_cached_graph){.params = *p};
    mf_graph_init(&g->graph);
    g->exec = (mf_exec){&g->graph, &c->alloc, &g->plan};
    MF_TRY_GOTO(build_nodes(c, p, &g->graph, err));
    if (c->check_reuse) MF_TRY_GOTO(keep_built(g, err));
    MF_TRY_GOTO(place(c, g, err));
    if (c->fuse) g->n_fused = mf_fuse_peephole(&g->graph, c->assign.devices);
    MF_TRY_GOTO(mf_alloc_plan(&c->alloc, &g->graph, &g->plan, err));
    MF_TRY_GOTO(mf_sched_build(&g->sched, &g->exec, err));
    g->graph.uid = c->next_uid++;
    c->n_built++;
done:
    if (st != MINFER_OK) slot_free(g);
    return st;
}

/* Equal parameters must give an equal graph: builds once more and compares with what was built then. */
static minfer_status check_again(mf_graph_cache *c, const mf_cached_graph *cached, minfer_error *err)
{
    mf_graph fresh, then = cached->graph;
    then.nodes = cached->built;
    MF_TRY(build_nodes(c, &cached->params, &fresh, err));
    minfer_status st = mf_graph_compare(&then, &fresh, err);
    mf_graph_free(&fresh);
    return st;
}

minfer_status mf_graph_cache_get(mf_graph_cache *c, const mf_graph_params *p, mf_cached_graph **out,
                                 minfer_error *err)
{
    mf_cached_graph *oldest = &c->slots[0];
    *out = NULL;
    for (int i = 0; i < MF_GRAPH_CACHE_SIZE; i++) {
        mf_cached_graph *g = &c->slots[i];
        if (g->last_used && mf_graph_params_equal(&g->params, p)) {
            if (g->built) MF_TRY(check_again(c, g, err));
            c->n_reused++;
            g->last_used = ++c->clock;
            *out = g;
            return MINFER_OK;
        }
        if (g->last_used < oldest->last_used) oldest = g;
    }
    if (oldest->last_used) slot_free(oldest);
    MF_TRY(build(c, p, oldest, err));
    oldest->last_used = ++c->clock;
    *out = oldest;
    return MINFER_OK;
}

minfer_status mf_graph_cache_run(mf_graph_cache *c, mf_cached_graph *g, const mf_inputs *in, float *output,
                                 minfer_error *err)
{
    MF_TRY(mf_alloc_commit(&c->alloc, &g->plan, err));
    MF_TRY(mf_sched_run(&g->sched, &g->exec, in, err));
    if (g->graph.output < 0 || !output) return MINFER_OK;
    return mf_graph_cache_read(c, g, 0, (size_t)g->graph.nodes[g->graph.output].shape[1], output, err);
}

minfer_status mf_graph_cache_read(mf_graph_cache *c, const mf_cached_graph *g, size_t first, size_t n,
                                  float *rows, minfer_error *err)
{
    const mf_node *out = &g->graph.nodes[g->graph.output];
    mf_device *d = c->alloc.devices[out->device];
    mf_mem m = mf_exec_value(&g->exec, out->id, out->device);
    size_t row = mf_node_bytes(out) / (size_t)out->shape[1];
    m.offset += first * row;
    return d->ops->read(d, m, rows, n * row, err);
}
