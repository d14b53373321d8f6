/* Sets of characters as ranges of code points. */
#ifndef MF_GRAMMAR_RANGES_H
#define MF_GRAMMAR_RANGES_H

#include "grammar/rules.h"

typedef struct mf_granges { /* zero-initialise */
    mf_grange *v;
    size_t n, cap;
} mf_granges;

/* Adds lo to hi, nothing when lo > hi; surrogates, which are no characters, stay out. false: out of memory.
 */
bool mf_granges_add(mf_granges *r, uint32_t lo, uint32_t hi);
void mf_granges_normalize(mf_granges *r); /* ascending and apart */
/* Adds all characters that a normalized set does not have. */
bool mf_granges_invert(const mf_granges *r, mf_granges *out);
void mf_granges_free(mf_granges *r);

#endif
