/* Tokens and pieces of a model, for callers of the library. */
#include "runtime/model.h"

#include <string.h>

static minfer_status want_text(const minfer_model *m, minfer_error *err)
{
    return m->tok ? MINFER_OK
                  : mf_fail(err, MINFER_ERR_STATE, "%s: was opened without its vocabulary",
                            mf_gguf_path(m->gguf));
}

minfer_status minfer_tokenize(const minfer_model *m, const char *text, size_t n, unsigned flags,
                              int32_t **ids, size_t *n_ids, minfer_error *err)
{
    mf_tokens t = {0};
    *ids = NULL;
    *n_ids = 0;
    MF_TRY(want_text(m, err));
    unsigned f = (flags & MINFER_TOKENIZE_SPECIAL ? MF_ENCODE_SPECIAL : 0u) |
                 (flags & MINFER_TOKENIZE_BOS ? MF_ENCODE_BOS : 0u);
    minfer_status st = mf_tokenizer_encode(m->tok, text, n, f, &t, err);
    if (st != MINFER_OK) {
        mf_tokens_free(&t);
        return st;
    }
    *ids = t.ids;
    *n_ids = t.n;
    return MINFER_OK;
}

minfer_status minfer_token_bytes(const minfer_model *m, int32_t id, bool special, char **bytes, size_t *n,
                                 minfer_error *err)
{
    mf_buf b = {0};
    *bytes = NULL;
    *n = 0;
    MF_TRY(want_text(m, err));
    if (id < 0 || id >= mf_tokenizer_n_vocab(m->tok))
        return mf_fail(err, MINFER_ERR_ARG, "token %d is not in 0..%d", id, mf_tokenizer_n_vocab(m->tok) - 1);
    if (!mf_buf_append(&b, "", 0) || !mf_tokenizer_piece(m->tok, id, special, &b)) {
        mf_buf_free(&b);
        return MF_NOMEM(err);
    }
    *bytes = b.data;
    *n = b.len;
    return MINFER_OK;
}

bool minfer_token_is_end(const minfer_model *m, int32_t id)
{
    return m->tok && id >= 0 && id < mf_tokenizer_n_vocab(m->tok) && mf_tokenizer_is_eog(m->tok, id);
}

int32_t minfer_token_bos(const minfer_model *m)
{
    return m->tok ? mf_tokenizer_bos(m->tok) : -1;
}
int32_t minfer_token_eos(const minfer_model *m)
{
    return m->tok ? mf_tokenizer_eos(m->tok) : -1;
}

enum { TAIL = 8 }; /* tokens that a tag and the blanks after it may take */

minfer_status mf_prompt_thinking(const minfer_model *m, const int32_t *ids, size_t n, mf_buf *opened,
                                 minfer_error *err)
{
    static const char tag[] = "<think>";
    mf_buf tail = {0};
    bool ok = true;
    for (size_t i = n > TAIL ? n - TAIL : 0; i < n && ok; i++)
        ok = mf_tokenizer_piece(m->tok, ids[i], true, &tail);
    size_t end = tail.len;
    while (end && strchr(" \n", tail.data[end - 1])) end--;
    if (ok && end >= sizeof tag - 1 && memcmp(tail.data + end - (sizeof tag - 1), tag, sizeof tag - 1) == 0)
        ok = mf_buf_str(opened, tail.data + end - (sizeof tag - 1));
    mf_buf_free(&tail);
    return ok ? MINFER_OK : MF_NOMEM(err);
}

bool minfer_prompt_opens_thinking(const minfer_model *m, const int32_t *ids, size_t n)
{
    mf_buf opened = {0};
    bool thinking = m->tok && mf_prompt_thinking(m, ids, n, &opened, NULL) == MINFER_OK && opened.len;
    mf_buf_free(&opened);
    return thinking;
}
