/* GGUF files made in memory, metadata only: vocabularies small enough to see through, and broken ones. */
#ifndef MF_TESTS_MADE_H
#define MF_TESTS_MADE_H

#include "tokenizer/tokenizer.h"

typedef struct made { /* zero-initialise */
    mf_buf kvs;
    uint64_t n_kvs;
    mf_buf file;
} made;

void made_str(made *m, const char *key, const char *value);
void made_u32(made *m, const char *key, uint32_t value);
void made_bool(made *m, const char *key, bool value);
void made_strs(made *m, const char *key, const mf_str *values, size_t n);
void made_i32s(made *m, const char *key, const int32_t *values, size_t n);

/* Parses what was made; m must outlive the result. Fails the test when it does not parse. */
mf_gguf *made_parse(made *m);
void made_free(made *m);

/* A vocabulary: the 256 bytes in byte order, which made_vocab_init adds, then what a test adds; without
 * merges but one, because a file needs one. */
typedef struct made_vocab { /* zero-initialise */
    const char *pre;        /* NULL: no such key */
    char bytes[256][3];
    mf_str tokens[400], merges[100];
    int32_t types[400];
    size_t n_tokens, n_types, n_merges;
} made_vocab;

void made_vocab_init(made_vocab *v, const char *pre);
int32_t made_token(made_vocab *v, const char *text, int32_t type); /* its id */
void made_merge(made_vocab *v, const char *text);
void made_put_vocab(made *m, const made_vocab *v);

/* The tokenizer of path's vocabulary, with its tokenizer.ggml.pre replaced when pre is given. */
typedef struct loaded {
    made m;
    mf_gguf *file, *g; /* g: the changed copy, or file */
    mf_tokenizer *t;
} loaded;
void load_tokenizer(loaded *l, const char *path, const char *pre);
void unload(loaded *l);

#endif
