/* The pre-norm decoder that all architectures here share: attention over a cache, gated feed-forward,
 * residuals. What a layer has (biases, head norms) follows from the weights it was bound with, the pairing of
 * RoPE from the hyper-parameters. */
#ifndef MF_MODELS_DECODER_H
#define MF_MODELS_DECODER_H

#include "models/model.h"

minfer_status mf_decoder_build(const mf_model *m, mf_builder *b);

#endif
