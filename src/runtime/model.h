/* The public model object: a file with its tokenizer, its template, and, where it can be run, its bound
 * weights. */
#ifndef MF_RUNTIME_MODEL_H
#define MF_RUNTIME_MODEL_H

#include "grammar/trie.h"
#include "models/model.h"
#include "template/template.h"
#include "tokenizer/tokenizer.h"

struct minfer_model {
    mf_gguf *gguf;
    mf_model *bound;         /* NULL: opened for its vocabulary or its directory only */
    mf_tokenizer *tok;       /* NULL: opened for its directory only */
    mf_template *tmpl;       /* the file's template; NULL when it has none */
    minfer_error tmpl_error; /* why the file's template does not parse: refused when it is wanted */
    char *special_tokens;    /* JSON object for templates */
    char *arch, *name;
    _Atomic(mf_trie *) trie; /* what grammars see of the vocabulary; NULL until one asks */
};

/* Appends the <think> tag that a prompt ends in, with the blanks after it; nothing when it does not. */
minfer_status mf_prompt_thinking(const minfer_model *m, const int32_t *ids, size_t n, mf_buf *opened,
                                 minfer_error *err);
/* Refuses a chat template that does not parse. A model without one has none to refuse. */
minfer_status mf_chat_check(const minfer_model *m, minfer_error *err);

#endif
