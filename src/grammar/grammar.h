/* Grammars as samplers use them: a program, one matcher for each vocabulary it was used with, and a reader
 * for each place in a text. Owns both; schema.h makes texts of grammars out of JSON schemas. A grammar and
 * its readers belong to one thread at a time. */
#ifndef MF_GRAMMAR_GRAMMAR_H
#define MF_GRAMMAR_GRAMMAR_H

#include "grammar/matcher.h"

/* Where one text stands. Zero-initialised: no grammar, all is allowed. Keeps its grammar alive; may not be
 * moved in memory. */
typedef struct mf_reader {
    minfer_grammar *g;
    mf_gplace at;
} mf_reader;

/* At the start of g with that vocabulary; g NULL: none. On an error r is as before. */
minfer_status mf_reader_open(mf_reader *r, minfer_grammar *g, mf_trie *trie, minfer_error *err);
void mf_reader_close(mf_reader *r);
void mf_reader_copy(mf_reader *r, const mf_reader *from);
minfer_status mf_reader_restart(mf_reader *r, minfer_error *err);

/* Sets the logits of tokens that may not come next to -infinity; n is the vocabulary's size. MINFER_ERR_STATE
 * when none may. */
minfer_status mf_reader_mask(mf_reader *r, float *logits, int32_t n, minfer_error *err);
minfer_status mf_reader_accept(mf_reader *r, int32_t id, minfer_error *err);
/* The text is complete, cannot go on, and no token of the vocabulary could say so. */
bool mf_reader_exhausted(const mf_reader *r);

#endif
