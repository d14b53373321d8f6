/* The plain model of sessions: each is three arrays of its own, tokens, positions and rows of keys and
 * values. A token is computed alone, by laying its sequence's rows into cells 0.. of an engine of its own and
 * showing them all to it. Knows nothing of cells, runs, sharing or batches. */
#ifndef MF_TESTS_KV_PLAIN_H
#define MF_TESTS_KV_PLAIN_H

#include "kv/rig.h"

typedef struct plain_seq {
    int32_t n;
    int32_t *tokens, *positions; /* [n_ctx] */
    uint8_t *rows;               /* [n_ctx][bytes] */
} plain_seq;

typedef struct plain {
    minfer_engine *e; /* has no session */
    size_t bytes;     /* of one token's rows in all layers */
    size_t n_vocab;
} plain;

void plain_open(plain *p, const minfer_model *m, minfer_cache_type cache, int32_t n_ctx);
void plain_close(plain *p);

plain_seq plain_seq_new(const plain *p);
void plain_seq_free(plain_seq *s);

/* Appends tokens; logits[n][n_vocab]. */
void plain_feed(plain *p, plain_seq *s, const int32_t *tokens, int32_t n, float *logits);
void plain_remove(const plain *p, plain_seq *s, int32_t from, int32_t to);
void plain_copy(const plain *p, plain_seq *to, const plain_seq *from, int32_t n);

/* Fails the test unless session s of any engine has these tokens and positions and, with rows, these keys and
 * values. */
void plain_compare(const plain *p, const plain_seq *want, const minfer_session *s, bool rows);

#endif
