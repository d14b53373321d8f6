/* Merge sort of values. */
#include "template/sort.h"
#include "template/ops.h"

typedef struct pair {
    mf_tval key, item;
} pair;

/* Merges a[0..na) and b[0..nb) into out; equal keys keep their order. */
static minfer_status merge(mf_trender *r, const pair *a, size_t na, const pair *b, size_t nb, bool reverse,
                           pair *out)
{
    size_t i = 0, k = 0;
    while (i < na && k < nb) {
        bool second;
        MF_TRY(reverse ? mf_tval_order(r, MF_LT, a[i].key, b[k].key, &second)
                       : mf_tval_order(r, MF_LT, b[k].key, a[i].key, &second));
        *out++ = second ? b[k++] : a[i++];
    }
    while (i < na) *out++ = a[i++];
    while (k < nb) *out++ = b[k++];
    return MINFER_OK;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* One pass: runs of `width` become runs of twice that. */
static minfer_status pass(mf_trender *r, const pair *from, pair *to, size_t n, size_t width, bool reverse)
{
    for (size_t i = 0; i < n; i += 2 * width) {
        size_t mid = least(i + width, n), end = least(i + 2 * width, n);
        MF_TRY(merge(r, from + i, mid - i, from + mid, end - mid, reverse, to + i));
    }
    return mf_trender_charge(r, n * sizeof *from);
}

minfer_status mf_tsort(mf_trender *r, mf_tlist *items, mf_tlist *keys, bool reverse)
{
    size_t n = items->n;
    pair *a = mf_trender_alloc(r, n, sizeof *a), *b = a ? mf_trender_alloc(r, n, sizeof *b) : NULL;
    if (!b) return mf_trender_failed(r);
    for (size_t i = 0; i < n; i++) a[i] = (pair){keys->v[i], items->v[i]};
    for (size_t width = 1; width < n; width *= 2) {
        MF_TRY(pass(r, a, b, n, width, reverse));
        pair *swap = a;
        a = b;
        b = swap;
    }
    for (size_t i = 0; i < n; i++) {
        keys->v[i] = a[i].key;
        items->v[i] = a[i].item;
    }
    return MINFER_OK;
}

minfer_status mf_tsort_entries(mf_trender *r, const mf_tdict *d, mf_tlist **out)
{
    mf_tlist *keys;
    size_t i = 0;
    MF_TRY(mf_tlist_new(r, d->live, out));
    MF_TRY(mf_tlist_new(r, d->live, &keys));
    for (const mf_tentry *e; (e = mf_tdict_next(d, &i));) {
        mf_tval item;
        MF_TRY(mf_tpair(r, e->key, e->value, &item));
        MF_TRY(mf_tlist_push(r, *out, item));
        MF_TRY(mf_tlist_push(r, keys, e->key));
    }
    return mf_tsort(r, *out, keys, false);
}
