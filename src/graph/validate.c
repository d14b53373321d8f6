/* Checks over whole graphs. */
#include "graph/validate.h"
#include "base/strmap.h"
#include "graph/shape.h"

#include <string.h>

/* Readers of every node: those of node i are list[first[i]] .. list[first[i + 1]]. */
typedef struct {
    int32_t *first, *list;
} readers;

static bool readers_init(readers *r, const mf_graph *g)
{
    size_t n = (size_t)g->n_nodes;
    r->first = mf_calloc(n + 2, sizeof *r->first);
    r->list = mf_calloc(n * MF_MAX_SRC, sizeof *r->list);
    if (!r->first || !r->list) return false;
    for (mf_id i = 0; i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->nodes[i].n_src; k++) r->first[g->nodes[i].src[k] + 2]++;
    for (size_t i = 2; i < n + 2; i++) r->first[i] += r->first[i - 1];
    for (mf_id i = 0; i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->nodes[i].n_src; k++) r->list[r->first[g->nodes[i].src[k] + 1]++] = i;
    return true;
}

static void readers_free(readers *r)
{
    mf_free(r->first);
    mf_free(r->list);
}

/* Kahn's algorithm: nodes whose sources are all done are done; what is left lies on a cycle or behind one. */
static minfer_status check_acyclic(const mf_graph *g, minfer_error *err)
{
    minfer_status st = MINFER_OK;
    readers r = {0};
    int32_t *open = mf_calloc((size_t)g->n_nodes, sizeof *open); /* sources not yet done */
    mf_id *ready = mf_calloc((size_t)g->n_nodes, sizeof *ready), left = 0;
    int32_t n_ready = 0;
    if (!open || !ready || !readers_init(&r, g)) {
        st = MF_NOMEM(err);
        goto done;
    }
    for (mf_id i = 0; i < g->n_nodes; i++)
        if ((open[i] = g->nodes[i].n_src) == 0) ready[n_ready++] = i;
    for (int32_t k = 0; k < n_ready; k++)
        for (int32_t e = r.first[ready[k]]; e < r.first[ready[k] + 1]; e++)
            if (--open[r.list[e]] == 0) ready[n_ready++] = r.list[e];
    while (left < g->n_nodes && open[left] == 0) left++;
    if (left < g->n_nodes) st = mf_fail(err, MINFER_ERR_ARG, "node %s lies on a cycle", g->nodes[left].name);
done:
    readers_free(&r);
    mf_free(open);
    mf_free(ready);
    return st;
}

static minfer_status check_node(const mf_graph *g, mf_id i, minfer_error *err)
{
    const mf_node *n = &g->nodes[i];
    if (n->id != i) return mf_fail(err, MINFER_ERR_ARG, "node %s has id %d at place %d", n->name, n->id, i);
    for (int32_t k = 0; k < n->n_src; k++)
        if (n->src[k] >= i)
            return mf_fail(err, MINFER_ERR_ARG, "node %s reads %s, which is built after it", n->name,
                           g->nodes[n->src[k]].name);
    mf_node fresh = *n;
    MF_TRY(mf_shape_infer(g, &fresh, err));
    if (fresh.dtype != n->dtype || memcmp(fresh.shape, n->shape, sizeof n->shape) != 0)
        return mf_fail(err, MINFER_ERR_ARG, "node %s: its shape or dtype is not what its rule gives",
                       n->name);
    return MINFER_OK;
}

static minfer_status check_ids(const mf_graph *g, minfer_error *err)
{
    for (mf_id i = 0; i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->nodes[i].n_src; k++)
            if (g->nodes[i].src[k] < 0 || g->nodes[i].src[k] >= g->n_nodes)
                return mf_fail(err, MINFER_ERR_ARG, "node %s: source %d is %d, the graph has %d nodes",
                               g->nodes[i].name, k, g->nodes[i].src[k], g->n_nodes);
    for (int i = 0; i < MF_INPUT_COUNT; i++)
        if (g->inputs[i] >= g->n_nodes || (g->inputs[i] >= 0 && g->nodes[g->inputs[i]].op != MF_OP_INPUT))
            return mf_fail(err, MINFER_ERR_ARG, "input %s is no input node", mf_input_names[i]);
    if (g->output >= g->n_nodes) return mf_fail(err, MINFER_ERR_ARG, "output %d is no node", g->output);
    return MINFER_OK;
}

static bool is_store(const mf_node *n)
{
    return mf_node_kv(n) && n->op != MF_OP_ATTN && n->op != MF_OP_KVCACHE_LOAD;
}

static minfer_status check_names(const mf_graph *g, minfer_error *err)
{
    mf_strmap names = {0};
    minfer_status st = MINFER_OK;
    for (mf_id i = 0; i < g->n_nodes && st == MINFER_OK; i++) {
        uint32_t old;
        if (!mf_strmap_add(&names, g->nodes[i].name, strlen(g->nodes[i].name), (uint32_t)i, &old))
            st = MF_NOMEM(err);
        else if (old != MF_STRMAP_NONE)
            st = mf_fail(err, MINFER_ERR_ARG, "nodes %u and %d are both named %s", old, i, g->nodes[i].name);
    }
    mf_strmap_free(&names);
    return st;
}

static minfer_status check_stores(const mf_graph *g, minfer_error *err)
{
    for (mf_id i = 0; i < g->n_nodes; i++) {
        const mf_node *n = &g->nodes[i];
        if (!is_store(n)) continue;
        if (mf_node_kv(n)->layer >= g->n_layer)
            return mf_fail(err, MINFER_ERR_ARG, "node %s: layer %d of %d", n->name, mf_node_kv(n)->layer,
                           g->n_layer);
        for (mf_id j = i + 1; j < g->n_nodes; j++)
            if (is_store(&g->nodes[j]) && mf_node_kv(&g->nodes[j])->layer == mf_node_kv(n)->layer)
                return mf_fail(err, MINFER_ERR_ARG, "nodes %s and %s both store layer %d", n->name,
                               g->nodes[j].name, mf_node_kv(n)->layer);
    }
    return MINFER_OK;
}

minfer_status mf_graph_validate(const mf_graph *g, minfer_error *err)
{
    if (g->n_nodes == 0) return mf_fail(err, MINFER_ERR_ARG, "the graph is empty");
    MF_TRY(check_ids(g, err));
    MF_TRY(check_acyclic(g, err));
    for (mf_id i = 0; i < g->n_nodes; i++) MF_TRY(check_node(g, i, err));
    MF_TRY(check_names(g, err));
    return check_stores(g, err);
}

minfer_status mf_graph_compare(const mf_graph *a, const mf_graph *b, minfer_error *err)
{
    const char *where;
    if (a->n_nodes != b->n_nodes)
        return mf_fail(err, MINFER_ERR_STATE, "graphs of equal parameters have %d and %d nodes", a->n_nodes,
                       b->n_nodes);
    for (mf_id i = 0; i < a->n_nodes; i++)
        if (!mf_node_equal(&a->nodes[i], &b->nodes[i], &where))
            return mf_fail(err, MINFER_ERR_STATE,
                           "graphs of equal parameters differ at node %d, %s against %s: %s", i,
                           a->nodes[i].name, b->nodes[i].name, where);
    if (a->output != b->output || memcmp(a->inputs, b->inputs, sizeof a->inputs) != 0)
        return mf_fail(err, MINFER_ERR_STATE, "graphs of equal parameters have other inputs or outputs");
    return MINFER_OK;
}
