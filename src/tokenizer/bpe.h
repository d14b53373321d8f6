/* Merging: one piece of text to ids. Time is near linear in the length of the piece; nothing recurses. */
#ifndef MF_TOKENIZER_BPE_H
#define MF_TOKENIZER_BPE_H

#include "tokenizer/vocab.h"

struct mf_bpe_symbol;

/* Memory that pieces of one encoding share. Zero-initialise. */
typedef struct mf_bpe {
    struct mf_bpe_symbol *symbols; /* of a long piece */
    size_t symbols_cap;
    uint64_t *heap; /* rank << 32 | symbol: which pairs to merge, the lowest rank, then the leftmost, first */
    size_t heap_n, heap_cap;
} mf_bpe;

/* Appends the ids of a piece to out: its bytes as tokens, of which the pair with the lowest rank, the
 * leftmost of several, is merged until no pair merges. piece.n is at most INT32_MAX. false: out of memory. */
bool mf_bpe_encode(mf_bpe *b, const mf_vocab *v, mf_str piece, mf_tokens *out);
void mf_bpe_free(mf_bpe *b);

#endif
