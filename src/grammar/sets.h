/* Where a text may stand in a grammar: sets of stacks, each set known by a number. Owns the sets of one
 * program; knows neither bytes nor tokens.
 *
 * An entry is a position, for repetitions how often they went round, and the set of what may follow once the
 * position's sequence has ended. So a set stands for all stacks that one can walk down from its entries, and
 * ways that differ only further down share what is above: their number grows with the grammar and the depth,
 * not with the number of ways. Equal sets have equal numbers, and a set has a greater number than all it
 * refers to. Set 0 is empty, set 1 is what follows the whole text: position 0. */
#ifndef MF_GRAMMAR_SETS_H
#define MF_GRAMMAR_SETS_H

#include "grammar/program.h"

typedef struct mf_gentry {
    uint32_t pos, count, rest;
} mf_gentry;

enum { MF_GSET_EMPTY = 0, MF_GSET_BOTTOM = 1 };

typedef struct mf_gstack { /* a set */
    mf_gpart part;         /* of entries, ascending by position and count */
    uint32_t hash, like;   /* like: see mf_gsets_like */
} mf_gstack;

typedef struct mf_gpair {
    uint32_t a, b, both; /* a 0: an empty slot */
} mf_gpair;

typedef struct mf_gsets { /* zero-initialise */
    const mf_program *p;
    uint32_t horizon;
    uint32_t effort; /* entries visited and merged; the user sets it to 0 before what is to be limited */
    mf_gstack *v;
    size_t n, cap;
    mf_gentry *entries;
    size_t n_entries, entries_cap;
    uint32_t *slots; /* hash -> set + 1; a power of two */
    size_t n_slots;
    mf_gpair *unions; /* known ones, the latest of each slot */
    mf_gentry *work;  /* of a closure */
    size_t n_work, work_cap;
    uint32_t *seen; /* hash -> place in work + 1; a power of two; all 0 between closures */
    size_t n_seen;
    mf_gentry *out;
    size_t n_out, out_cap;
} mf_gsets;

/* horizon: bytes of the longest token. p lives as long as s. */
minfer_status mf_gsets_init(mf_gsets *s, const mf_program *p, uint32_t horizon, minfer_error *err);
void mf_gsets_free(mf_gsets *s);

/* The set of a text's start, and where one byte of a class leads: both hold positions of MF_G_SET and
 * MF_G_ACCEPT only. MINFER_ERR_LIMIT for a grammar that has too many ways at once. */
minfer_status mf_gsets_start(mf_gsets *s, uint32_t *set, minfer_error *err);
minfer_status mf_gsets_step(mf_gsets *s, uint32_t from, uint32_t class, uint32_t *to, minfer_error *err);

/* A set from which the texts of up to `horizon` bytes go the same ways: counts that such a text cannot bring
 * to a limit are made alike, so that all the middle of a long repetition is one set. */
static inline uint32_t mf_gsets_like(const mf_gsets *s, uint32_t set)
{
    return s->v[set].like;
}

static inline bool mf_gsets_can_end(const mf_gsets *s, uint32_t set)
{
    mf_gpart part = s->v[set].part;
    return part.n > 0 && s->entries[part.first].pos == 0;
}

static inline bool mf_gsets_can_go_on(const mf_gsets *s, uint32_t set)
{
    return s->v[set].part.n > (mf_gsets_can_end(s, set) ? 1 : 0);
}

size_t mf_gsets_bytes(const mf_gsets *s); /* in use */

/* Drops all sets but those that keep[] (n of them) need, and gives those their new numbers. */
minfer_status mf_gsets_collect(mf_gsets *s, uint32_t *const *keep, size_t n, minfer_error *err);

#endif
