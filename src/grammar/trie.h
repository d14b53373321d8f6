/* A vocabulary as a grammar meets it: the texts of its tokens as a tree of bytes, and which tokens end a
 * turn. Immutable, shared by all that use it, also by several threads. Knows no grammar. */
#ifndef MF_GRAMMAR_TRIE_H
#define MF_GRAMMAR_TRIE_H

#include "tokenizer/tokenizer.h"

#include <stdatomic.h>

typedef struct mf_trie_node { /* in order of a walk, children after their parent */
    uint32_t skip;            /* the first node that is not below this one */
    uint16_t depth;           /* bytes up to and with this one, >= 1 */
    uint8_t byte;
    bool more;     /* other tokens have the same text: see same */
    int32_t token; /* whose text ends here, or -1 */
} mf_trie_node;

typedef struct mf_trie {
    atomic_int refs;
    int32_t n_vocab;
    mf_trie_node *nodes;
    size_t n_nodes;
    char *bytes; /* all texts; token i has bytes[starts[i]] to bytes[starts[i + 1]] */
    uint32_t *starts;
    int32_t *same;    /* per token: another one with its text, or -1 */
    uint32_t longest; /* bytes of the longest text */
    int32_t *ends;    /* tokens that end a turn */
    size_t n_ends;
} mf_trie;

/* Tokens without a text, and with one beyond 65,535 bytes, are in no text of a grammar; nor are those that
 * end a turn, whatever they spell. */
minfer_status mf_trie_create(const mf_tokenizer *t, mf_trie **out, minfer_error *err);
/* The same from n texts and the ids of those that end a turn. */
minfer_status mf_trie_make(const mf_str *texts, int32_t n, const int32_t *ends, size_t n_ends, mf_trie **out,
                           minfer_error *err);
mf_trie *mf_trie_ref(mf_trie *t);
void mf_trie_unref(mf_trie *t); /* accepts NULL */

static inline mf_str mf_trie_text(const mf_trie *t, int32_t id)
{
    return (mf_str){t->bytes + t->starts[id], t->starts[id + 1] - t->starts[id]};
}

bool mf_trie_is_end(const mf_trie *t, int32_t id);

#endif
