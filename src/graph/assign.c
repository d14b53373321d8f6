/* The placement rules, one small function each. */
#include "graph/assign.h"

typedef struct {
    mf_graph *g;
    const mf_graph_params *p;
    const mf_assign *a;
    const int32_t *kv_home;
    minfer_error *err;
} ctx;

static bool supports(const ctx *c, int32_t dev, const mf_node *n)
{
    return c->a->devices[dev]->ops->supports(c->a->devices[dev], c->g, n);
}

/* First device this node's layer may be placed on. */
static int32_t first_allowed(const ctx *c, const mf_node *n)
{
    int32_t last = c->a->n_devices - 1;
    if (c->p->gpu_layers < 0 || n->layer < 0) return c->p->gpu_layers == 0 ? last : 0;
    return n->layer < c->g->n_layer - c->p->gpu_layers ? last : 0;
}

static minfer_status unsupported(const ctx *c, const mf_node *n)
{
    const mf_weight *w[8];
    const mf_attr_kv *kv = mf_node_kv(n);
    int32_t k = mf_node_weights(n, w);
    return mf_fail(c->err, MINFER_ERR_UNSUPPORTED, "node %s (%s, %s%s%s%s%s): no device in use can run it",
                   n->name, mf_op_table[n->op].name, mf_type_name(n->dtype), k ? ", weight " : "",
                   k ? mf_type_name(w[0]->type) : "", kv ? ", cache " : "",
                   kv ? mf_type_name(kv->format) : "");
}

static int32_t wished(const ctx *c, const mf_node *n)
{
    int32_t dev = c->a->wish ? c->a->wish(c->a->user, c->g, n->id) : -1;
    return dev >= 0 && dev < c->a->n_devices && supports(c, dev, n) ? dev : -1;
}

static minfer_status place(const ctx *c, mf_node *n)
{
    n->device = wished(c, n);
    for (int32_t dev = first_allowed(c, n); dev < c->a->n_devices && n->device < 0; dev++)
        if (supports(c, dev, n)) n->device = dev;
    return n->device >= 0 ? MINFER_OK : unsupported(c, n);
}

static bool on_layer(const mf_node *n, int32_t layer)
{
    const mf_attr_kv *kv = mf_node_kv(n);
    return kv && kv->layer == layer;
}

/* The node of the layer that dev cannot run, or NULL. */
static const mf_node *obstacle(const ctx *c, int32_t layer, int32_t dev)
{
    for (mf_id i = 0; i < c->g->n_nodes; i++)
        if (on_layer(&c->g->nodes[i], layer) && !supports(c, dev, &c->g->nodes[i])) return &c->g->nodes[i];
    return NULL;
}

static minfer_status place_cache(const ctx *c, const mf_node *first)
{
    int32_t layer = mf_node_kv(first)->layer, home = c->kv_home ? c->kv_home[layer] : -1, dev = home;
    if (home >= 0) {
        const mf_node *bad = obstacle(c, layer, home);
        if (bad)
            return mf_fail(c->err, MINFER_ERR_UNSUPPORTED,
                           "node %s (%s): the cache of layer %d is on %s, which cannot run it", bad->name,
                           mf_op_table[bad->op].name, layer, c->a->devices[home]->name);
    } else {
        int32_t wish = c->a->wish ? c->a->wish(c->a->user, c->g, first->id) : -1;
        if (wish >= 0 && wish < c->a->n_devices && !obstacle(c, layer, wish)) dev = wish;
        for (int32_t d = first_allowed(c, first); d < c->a->n_devices && dev < 0; d++)
            if (!obstacle(c, layer, d)) dev = d;
        if (dev < 0) return unsupported(c, obstacle(c, layer, c->a->n_devices - 1));
    }
    for (mf_id i = 0; i < c->g->n_nodes; i++)
        if (on_layer(&c->g->nodes[i], layer)) c->g->nodes[i].device = dev;
    return MINFER_OK;
}

static bool follows_source(const mf_node *n)
{
    return n->op == MF_OP_VIEW || n->op == MF_OP_RESHAPE;
}

static void place_inputs(const ctx *c)
{
    for (mf_id i = 0; i < c->g->n_nodes; i++) {
        const mf_node *n = &c->g->nodes[i];
        for (int32_t k = 0; k < n->n_src; k++) {
            mf_node *s = &c->g->nodes[n->src[k]];
            if (s->op == MF_OP_INPUT && s->device < 0) s->device = n->device;
        }
    }
    for (mf_id i = 0; i < c->g->n_nodes; i++)
        if (c->g->nodes[i].device < 0) c->g->nodes[i].device = c->a->n_devices - 1; /* inputs nobody reads */
}

minfer_status mf_assign_devices(mf_graph *g, const mf_graph_params *p, const mf_assign *a,
                                const int32_t *kv_home, minfer_error *err)
{
    ctx c = {g, p, a, kv_home, err};
    if (a->n_devices < 1 || a->n_devices > MF_MAX_DEVICES)
        return mf_fail(err, MINFER_ERR_ARG, "%d devices, 1 to %d are possible", a->n_devices, MF_MAX_DEVICES);
    for (mf_id i = 0; i < g->n_nodes; i++) g->nodes[i].device = -1;
    for (mf_id i = 0; i < g->n_nodes; i++) {
        mf_node *n = &g->nodes[i];
        if (n->op == MF_OP_INPUT || n->device >= 0) continue;
        if (mf_node_kv(n))
            MF_TRY(place_cache(&c, n));
        else if (follows_source(n) && g->nodes[n->src[0]].op != MF_OP_INPUT)
            n->device = g->nodes[n->src[0]].device;
        else
            MF_TRY(place(&c, n));
    }
    place_inputs(&c);
    return MINFER_OK;
}
