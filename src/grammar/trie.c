/* Building the tree: texts are sorted, and each adds the nodes that it does not share with the one before. */
#include "grammar/trie.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = UINT16_MAX };

static void free_trie(mf_trie *t)
{
    mf_free(t->nodes);
    mf_free(t->bytes);
    mf_free(t->starts);
    mf_free(t->same);
    mf_free(t->ends);
    mf_free(t);
}

mf_trie *mf_trie_ref(mf_trie *t)
{
    atomic_fetch_add(&t->refs, 1);
    return t;
}

void mf_trie_unref(mf_trie *t)
{
    if (t && atomic_fetch_sub(&t->refs, 1) == 1) free_trie(t);
}

bool mf_trie_is_end(const mf_trie *t, int32_t id)
{
    for (size_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] == id) return true;
    return false;
}

typedef struct word {
    const unsigned char *s;
    uint32_t n;
    int32_t id;
} word;

static int by_text(const void *a, const void *b)
{
    const word *x = a, *y = b;
    int c = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
    if (c != 0) return c;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static uint32_t shared(const word *a, const word *b)
{
    uint32_t n = a->n < b->n ? a->n : b->n, i = 0;
    while (i < n && a->s[i] == b->s[i]) i++;
    return i;
}

/* Adds the nodes of one word; path[d] is the node of depth d + 1 that is open. */
static void add_word(mf_trie *t, const word *w, uint32_t from, uint32_t before, uint32_t *path)
{
    for (uint32_t d = from; d < before; d++) t->nodes[path[d]].skip = (uint32_t)t->n_nodes;
    for (uint32_t d = from; d < w->n; d++) {
        path[d] = (uint32_t)t->n_nodes;
        t->nodes[t->n_nodes++] = (mf_trie_node){.depth = (uint16_t)(d + 1), .byte = w->s[d], .token = -1};
    }
    t->nodes[path[w->n - 1]].token = w->id;
}

static minfer_status build(mf_trie *t, const word *words, size_t n, minfer_error *err)
{
    size_t n_nodes = 0;
    for (size_t i = 0; i < n; i++) n_nodes += words[i].n - (i ? shared(&words[i - 1], &words[i]) : 0);
    uint32_t *path = mf_calloc(t->longest, sizeof *path);
    t->nodes = mf_calloc(n_nodes, sizeof *t->nodes);
    if (!path || !t->nodes) {
        mf_free(path);
        return MF_NOMEM(err);
    }
    uint32_t before = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t from = i ? shared(&words[i - 1], &words[i]) : 0;
        if (i && from == words[i].n && from == before) { /* the same text */
            t->same[words[i].id] = t->nodes[path[from - 1]].token;
            t->nodes[path[from - 1]].token = words[i].id;
            t->nodes[path[from - 1]].more = true;
            continue;
        }
        add_word(t, &words[i], from, before, path);
        before = words[i].n;
    }
    for (uint32_t d = 0; d < before; d++) t->nodes[path[d]].skip = (uint32_t)t->n_nodes;
    mf_free(path);
    return MINFER_OK;
}

static minfer_status sort_and_build(mf_trie *t, minfer_error *err)
{
    size_t n = 0;
    word *words = mf_calloc((size_t)t->n_vocab, sizeof *words);
    if (!words) return MF_NOMEM(err);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        mf_str s = mf_trie_text(t, id);
        if (s.n == 0) continue;
        words[n++] = (word){(const unsigned char *)s.s, (uint32_t)s.n, id};
        if (s.n > t->longest) t->longest = (uint32_t)s.n;
    }
    if (n) qsort(words, n, sizeof *words, by_text);
    minfer_status st = build(t, words, n, err);
    mf_free(words);
    return st;
}

/* An empty trie with room for n tokens. */
static minfer_status allocate(int32_t n, size_t n_ends, mf_trie **out, minfer_error *err)
{
    mf_trie *t = mf_calloc(1, sizeof *t);
    if (!t) return MF_NOMEM(err);
    atomic_init(&t->refs, 1);
    t->starts = mf_calloc((size_t)n + 1, sizeof *t->starts);
    t->same = mf_malloc((size_t)n * sizeof *t->same);
    t->ends = mf_calloc(n_ends, sizeof *t->ends);
    if (!t->starts || !t->same || !t->ends) {
        free_trie(t);
        return MF_NOMEM(err);
    }
    for (int32_t i = 0; i < n; i++) t->same[i] = -1;
    *out = t;
    return MINFER_OK;
}

/* Takes the next token's text, what was appended to all since the last one. */
static minfer_status take_text(mf_trie *t, mf_buf *all, minfer_error *err)
{
    if (all->len - t->starts[t->n_vocab] > MAX_TEXT) all->len = t->starts[t->n_vocab];
    if (all->len > UINT32_MAX) return mf_fail(err, MINFER_ERR_LIMIT, "a vocabulary of %zu bytes", all->len);
    t->starts[++t->n_vocab] = (uint32_t)all->len;
    return MINFER_OK;
}

static minfer_status finish(mf_trie *t, minfer_status st, mf_buf *all, mf_trie **out, minfer_error *err)
{
    t->bytes = all->data;
    if (st == MINFER_OK) st = sort_and_build(t, err);
    if (st == MINFER_OK)
        *out = t;
    else
        free_trie(t);
    return st;
}

minfer_status mf_trie_make(const mf_str *texts, int32_t n, const int32_t *ends, size_t n_ends, mf_trie **out,
                           minfer_error *err)
{
    mf_trie *t;
    mf_buf all = {0};
    *out = NULL;
    MF_TRY(allocate(n, n_ends, &t, err));
    for (; t->n_ends < n_ends; t->n_ends++) t->ends[t->n_ends] = ends[t->n_ends];
    minfer_status st = mf_buf_append(&all, "", 0) ? MINFER_OK : MF_NOMEM(err);
    for (int32_t i = 0; i < n && st == MINFER_OK; i++) {
        bool ok = mf_trie_is_end(t, i) || mf_buf_append(&all, texts[i].s, texts[i].n);
        st = ok ? take_text(t, &all, err) : MF_NOMEM(err);
    }
    return finish(t, st, &all, out, err);
}

minfer_status mf_trie_create(const mf_tokenizer *tok, mf_trie **out, minfer_error *err)
{
    int32_t n = mf_tokenizer_n_vocab(tok);
    size_t n_ends = 0;
    mf_trie *t;
    mf_buf all = {0};
    *out = NULL;
    for (int32_t id = 0; id < n; id++) n_ends += mf_tokenizer_is_eog(tok, id);
    MF_TRY(allocate(n, n_ends, &t, err));
    minfer_status st = mf_buf_append(&all, "", 0) ? MINFER_OK : MF_NOMEM(err);
    for (int32_t id = 0; id < n && st == MINFER_OK; id++) {
        bool end = mf_tokenizer_is_eog(tok, id);
        if (end) t->ends[t->n_ends++] = id;
        st = end || mf_tokenizer_piece(tok, id, false, &all) ? take_text(t, &all, err) : MF_NOMEM(err);
    }
    return finish(t, st, &all, out, err);
}
