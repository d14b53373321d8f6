/* Tokens, pieces and chat prompts of a model, for callers of the library. */
#include "runtime/model.h"

#include <string.h>

/* What a model without a template gets. */
static const char chatml[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

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

static minfer_status render(const mf_template *t, const minfer_chat *chat, const char *special, char **text,
                            size_t *n, minfer_error *err)
{
    mf_buf b = {0};
    mf_template_input in = {.messages = chat->messages,
                            .tools = chat->tools,
                            .kwargs = chat->kwargs,
                            .special_tokens = special,
                            .add_generation_prompt = chat->add_generation_prompt};
    minfer_status st = mf_template_render(t, &in, NULL, &b, err);
    if (st == MINFER_OK && !mf_buf_append(&b, "", 0)) st = MF_NOMEM(err);
    if (st != MINFER_OK) {
        mf_buf_free(&b);
        return st;
    }
    *text = b.data;
    *n = b.len;
    return MINFER_OK;
}

minfer_status minfer_template_render(const char *source, size_t source_n, const minfer_chat *chat,
                                     char **text, size_t *n, minfer_error *err)
{
    mf_template *t;
    *text = NULL;
    *n = 0;
    MF_TRY(mf_template_parse(source, source_n, &t, err));
    minfer_status st = render(t, chat, chat->special_tokens, text, n, err);
    mf_template_free(t);
    return st;
}

minfer_status minfer_chat_render(const minfer_model *m, const minfer_chat *chat, char **text, size_t *n,
                                 minfer_error *err)
{
    *text = NULL;
    *n = 0;
    MF_TRY(want_text(m, err));
    if (m->tmpl_error.code != MINFER_OK)
        return mf_fail(err, m->tmpl_error.code, "%s: chat template: %s", mf_gguf_path(m->gguf),
                       m->tmpl_error.message);
    minfer_chat c = *chat;
    if (!c.special_tokens) c.special_tokens = m->special_tokens;
    if (!m->tmpl) return minfer_template_render(chatml, strlen(chatml), &c, text, n, err);
    return render(m->tmpl, &c, c.special_tokens, text, n, err);
}
