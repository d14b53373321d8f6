/* The tokenizer: reading what a file says of it, and encoding. */
#include "tokenizer/tokenizer.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pretok.h"
#include "tokenizer/special.h"

#include <string.h>

struct mf_tokenizer {
    mf_vocab vocab;
    mf_special special;
    const mf_pretok_kind *kind;
    mf_pretok pretok;
    int32_t bos, eos; /* -1: none */
    bool adds_bos, adds_eos;
    uint32_t *eog; /* one bit for each id */
};

void mf_tokens_free(mf_tokens *t)
{
    mf_free(t->ids);
    *t = (mf_tokens){0};
}

bool mf_tokens_push(mf_tokens *t, int32_t id)
{
    if (!mf_grow((void **)&t->ids, &t->cap, t->n + 1, sizeof *t->ids)) return false;
    t->ids[t->n++] = id;
    return true;
}

static minfer_status read_kind(mf_tokenizer *t, const mf_gguf *g, minfer_error *err)
{
    mf_str model, pre = {"default", 7};
    MF_TRY(mf_gguf_get_str(g, "tokenizer.ggml.model", &model, NULL, err));
    if (model.n != 4 || memcmp(model.s, "gpt2", 4) != 0)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED,
                       "tokenizer.ggml.model is '%.*s'; known is gpt2 (byte-level BPE)",
                       model.n > 80 ? 80 : (int)model.n, model.s);
    bool found;
    MF_TRY(mf_gguf_get_str(g, "tokenizer.ggml.pre", &pre, &found, err));
    return mf_pretok_find(pre, &t->kind, err);
}

static bool is_id(const mf_tokenizer *t, int64_t id)
{
    return id >= 0 && id < t->vocab.n;
}

static minfer_status bad_id(const mf_tokenizer *t, const char *key, int64_t id, minfer_error *err)
{
    return mf_fail(err, MINFER_ERR_FORMAT, "%s is %lld, but there are %u tokens", key, (long long)id,
                   t->vocab.n);
}

/* *id: the value of key, or -1 when the file has none. */
static minfer_status read_id(const mf_tokenizer *t, const mf_gguf *g, const char *key, int32_t *id,
                             minfer_error *err)
{
    uint32_t value = 0;
    bool found;
    *id = -1;
    MF_TRY(mf_gguf_get_u32(g, key, &value, &found, err));
    if (!found) return MINFER_OK;
    if (!is_id(t, value)) return bad_id(t, key, value, err);
    *id = (int32_t)value;
    return MINFER_OK;
}

/* Adding a token that the file does not name is an error only when the file asks for it. */
static minfer_status read_adds(const mf_gguf *g, const char *key, int32_t id, bool by_default, bool *adds,
                               minfer_error *err)
{
    bool found;
    *adds = by_default && id >= 0;
    MF_TRY(mf_gguf_get_bool(g, key, adds, &found, err));
    if (*adds && id < 0)
        return mf_fail(err, MINFER_ERR_FORMAT, "%s is true, but the file does not name that token", key);
    return MINFER_OK;
}

static void set_eog(mf_tokenizer *t, int64_t id)
{
    if (is_id(t, id)) t->eog[id / 32] |= 1u << (id % 32);
}

/* Ends of a turn or a text by name, because a file names only one of them as eos. Only control tokens count.
 */
static const char *const eog_texts[] = {
    "<|endoftext|>", "<|im_end|>", "<|end_of_text|>",       "<|eot_id|>", "<|eom_id|>", "<|end|>",
    "<|EOT|>",       "</s>",       "<｜end▁of▁sentence｜>",
};

static minfer_status read_eog(mf_tokenizer *t, const mf_gguf *g, minfer_error *err)
{
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    static const char *const list_key = "tokenizer.ggml.eos_token_ids";
    t->eog = mf_calloc(t->vocab.n / 32 + 1, sizeof *t->eog);
    if (!t->eog) return MF_NOMEM(err);
    set_eog(t, t->eos);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int32_t id;
        MF_TRY(read_id(t, g, keys[i], &id, err));
        set_eog(t, id);
    }
    for (size_t i = 0; i < sizeof eog_texts / sizeof *eog_texts; i++) {
        int32_t id = mf_tokenizer_find(t, eog_texts[i], strlen(eog_texts[i]));
        if (id >= 0 && t->vocab.types[id] == MF_TOKEN_CONTROL) set_eog(t, id);
    }
    const mf_gguf_kv *list = NULL;
    bool found;
    MF_TRY(mf_gguf_get_array(g, list_key, MF_GGUF_I32, &list, &found, err));
    for (uint64_t i = 0; found && i < list->count; i++) {
        int64_t id = mf_gguf_array_i64(list, i);
        if (!is_id(t, id)) return bad_id(t, list_key, id, err);
        set_eog(t, id);
    }
    return MINFER_OK;
}

static minfer_status read_all(mf_tokenizer *t, const mf_gguf *g, minfer_error *err)
{
    MF_TRY(read_kind(t, g, err));
    MF_TRY(mf_vocab_read(&t->vocab, g, err));
    if (!mf_special_collect(&t->special, &t->vocab)) return MF_NOMEM(err);
    MF_TRY(mf_pretok_compile(&t->pretok, t->kind, err));
    MF_TRY(read_id(t, g, "tokenizer.ggml.bos_token_id", &t->bos, err));
    MF_TRY(read_id(t, g, "tokenizer.ggml.eos_token_id", &t->eos, err));
    MF_TRY(read_adds(g, "tokenizer.ggml.add_bos_token", t->bos, t->kind->adds_bos, &t->adds_bos, err));
    MF_TRY(read_adds(g, "tokenizer.ggml.add_eos_token", t->eos, false, &t->adds_eos, err));
    return read_eog(t, g, err);
}

minfer_status mf_tokenizer_create(const mf_gguf *g, mf_tokenizer **out, minfer_error *err)
{
    *out = NULL;
    mf_tokenizer *t = mf_calloc(1, sizeof *t);
    if (!t) return MF_NOMEM(err);
    minfer_status st = read_all(t, g, err);
    if (st == MINFER_OK)
        *out = t;
    else
        mf_tokenizer_free(t);
    return st;
}

void mf_tokenizer_free(mf_tokenizer *t)
{
    if (!t) return;
    mf_vocab_free(&t->vocab);
    mf_special_free(&t->special);
    mf_pretok_free(&t->pretok);
    mf_free(t->eog);
    mf_free(t);
}

typedef struct encoding { /* the state of one call */
    const mf_tokenizer *t;
    mf_tokens *out;
    mf_bpe bpe;
    mf_normalizer normalizer;
    mf_buf spelled;
    const size_t *inert; /* bytes where no special token begins */
    size_t n_inert;
} encoding;

/* *id: the token that the whole piece is, or -1. */
static bool find_whole(encoding *e, mf_str piece, int32_t *id)
{
    const mf_vocab *v = &e->t->vocab;
    *id = -1;
    if (!e->t->kind->whole_tokens || piece.n > v->longest) return true;
    e->spelled.len = 0;
    if (!mf_vocab_spell(piece, &e->spelled)) return false;
    int32_t found = mf_tokenizer_find(e->t, e->spelled.data, e->spelled.len);
    if (found >= 0 && v->types[found] == MF_TOKEN_NORMAL) *id = found;
    return true;
}

static minfer_status encode_piece(void *arg, mf_str piece, minfer_error *err)
{
    encoding *e = arg;
    int32_t id;
    bool ok = find_whole(e, piece, &id) &&
              (id >= 0 ? mf_tokens_push(e->out, id) : mf_bpe_encode(&e->bpe, &e->t->vocab, piece, e->out));
    return ok ? MINFER_OK : MF_NOMEM(err);
}

/* Text without special tokens. */
static minfer_status encode_plain(encoding *e, mf_str text, minfer_error *err)
{
    mf_str clean;
    if (text.n == 0) return MINFER_OK;
    if (!mf_normalize(&e->normalizer, text, e->t->kind->nfc, &clean)) return MF_NOMEM(err);
    return mf_pretok_split(&e->t->pretok, clean, encode_piece, e, err);
}

/* The next special token that may stand where it stands. */
static int32_t next_special(encoding *e, mf_str text, size_t from, size_t *at)
{
    for (;; from = *at + 1) {
        int32_t id = mf_special_find(&e->t->special, &e->t->vocab, text, from, at);
        if (id < 0) return id;
        while (e->n_inert && *e->inert < *at) {
            e->inert++;
            e->n_inert--;
        }
        if (!e->n_inert || *e->inert != *at) return id;
    }
}

static minfer_status encode_text(encoding *e, mf_str text, bool special, minfer_error *err)
{
    const mf_vocab *v = &e->t->vocab;
    size_t done = 0, at;
    for (int32_t id; special && (id = next_special(e, text, done, &at)) >= 0;) {
        MF_TRY(encode_plain(e, (mf_str){text.s + done, at - done}, err));
        if (!mf_tokens_push(e->out, id)) return MF_NOMEM(err);
        done = at + v->texts[id].n;
    }
    return encode_plain(e, (mf_str){text.s + done, text.n - done}, err);
}

/* Puts BOS before and EOS after what was appended since `start`, unless they are there. */
static bool add_ends(const mf_tokenizer *t, mf_tokens *out, size_t start)
{
    size_t n = out->n - start;
    if (t->adds_bos && (n == 0 || out->ids[start] != t->bos)) {
        if (!mf_tokens_push(out, t->bos)) return false;
        memmove(&out->ids[start + 1], &out->ids[start], n * sizeof *out->ids);
        out->ids[start] = t->bos;
        n++;
    }
    if (!t->adds_eos || (n > 0 && out->ids[out->n - 1] == t->eos)) return true;
    return mf_tokens_push(out, t->eos);
}

minfer_status mf_tokenizer_encode(const mf_tokenizer *t, const char *text, size_t n, unsigned flags,
                                  mf_tokens *out, minfer_error *err)
{
    return mf_tokenizer_encode_inert(t, text, n, flags, NULL, 0, out, err);
}

int32_t mf_tokenizer_special(const mf_tokenizer *t, const char *text, size_t n, bool *cut)
{
    return mf_special_prefix(&t->special, &t->vocab, (mf_str){text, n}, cut);
}

minfer_status mf_tokenizer_encode_inert(const mf_tokenizer *t, const char *text, size_t n, unsigned flags,
                                        const size_t *inert, size_t n_inert, mf_tokens *out,
                                        minfer_error *err)
{
    size_t start = out->n;
    if (n > MF_MAX_TEXT)
        return mf_fail(err, MINFER_ERR_LIMIT, "a text of %zu bytes is too long to encode, at most %d", n,
                       MF_MAX_TEXT);
    encoding e = {.t = t, .out = out, .inert = inert, .n_inert = n_inert};
    minfer_status st = encode_text(&e, (mf_str){n ? text : "", n}, flags & MF_ENCODE_SPECIAL, err);
    if (st == MINFER_OK && (flags & MF_ENCODE_BOS) && !add_ends(t, out, start)) st = MF_NOMEM(err);
    mf_bpe_free(&e.bpe);
    mf_normalizer_free(&e.normalizer);
    mf_buf_free(&e.spelled);
    if (st != MINFER_OK) out->n = start;
    return st;
}

int32_t mf_tokenizer_n_vocab(const mf_tokenizer *t)
{
    return (int32_t)t->vocab.n;
}

int32_t mf_tokenizer_bos(const mf_tokenizer *t)
{
    return t->bos;
}

int32_t mf_tokenizer_eos(const mf_tokenizer *t)
{
    return t->eos;
}

bool mf_tokenizer_adds_bos(const mf_tokenizer *t)
{
    return t->adds_bos;
}

bool mf_tokenizer_is_eog(const mf_tokenizer *t, int32_t id)
{
    return is_id(t, id) && (t->eog[id / 32] >> (id % 32) & 1);
}

mf_token_type mf_tokenizer_type(const mf_tokenizer *t, int32_t id)
{
    return is_id(t, id) ? (mf_token_type)t->vocab.types[id] : MF_TOKEN_UNUSED;
}

mf_str mf_tokenizer_text(const mf_tokenizer *t, int32_t id)
{
    return is_id(t, id) ? t->vocab.texts[id] : (mf_str){"", 0};
}

int32_t mf_tokenizer_find(const mf_tokenizer *t, const char *text, size_t n)
{
    return mf_vocab_find(&t->vocab, (mf_str){text, n});
}

bool mf_tokenizer_piece(const mf_tokenizer *t, int32_t id, bool special, mf_buf *out)
{
    mf_str text = mf_tokenizer_text(t, id);
    switch (mf_tokenizer_type(t, id)) {
    case MF_TOKEN_UNUSED: return true;
    case MF_TOKEN_UNKNOWN:
    case MF_TOKEN_CONTROL: return !special || mf_buf_append(out, text.s, text.n);
    case MF_TOKEN_USER_DEFINED: return mf_buf_append(out, text.s, text.n);
    default: return mf_vocab_decode(text, out);
    }
}
