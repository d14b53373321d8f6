/* The texts are sorted, so those that go on like the text from some place are a range that narrows byte by
 * byte: a trie without nodes. Most bytes of most text begin no special token and cost one look. */
#include "tokenizer/special.h"

#include <stdlib.h>
#include <string.h>

typedef struct named {
    mf_str text;
    uint32_t id;
} named;

static int by_text(const void *pa, const void *pb)
{
    const named *a = pa, *b = pb;
    size_t n = a->text.n < b->text.n ? a->text.n : b->text.n;
    int c = memcmp(a->text.s, b->text.s, n);
    return c ? c : (a->text.n > b->text.n) - (a->text.n < b->text.n);
}

static bool is_special(const mf_vocab *v, uint32_t id)
{
    return (v->types[id] == MF_TOKEN_CONTROL || v->types[id] == MF_TOKEN_USER_DEFINED) && v->texts[id].n > 0;
}

static void index_first_bytes(mf_special *s, const named *list, uint32_t n)
{
    uint32_t i = 0;
    for (int b = 0; b < 256; b++) {
        s->first[b] = i;
        while (i < n && (unsigned char)list[i].text.s[0] == b) i++;
    }
    s->first[256] = n;
}

bool mf_special_collect(mf_special *s, const mf_vocab *v)
{
    uint32_t n = 0, k = 0;
    for (uint32_t id = 0; id < v->n; id++) n += is_special(v, id);
    size_t bytes;
    named *list = mf_mul_ok(n, sizeof *list, &bytes) ? mf_malloc(bytes) : NULL;
    s->ids = mf_calloc(n, sizeof *s->ids);
    if (list && s->ids) {
        for (uint32_t id = 0; id < v->n; id++)
            if (is_special(v, id)) list[k++] = (named){v->texts[id], id};
        qsort(list, n, sizeof *list, by_text);
        index_first_bytes(s, list, n);
        for (uint32_t i = 0; i < n; i++) s->ids[i] = list[i].id;
    }
    mf_free(list);
    return list && s->ids;
}

void mf_special_free(mf_special *s)
{
    mf_free(s->ids);
    *s = (mf_special){0};
}

/* The first of ids[lo, hi), which agree in their first `depth` bytes, whose next byte is not below b; a text
 * that ends there comes before all. */
static uint32_t lower_bound(const mf_special *s, const mf_vocab *v, uint32_t lo, uint32_t hi, size_t depth,
                            int b)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        mf_str t = v->texts[s->ids[mid]];
        if ((t.n > depth ? (unsigned char)t.s[depth] : -1) < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int32_t mf_special_prefix(const mf_special *s, const mf_vocab *v, mf_str text, bool *cut)
{
    int32_t found = -1;
    unsigned char b = (unsigned char)text.s[0];
    uint32_t lo = s->first[b], hi = s->first[b + 1];
    *cut = false;
    for (size_t depth = 1; lo < hi; depth++) {
        if (v->texts[s->ids[lo]].n == depth) found = (int32_t)s->ids[lo];
        if (depth == text.n) {
            *cut = v->texts[s->ids[hi - 1]].n > depth;
            break;
        }
        int next = (unsigned char)text.s[depth];
        lo = lower_bound(s, v, lo, hi, depth, next);
        hi = lower_bound(s, v, lo, hi, depth, next + 1);
    }
    return found;
}

int32_t mf_special_find(const mf_special *s, const mf_vocab *v, mf_str text, size_t from, size_t *at)
{
    for (size_t i = from; i < text.n; i++) {
        unsigned char b = (unsigned char)text.s[i];
        if (s->first[b] == s->first[b + 1]) continue;
        bool cut;
        *at = i;
        int32_t id = mf_special_prefix(s, v, (mf_str){text.s + i, text.n - i}, &cut);
        if (id >= 0) return id;
    }
    return -1;
}
