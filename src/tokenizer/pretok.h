/* Pre-tokenizers: which expression cuts a text into the pieces that are merged, and what else differs by
 * tokenizer.ggml.pre. Owns the compiled expression. */
#ifndef MF_TOKENIZER_PRETOK_H
#define MF_TOKENIZER_PRETOK_H

#include "gguf/gguf.h"

typedef struct mf_pretok_kind {
    const char *name;    /* as tokenizer.ggml.pre spells it */
    const char *pattern; /* covers every character, so that the pieces together are the text */
    bool nfc;            /* text is normalized first */
    bool whole_tokens;   /* a piece that is a token is taken as it is, before any merging */
    bool adds_bos;       /* when tokenizer.ggml.add_bos_token is absent */
} mf_pretok_kind;

/* The kind of that name, or a refusal that lists the names there are. */
minfer_status mf_pretok_find(mf_str name, const mf_pretok_kind **out, minfer_error *err);

typedef struct mf_pretok { /* zero-initialise; read-only once compiled, for any number of threads */
    struct pcre2_real_general_context_8 *memory;
    struct pcre2_real_match_context_8 *limits;
    struct pcre2_real_code_8 *code;
    uint32_t options; /* of every match */
} mf_pretok;

/* On an error, p still goes to mf_pretok_free. */
minfer_status mf_pretok_compile(mf_pretok *p, const mf_pretok_kind *kind, minfer_error *err);
void mf_pretok_free(mf_pretok *p);

/* Calls fn for each piece of text (well-formed UTF-8) in order, until fn returns another status than
 * MINFER_OK, which is passed on. Pieces may be of any length. */
typedef minfer_status mf_pretok_fn(void *arg, mf_str piece, minfer_error *err);
minfer_status mf_pretok_split(const mf_pretok *p, mf_str text, mf_pretok_fn *fn, void *arg,
                              minfer_error *err);

#endif
