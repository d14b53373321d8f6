/* Encoding and decoding any bytes with any small vocabulary.
 *
 * Input: one byte, of which the low three bits choose the pre-tokenizer and bit 3 says that a vocabulary
 * follows: lines up to an empty one, "t" type-digit text for a token and "m" text for a merge. The rest is
 * the text. Aborts when ids are out of range or, with the vocabulary below, when the text does not come back.
 */
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pres[] = {"qwen2", "qwen35", "smollm", "llama-bpe", "gpt-2"};
enum { N_PRES = sizeof pres / sizeof *pres };

static const char own_vocabulary[] = "t3<s>\nt3<|im\nt3<|im_end|>\nt4<think>\nt5[PAD]"
                                     "\nt1th\nt1the\nt1Ġthe\nt1Ġt\nt1aa\nt1aaaa\nt1ĠĠ\nt1Ã©\nt1ãģ\nt1zz\n"
                                     "mt h\nmth e\nmĠ t\nmĠ the\nma a\nmaa aa\nmĠ Ġ\nmÃ ©\nmã ģ\n";

typedef struct writer {
    mf_buf tokens, types, merges;
    uint64_t n_tokens, n_merges;
} writer;

static void put(mf_buf *b, const void *data, size_t n)
{
    if (!mf_buf_append(b, data, n)) abort();
}

static void put_u32(mf_buf *b, uint32_t v)
{
    put(b, &v, sizeof v);
}

static void put_text(mf_buf *b, const char *s, size_t n)
{
    uint64_t len = n;
    put(b, &len, sizeof len);
    put(b, s, n);
}

static void put_token(writer *w, const char *s, size_t n, uint32_t type)
{
    put_text(&w->tokens, s, n);
    put_u32(&w->types, type);
    w->n_tokens++;
}

static void put_bytes(writer *w)
{
    uint32_t moved = 256;
    for (uint32_t b = 0; b < 256; b++) {
        char s[4];
        bool printable = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
        put_token(w, s, mf_utf8_encode(printable ? b : moved++, s), MF_TOKEN_NORMAL);
    }
}

/* Reads lines up to an empty one or the end; returns how many bytes those were. */
static size_t put_lines(writer *w, const char *s, size_t n)
{
    size_t at = 0;
    while (at < n) {
        const char *line = s + at, *end = memchr(line, '\n', n - at);
        size_t len = end ? (size_t)(end - line) : n - at;
        at += len + (end != NULL);
        if (len == 0) break;
        if (line[0] == 't' && len > 1) put_token(w, line + 2, len - 2, (uint32_t)(line[1] - '0'));
        if (line[0] == 'm') {
            put_text(&w->merges, line + 1, len - 1);
            w->n_merges++;
        }
    }
    return at;
}

static void put_key(mf_buf *b, const char *key, uint32_t type)
{
    put_text(b, key, strlen(key));
    put_u32(b, type);
}

static void put_array(mf_buf *b, const char *key, uint32_t elem, uint64_t count, const mf_buf *values)
{
    put_key(b, key, MF_GGUF_ARRAY);
    put_u32(b, elem);
    put(b, &count, sizeof count);
    put(b, values->data, values->len);
}

static void write_file(const writer *w, const char *pre, mf_buf *file)
{
    const uint64_t counts[2] = {0, 7};
    put(file, "GGUF\3\0\0\0", 8);
    put(file, counts, sizeof counts);
    put_key(file, "tokenizer.ggml.model", MF_GGUF_STRING);
    put_text(file, "gpt2", 4);
    put_key(file, "tokenizer.ggml.pre", MF_GGUF_STRING);
    put_text(file, pre, strlen(pre));
    put_array(file, "tokenizer.ggml.tokens", MF_GGUF_STRING, w->n_tokens, &w->tokens);
    put_array(file, "tokenizer.ggml.token_type", MF_GGUF_I32, w->n_tokens, &w->types);
    put_array(file, "tokenizer.ggml.merges", MF_GGUF_STRING, w->n_merges, &w->merges);
    put_key(file, "tokenizer.ggml.bos_token_id", MF_GGUF_U32);
    put_u32(file, 256);
    put_key(file, "tokenizer.ggml.add_bos_token", MF_GGUF_BOOL);
    put(file, "\1", 1);
}

typedef struct made { /* a tokenizer and what it points into */
    mf_buf file;
    mf_gguf *g;
    mf_tokenizer *t; /* NULL: refused */
} made;

/* Makes a tokenizer of the lines that s begins with; returns how many bytes those were. */
static size_t make(const char *s, size_t n, const char *pre, made *m)
{
    writer w = {0};
    minfer_error err;
    put_bytes(&w);
    size_t used = put_lines(&w, s, n);
    write_file(&w, pre, &m->file);
    if (mf_gguf_parse(m->file.data, m->file.len, "fuzz", &m->g, &err) != MINFER_OK) abort();
    if (mf_tokenizer_create(m->g, &m->t, &err) != MINFER_OK && m->t) abort();
    mf_buf_free(&w.tokens);
    mf_buf_free(&w.types);
    mf_buf_free(&w.merges);
    return used;
}

/* What the text must come back as, unless it is normalized: broken parts replaced. */
static void mend(const char *text, size_t n, mf_buf *out)
{
    mf_detok d = {0};
    if (!mf_detok_push(&d, text, n, out) || !mf_detok_finish(&d, out)) abort();
}

static void check(const mf_tokenizer *t, const char *text, size_t n, unsigned flags, bool comes_back)
{
    mf_tokens ids = {0};
    mf_buf got = {0}, want = {0};
    if (mf_tokenizer_encode(t, text, n, flags, &ids, NULL) != MINFER_OK) abort();
    size_t skip = flags & MF_ENCODE_BOS &&
                  !(n >= 3 && flags & MF_ENCODE_SPECIAL && memcmp(text, "<s>", 3) == 0);
    for (size_t i = 0; i < ids.n; i++) {
        if (ids.ids[i] < 0 || ids.ids[i] >= mf_tokenizer_n_vocab(t)) abort();
        if (i >= skip && !mf_tokenizer_piece(t, ids.ids[i], true, &got)) abort();
    }
    mend(text, n, &want);
    if (comes_back && (got.len != want.len || (got.len && memcmp(got.data, want.data, got.len) != 0)))
        abort();
    mf_tokens_free(&ids);
    mf_buf_free(&got);
    mf_buf_free(&want);
}

static void check_all(const mf_tokenizer *t, const char *text, size_t n, bool comes_back)
{
    for (unsigned flags = 0; flags < 4; flags++) check(t, text, n, flags, comes_back);
}

/* The vocabulary above under every pre-tokenizer, made once. */
static void use_own(unsigned pre, const char *text, size_t n)
{
    static made own[N_PRES];
    if (!own[pre].t) make(own_vocabulary, sizeof own_vocabulary - 1, pres[pre], &own[pre]);
    if (!own[pre].t) abort();
    check_all(own[pre].t, text, n, pre > 1);
}

static void use_given(unsigned pre, const char *text, size_t n)
{
    made m = {0};
    size_t used = make(text, n, pres[pre], &m);
    if (m.t) check_all(m.t, text + used, n - used, false);
    mf_tokenizer_free(m.t);
    mf_gguf_free(m.g);
    mf_buf_free(&m.file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    unsigned pre = (data[0] & 7) % N_PRES;
    (data[0] & 8 ? use_given : use_own)(pre, (const char *)data + 1, size - 1);
    return 0;
}
