/* Opening models and describing them. */
#include "runtime/model.h"

#include "base/json.h"
#include "base/utf8.h"

#include <string.h>

static char *copy_str(const mf_gguf *g, const char *key)
{
    mf_str s = {"", 0};
    bool found;
    mf_gguf_get_str(g, key, &s, &found, NULL);
    return mf_strndup(s.s, s.n);
}

/* A token that there is not, or whose text is no UTF-8, is left out. false: out of memory. */
static bool add_token(json_t *o, const char *name, const mf_tokenizer *t, int32_t id)
{
    mf_str s = id < 0 ? (mf_str){0} : mf_tokenizer_text(t, id);
    if (id < 0 || !mf_utf8_valid(s.s, s.n)) return true;
    return json_object_set_new(o, name, json_stringn(s.s, s.n)) == 0;
}

/* What templates see of the vocabulary. */
static char *special_tokens(const mf_gguf *g, const mf_tokenizer *t)
{
    static const struct {
        const char *name, *key;
    } others[] = {{"pad_token", "tokenizer.ggml.padding_token_id"},
                  {"unk_token", "tokenizer.ggml.unknown_token_id"}};
    json_t *o = json_object();
    bool ok = o && add_token(o, "bos_token", t, mf_tokenizer_bos(t)) &&
              add_token(o, "eos_token", t, mf_tokenizer_eos(t));
    for (size_t i = 0; i < sizeof others / sizeof *others && ok; i++) {
        uint32_t id = UINT32_MAX;
        bool found = false;
        mf_gguf_get_u32(g, others[i].key, &id, &found, NULL);
        if (found && id < (uint32_t)mf_tokenizer_n_vocab(t))
            ok = add_token(o, others[i].name, t, (int32_t)id);
    }
    char *text = ok ? mf_json_text(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

/* A template that does not parse is kept as its error: the model can still complete text. */
static minfer_status load_template(minfer_model *m, minfer_error *err)
{
    mf_str src;
    bool found;
    MF_TRY(mf_gguf_get_str(m->gguf, "tokenizer.chat_template", &src, &found, err));
    if (!found) return MINFER_OK;
    minfer_status st = mf_template_parse(src.s, src.n, &m->tmpl, &m->tmpl_error);
    return st == MINFER_ERR_NOMEM ? mf_fail(err, st, "%s", m->tmpl_error.message) : MINFER_OK;
}

static minfer_status load_text(minfer_model *m, minfer_error *err)
{
    minfer_status st = mf_tokenizer_create(m->gguf, &m->tok, err);
    if (st != MINFER_OK) return mf_fail_prefix(err, st, "%s", mf_gguf_path(m->gguf));
    MF_TRY(load_template(m, err));
    m->special_tokens = special_tokens(m->gguf, m->tok);
    return m->special_tokens ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status bind(minfer_model *m, const char *space, minfer_error *err)
{
    MF_TRY(mf_model_bind(m->gguf, space, &m->bound, err));
    if (mf_tokenizer_n_vocab(m->tok) <= m->bound->hp.n_vocab) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_FORMAT, "%s: %d tokens, but token_embd.weight has %d rows",
                   mf_gguf_path(m->gguf), mf_tokenizer_n_vocab(m->tok), m->bound->hp.n_vocab);
}

enum { OPEN_DIRECTORY, OPEN_TEXT, OPEN_ALL, OPEN_DRAFT };

static void tell(minfer_progress_fn *progress, void *user, double share)
{
    if (progress) progress(user, share);
}

static minfer_status open_parts(minfer_model *m, const char *path, int depth, minfer_progress_fn *progress,
                                void *user, minfer_error *err)
{
    tell(progress, user, 0);
    MF_TRY(mf_gguf_open(path, &m->gguf, err));
    tell(progress, user, 0.2);
    m->arch = copy_str(m->gguf, "general.architecture");
    m->name = copy_str(m->gguf, "general.name");
    if (!m->arch || !m->name) return MF_NOMEM(err);
    if (depth >= OPEN_TEXT) MF_TRY(load_text(m, err));
    tell(progress, user, 0.8);
    if (depth >= OPEN_ALL) MF_TRY(bind(m, depth == OPEN_DRAFT ? "draft." : "", err));
    tell(progress, user, 1);
    return MINFER_OK;
}

static minfer_status open_model(const char *path, int depth, minfer_progress_fn *progress, void *user,
                                minfer_model **out, minfer_error *err)
{
    minfer_model *m = mf_calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return MF_NOMEM(err);
    minfer_status st = open_parts(m, path, depth, progress, user, err);
    if (st != MINFER_OK) {
        minfer_model_free(m);
        return st;
    }
    *out = m;
    return MINFER_OK;
}

minfer_status minfer_model_open(const char *path, minfer_progress_fn *progress, void *user,
                                minfer_model **out, minfer_error *err)
{
    return open_model(path, OPEN_ALL, progress, user, out, err);
}

minfer_status minfer_model_open_draft(const char *path, minfer_progress_fn *progress, void *user,
                                      minfer_model **out, minfer_error *err)
{
    return open_model(path, OPEN_DRAFT, progress, user, out, err);
}

minfer_status minfer_model_open_vocab(const char *path, minfer_model **out, minfer_error *err)
{
    return open_model(path, OPEN_TEXT, NULL, NULL, out, err);
}

minfer_status minfer_model_open_info(const char *path, minfer_model **out, minfer_error *err)
{
    return open_model(path, OPEN_DIRECTORY, NULL, NULL, out, err);
}

void minfer_model_free(minfer_model *m)
{
    if (!m) return;
    mf_trie_unref(atomic_load(&m->trie));
    mf_model_free(m->bound);
    mf_template_free(m->tmpl);
    mf_tokenizer_free(m->tok);
    mf_gguf_free(m->gguf);
    mf_free(m->special_tokens);
    mf_free(m->arch);
    mf_free(m->name);
    mf_free(m);
}

static uint64_t count_params(const mf_gguf *g)
{
    uint64_t n = 0;
    for (size_t i = 0; i < mf_gguf_n_tensors(g); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(g, i);
        n += t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
    }
    return n;
}

static int32_t vocabulary_size(const minfer_model *m, const mf_hparams *hp)
{
    const mf_gguf_kv *tokens = mf_gguf_find(m->gguf, "tokenizer.ggml.tokens");
    if (m->tok) return mf_tokenizer_n_vocab(m->tok);
    return tokens && tokens->type == MF_GGUF_ARRAY && tokens->count <= INT32_MAX ? (int32_t)tokens->count
                                                                                 : hp->n_vocab;
}

void minfer_model_get_info(const minfer_model *m, minfer_model_info *out)
{
    mf_hparams hp;
    mf_model_peek(m->gguf, &hp);
    if (m->bound) hp = m->bound->hp;
    *out = (minfer_model_info){.path = mf_gguf_path(m->gguf),
                               .architecture = m->arch,
                               .name = m->name,
                               .gguf_version = mf_gguf_version(m->gguf),
                               .n_parts = mf_gguf_n_parts(m->gguf),
                               .file_bytes = mf_gguf_file_bytes(m->gguf),
                               .n_params = count_params(m->gguf),
                               .n_metadata = mf_gguf_n_kv(m->gguf),
                               .n_tensors = mf_gguf_n_tensors(m->gguf),
                               .n_vocab = vocabulary_size(m, &hp),
                               .n_ctx = hp.n_ctx,
                               .n_embd = hp.n_embd,
                               .n_layer = hp.n_layer,
                               .n_head = hp.n_head,
                               .n_head_kv = hp.n_kv,
                               .head_dim = hp.head_dim,
                               .n_ff = hp.n_ff,
                               .has_template = mf_gguf_find(m->gguf, "tokenizer.chat_template") != NULL};
}

void minfer_model_tensor(const minfer_model *m, size_t i, minfer_tensor_info *out)
{
    const mf_gguf_tensor *t = mf_gguf_tensor_at(m->gguf, i);
    *out = (minfer_tensor_info){
        .name = t->cname, .type = mf_type_name(t->type), .n_dims = t->n_dims, .bytes = t->size};
    memcpy(out->dims, t->dims, sizeof out->dims);
}

void minfer_free(void *p)
{
    mf_free(p);
}
