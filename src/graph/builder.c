/* Appending nodes. */
#include "graph/builder.h"
#include "graph/shape.h"
#include "graph/validate.h"

#include <stdio.h>
#include <string.h>

static mf_id fail(mf_builder *b, minfer_status st)
{
    if (b->status == MINFER_OK) b->status = st;
    return -1;
}

static const char *node_name(mf_builder *b, const char *name)
{
    char full[96];
    int n = b->layer >= 0 ? snprintf(full, sizeof full, "l%d.%s", b->layer, name)
                          : snprintf(full, sizeof full, "%s", name);
    return mf_arena_strndup(&b->g->arena, full, n < (int)sizeof full ? (size_t)n : sizeof full - 1);
}

/* Appends one node; shape may be NULL where the op does not take one. */
static mf_id append(mf_builder *b, mf_op op, const char *name, const mf_attr *attr, const mf_id *src,
                    int32_t n_src, const int64_t *shape)
{
    mf_graph *g = b->g;
    if (b->status != MINFER_OK) return -1;
    if (!mf_grow((void **)&g->nodes, &g->cap, (size_t)g->n_nodes + 1, sizeof *g->nodes))
        return fail(b, MF_NOMEM(b->err));
    mf_node *n = &g->nodes[g->n_nodes];
    *n = (mf_node){.id = g->n_nodes, .op = op, .n_src = n_src, .layer = b->layer, .device = -1};
    for (int32_t i = 0; i < n_src; i++) n->src[i] = src[i];
    if (shape) memcpy(n->shape, shape, sizeof n->shape);
    if (attr) n->attr = *attr;
    n->name = node_name(b, name);
    if (!n->name) return fail(b, MF_NOMEM(b->err));
    minfer_status st = mf_shape_infer(g, n, b->err);
    if (st != MINFER_OK) return fail(b, st);
    return g->n_nodes++;
}

static void declare_input(mf_builder *b, mf_input which, int64_t n)
{
    const int64_t shape[4] = {n, 1, 1, 1};
    mf_attr a = {.input = which};
    b->g->inputs[which] = append(b, MF_OP_INPUT, mf_input_names[which], &a, NULL, 0, shape);
}

void mf_build_begin(mf_builder *b, mf_graph *g, const mf_graph_params *p, int32_t n_layer, minfer_error *err)
{
    *b = (mf_builder){.g = g, .p = p, .layer = -1, .err = err};
    g->n_layer = n_layer;
    if (p->n_tokens < 1 || p->n_out < 0 || p->n_out > p->n_tokens) {
        fail(b, mf_fail(err, MINFER_ERR_ARG, "graph: %d outputs of %d tokens", p->n_out, p->n_tokens));
        return;
    }
    declare_input(b, MF_INPUT_TOKEN_IDS, p->n_tokens);
    declare_input(b, MF_INPUT_POSITIONS, p->n_tokens);
    declare_input(b, MF_INPUT_CELLS, p->n_tokens);
    if (p->n_out > 0 && p->n_out < p->n_tokens) declare_input(b, MF_INPUT_TAIL_IDS, p->n_out);
    if (p->kv_map)
        declare_input(b, MF_INPUT_KV_MAP, 8 * (int64_t)p->n_tokens);
    else if (p->explicit_span)
        declare_input(b, MF_INPUT_ATTN_SPAN, 2 * (int64_t)p->n_tokens);
}

minfer_status mf_build_finish(mf_builder *b, mf_id logits)
{
    MF_TRY(b->status);
    b->g->output = logits;
    if (logits >= 0) b->g->nodes[logits].output = true;
    return mf_graph_validate(b->g, b->err);
}

mf_id mf_build_input(const mf_builder *b, mf_input which)
{
    return b->g->inputs[which];
}

mf_id mf_build_embed(mf_builder *b, const char *name, const mf_weight *w, mf_id ids)
{
    return append(b, MF_OP_GET_ROWS, name, &(mf_attr){.weight = {w}}, &ids, 1, NULL);
}

mf_id mf_build_gather(mf_builder *b, const char *name, mf_id x, mf_id ids)
{
    return append(b, MF_OP_GET_ROWS, name, NULL, (mf_id[]){x, ids}, 2, NULL);
}

mf_id mf_build_matmul(mf_builder *b, const char *name, mf_id x, const mf_weight *w)
{
    return append(b, MF_OP_MATMUL, name, &(mf_attr){.weight = {w}}, &x, 1, NULL);
}

mf_id mf_build_bias(mf_builder *b, const char *name, mf_id x, const mf_weight *bias)
{
    return bias ? append(b, MF_OP_ADD, name, &(mf_attr){.weight = {bias}}, &x, 1, NULL) : x;
}

mf_id mf_build_binary(mf_builder *b, mf_op op, const char *name, mf_id x, mf_id y)
{
    return append(b, op, name, NULL, (mf_id[]){x, y}, 2, NULL);
}

mf_id mf_build_unary(mf_builder *b, mf_op op, const char *name, mf_id x)
{
    return append(b, op, name, NULL, &x, 1, NULL);
}

mf_id mf_build_scale(mf_builder *b, const char *name, mf_id x, float factor)
{
    return append(b, MF_OP_SCALE, name, &(mf_attr){.scale = factor}, &x, 1, NULL);
}

mf_id mf_build_rms_norm(mf_builder *b, const char *name, mf_id x, const mf_weight *w, float eps)
{
    return append(b, MF_OP_RMS_NORM, name, &(mf_attr){.norm = {.w = w, .eps = eps}}, &x, 1, NULL);
}

mf_id mf_build_qk_norm(mf_builder *b, const char *name, mf_id x, const mf_weight *w, float eps,
                       int32_t n_head, int32_t head_dim)
{
    mf_attr a = {.norm = {.w = w, .eps = eps, .n_head = n_head, .head_dim = head_dim}};
    return append(b, MF_OP_QK_NORM, name, &a, &x, 1, NULL);
}

mf_id mf_build_rope(mf_builder *b, const char *name, mf_id x, const mf_attr_rope *rope)
{
    mf_id src[] = {x, mf_build_input(b, MF_INPUT_POSITIONS)};
    return append(b, MF_OP_ROPE, name, &(mf_attr){.rope = *rope}, src, 2, NULL);
}

mf_id mf_build_kv_store(mf_builder *b, const char *name, mf_id k, mf_id v, const mf_attr_kv *kv)
{
    mf_id src[] = {k, v, mf_build_input(b, MF_INPUT_CELLS)};
    return append(b, MF_OP_KVCACHE_STORE, name, &(mf_attr){.kv = *kv}, src, 3, NULL);
}

static mf_id load(mf_builder *b, const char *name, mf_id store, const mf_attr_kv *kv, bool is_v)
{
    mf_attr a = {.kv = *kv};
    a.kv.is_v = is_v;
    return append(b, MF_OP_KVCACHE_LOAD, name, &a, &store, 1, NULL);
}

mf_id mf_build_attn(mf_builder *b, const char *name, mf_id q, mf_id store, const mf_attr_kv *kv,
                    int32_t n_head, float scale)
{
    mf_attr a = {.attn = {.kv = *kv, .n_head = n_head, .scale = scale}};
    mf_id src[MF_MAX_SRC] = {q}, positions = mf_build_input(b, MF_INPUT_POSITIONS);
    int32_t n = 1;
    if (b->p->flash_attn) {
        a.attn.kind = MF_ATTN_FLASH;
        src[n++] = store;
    } else {
        a.attn.kind = n_head == kv->n_kv ? MF_ATTN_MHA : MF_ATTN_GQA;
        src[n++] = load(b, "k_cache", store, kv, false);
        src[n++] = load(b, "v_cache", store, kv, true);
    }
    src[n++] = positions;
    if (b->p->kv_map) {
        a.attn.window = MF_WINDOW_MAP;
        src[n++] = mf_build_input(b, MF_INPUT_KV_MAP);
    } else if (b->p->explicit_span) {
        a.attn.window = MF_WINDOW_SPAN;
        src[n++] = mf_build_input(b, MF_INPUT_ATTN_SPAN);
    }
    return append(b, MF_OP_ATTN, name, &a, src, n, NULL);
}

mf_id mf_build_view(mf_builder *b, const char *name, mf_id x, int64_t offset, const int64_t shape[4])
{
    return append(b, MF_OP_VIEW, name, &(mf_attr){.view_offset = offset}, &x, 1, shape);
}

mf_id mf_build_reshape(mf_builder *b, const char *name, mf_id x, const int64_t shape[4])
{
    return append(b, MF_OP_RESHAPE, name, NULL, &x, 1, shape);
}

mf_id mf_build_permute(mf_builder *b, const char *name, mf_id x, const int32_t axes[4])
{
    mf_attr a = {0};
    memcpy(a.permute, axes, sizeof a.permute);
    return append(b, MF_OP_PERMUTE, name, &a, &x, 1, NULL);
}

mf_id mf_build_fused_qkv(mf_builder *b, mf_op op, const char *name, mf_id x, const mf_attr_qkv *a)
{
    mf_id src[] = {x, mf_build_input(b, MF_INPUT_POSITIONS), mf_build_input(b, MF_INPUT_CELLS)};
    return append(b, op, name, &(mf_attr){.qkv = *a}, src, 3, NULL);
}

mf_id mf_build_qkv_store(mf_builder *b, const char *name, mf_id q, mf_id k, mf_id v, const mf_attr_qkv *a)
{
    mf_id src[] = {q, k, v, mf_build_input(b, MF_INPUT_POSITIONS), mf_build_input(b, MF_INPUT_CELLS)};
    return append(b, MF_OP_QKV_BIAS_ROPE_STORE, name, &(mf_attr){.qkv = *a}, src, 5, NULL);
}

mf_id mf_build_fused_ffn(mf_builder *b, const char *name, mf_id x, const mf_weight *gate, const mf_weight *up)
{
    return append(b, MF_OP_FUSED_FFN, name, &(mf_attr){.ffn = {gate, up}}, &x, 1, NULL);
}
