/* What the emitters share: their table, the reading and writing of whole values, the layout of scratch
 * memory. */
#include "backends/cpu/steps.h"
#include "backends/cpu/device.h"

minfer_status cpu_reads_value(cpu_emit *e, mf_id id)
{
    return cpu_reads(e, cpu_value(e, id), mf_node_bytes(&e->x->graph->nodes[id]));
}
minfer_status cpu_writes_value(cpu_emit *e, mf_id id)
{
    return cpu_writes(e, cpu_value(e, id), mf_node_bytes(&e->x->graph->nodes[id]));
}

static minfer_status emit_nothing(cpu_emit *e, const mf_node *n)
{
    (void)e;
    (void)n;
    return MINFER_OK;
}

cpu_emit_fn *const cpu_emitters[MF_OP_COUNT] = {
    [MF_OP_ADD] = cpu_emit_add,           [MF_OP_MUL] = cpu_emit_mul,
    [MF_OP_SCALE] = cpu_emit_scale,       [MF_OP_SILU] = cpu_emit_silu,
    [MF_OP_SOFTMAX] = cpu_emit_softmax,   [MF_OP_RMS_NORM] = cpu_emit_norm,
    [MF_OP_QK_NORM] = cpu_emit_norm,      [MF_OP_MATMUL] = cpu_emit_matmul,
    [MF_OP_GET_ROWS] = cpu_emit_get_rows, [MF_OP_ROPE] = cpu_emit_rope,
    [MF_OP_ATTN] = cpu_emit_attn,         [MF_OP_KVCACHE_STORE] = cpu_emit_store,
    [MF_OP_KVCACHE_LOAD] = emit_nothing,  [MF_OP_VIEW] = emit_nothing,
    [MF_OP_RESHAPE] = emit_nothing,       [MF_OP_PERMUTE] = cpu_emit_permute,
    [MF_OP_SWIGLU] = cpu_emit_swiglu,     [MF_OP_BATCH_MATMUL] = cpu_emit_batch_matmul,
};

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

void cpu_scratch_layout(const cpu_device *d, const mf_graph *g, cpu_scratch *s)
{
    size_t angles = 0, attn = 0, thread = CPU_SCRATCH;
    for (mf_id i = 0; i < g->n_nodes; i++) {
        const mf_node *n = &g->nodes[i];
        if (n->dead || n->device != d->base.index) continue;
        if (n->op == MF_OP_ROPE)
            angles = max_size(angles, (size_t)n->attr.rope.n_rot * (size_t)n->shape[1] * sizeof(float));
        if (n->op != MF_OP_ATTN) continue;
        attn = max_size(attn, cpu_attn_shared_bytes(n));
        thread = max_size(thread, cpu_attn_thread_bytes(n));
    }
    s->thread_bytes = mf_align_up(thread, 4096);
    s->angles = s->thread_bytes * (size_t)mf_pool_threads(d->pool);
    s->attn = s->angles + mf_align_up(angles, 64);
    s->total = s->attn + mf_align_up(attn, 64);
}
