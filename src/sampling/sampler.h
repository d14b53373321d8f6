/* Choosing a token from a row of logits: the chain behind minfer_sampler. Owns a copy of the parameters and
 * of the row, the random numbers, and what one draw leaves for the next (mirostat, the place in a grammar).
 * Knows no model.
 *
 * The chain: logit bias, penalties, DRY, mask, grammar, then one of
 *   temperature < 1e-6   the greatest logit, the lowest id among equals
 *   mirostat 1 or 2      temperature, truncation by mirostat, draw
 *   otherwise            top-k, typical, top-p, min-p, XTC, temperature, draw
 * Truncations look at probabilities of temperature 1. All of it is computed in double precision from
 * functions with fixed results, and sums run in ascending order of id, so that a seed gives the same tokens
 * on every machine. One call draws one number for the token, and before it one for XTC when that is on; what
 * a draw gives depends on nothing else than parameters, seed, and the rows and histories so far. */
#ifndef MF_SAMPLING_SAMPLER_H
#define MF_SAMPLING_SAMPLER_H

#include "grammar/grammar.h"
#include "sampling/cands.h"

/* A sampler for rows of n_vocab logits. */
minfer_status mf_sampler_create(const minfer_sampling *p, int32_t n_vocab, minfer_sampler **out,
                                minfer_error *err);

/* Forbids tokens by setting logits[id] to -infinity; sees the row after bias and penalties. Its error ends
 * the draw. A row without a finite logit after it is an error, too. */
typedef minfer_status mf_mask_fn(void *user, float *logits, int32_t n_vocab, minfer_error *err);
void mf_sampler_set_mask(minfer_sampler *s, mf_mask_fn *fn, void *user); /* fn NULL: none */

/* Tokens that end what DRY compares, such as line ends and the marks between turns: a repetition counts only
 * from the last of them on, and they are never penalized. Replaces the set before; ids are copied. */
minfer_status mf_sampler_set_dry_breakers(minfer_sampler *s, const int32_t *ids, size_t n, minfer_error *err);

/* Runs the chain without its draw: *cands points to what is left, with the weights that a draw would use
 * (share: weight / mf_cands_total), until the sampler is used again. XTC takes its random number. */
minfer_status mf_sampler_candidates(minfer_sampler *s, const float *logits, const int32_t *history,
                                    size_t n_history, const mf_cands **cands, minfer_error *err);

/* The grammar of drawn tokens, from its start; g NULL: none. The trie has the sampler's vocabulary. */
minfer_status mf_sampler_set_grammar(minfer_sampler *s, minfer_grammar *g, mf_trie *trie, minfer_error *err);
minfer_status mf_sampler_restart_grammar(minfer_sampler *s, minfer_error *err);
bool mf_sampler_has_grammar(const minfer_sampler *s);
/* The grammar's text is complete, cannot go on, and no token of the vocabulary could say so. */
bool mf_sampler_exhausted(const minfer_sampler *s);

#endif
