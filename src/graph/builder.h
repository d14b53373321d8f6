/* Builder: what an architecture says its forward pass with. Each call appends one node and returns its id.
 * The first error sticks: later calls do nothing and return -1, and mf_build_finish reports it, so that a
 * layer reads as a list of calls. */
#ifndef MF_GRAPH_BUILDER_H
#define MF_GRAPH_BUILDER_H

#include "graph/params.h"

typedef struct mf_builder {
    mf_graph *g;
    const mf_graph_params *p;
    int32_t layer; /* layer of the nodes that follow; -1 outside */
    minfer_status status;
    minfer_error *err;
} mf_builder;

/* g is initialised; the inputs that p asks for are declared first: token_ids, positions, cells, then tail_ids
 * when 0 < n_out < n_tokens, attn_span or kv_map. */
void mf_build_begin(mf_builder *b, mf_graph *g, const mf_graph_params *p, int32_t n_layer, minfer_error *err);

/* logits (or -1 when n_out is 0) becomes the output; validates the whole graph. */
minfer_status mf_build_finish(mf_builder *b, mf_id logits);

mf_id mf_build_embed(mf_builder *b, const char *name, const mf_weight *w, mf_id ids);
mf_id mf_build_gather(mf_builder *b, const char *name, mf_id x, mf_id ids);
mf_id mf_build_matmul(mf_builder *b, const char *name, mf_id x, const mf_weight *w);
mf_id mf_build_bias(mf_builder *b, const char *name, mf_id x,
                    const mf_weight *bias); /* x when bias is NULL */
mf_id mf_build_binary(mf_builder *b, mf_op op, const char *name, mf_id x,
                      mf_id y);                                           /* ADD, MUL, SWIGLU, BATCH_MATMUL */
mf_id mf_build_unary(mf_builder *b, mf_op op, const char *name, mf_id x); /* SILU, SOFTMAX */
mf_id mf_build_scale(mf_builder *b, const char *name, mf_id x, float factor);
mf_id mf_build_rms_norm(mf_builder *b, const char *name, mf_id x, const mf_weight *w, float eps);
mf_id mf_build_qk_norm(mf_builder *b, const char *name, mf_id x, const mf_weight *w, float eps,
                       int32_t n_head, int32_t head_dim);
mf_id mf_build_rope(mf_builder *b, const char *name, mf_id x, const mf_attr_rope *rope);
mf_id mf_build_kv_store(mf_builder *b, const char *name, mf_id k, mf_id v, const mf_attr_kv *kv);
/* Attention of q over the layer's cache after `store`; kind and window follow from the params. */
mf_id mf_build_attn(mf_builder *b, const char *name, mf_id q, mf_id store, const mf_attr_kv *kv,
                    int32_t n_head, float scale);
mf_id mf_build_view(mf_builder *b, const char *name, mf_id x, int64_t offset, const int64_t shape[4]);
mf_id mf_build_reshape(mf_builder *b, const char *name, mf_id x, const int64_t shape[4]);
mf_id mf_build_permute(mf_builder *b, const char *name, mf_id x, const int32_t axes[4]);
mf_id mf_build_fused_qkv(mf_builder *b, mf_op op, const char *name, mf_id x, const mf_attr_qkv *a);
mf_id mf_build_qkv_store(mf_builder *b, const char *name, mf_id q, mf_id k, mf_id v, const mf_attr_qkv *a);
mf_id mf_build_fused_ffn(mf_builder *b, const char *name, mf_id x, const mf_weight *gate,
                         const mf_weight *up);

/* An input of the graph; -1 when the params did not ask for it. */
mf_id mf_build_input(const mf_builder *b, mf_input which);

#endif
