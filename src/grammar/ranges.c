/* Sets of characters. */
#include "grammar/ranges.h"

#include <stdlib.h>

void mf_granges_free(mf_granges *r)
{
    mf_free(r->v);
    *r = (mf_granges){0};
}

static bool add(mf_granges *r, uint32_t lo, uint32_t hi)
{
    if (lo > hi) return true;
    if (!mf_grow((void **)&r->v, &r->cap, r->n + 1, sizeof *r->v)) return false;
    r->v[r->n++] = (mf_grange){lo, hi};
    return true;
}

bool mf_granges_add(mf_granges *r, uint32_t lo, uint32_t hi)
{
    return add(r, lo, hi < 0xD7FF ? hi : 0xD7FF) && add(r, lo > 0xE000 ? lo : 0xE000, hi);
}

static int by_start(const void *a, const void *b)
{
    const mf_grange *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

void mf_granges_normalize(mf_granges *r)
{
    size_t n = 0;
    if (r->n) qsort(r->v, r->n, sizeof *r->v, by_start);
    for (size_t i = 0; i < r->n; i++) {
        if (n > 0 && r->v[i].lo <= r->v[n - 1].hi + 1) {
            if (r->v[i].hi > r->v[n - 1].hi) r->v[n - 1].hi = r->v[i].hi;
        } else {
            r->v[n++] = r->v[i];
        }
    }
    r->n = n;
}

bool mf_granges_invert(const mf_granges *r, mf_granges *out)
{
    uint32_t from = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->v[i].lo > from && !mf_granges_add(out, from, r->v[i].lo - 1)) return false;
        from = r->v[i].hi + 1;
    }
    return mf_granges_add(out, from, 0x10FFFF);
}
