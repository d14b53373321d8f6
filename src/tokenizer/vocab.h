/* The vocabulary: what every id is called, which bytes have tokens, and which pairs of ids merge. Built once
 * from a GGUF's metadata and read-only after that; knows nothing of expressions, special tokens or text. */
#ifndef MF_TOKENIZER_VOCAB_H
#define MF_TOKENIZER_VOCAB_H

#include "tokenizer/tokenizer.h"

typedef struct mf_merge { /* left right -> merged; the lowest rank merges first */
    uint32_t left, right;
    uint32_t rank; /* MF_NO_RANK: an empty slot of the table */
    uint32_t merged;
} mf_merge;

#define MF_NO_RANK UINT32_MAX

typedef struct mf_id_slot { /* a third of a general map's slot, because misses of the cache are what a start
                               pays for */
    uint32_t hash;
    int32_t id; /* -1: empty */
} mf_id_slot;

typedef struct mf_vocab { /* zero-initialise */
    const mf_str *texts;  /* n, as the file spells them; they point into the file */
    uint8_t *types;       /* n, mf_token_type; tags such as <think> are never control tokens */
    uint32_t n;           /* 1..INT32_MAX */
    mf_id_slot *ids;      /* text -> id, open addressing */
    size_t id_mask;       /* slots - 1; slots is a power of two */
    size_t longest;       /* bytes of the longest text */
    int32_t bytes[256];   /* the token of each byte, -1 when the vocabulary has none */
    mf_merge *merges;     /* open addressing */
    size_t merge_mask;    /* slots - 1; slots is a power of two */
} mf_vocab;

/* Reads tokenizer.ggml.tokens, .token_type (all normal when absent) and .merges. Refuses, naming the token or
 * the merge: an empty or too large vocabulary, texts that occur twice, types that are not 1..6, another
 * number of types than of tokens, byte tokens missing, merges that are not two tokens and their
 * concatenation.
 *
 * Bytes that no assigned character of ordinary text needs may be missing, because real models miss them:
 * control characters other than tab, newline and carriage return, F1 to F4 (planes 4 to 16), and what never
 * stands in UTF-8. Encoding leaves such bytes out, as Hugging Face does. On an error, v still goes to
 * mf_vocab_free. */
minfer_status mf_vocab_read(mf_vocab *v, const mf_gguf *g, minfer_error *err);
void mf_vocab_free(mf_vocab *v);

/* The id of a text as the file spells it, or -1. */
int32_t mf_vocab_find(const mf_vocab *v, mf_str text);

static inline size_t mf_vocab_pair_hash(uint32_t left, uint32_t right)
{
    return (size_t)(((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u >> 32);
}

/* Where the merge of a pair is, or the empty slot where it would go. */
static inline mf_merge *mf_vocab_slot(const mf_vocab *v, uint32_t left, uint32_t right)
{
    for (size_t i = mf_vocab_pair_hash(left, right);; i++) {
        mf_merge *m = &v->merges[i & v->merge_mask];
        if (m->rank == MF_NO_RANK || (m->left == left && m->right == right)) return m;
    }
}

/* Appends piece as the vocabulary spells bytes. false: out of memory. */
bool mf_vocab_spell(mf_str piece, mf_buf *out);

/* Appends the bytes a normal token stands for: its characters mapped back to bytes or, when one of them is no
 * byte's, its text as it is. false: out of memory. */
bool mf_vocab_decode(mf_str text, mf_buf *out);

#endif
