/* Text to token ids and back: byte-level BPE as GGUF carries it (tokenizer.ggml.model "gpt2"). Owns
 * vocabulary, merges and the pre-tokenizer's expressions; knows nothing of templates. A tokenizer is
 * immutable once made and may be used by many threads at once. docs/tokenizer.md tells what was decided where
 * files and libraries leave room. */
#ifndef MF_TOKENIZER_TOKENIZER_H
#define MF_TOKENIZER_TOKENIZER_H

#include "base/mem.h"
#include "gguf/gguf.h"

typedef struct mf_tokenizer mf_tokenizer;

typedef enum mf_token_type { /* tokenizer.ggml.token_type */
                             MF_TOKEN_NORMAL = 1,
                             MF_TOKEN_UNKNOWN = 2,
                             MF_TOKEN_CONTROL = 3,
                             MF_TOKEN_USER_DEFINED = 4,
                             MF_TOKEN_UNUSED = 5,
                             MF_TOKEN_BYTE = 6,
} mf_token_type;

typedef struct mf_tokens { /* growing array; zero-initialise */
    int32_t *ids;
    size_t n, cap;
} mf_tokens;

void mf_tokens_free(mf_tokens *t);
bool mf_tokens_push(mf_tokens *t, int32_t id);

/* Refuses, by name and with the values: another tokenizer model, an unknown pre-tokenizer, an empty
 * vocabulary, tokens that occur twice, missing byte tokens, merges that are not two tokens and their
 * concatenation, and ids out of range. A file without tokenizer.ggml.pre is read as "default". g may be freed
 * afterwards only if nothing of the tokenizer is used: texts point into its mapping. */
minfer_status mf_tokenizer_create(const mf_gguf *g, mf_tokenizer **out, minfer_error *err);
void mf_tokenizer_free(mf_tokenizer *t);

enum {
    MF_ENCODE_SPECIAL = 1, /* cut special tokens (types 3 and 4) out of the text first */
    MF_ENCODE_BOS = 2,     /* put BOS (and EOS) where the metadata says so, unless they are there already */
};

#define MF_MAX_TEXT INT32_MAX /* bytes of one text */

/* Appends the ids of text (n bytes, any bytes at all) to out. Each maximal ill-formed part of it is read as
 * U+FFFD; bytes that the vocabulary has no token for are left out (vocab.h says which those can be). Time and
 * memory are near linear in n. On an error, out is as it was. */
minfer_status mf_tokenizer_encode(const mf_tokenizer *t, const char *text, size_t n, unsigned flags,
                                  mf_tokens *out, minfer_error *err);

/* The same with special tokens, none of which begins at a byte of text named in `inert` (ascending). */
minfer_status mf_tokenizer_encode_inert(const mf_tokenizer *t, const char *text, size_t n, unsigned flags,
                                        const size_t *inert, size_t n_inert, mf_tokens *out,
                                        minfer_error *err);

/* The longest special token that text (n >= 1) begins with, or -1; *cut: all of text is the beginning of a
 * longer one. */
int32_t mf_tokenizer_special(const mf_tokenizer *t, const char *text, size_t n, bool *cut);

/* An id outside the vocabulary is an unused one without text. */
int32_t mf_tokenizer_n_vocab(const mf_tokenizer *t);
int32_t mf_tokenizer_bos(const mf_tokenizer *t); /* -1 when there is none */
int32_t mf_tokenizer_eos(const mf_tokenizer *t);
bool mf_tokenizer_adds_bos(const mf_tokenizer *t);
bool mf_tokenizer_is_eog(const mf_tokenizer *t,
                         int32_t id); /* eos, eot, and the model's end-of-turn tokens */
mf_token_type mf_tokenizer_type(const mf_tokenizer *t, int32_t id);
mf_str mf_tokenizer_text(const mf_tokenizer *t, int32_t id);                  /* as the file spells it */
int32_t mf_tokenizer_find(const mf_tokenizer *t, const char *text, size_t n); /* by the file's spelling; -1 */

/* The bytes id stands for in text, appended to out. Control tokens give their text only if special is true,
 * unused and padding ids give nothing. false: out of memory. */
bool mf_tokenizer_piece(const mf_tokenizer *t, int32_t id, bool special, mf_buf *out);

/* Streaming: bytes of tokens go in, whole characters come out. A character may span tokens; bytes that cannot
 * become one are replaced by U+FFFD after at most three further bytes. Zero-initialise. */
typedef struct mf_detok {
    char held[4];
    uint8_t n_held;
} mf_detok;
bool mf_detok_push(mf_detok *d, const char *bytes, size_t n, mf_buf *out);
bool mf_detok_finish(mf_detok *d, mf_buf *out); /* what is still held becomes one U+FFFD */

#endif
