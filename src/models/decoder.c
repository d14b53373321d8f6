/* The decoder, top down at the end of the file. Where the gate of a fused op is open (mf_graph_params_fuses),
 * one node replaces several. */
#include "models/decoder.h"

#include <math.h>

const mf_tensor_rule mf_decoder_rules[MF_N_DECODER_RULES] = {
    {"attn_norm.weight", offsetof(mf_layer, attn_norm), MF_DIM_EMBD, MF_DIM_ONE, true},
    {"attn_q.weight", offsetof(mf_layer, wq), MF_DIM_EMBD, MF_DIM_Q, true},
    {"attn_k.weight", offsetof(mf_layer, wk), MF_DIM_EMBD, MF_DIM_KV, true},
    {"attn_v.weight", offsetof(mf_layer, wv), MF_DIM_EMBD, MF_DIM_KV, true},
    {"attn_output.weight", offsetof(mf_layer, wo), MF_DIM_Q, MF_DIM_EMBD, true},
    {"ffn_norm.weight", offsetof(mf_layer, ffn_norm), MF_DIM_EMBD, MF_DIM_ONE, true},
    {"ffn_gate.weight", offsetof(mf_layer, gate), MF_DIM_EMBD, MF_DIM_FF, true},
    {"ffn_up.weight", offsetof(mf_layer, up), MF_DIM_EMBD, MF_DIM_FF, true},
    {"ffn_down.weight", offsetof(mf_layer, down), MF_DIM_FF, MF_DIM_EMBD, true},
};

static const mf_layer *layer_of(const mf_builder *b, const mf_model *m)
{
    return &m->layers[b->layer];
}

static mf_attr_kv cache_of(const mf_builder *b, const mf_model *m)
{
    return (mf_attr_kv){.layer = b->layer,
                        .n_kv = m->hp.n_kv,
                        .head_dim = m->hp.head_dim,
                        .n_ctx = b->p->n_ctx,
                        .format = b->p->kv_format};
}

static mf_attr_rope rope_for(const mf_model *m, int32_t n_head)
{
    mf_attr_rope r = m->hp.rope;
    r.n_head = n_head;
    return r;
}

static mf_attr_qkv fused_attr(const mf_builder *b, const mf_model *m)
{
    const mf_layer *w = layer_of(b, m);
    return (mf_attr_qkv){.kv = cache_of(b, m),
                         .rope = rope_for(m, m->hp.n_head),
                         .wq = w->wq,
                         .wk = w->wk,
                         .wv = w->wv,
                         .bq = w->bq,
                         .bk = w->bk,
                         .bv = w->bv,
                         .nq = w->q_norm,
                         .nk = w->k_norm,
                         .eps = m->hp.eps};
}

/* Query and ordering token of one layer. */
typedef struct {
    mf_id q, store;
} query;

/* One head-wise projection after its matmul: bias, head norm, rotation, each where the layer has it. */
static mf_id finish(mf_builder *b, const mf_model *m, const char *const names[3], mf_id x,
                    const mf_weight *bias, const mf_weight *norm, int32_t n_head)
{
    mf_attr_rope r = rope_for(m, n_head);
    x = mf_build_bias(b, names[0], x, bias);
    if (norm) x = mf_build_qk_norm(b, names[1], x, norm, m->hp.eps, n_head, m->hp.head_dim);
    return mf_build_rope(b, names[2], x, &r);
}

static query plain_qkv(mf_builder *b, const mf_model *m, mf_id x)
{
    static const char *const q_names[] = {"q_bias", "q_norm", "q_rope"}, *const k_names[] = {
                                                                             "k_bias", "k_norm", "k_rope"};
    const mf_layer *w = layer_of(b, m);
    mf_attr_kv kv = cache_of(b, m);
    mf_id q = mf_build_matmul(b, "q", x, w->wq), k = mf_build_matmul(b, "k", x, w->wk),
          v = mf_build_matmul(b, "v", x, w->wv);
    q = finish(b, m, q_names, q, w->bq, w->q_norm, m->hp.n_head);
    k = finish(b, m, k_names, k, w->bk, w->k_norm, m->hp.n_kv);
    v = mf_build_bias(b, "v_bias", v, w->bv);
    return (query){q, mf_build_kv_store(b, "kv_store", k, v, &kv)};
}

static query project(mf_builder *b, const mf_model *m, mf_id x)
{
    const mf_layer *w = layer_of(b, m);
    mf_attr_qkv a = fused_attr(b, m);
    bool norms = w->q_norm || w->k_norm;
    mf_op fused = norms ? MF_OP_FUSED_QKV_NORM : MF_OP_FUSED_QKV;
    if ((!norms || (w->q_norm && w->k_norm)) && mf_graph_params_fuses(b->p, fused, w->wq, w->wk, w->wv)) {
        mf_id qkv = mf_build_fused_qkv(b, fused, "qkv", x, &a);
        return (query){qkv, qkv};
    }
    if (!norms && mf_graph_params_fuses(b->p, MF_OP_QKV_BIAS_ROPE_STORE, w->wq, w->wk, w->wv)) {
        mf_id q = mf_build_matmul(b, "q", x, w->wq), k = mf_build_matmul(b, "k", x, w->wk),
              v = mf_build_matmul(b, "v", x, w->wv);
        mf_id out = mf_build_qkv_store(b, "q_store", q, k, v, &a);
        return (query){out, out};
    }
    return plain_qkv(b, m, x);
}

/* Whether the graph only fills the cache, and this is the last layer: nothing after its store is needed. */
static bool ends_at_store(const mf_builder *b, const mf_model *m)
{
    return b->p->n_out == 0 && b->layer == m->hp.n_layer - 1;
}

static mf_id attention(mf_builder *b, const mf_model *m, mf_id x)
{
    mf_attr_kv kv = cache_of(b, m);
    query q = project(b, m, x);
    if (ends_at_store(b, m)) return q.store;
    return mf_build_attn(b, "attn", q.q, q.store, &kv, m->hp.n_head, 1.f / sqrtf((float)m->hp.head_dim));
}

/* down(silu(gate x) * up x) */
static mf_id feed_forward(mf_builder *b, const mf_model *m, mf_id x)
{
    const mf_layer *w = layer_of(b, m);
    if (mf_graph_params_fuses(b->p, MF_OP_FUSED_FFN, w->gate, w->up, NULL))
        return mf_build_matmul(b, "ffn_down", mf_build_fused_ffn(b, "ffn_gate_up", x, w->gate, w->up),
                               w->down);
    mf_id gate = mf_build_matmul(b, "ffn_gate", x, w->gate), up = mf_build_matmul(b, "ffn_up", x, w->up);
    mf_id act = mf_build_unary(b, MF_OP_SILU, "ffn_silu", gate);
    return mf_build_matmul(b, "ffn_down", mf_build_binary(b, MF_OP_MUL, "ffn_mul", act, up), w->down);
}

/* In the last layer only the rows whose logits are wanted go on; x itself where all are. */
static mf_id tail(mf_builder *b, const mf_model *m, const char *name, mf_id x)
{
    mf_id ids = mf_build_input(b, MF_INPUT_TAIL_IDS);
    return ids >= 0 && b->layer == m->hp.n_layer - 1 ? mf_build_gather(b, name, x, ids) : x;
}

static mf_id layer(mf_builder *b, const mf_model *m, mf_id x)
{
    const mf_layer *w = layer_of(b, m);
    mf_id h = mf_build_rms_norm(b, "attn_norm", x, w->attn_norm, m->hp.eps);
    h = attention(b, m, h);
    if (ends_at_store(b, m)) return -1;
    h = tail(b, m, "attn_tail", mf_build_matmul(b, "attn_out", h, w->wo));
    x = tail(b, m, "res_tail", x);
    x = mf_build_binary(b, MF_OP_ADD, "attn_res", h, x);
    h = mf_build_rms_norm(b, "ffn_norm", x, w->ffn_norm, m->hp.eps);
    return mf_build_binary(b, MF_OP_ADD, "ffn_res", feed_forward(b, m, h), x);
}

minfer_status mf_decoder_build(const mf_model *m, mf_builder *b)
{
    mf_id x = mf_build_embed(b, "embd", m->tok_embd, mf_build_input(b, MF_INPUT_TOKEN_IDS));
    for (b->layer = 0; b->layer < m->hp.n_layer; b->layer++) x = layer(b, m, x);
    b->layer = -1;
    if (b->p->n_out == 0) return mf_build_finish(b, -1);
    x = mf_build_rms_norm(b, "output_norm", x, m->output_norm, m->hp.eps);
    if (b->p->states) return mf_build_finish(b, x);
    return mf_build_finish(b, mf_build_matmul(b, "logits", x, m->output));
}
