/* The pre-norm decoder that all architectures here share: attention over a cache, gated feed-forward,
 * residuals. What a layer has (biases, head norms) follows from the weights it was bound with, the pairing of
 * RoPE from the hyper-parameters. */
#ifndef MF_MODELS_DECODER_H
#define MF_MODELS_DECODER_H

#include "models/model.h"

/* The tensors that every such layer has. */
#define MF_DECODER_RULES                     \
    {                                        \
        mf_decoder_rules, MF_N_DECODER_RULES \
    }
enum { MF_N_DECODER_RULES = 9 };
extern const mf_tensor_rule mf_decoder_rules[MF_N_DECODER_RULES];

minfer_status mf_decoder_build(const mf_model *m, mf_builder *b);

#endif
