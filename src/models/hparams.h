/* Reading hyper-parameters that all architectures share. */
#ifndef MF_MODELS_HPARAMS_H
#define MF_MODELS_HPARAMS_H

#include "models/model.h"

/* All of *hp but n_vocab, which the embedding's shape gives. */
minfer_status mf_hparams_read(const mf_gguf *g, mf_hparams *hp, minfer_error *err);

#endif
