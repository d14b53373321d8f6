/* Random well-formed text, rich in what tokenizers trip over. */
#ifndef MF_TESTS_RANDOM_TEXT_H
#define MF_TESTS_RANDOM_TEXT_H

#include "base/mem.h"
#include "base/rng.h"

/* Below n. */
static inline uint32_t random_below(mf_rng *r, uint32_t n)
{
    return (uint32_t)(mf_rng_u64(r) % n);
}

uint32_t random_char(mf_rng *r);

/* Replaces out's content by up to max_chars characters. */
void random_text(mf_rng *r, uint32_t max_chars, mf_buf *out);

#endif
