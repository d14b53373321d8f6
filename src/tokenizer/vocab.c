/* Building the vocabulary. A file has some 150,000 tokens and as many merges, and every start of the program
 * pays for this, so nothing is allocated per token and no merged text is made. */
#include "tokenizer/vocab.h"
#include "base/strmap.h"
#include "base/utf8.h"

#include <string.h>

/* Byte-level BPE writes bytes as printable characters: bytes that are printable in Latin-1 as themselves, the
 * others, in order, as U+0100 and up. */
enum { FIRST_MOVED = 0x100, LOW_END = 0x21, MID_START = 0x7F, MID_END = 0xA1, LONE = 0xAD };
enum { N_LOW = LOW_END, N_MID = MID_END - MID_START };

static uint32_t char_of_byte(uint32_t b)
{
    if (b < LOW_END) return FIRST_MOVED + b;
    if (b >= MID_START && b < MID_END) return FIRST_MOVED + N_LOW + (b - MID_START);
    return b == LONE ? FIRST_MOVED + N_LOW + N_MID : b;
}

static int byte_of_char(uint32_t c)
{
    if (c < FIRST_MOVED) return char_of_byte(c) == c ? (int)c : -1;
    c -= FIRST_MOVED;
    if (c < N_LOW) return (int)c;
    if (c < N_LOW + N_MID) return (int)(MID_START + (c - N_LOW));
    return c == N_LOW + N_MID ? LONE : -1;
}

static bool decode_bytes(mf_str text, mf_buf *out, bool *all)
{
    for (size_t i = 0; i < text.n;) {
        uint32_t c;
        i += mf_utf8_decode(text.s + i, text.n - i, &c);
        int b = byte_of_char(c);
        *all = b >= 0;
        if (!*all) return true;
        if (!mf_buf_char(out, (char)b)) return false;
    }
    return true;
}

bool mf_vocab_decode(mf_str text, mf_buf *out)
{
    size_t start = out->len;
    bool all = true;
    if (!decode_bytes(text, out, &all)) return false;
    if (all) return true;
    out->len = start;
    return mf_buf_append(out, text.s, text.n);
}

bool mf_vocab_spell(mf_str piece, mf_buf *out)
{
    for (size_t i = 0; i < piece.n; i++) {
        char text[4];
        size_t n = mf_utf8_encode(char_of_byte((unsigned char)piece.s[i]), text);
        if (!mf_buf_append(out, text, n)) return false;
    }
    return true;
}

/* How much of a text fits a message. */
static int shown(mf_str s)
{
    return s.n > 80 ? 80 : (int)s.n;
}

static uint32_t hash_of(mf_str text)
{
    return (uint32_t)(mf_hash_bytes(text.s, text.n, 0) >> 20);
}

static bool is_text(mf_str a, mf_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

/* Where text's id is, or the empty slot where it would go. */
static mf_id_slot *id_slot(const mf_vocab *v, mf_str text, uint32_t hash)
{
    for (size_t i = hash;; i++) {
        mf_id_slot *s = &v->ids[i & v->id_mask];
        if (s->id < 0 || (s->hash == hash && is_text(v->texts[s->id], text))) return s;
    }
}

int32_t mf_vocab_find(const mf_vocab *v, mf_str text)
{
    return id_slot(v, text, hash_of(text))->id;
}

/* A table for n entries, at most two thirds full, every byte 0xFF. */
static void *make_table(size_t n, size_t slot_bytes, size_t *mask)
{
    size_t slots = 16, bytes;
    while (slots / 3 * 2 < n)
        if (!mf_mul_ok(slots, 2, &slots)) return NULL;
    void *table = mf_mul_ok(slots, slot_bytes, &bytes) ? mf_malloc(bytes) : NULL;
    if (table) memset(table, 0xFF, bytes);
    *mask = slots - 1;
    return table;
}

static minfer_status read_texts(mf_vocab *v, const mf_gguf *g, minfer_error *err)
{
    const mf_gguf_kv *kv = NULL;
    MF_TRY(mf_gguf_get_array(g, "tokenizer.ggml.tokens", MF_GGUF_STRING, &kv, NULL, err));
    if (kv->count == 0) return mf_fail(err, MINFER_ERR_FORMAT, "tokenizer.ggml.tokens is empty");
    if (kv->count > INT32_MAX)
        return mf_fail(err, MINFER_ERR_FORMAT, "tokenizer.ggml.tokens has %llu tokens, at most %d",
                       (unsigned long long)kv->count, INT32_MAX);
    v->texts = kv->strs;
    v->n = (uint32_t)kv->count;
    v->ids = make_table(v->n, sizeof *v->ids, &v->id_mask);
    if (!v->ids) return MF_NOMEM(err);
    for (uint32_t i = 0; i < v->n; i++) {
        mf_str text = v->texts[i];
        uint32_t hash = hash_of(text);
        mf_id_slot *s = id_slot(v, text, hash);
        if (s->id >= 0)
            return mf_fail(err, MINFER_ERR_FORMAT, "tokenizer.ggml.tokens: tokens %d and %u are both '%.*s'",
                           s->id, i, shown(text), text.s);
        *s = (mf_id_slot){hash, (int32_t)i};
        if (text.n > v->longest) v->longest = text.n;
    }
    return MINFER_OK;
}

static minfer_status read_types(mf_vocab *v, const mf_gguf *g, minfer_error *err)
{
    const mf_gguf_kv *kv = NULL;
    bool found = false;
    MF_TRY(mf_gguf_get_array(g, "tokenizer.ggml.token_type", MF_GGUF_I32, &kv, &found, err));
    v->types = mf_malloc(v->n);
    if (!v->types) return MF_NOMEM(err);
    memset(v->types, MF_TOKEN_NORMAL, v->n);
    if (!found) return MINFER_OK;
    if (kv->count != v->n)
        return mf_fail(err, MINFER_ERR_FORMAT, "tokenizer.ggml.token_type has %llu values for %u tokens",
                       (unsigned long long)kv->count, v->n);
    for (uint32_t i = 0; i < v->n; i++) {
        int64_t type = mf_gguf_array_i64(kv, i);
        if (type < MF_TOKEN_NORMAL || type > MF_TOKEN_BYTE)
            return mf_fail(err, MINFER_ERR_FORMAT,
                           "tokenizer.ggml.token_type of token %u is %lld, not 1 to 6", i, (long long)type);
        v->types[i] = (uint8_t)type;
    }
    return MINFER_OK;
}

/* Tags that readers of answers look for are text, also in files that have them as control tokens. */
static void retype_tags(mf_vocab *v)
{
    static const char *const tags[] = {"<think>", "</think>", "<tool_call>", "</tool_call>"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        int32_t id = mf_vocab_find(v, (mf_str){tags[i], strlen(tags[i])});
        if (id >= 0 && v->types[id] == MF_TOKEN_CONTROL) v->types[id] = MF_TOKEN_USER_DEFINED;
    }
}

static bool may_be_missing(int b)
{
    return (b < 0x20 && b != '\t' && b != '\n' && b != '\r') || b == 0x7F || b == 0xC0 || b == 0xC1 ||
           b > 0xF0;
}

static minfer_status find_bytes(mf_vocab *v, minfer_error *err)
{
    int n_missing = 0, first = 0;
    for (int b = 255; b >= 0; b--) {
        char text[4];
        size_t n = mf_utf8_encode(char_of_byte((uint32_t)b), text);
        v->bytes[b] = mf_vocab_find(v, (mf_str){text, n});
        if (v->bytes[b] >= 0 || may_be_missing(b)) continue;
        n_missing++;
        first = b;
    }
    if (n_missing == 0) return MINFER_OK;
    return mf_fail(
        err, MINFER_ERR_FORMAT,
        "tokenizer.ggml.tokens has no token for %d of the bytes that text needs, the first is 0x%02X",
        n_missing, (unsigned)first);
}

static bool is_pair_of(mf_str text, mf_str left, mf_str right)
{
    return text.n == left.n + right.n && memcmp(text.s, left.s, left.n) == 0 &&
           memcmp(text.s + left.n, right.s, right.n) == 0;
}

typedef struct pending { /* a merge while its slots are fetched */
    mf_str left, right;
    uint32_t left_hash, right_hash;
    mf_merge merge;
} pending;

typedef struct merge_reader {
    mf_vocab *v;
    const mf_str *texts; /* of the merges */
    mf_buf joined;       /* left and right without the space, for look-ups */
    int32_t guess;       /* vocabularies list merged tokens in the order of the merges */
    pending block[16];   /* in flight together: a start waits for memory more than it computes */
} merge_reader;

enum { BLOCK = sizeof((merge_reader *)0)->block / sizeof(pending) };

static minfer_status split_merge(merge_reader *r, uint32_t rank, pending *p, minfer_error *err)
{
    mf_str text = r->texts[rank];
    const char *space = text.n ? memchr(text.s, ' ', text.n) : NULL;
    p->left = (mf_str){text.s, space ? (size_t)(space - text.s) : 0};
    p->right = (mf_str){space ? space + 1 : NULL, space ? text.n - p->left.n - 1 : 0};
    if (p->left.n == 0 || p->right.n == 0 || memchr(p->right.s, ' ', p->right.n))
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "tokenizer.ggml.merges: merge %u, '%.*s', is not two tokens with a space between them",
                       rank, shown(text), text.s);
    p->left_hash = hash_of(p->left);
    p->right_hash = hash_of(p->right);
    __builtin_prefetch(&r->v->ids[p->left_hash & r->v->id_mask]);
    __builtin_prefetch(&r->v->ids[p->right_hash & r->v->id_mask]);
    return MINFER_OK;
}

/* The token that is left and right together, or -1. *ok becomes false when memory is short. */
static int32_t find_joined(merge_reader *r, mf_str left, mf_str right, bool *ok)
{
    if ((uint32_t)r->guess < r->v->n && is_pair_of(r->v->texts[r->guess], left, right)) return r->guess;
    r->joined.len = 0;
    *ok = mf_buf_append(&r->joined, left.s, left.n) && mf_buf_append(&r->joined, right.s, right.n);
    return *ok ? mf_vocab_find(r->v, (mf_str){r->joined.data, r->joined.len}) : -1;
}

static minfer_status find_ids(merge_reader *r, uint32_t rank, pending *p, minfer_error *err)
{
    bool ok = true;
    int32_t left = id_slot(r->v, p->left, p->left_hash)->id;
    int32_t right = id_slot(r->v, p->right, p->right_hash)->id;
    int32_t joined = find_joined(r, p->left, p->right, &ok);
    if (!ok) return MF_NOMEM(err);
    const char *wrong = left < 0 ? "left part" : right < 0 ? "right part" : joined < 0 ? "result" : NULL;
    if (wrong)
        return mf_fail(err, MINFER_ERR_FORMAT, "tokenizer.ggml.merges: merge %u, '%.*s': its %s is no token",
                       rank, shown(r->texts[rank]), r->texts[rank].s, wrong);
    r->guess = joined + 1;
    p->merge = (mf_merge){(uint32_t)left, (uint32_t)right, rank, (uint32_t)joined};
    __builtin_prefetch(&r->v->merges[mf_vocab_pair_hash(p->merge.left, p->merge.right) & r->v->merge_mask]);
    return MINFER_OK;
}

static minfer_status read_block(merge_reader *r, uint32_t rank, uint32_t n, minfer_error *err)
{
    for (uint32_t i = 0; i < n; i++) MF_TRY(split_merge(r, rank + i, &r->block[i], err));
    for (uint32_t i = 0; i < n; i++) MF_TRY(find_ids(r, rank + i, &r->block[i], err));
    /* Of two merges of one pair the later one counts, as in Hugging Face's. */
    for (uint32_t i = 0; i < n; i++) {
        mf_merge m = r->block[i].merge;
        *mf_vocab_slot(r->v, m.left, m.right) = m;
    }
    return MINFER_OK;
}

static minfer_status read_merges(mf_vocab *v, const mf_gguf *g, minfer_error *err)
{
    const mf_gguf_kv *kv = NULL;
    MF_TRY(mf_gguf_get_array(g, "tokenizer.ggml.merges", MF_GGUF_STRING, &kv, NULL, err));
    if (kv->count == 0) return mf_fail(err, MINFER_ERR_FORMAT, "tokenizer.ggml.merges is empty");
    if (kv->count > INT32_MAX)
        return mf_fail(err, MINFER_ERR_FORMAT, "tokenizer.ggml.merges has %llu merges, at most %d",
                       (unsigned long long)kv->count, INT32_MAX);
    uint32_t n = (uint32_t)kv->count;
    v->merges = make_table(n, sizeof *v->merges, &v->merge_mask);
    if (!v->merges) return MF_NOMEM(err);
    merge_reader r = {.v = v, .texts = kv->strs};
    minfer_status st = MINFER_OK;
    for (uint32_t i = 0; i < n && st == MINFER_OK; i += BLOCK)
        st = read_block(&r, i, n - i < BLOCK ? n - i : BLOCK, err);
    mf_buf_free(&r.joined);
    return st;
}

minfer_status mf_vocab_read(mf_vocab *v, const mf_gguf *g, minfer_error *err)
{
    MF_TRY(read_texts(v, g, err));
    MF_TRY(read_types(v, g, err));
    retype_tags(v);
    MF_TRY(find_bytes(v, err));
    return read_merges(v, g, err);
}

void mf_vocab_free(mf_vocab *v)
{
    mf_free(v->ids);
    mf_free(v->types);
    mf_free(v->merges);
    *v = (mf_vocab){0};
}
