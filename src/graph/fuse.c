/* Peephole rules in a table. */
#include "graph/fuse.h"

/* Tries to make the node that fuses n with one of its sources; false when the pattern is not there. */
typedef bool rule_fn(const mf_graph *g, const mf_node *n, mf_node *fused);

/* Mul(Silu(x), y) or Mul(y, Silu(x)) -> SwiGLU(x, y). */
static bool swiglu(const mf_graph *g, const mf_node *n, mf_node *fused)
{
    if (n->op != MF_OP_MUL) return false;
    for (int side = 0; side < 2; side++) {
        const mf_node *s = &g->nodes[n->src[side]];
        if (s->op != MF_OP_SILU || s->device != n->device || s->dead) continue;
        *fused = *n;
        fused->op = MF_OP_SWIGLU;
        fused->src[0] = s->src[0];
        fused->src[1] = n->src[1 - side];
        return true;
    }
    return false;
}

static rule_fn *const rules[] = {swiglu};

static bool has_reader(const mf_graph *g, mf_id id)
{
    for (mf_id i = id + 1; i < g->n_nodes; i++)
        for (int32_t k = 0; k < g->nodes[i].n_src; k++)
            if (!g->nodes[i].dead && g->nodes[i].src[k] == id) return true;
    return false;
}

int32_t mf_fuse_peephole(mf_graph *g, mf_device *const *devices)
{
    int32_t count = 0;
    for (mf_id i = 0; i < g->n_nodes; i++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
            mf_node fused, before = g->nodes[i];
            const mf_device *d = devices[before.device];
            if (before.dead || !rules[r](g, &before, &fused) || !d->ops->supports(d, g, &fused)) continue;
            g->nodes[i] = fused;
            count++;
            for (int32_t k = 0; k < before.n_src; k++) {
                mf_node *s = &g->nodes[before.src[k]];
                if (!s->output && s->op != MF_OP_INPUT && !has_reader(g, s->id)) s->dead = true;
            }
        }
    return count;
}
