/* Qwen2 and Qwen2.5: biases on query, key and value; RoPE over halves. */
#include "models/decoder.h"

static const mf_tensor_rule own_rules[] = {
    {"attn_q.bias", offsetof(mf_layer, bq), MF_DIM_Q, MF_DIM_ONE, true},
    {"attn_k.bias", offsetof(mf_layer, bk), MF_DIM_KV, MF_DIM_ONE, true},
    {"attn_v.bias", offsetof(mf_layer, bv), MF_DIM_KV, MF_DIM_ONE, true},
};

const mf_arch mf_arch_qwen2 = {
    .name = "qwen2",
    .interleaved = false,
    .rope_factors = false,
    .layer = {MF_DECODER_RULES, {own_rules, sizeof own_rules / sizeof *own_rules}},
    .build = mf_decoder_build,
};
