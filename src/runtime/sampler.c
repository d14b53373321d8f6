/* Samplers made for a model: its vocabulary bounds them, and its texts tell what ends a repetition. */
#include "runtime/model.h"

#include "sampling/recommended.h"
#include "sampling/sampler.h"

#include <string.h>

/* Tokens that end what DRY compares: those with a line end or one of the usual marks in their text, and
 * control tokens, so that the frame of a chat is not taken for a repetition. */
static minfer_status find_breaker(const mf_tokenizer *t, int32_t id, mf_buf *text, mf_tokens *ids,
                                  minfer_error *err)
{
    bool control = mf_tokenizer_type(t, id) == MF_TOKEN_CONTROL;
    text->len = 0;
    if (!mf_tokenizer_piece(t, id, false, text)) return MF_NOMEM(err);
    if (!control && !(text->len && strpbrk(text->data, "\n:\"*"))) return MINFER_OK;
    return mf_tokens_push(ids, id) ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status set_breakers(minfer_sampler *s, const mf_tokenizer *t, minfer_error *err)
{
    mf_tokens ids = {0};
    mf_buf text = {0};
    minfer_status st = MINFER_OK;
    for (int32_t id = 0; id < mf_tokenizer_n_vocab(t) && st == MINFER_OK; id++)
        st = find_breaker(t, id, &text, &ids, err);
    if (st == MINFER_OK) st = mf_sampler_set_dry_breakers(s, ids.ids, ids.n, err);
    mf_tokens_free(&ids);
    mf_buf_free(&text);
    return st;
}

minfer_status minfer_sampler_create(const minfer_model *m, const minfer_sampling *p, minfer_sampler **out,
                                    minfer_error *err)
{
    minfer_sampling defaults;
    *out = NULL;
    minfer_sampling_init(&defaults);
    if (!p) p = &defaults;
    if (!m->tok)
        return mf_fail(err, MINFER_ERR_STATE, "%s: was opened without its vocabulary", mf_gguf_path(m->gguf));
    MF_TRY(mf_sampler_create(p, mf_tokenizer_n_vocab(m->tok), out, err));
    minfer_status st = p->dry_multiplier > 0 ? set_breakers(*out, m->tok, err) : MINFER_OK;
    if (st == MINFER_OK) return st;
    minfer_sampler_free(*out);
    *out = NULL;
    return st;
}

/* The model's trie, built when it is first wanted; of two threads that build it one's stays. */
static minfer_status get_trie(const minfer_model *m, mf_trie **out, minfer_error *err)
{
    _Atomic(mf_trie *) *slot = &((minfer_model *)(uintptr_t)m)->trie;
    mf_trie *none = NULL;
    *out = atomic_load(slot);
    if (*out) return MINFER_OK;
    MF_TRY(mf_trie_create(m->tok, out, err));
    if (atomic_compare_exchange_strong(slot, &none, *out)) return MINFER_OK;
    mf_trie_unref(*out);
    *out = none;
    return MINFER_OK;
}

minfer_status minfer_sampler_set_grammar(minfer_sampler *s, const minfer_model *m, minfer_grammar *g,
                                         minfer_error *err)
{
    mf_trie *trie = NULL;
    if (g && !m->tok)
        return mf_fail(err, MINFER_ERR_STATE, "%s: was opened without its vocabulary", mf_gguf_path(m->gguf));
    if (g) MF_TRY(get_trie(m, &trie, err));
    return mf_sampler_set_grammar(s, g, trie, err);
}

minfer_status minfer_sampling_recommended(const minfer_model *m, unsigned given, minfer_sampling *p,
                                          minfer_error *err)
{
    return mf_sampling_recommended(m->gguf, given, p, err);
}
