/* Qwen3: RMS norm of each query and key head before RoPE over halves; a head size of its own, no biases. */
#include "models/decoder.h"

static const mf_tensor_rule own_rules[] = {
    {"attn_q_norm.weight", offsetof(mf_layer, q_norm), MF_DIM_HEAD, MF_DIM_ONE, true},
    {"attn_k_norm.weight", offsetof(mf_layer, k_norm), MF_DIM_HEAD, MF_DIM_ONE, true},
};

const mf_arch mf_arch_qwen3 = {
    .name = "qwen3",
    .interleaved = false,
    .rope_factors = false,
    .layer = {MF_DECODER_RULES, {own_rules, sizeof own_rules / sizeof *own_rules}},
    .build = mf_decoder_build,
};
