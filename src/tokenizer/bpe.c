/* Byte-pair merging. Short pieces, which is nearly all of them, are scanned for the best pair; long ones use
 * a heap over a linked list. Both give the same ids (test_bpe_paths_agree). */
#include "tokenizer/bpe.h"

#include <string.h>

enum { SHORT = 24 }; /* bytes: above this the heap is as fast as scanning */

static bool encode_short(const mf_vocab *v, mf_str piece, mf_tokens *out)
{
    uint32_t ids[SHORT];
    const mf_merge *pair[SHORT]; /* of ids[i] and ids[i + 1] */
    size_t n = 0;
    for (size_t i = 0; i < piece.n; i++) {
        int32_t id = v->bytes[(unsigned char)piece.s[i]];
        if (id >= 0) ids[n++] = (uint32_t)id;
    }
    for (size_t i = 0; i + 1 < n; i++) pair[i] = mf_vocab_slot(v, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (pair[i]->rank < pair[best]->rank) best = i;
        if (pair[best]->rank == MF_NO_RANK) break;
        ids[best] = pair[best]->merged;
        n--;
        memmove(&ids[best + 1], &ids[best + 2], (n - best - 1) * sizeof *ids);
        memmove(&pair[best], &pair[best + 1], (n - 1 - best) * sizeof *pair);
        if (best + 1 < n) pair[best] = mf_vocab_slot(v, ids[best], ids[best + 1]);
        if (best > 0) pair[best - 1] = mf_vocab_slot(v, ids[best - 1], ids[best]);
    }
    for (size_t i = 0; i < n; i++)
        if (!mf_tokens_push(out, (int32_t)ids[i])) return false;
    return true;
}

enum { NO_SYMBOL = -1 };

typedef struct mf_bpe_symbol {
    uint32_t id;
    int32_t prev, next; /* neighbours that are still there */
    const mf_merge
        *pair; /* of this symbol and the next; a merged-away symbol has the pair that never merges */
} symbol;

static const mf_merge never = {.rank = MF_NO_RANK};

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t key = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (key <= heap[child]) break;
        heap[i] = heap[child];
    }
    heap[i] = key;
}

static bool heap_push(mf_bpe *b, uint64_t key)
{
    if (!mf_grow((void **)&b->heap, &b->heap_cap, b->heap_n + 1, sizeof *b->heap)) return false;
    size_t i = b->heap_n++;
    for (; i > 0 && b->heap[(i - 1) / 2] > key; i = (i - 1) / 2) b->heap[i] = b->heap[(i - 1) / 2];
    b->heap[i] = key;
    return true;
}

static uint64_t heap_pop(mf_bpe *b)
{
    uint64_t top = b->heap[0];
    b->heap[0] = b->heap[--b->heap_n];
    if (b->heap_n > 1) sift_down(b->heap, b->heap_n, 0);
    return top;
}

/* Looks up the pair that begins at i and queues it when it merges. */
static bool queue_pair(mf_bpe *b, const mf_vocab *v, int32_t i)
{
    symbol *s = &b->symbols[i];
    s->pair = s->next == NO_SYMBOL ? &never : mf_vocab_slot(v, s->id, b->symbols[s->next].id);
    return s->pair->rank == MF_NO_RANK || heap_push(b, (uint64_t)s->pair->rank << 32 | (uint32_t)i);
}

/* Symbol i and the one after it become one. */
static bool merge_at(mf_bpe *b, const mf_vocab *v, int32_t i)
{
    symbol *s = &b->symbols[i], *gone = &b->symbols[s->next];
    s->id = s->pair->merged;
    s->next = gone->next;
    gone->pair = &never;
    if (s->next != NO_SYMBOL) b->symbols[s->next].prev = i;
    return queue_pair(b, v, i) && (s->prev == NO_SYMBOL || queue_pair(b, v, s->prev));
}

static bool lay_out(mf_bpe *b, const mf_vocab *v, mf_str piece, int32_t *count)
{
    int32_t n = 0;
    if (!mf_grow((void **)&b->symbols, &b->symbols_cap, piece.n, sizeof *b->symbols)) return false;
    for (size_t i = 0; i < piece.n; i++) {
        int32_t id = v->bytes[(unsigned char)piece.s[i]];
        if (id < 0) continue;
        b->symbols[n] = (symbol){(uint32_t)id, n - 1, n + 1, &never};
        n++;
    }
    if (n > 0) b->symbols[n - 1].next = NO_SYMBOL;
    *count = n;
    b->heap_n = 0;
    for (int32_t i = 0; i < n; i++)
        if (!queue_pair(b, v, i)) return false;
    return true;
}

static bool encode_long(mf_bpe *b, const mf_vocab *v, mf_str piece, mf_tokens *out)
{
    int32_t n;
    if (!lay_out(b, v, piece, &n)) return false;
    while (b->heap_n > 0) {
        uint64_t top = heap_pop(b);
        int32_t i = (int32_t)(uint32_t)top;
        if (b->symbols[i].pair->rank == top >> 32 && !merge_at(b, v, i)) return false;
    }
    for (int32_t i = n > 0 ? 0 : NO_SYMBOL; i != NO_SYMBOL; i = b->symbols[i].next)
        if (!mf_tokens_push(out, (int32_t)b->symbols[i].id)) return false;
    return true;
}

bool mf_bpe_encode(mf_bpe *b, const mf_vocab *v, mf_str piece, mf_tokens *out)
{
    return piece.n <= SHORT ? encode_short(v, piece, out) : encode_long(b, v, piece, out);
}

void mf_bpe_free(mf_bpe *b)
{
    mf_free(b->symbols);
    mf_free(b->heap);
    *b = (mf_bpe){0};
}
