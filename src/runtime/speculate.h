/* Speculation: a text that grows token by token, as the sampler draws it, while the session runs ahead of it
 * with drafted tokens. A drafted token whose turn comes and that is the one drawn costs nothing more: its
 * logits are there already. Another one takes the session back to the text. Owns the rows of logits.
 *
 * Because a token's logits have the same bits in every batch, and the sampler sees each row once, in order,
 * with the text before it, the text is the one that plain decoding gives. Without a draft this is plain
 * decoding. */
#ifndef MF_RUNTIME_SPECULATE_H
#define MF_RUNTIME_SPECULATE_H

#include "runtime/draft.h"
#include "runtime/engine.h"

typedef struct mf_speculate {
    minfer_session *s;         /* holds the text and, behind it, drafted tokens */
    minfer_draft *draft;       /* NULL: none */
    minfer_generate_result *r; /* its counts of rounds and tokens are kept */
    size_t n;                  /* tokens of the text */
    float *rows;               /* logits behind the text's last token and behind each drafted one */
    int32_t row;  /* place of the round that the text has reached: 0 is the token drawn before it */
    int32_t kind; /* of the running draft */
} mf_speculate;

/* The text is the session's tokens and n new ones, at least one, that are fed in any case. *sp goes to
 * mf_speculate_close also after an error. */
minfer_status mf_speculate_open(mf_speculate *sp, minfer_session *s, minfer_draft *draft,
                                minfer_generate_result *r, const int32_t *tokens, size_t n,
                                minfer_error *err);

/* Lengthens the text by the token that was drawn. more: how many can be drawn after it at most; with 0 there
 * are no logits behind it. After an error the text is as before. */
minfer_status mf_speculate_push(mf_speculate *sp, int32_t id, size_t more, minfer_error *err);

/* Logits behind the text, [n_vocab]. */
const float *mf_speculate_logits(const mf_speculate *sp);

/* The session keeps the text and nothing else. */
void mf_speculate_close(mf_speculate *sp);

#endif
