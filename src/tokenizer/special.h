/* Finding special tokens in text: tokens of types control and user-defined, the longest at the earliest
 * place. */
#ifndef MF_TOKENIZER_SPECIAL_H
#define MF_TOKENIZER_SPECIAL_H

#include "tokenizer/vocab.h"

typedef struct mf_special { /* zero-initialise */
    uint32_t *ids;          /* in the order of their texts' bytes */
    uint32_t first[257];    /* ids[first[b] .. first[b + 1]) begin with byte b */
} mf_special;

/* false: out of memory; s still goes to mf_special_free. */
bool mf_special_collect(mf_special *s, const mf_vocab *v);
void mf_special_free(mf_special *s);

/* The first special token in text at or after byte `from`: its id, with *at where it begins; -1 when there is
 * none. */
int32_t mf_special_find(const mf_special *s, const mf_vocab *v, mf_str text, size_t from, size_t *at);

/* The longest special token that text (n >= 1) begins with, or -1. *cut: all of text is the beginning of a
 * longer one. */
int32_t mf_special_prefix(const mf_special *s, const mf_vocab *v, mf_str text, bool *cut);

#endif
