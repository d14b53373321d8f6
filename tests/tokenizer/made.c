/* Writing small GGUF files into memory, and tokenizers out of them. */
#include "tokenizer/made.h"
#include "support/support.h"

#include "base/utf8.h"

static void put(mf_buf *b, const void *data, size_t n)
{
    assert_true(mf_buf_append(b, data, n));
}

static void put_u32(mf_buf *b, uint32_t v)
{
    put(b, &v, sizeof v);
}

static void put_u64(mf_buf *b, uint64_t v)
{
    put(b, &v, sizeof v);
}

static void put_text(mf_buf *b, const char *s, size_t n)
{
    put_u64(b, n);
    put(b, s, n);
}

static void put_key(made *m, const char *key, mf_gguf_type type)
{
    put_text(&m->kvs, key, strlen(key));
    put_u32(&m->kvs, (uint32_t)type);
    m->n_kvs++;
}

static void put_array(made *m, const char *key, mf_gguf_type elem, size_t n)
{
    put_key(m, key, MF_GGUF_ARRAY);
    put_u32(&m->kvs, (uint32_t)elem);
    put_u64(&m->kvs, n);
}

void made_str(made *m, const char *key, const char *value)
{
    put_key(m, key, MF_GGUF_STRING);
    put_text(&m->kvs, value, strlen(value));
}

void made_u32(made *m, const char *key, uint32_t value)
{
    put_key(m, key, MF_GGUF_U32);
    put_u32(&m->kvs, value);
}

void made_bool(made *m, const char *key, bool value)
{
    put_key(m, key, MF_GGUF_BOOL);
    put(&m->kvs, value ? "\1" : "\0", 1);
}

void made_strs(made *m, const char *key, const mf_str *values, size_t n)
{
    put_array(m, key, MF_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) put_text(&m->kvs, values[i].s, values[i].n);
}

void made_i32s(made *m, const char *key, const int32_t *values, size_t n)
{
    put_array(m, key, MF_GGUF_I32, n);
    put(&m->kvs, values, n * sizeof *values);
}

mf_gguf *made_parse(made *m)
{
    mf_gguf *g;
    minfer_error err;
    put(&m->file, "GGUF", 4);
    put_u32(&m->file, 3);
    put_u64(&m->file, 0);
    put_u64(&m->file, m->n_kvs);
    put(&m->file, m->kvs.data, m->kvs.len);
    assert_ok(mf_gguf_parse(m->file.data, m->file.len, "made", &g, &err), &err);
    return g;
}

void made_free(made *m)
{
    mf_buf_free(&m->kvs);
    mf_buf_free(&m->file);
}

/* GPT-2's rule, counted out byte by byte and not, as in the library, computed. */
static void spell_bytes(char out[256][3])
{
    uint32_t moved = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        char text[4];
        size_t n = mf_utf8_encode(printable ? b : moved++, text);
        memcpy(out[b], text, n);
        out[b][n] = 0;
    }
}

int32_t made_token(made_vocab *v, const char *text, int32_t type)
{
    v->tokens[v->n_tokens] = (mf_str){text, strlen(text)};
    v->types[v->n_types++] = type;
    return (int32_t)v->n_tokens++;
}

void made_merge(made_vocab *v, const char *text)
{
    v->merges[v->n_merges++] = (mf_str){text, strlen(text)};
}

void made_vocab_init(made_vocab *v, const char *pre)
{
    *v = (made_vocab){.pre = pre};
    spell_bytes(v->bytes);
    for (int b = 0; b < 256; b++) made_token(v, v->bytes[b], MF_TOKEN_NORMAL);
}

void made_put_vocab(made *m, const made_vocab *v)
{
    made_str(m, "tokenizer.ggml.model", "gpt2");
    if (v->pre) made_str(m, "tokenizer.ggml.pre", v->pre);
    made_strs(m, "tokenizer.ggml.tokens", v->tokens, v->n_tokens);
    made_i32s(m, "tokenizer.ggml.token_type", v->types, v->n_types);
    made_strs(m, "tokenizer.ggml.merges", v->merges, v->n_merges);
}

static void copy_strs(made *m, const mf_gguf *g, const char *key)
{
    const mf_gguf_kv *kv = mf_gguf_find(g, key);
    assert_non_null(kv);
    made_strs(m, key, kv->strs, kv->count);
}

static void copy_with_pre(loaded *l, const char *pre)
{
    const mf_gguf_kv *types = mf_gguf_find(l->file, "tokenizer.ggml.token_type");
    made_str(&l->m, "tokenizer.ggml.model", "gpt2");
    made_str(&l->m, "tokenizer.ggml.pre", pre);
    copy_strs(&l->m, l->file, "tokenizer.ggml.tokens");
    copy_strs(&l->m, l->file, "tokenizer.ggml.merges");
    put_array(&l->m, "tokenizer.ggml.token_type", MF_GGUF_I32, types->count);
    put(&l->m.kvs, types->data, types->count * 4);
    l->g = made_parse(&l->m);
}

void load_tokenizer(loaded *l, const char *path, const char *pre)
{
    minfer_error err;
    *l = (loaded){0};
    assert_ok(mf_gguf_open(path, &l->file, &err), &err);
    l->g = l->file;
    if (pre) copy_with_pre(l, pre);
    assert_ok(mf_tokenizer_create(l->g, &l->t, &err), &err);
}

void unload(loaded *l)
{
    mf_tokenizer_free(l->t);
    if (l->g != l->file) mf_gguf_free(l->g);
    mf_gguf_free(l->file);
    made_free(&l->m);
}
