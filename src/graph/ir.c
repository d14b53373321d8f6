/* Tables over ops, and what can be asked of a node or a graph without knowing a device. */
#include "graph/ir.h"

#include <string.h>

const mf_op_info mf_op_table[MF_OP_COUNT] = {
#define OP(id, name, min_src, max_src, attr, alias) \
    [MF_OP_##id] = {name, min_src, max_src, MF_ATTR_##attr, alias},
#include "graph/ops.def"
#undef OP
};

const char *const mf_input_names[MF_INPUT_COUNT] = {
    [MF_INPUT_TOKEN_IDS] = "token_ids", [MF_INPUT_POSITIONS] = "positions", [MF_INPUT_CELLS] = "cells",
    [MF_INPUT_TAIL_IDS] = "tail_ids",   [MF_INPUT_ATTN_SPAN] = "attn_span", [MF_INPUT_KV_MAP] = "kv_map",
};

void mf_graph_init(mf_graph *g)
{
    *g = (mf_graph){.output = -1};
    for (int i = 0; i < MF_INPUT_COUNT; i++) g->inputs[i] = -1;
}

void mf_graph_free(mf_graph *g)
{
    mf_free(g->nodes);
    mf_arena_free(&g->arena);
    mf_graph_init(g);
}

size_t mf_node_bytes(const mf_node *n)
{
    size_t row;
    if (!mf_type_row_bytes(n->dtype, (uint64_t)n->shape[0], &row)) return 0;
    return row * (size_t)(n->shape[1] * n->shape[2] * n->shape[3]);
}

mf_id mf_graph_root(const mf_graph *g, mf_id id)
{
    while (g->nodes[id].op == MF_OP_VIEW || g->nodes[id].op == MF_OP_RESHAPE) id = g->nodes[id].src[0];
    return id;
}

const mf_attr_kv *mf_node_kv(const mf_node *n)
{
    switch (n->op) {
    case MF_OP_ATTN: return &n->attr.attn.kv;
    case MF_OP_KVCACHE_STORE:
    case MF_OP_KVCACHE_LOAD: return &n->attr.kv;
    case MF_OP_FUSED_QKV:
    case MF_OP_QKV_BIAS_ROPE_STORE:
    case MF_OP_FUSED_QKV_NORM: return &n->attr.qkv.kv;
    default: return NULL;
    }
}

static int32_t add_weight(const mf_weight *out[8], int32_t n, const mf_weight *w)
{
    if (w) out[n++] = w;
    return n;
}

int32_t mf_node_weights(const mf_node *n, const mf_weight *out[8])
{
    const mf_attr *a = &n->attr;
    int32_t k = 0;
    switch (mf_op_table[n->op].attr) {
    case MF_ATTR_WEIGHT: return add_weight(out, k, a->weight.w);
    case MF_ATTR_NORM: return add_weight(out, k, a->norm.w);
    case MF_ATTR_ROPE: return add_weight(out, k, a->rope.factors);
    case MF_ATTR_FFN: return add_weight(out, add_weight(out, k, a->ffn.gate), a->ffn.up);
    case MF_ATTR_QKV: {
        const mf_weight *all[] = {a->qkv.wq, a->qkv.wk, a->qkv.wv, a->qkv.bq, a->qkv.bk, a->qkv.bv};
        for (size_t i = 0; i < 6; i++) k = add_weight(out, k, all[i]);
        if (n->op == MF_OP_FUSED_QKV_NORM) k = add_weight(out, add_weight(out, k, a->qkv.nq), a->qkv.nk);
        return k;
    }
    default: return 0;
    }
}

static bool weights_equal(const mf_node *a, const mf_node *b)
{
    const mf_weight *wa[8], *wb[8];
    int32_t n = mf_node_weights(a, wa);
    if (n != mf_node_weights(b, wb)) return false;
    for (int32_t i = 0; i < n; i++)
        if (strcmp(wa[i]->name, wb[i]->name) != 0) return false;
    return true;
}

static bool rope_equal(const mf_attr_rope *a, const mf_attr_rope *b)
{
    return a->n_head == b->n_head && a->head_dim == b->head_dim && a->n_rot == b->n_rot &&
           a->interleaved == b->interleaved && a->freq_base == b->freq_base && a->freq_scale == b->freq_scale;
}

static bool kv_equal(const mf_attr_kv *a, const mf_attr_kv *b)
{
    return a->layer == b->layer && a->n_kv == b->n_kv && a->head_dim == b->head_dim && a->n_ctx == b->n_ctx &&
           a->format == b->format && a->is_v == b->is_v;
}

/* Numbers only: weights are compared by name. */
static bool attr_equal(const mf_node *a, const mf_node *b)
{
    const mf_attr *x = &a->attr, *y = &b->attr;
    switch (mf_op_table[a->op].attr) {
    case MF_ATTR_INPUT: return x->input == y->input;
    case MF_ATTR_NORM:
        return x->norm.eps == y->norm.eps && x->norm.n_head == y->norm.n_head &&
               x->norm.head_dim == y->norm.head_dim;
    case MF_ATTR_SCALE: return x->scale == y->scale;
    case MF_ATTR_ROPE: return rope_equal(&x->rope, &y->rope);
    case MF_ATTR_KV: return kv_equal(&x->kv, &y->kv);
    case MF_ATTR_ATTN:
        return kv_equal(&x->attn.kv, &y->attn.kv) && x->attn.kind == y->attn.kind &&
               x->attn.window == y->attn.window && x->attn.n_head == y->attn.n_head &&
               x->attn.scale == y->attn.scale;
    case MF_ATTR_VIEW: return x->view_offset == y->view_offset;
    case MF_ATTR_PERMUTE: return memcmp(x->permute, y->permute, sizeof x->permute) == 0;
    case MF_ATTR_QKV:
        return kv_equal(&x->qkv.kv, &y->qkv.kv) && rope_equal(&x->qkv.rope, &y->qkv.rope) &&
               x->qkv.eps == y->qkv.eps;
    case MF_ATTR_NONE:
    case MF_ATTR_WEIGHT:
    case MF_ATTR_RESHAPE:
    case MF_ATTR_FFN: return true;
    }
    return false;
}

bool mf_node_equal(const mf_node *a, const mf_node *b, const char **where)
{
    *where = NULL;
    if (a->op != b->op)
        *where = "op";
    else if (a->dtype != b->dtype)
        *where = "dtype";
    else if (memcmp(a->shape, b->shape, sizeof a->shape) != 0)
        *where = "shape";
    else if (a->n_src != b->n_src || memcmp(a->src, b->src, (size_t)a->n_src * sizeof *a->src) != 0)
        *where = "sources";
    else if (a->layer != b->layer || strcmp(a->name, b->name) != 0)
        *where = "name";
    else if (!attr_equal(a, b))
        *where = "attributes";
    else if (!weights_equal(a, b))
        *where = "weights";
    return *where == NULL;
}
