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

#endif
