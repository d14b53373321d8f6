/* A grammar against a vocabulary: which tokens may come next. Owns the sets that were reached, how they lead
 * to each other, and the masks of tokens, all kept for the next time and within bounds; and knows the cursors
 * that stand in them. One thread at a time. */
#ifndef MF_GRAMMAR_MATCHER_H
#define MF_GRAMMAR_MATCHER_H

#include "grammar/sets.h"
#include "grammar/trie.h"

typedef struct mf_matcher mf_matcher;

/* A place in a text. Zero-initialised: nowhere. */
typedef struct mf_gplace {
    mf_matcher *m;
    uint32_t set;
    bool ended; /* by a token that ends a turn */
    struct mf_gplace *next, *prev;
} mf_gplace;

/* p lives as long as the matcher; the trie is shared. */
minfer_status mf_matcher_create(const mf_program *p, mf_trie *trie, mf_matcher **out, minfer_error *err);
void mf_matcher_free(mf_matcher *m); /* no place is in it any more */
const mf_trie *mf_matcher_trie(const mf_matcher *m);

/* Puts a place that is nowhere at the start, where it stays known to m until it leaves. */
minfer_status mf_matcher_enter(mf_matcher *m, mf_gplace *at, minfer_error *err);
void mf_matcher_leave(mf_gplace *at);
/* Puts `to`, which is nowhere, where `from` is. */
void mf_matcher_join(mf_gplace *to, const mf_gplace *from);
minfer_status mf_matcher_restart(mf_gplace *at, minfer_error *err);

/* Bits of the tokens that may come next, until the next call. */
minfer_status mf_matcher_mask(mf_gplace *at, const uint64_t **bits, minfer_error *err);
/* Goes on by a token; MINFER_ERR_ARG, and the place stays, when it may not come next. */
minfer_status mf_matcher_accept(mf_gplace *at, int32_t id, minfer_error *err);
size_t mf_matcher_bytes(const mf_matcher *m); /* of sets and states in use */
/* The text is complete and cannot go on. */
bool mf_matcher_complete(const mf_gplace *at);

#endif
