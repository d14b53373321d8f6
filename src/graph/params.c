/* Comparison of graph parameters and the fusion gates. */
#include "graph/params.h"

bool mf_graph_params_equal(const mf_graph_params *a, const mf_graph_params *b)
{
    return a->n_tokens == b->n_tokens && a->n_out == b->n_out && a->states == b->states &&
           a->kind == b->kind && a->n_ctx == b->n_ctx && a->flash_attn == b->flash_attn &&
           a->fuse_qkv == b->fuse_qkv && a->fuse_ffn == b->fuse_ffn && a->explicit_span == b->explicit_span &&
           a->kv_map == b->kv_map && a->kv_format == b->kv_format && a->gpu_ops == b->gpu_ops &&
           a->gpu_layers == b->gpu_layers && a->weights_version == b->weights_version;
}

enum { MAX_FUSED_FF = 16384 }; /* widest feed-forward layer the fused kernels keep on chip */

bool mf_graph_params_fuses(const mf_graph_params *p, mf_op op, const mf_weight *a, const mf_weight *b,
                           const mf_weight *c)
{
    if (p->n_tokens != 1 || p->kind != MF_GRAPH_DECODE || !(p->gpu_ops & 1u << op)) return false;
    bool same = a->type == b->type && (!c || a->type == c->type);
    switch (op) {
    case MF_OP_FUSED_QKV:
    case MF_OP_FUSED_QKV_NORM: return p->fuse_qkv && same;
    case MF_OP_QKV_BIAS_ROPE_STORE: return !same;
    case MF_OP_FUSED_FFN: return p->fuse_ffn && same && a->dims[1] <= MAX_FUSED_FF;
    default: return false;
    }
}
