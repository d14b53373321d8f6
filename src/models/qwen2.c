/* Qwen2 and Qwen2.5: biases on query, key and value; RoPE over halves. */
#include "models/decoder.h"

static const mf_tensor_rule rules[] = {
    {"attn_norm.weight", offsetof(mf_layer, attn_norm), MF_DIM_EMBD, MF_DIM_ONE, true},
    {"attn_q.weight", offsetof(mf_layer, wq), MF_DIM_EMBD, MF_DIM_Q, true},
    {"attn_k.weight", offsetof(mf_layer, wk), MF_DIM_EMBD, MF_DIM_KV, true},
    {"attn_v.weight", offsetof(mf_layer, wv), MF_DIM_EMBD, MF_DIM_KV, true},
    {"attn_output.weight", offsetof(mf_layer, wo), MF_DIM_Q, MF_DIM_EMBD, true},
    {"attn_q.bias", offsetof(mf_layer, bq), MF_DIM_Q, MF_DIM_ONE, true},
    {"attn_k.bias", offsetof(mf_layer, bk), MF_DIM_KV, MF_DIM_ONE, true},
    {"attn_v.bias", offsetof(mf_layer, bv), MF_DIM_KV, MF_DIM_ONE, true},
    {"ffn_norm.weight", offsetof(mf_layer, ffn_norm), MF_DIM_EMBD, MF_DIM_ONE, true},
    {"ffn_gate.weight", offsetof(mf_layer, gate), MF_DIM_EMBD, MF_DIM_FF, true},
    {"ffn_up.weight", offsetof(mf_layer, up), MF_DIM_EMBD, MF_DIM_FF, true},
    {"ffn_down.weight", offsetof(mf_layer, down), MF_DIM_FF, MF_DIM_EMBD, true},
};

static minfer_status read_hparams(const mf_gguf *g, mf_hparams *hp, minfer_error *err)
{
    (void)g;
    (void)err;
    hp->rope.interleaved = false;
    return MINFER_OK;
}

const mf_arch mf_arch_qwen2 = {
    .name = "qwen2",
    .read = read_hparams,
    .layer_rules = rules,
    .n_layer_rules = sizeof rules / sizeof *rules,
    .rope_factors = false,
    .build = mf_decoder_build,
};
