/* The set of candidates. Ranking uses one bounded heap: it holds the best k seen, its root is the worst of
 * them, and taking the roots away one by one leaves the heap sorted. Owns nothing beyond mf_cands. */
#include "sampling/cands.h"

#include "base/mathfn.h"

#include <math.h>

void mf_cands_free(mf_cands *c)
{
    mf_free(c->v);
    mf_free(c->best);
    *c = (mf_cands){0};
}

/* Greater is better. */
static inline double key(mf_rank by, const mf_cand *c)
{
    return by.near ? -fabs((double)c->logit - by.centre) : (double)c->logit;
}

static inline bool before(mf_rank by, const mf_cand *a, const mf_cand *b)
{
    double ka = key(by, a), kb = key(by, b);
    return ka != kb ? ka > kb : a->id < b->id;
}

/* ---- the heap of the best k */

typedef struct heap {
    mf_cand *v;
    size_t n, k;
    mf_rank by;
} heap;

static void sift_down(heap *h, size_t i, size_t n)
{
    mf_cand moved = h->v[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && before(h->by, &h->v[child], &h->v[child + 1])) child++;
        if (before(h->by, &h->v[child], &moved)) break;
        h->v[i] = h->v[child];
    }
    h->v[i] = moved;
}

static void heapify(heap *h)
{
    for (size_t i = h->n / 2; i-- > 0;) sift_down(h, i, h->n);
}

/* Only a full heap has its worst at the root. */
static inline void offer(heap *h, mf_cand c)
{
    if (h->n < h->k) {
        h->v[h->n++] = c;
        if (h->n == h->k) heapify(h);
    } else if (before(h->by, &c, &h->v[0])) {
        h->v[0] = c;
        sift_down(h, 0, h->n);
    }
}

static void sort_best_first(heap *h)
{
    if (h->n < h->k) heapify(h);
    for (size_t n = h->n; n-- > 1;) {
        mf_cand worst = h->v[0];
        h->v[0] = h->v[n];
        h->v[n] = worst;
        sift_down(h, 0, n);
    }
}

static bool heap_init(mf_cands *c, mf_rank by, size_t k, heap *h)
{
    if (!mf_grow((void **)&c->best, &c->best_cap, k, sizeof *c->best)) return false;
    *h = (heap){c->best, 0, k, by};
    return true;
}

const mf_cand *mf_cands_rank(mf_cands *c, mf_rank by, size_t k, size_t *n)
{
    heap h;
    if (!heap_init(c, by, k < c->n ? k : c->n, &h)) return NULL;
    for (size_t i = 0; i < c->n; i++) offer(&h, c->v[i]);
    sort_best_first(&h);
    *n = h.n;
    return h.v;
}

/* ---- filling */

/* The worst of the k best of logits, or of all of them when they are fewer. */
static bool find_cut(mf_cands *c, const float *logits, size_t n, size_t k, mf_cand *cut)
{
    heap h;
    if (!heap_init(c, (mf_rank){0}, k, &h)) return false;
    float floor = -INFINITY; /* what does not exceed it is not among the best: ids ascend */
    for (size_t i = 0; i < n; i++) {
        if (!(logits[i] > floor)) continue;
        offer(&h, (mf_cand){0, logits[i], (int32_t)i});
        if (h.n == k) floor = h.v[0].logit;
    }
    *cut = h.n == k ? h.v[0] : (mf_cand){0, -INFINITY, -1};
    return true;
}

bool mf_cands_gather(mf_cands *c, const float *logits, size_t n, size_t k)
{
    mf_cand cut = {0, -INFINITY, -1};
    bool all = k == 0 || k >= n;
    c->n = 0;
    c->weighed = 0;
    if (!mf_grow((void **)&c->v, &c->cap, all ? n : k, sizeof *c->v)) return false;
    if (!all && !find_cut(c, logits, n, k, &cut)) return false;
    for (size_t i = 0; i < n; i++) {
        float l = logits[i];
        if (l > cut.logit || (l == cut.logit && (int32_t)i <= cut.id))
            c->v[c->n++] = (mf_cand){0, l, (int32_t)i};
    }
    return true;
}

/* ---- weights */

float mf_cands_top(const mf_cands *c)
{
    float top = c->v[0].logit;
    for (size_t i = 1; i < c->n; i++)
        if (c->v[i].logit > top) top = c->v[i].logit;
    return top;
}

void mf_cands_weigh(mf_cands *c, double temperature)
{
    enum { BLOCK = 256 };
    if (c->weighed == temperature) return;
    double x[BLOCK], top = mf_cands_top(c);
    for (size_t i = 0; i < c->n; i += BLOCK) {
        size_t n = c->n - i < BLOCK ? c->n - i : BLOCK;
        for (size_t j = 0; j < n; j++) x[j] = ((double)c->v[i + j].logit - top) / temperature;
        mf_math_exp_f64_n(x, n);
        for (size_t j = 0; j < n; j++) c->v[i + j].weight = x[j];
    }
    c->weighed = temperature;
}

double mf_cands_total(const mf_cands *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->n; i++) sum += c->v[i].weight;
    return sum;
}

/* ---- keeping */

static void keep_to(mf_cands *c, mf_rank by, mf_cand last)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!before(by, &last, &c->v[i])) c->v[n++] = c->v[i];
    c->n = n;
}

bool mf_cands_keep_best(mf_cands *c, mf_rank by, size_t k)
{
    if (k >= c->n) return true;
    size_t n;
    const mf_cand *best = mf_cands_rank(c, by, k, &n);
    if (!best) return false;
    keep_to(c, by, best[n - 1]);
    return true;
}

bool mf_cands_keep_share(mf_cands *c, mf_rank by, double share)
{
    double wanted = share * mf_cands_total(c);
    for (size_t k = 64;; k *= 8) { /* the share is usually reached by a few */
        size_t n, i = 0;
        const mf_cand *best = mf_cands_rank(c, by, k, &n);
        if (!best) return false;
        for (double sum = 0; i < n; i++)
            if ((sum += best[i].weight) >= wanted) break;
        if (i == n && n < c->n) continue;
        if (i < n) keep_to(c, by, best[i]);
        return true;
    }
}
