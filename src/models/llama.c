/* Llama family (Llama 2 and 3, SmolLM2, and others that call themselves so): interleaved RoPE, sometimes with
 * a table of frequency factors; no biases, though some files carry them. */
#include "models/decoder.h"

static const mf_tensor_rule own_rules[] = {
    {"attn_q.bias", offsetof(mf_layer, bq), MF_DIM_Q, MF_DIM_ONE, false},
    {"attn_k.bias", offsetof(mf_layer, bk), MF_DIM_KV, MF_DIM_ONE, false},
    {"attn_v.bias", offsetof(mf_layer, bv), MF_DIM_KV, MF_DIM_ONE, false},
};

const mf_arch mf_arch_llama = {
    .name = "llama",
    .interleaved = true,
    .rope_factors = true,
    .layer = {MF_DECODER_RULES, {own_rules, sizeof own_rules / sizeof *own_rules}},
    .build = mf_decoder_build,
};
