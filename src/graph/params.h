/* GraphParams: everything a graph's topology depends on, and so the whole identity under which a built graph
 * is reused. The number of sequences and the position are deliberately absent: they are data. */
#ifndef MF_GRAPH_PARAMS_H
#define MF_GRAPH_PARAMS_H

#include "graph/ir.h"

typedef enum mf_graph_kind { MF_GRAPH_DECODE, MF_GRAPH_PREFILL } mf_graph_kind;

typedef struct mf_graph_params {
    int32_t n_tokens; /* rows of this forward pass */
    int32_t n_out;    /* rows whose logits are wanted, 0..n_tokens; with 0 the graph ends at the last layer's
                         cache store */
    bool states;      /* rows come out as the final norm leaves them, not as logits */
    mf_graph_kind kind;
    int32_t n_ctx; /* cells of the cache */
    bool flash_attn;
    bool fuse_qkv, fuse_ffn; /* the gates of the build-time fused ops */
    bool explicit_span;      /* windows come from attn_span instead of the position */
    bool kv_map;             /* windows come from kv_map */
    mf_type kv_format;       /* F32, F16, Q8_0 */
    uint32_t gpu_ops; /* bit per mf_op: build-time fused ops that a participating GPU offers; 0 = no GPU takes
                         part */
    int32_t gpu_layers;       /* layers a GPU may take, counted from the last; -1 = all */
    uint32_t weights_version; /* grows whenever registered weights change */
} mf_graph_params;

bool mf_graph_params_equal(const mf_graph_params *a, const mf_graph_params *b);

/* The gate of the build-time fused ops, one rule for builder, export, trace and runtime: whether a layer is
 * built with `op`. wq, wk, wv, or gate, up and NULL, are the weights it would join. */
bool mf_graph_params_fuses(const mf_graph_params *p, mf_op op, const mf_weight *a, const mf_weight *b,
                           const mf_weight *c);

#endif
