/* Text as the expressions need it: well-formed UTF-8, each maximal ill-formed part being one U+FFFD, and in
 * Normalization Form C where the model's tokenizer asks for it. */
#ifndef MF_TOKENIZER_NORMALIZE_H
#define MF_TOKENIZER_NORMALIZE_H

#include "base/mem.h"
#include "gguf/gguf.h"

/* Memory that the parts of one encoding share. Zero-initialise. */
typedef struct mf_normalizer {
    mf_buf out;
    int32_t *chars, *spare; /* code points of one stretch, decomposed; a run of marks while it is sorted */
    size_t n_chars, chars_cap, spare_cap;
} mf_normalizer;

/* *out is text itself when nothing is to be done, else it lies in z until the next call. Near linear time for
 * any input. false: out of memory. */
bool mf_normalize(mf_normalizer *z, mf_str text, bool nfc, mf_str *out);
void mf_normalizer_free(mf_normalizer *z);

#endif
