/* The set of candidates. Ranking uses one bounded heap: it holds the best k seen, its root is the worst of
 * them, and taking the roots away one by one leaves the heap sorted. Owns nothing beyond mf_cands. */
#include "sampling/cands.h"

#include "base/half.h"
#include "base/mathfn.h"

#include <math.h>
#include <string.h>

void mf_cands_free(mf_cands *c)
{
    mf_free(c->v);
    mf_free(c->best);
    *c = (mf_cands){0};
}

/* Ranks as a number: the smaller, the better; equal numbers rank by id. Bits of floating-point numbers of one
 * sign are in the order of the numbers. */
static inline uint64_t key(mf_rank by, float logit)
{
    if (by.near) {
        double distance = fabs((double)logit - by.centre);
        uint64_t u;
        memcpy(&u, &distance, sizeof u);
        return u;
    }
    uint32_t u = mf_f32_bits(logit + 0.f);        /* -0 is 0 */
    uint32_t flip = ((u >> 31) - 1) & 0x7fffffff; /* bits of positive numbers descend; without a branch */
    return (uint64_t)(u ^ flip) << 32;
}

static inline bool before(mf_rank by, const mf_cand *a, const mf_cand *b)
{
    uint64_t ka = key(by, a->logit), kb = key(by, b->logit);
    return ka != kb ? ka < kb : a->id < b->id;
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
    heapify(h);
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
        for (size_t j = 0; j < n; j++) {
            double d = ((double)c->v[i + j].logit - top) / temperature;
            x[j] = d > MF_EXP_F64_MIN ? d : MF_EXP_F64_MIN; /* 3e-308: as good as none */
        }
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

/* ---- finding the last candidate that stays */

enum { FEW = 256, DIGITS = 2048 }; /* FEW are sorted; of more, digits of the key are counted */

typedef struct measure {
    mf_rank by;
    bool count; /* candidates are counted; else their weights are summed */
    double wanted;
} measure;

static inline double worth(const measure *m, const mf_cand *c)
{
    return m->count ? 1 : c->weight;
}

/* Candidates with equal keys but for the low `shift` bits; the cut is among them. */
typedef struct part {
    mf_cand *v; /* in order of id */
    size_t n;
    int shift;
    double ahead; /* worth of all that rank before them */
} part;

/* The digit of `bits` bits in which the wanted worth is reached, or the last that is not empty where rounding
 * keeps it from being reached. Adds to p->ahead what ranks before it. */
static size_t find_digit(const measure *m, part *p, int bits)
{
    double sum[DIGITS] = {0};
    uint32_t n[DIGITS] = {0}, mask = (1u << bits) - 1;
    size_t last = 0;
    for (size_t i = 0; i < p->n; i++) {
        size_t d = (size_t)(key(m->by, p->v[i].logit) >> p->shift) & mask;
        sum[d] += worth(m, &p->v[i]);
        n[d]++;
        if (d > last) last = d;
    }
    for (size_t d = 0; d < last; d++) {
        if (n[d] && p->ahead + sum[d] >= m->wanted) return d;
        p->ahead += sum[d];
    }
    return last;
}

/* Goes from a part to the part of one more digit. Its candidates come to stand in `out`, which may be p->v.
 */
static void narrow(const measure *m, int bits, part *p, mf_cand *out)
{
    p->shift -= bits;
    size_t digit = find_digit(m, p, bits), n = 0;
    for (size_t i = 0; i < p->n; i++) {
        mf_cand c = p->v[i];
        out[n] = c;
        n += ((size_t)(key(m->by, c.logit) >> p->shift) & ((1u << bits) - 1)) == digit;
    }
    p->v = out;
    p->n = n;
}

/* The cut among v[n], which are in order. */
static mf_cand walk(const mf_cand *v, size_t n, const measure *m, double ahead)
{
    size_t i = 0;
    while (i + 1 < n && (ahead += worth(m, &v[i])) < m->wanted) i++;
    return v[i];
}

/* The candidate at which the worth of all up to it, in order of rank, reaches what is wanted. */
static bool find_cut(mf_cands *c, const measure *m, mf_cand *cut)
{
    static const int bits[] = {11, 11, 11, 11, 10, 10};
    part p = {c->v, c->n, 64, 0};
    heap h;
    if (!heap_init(c, m->by, c->n, &h)) return false;
    for (int i = 0; i == 0 || (p.n > FEW && p.shift > 0); i++) narrow(m, bits[i], &p, h.v);
    h.n = p.n;
    if (p.shift > 0) sort_best_first(&h); /* else the keys are equal */
    *cut = walk(p.v, p.n, m, p.ahead);
    return true;
}

/* ---- keeping */

static void keep_to(mf_cands *c, mf_rank by, mf_cand last)
{
    size_t n = 0;
    uint64_t last_key = key(by, last.logit);
    for (size_t i = 0; i < c->n; i++) {
        uint64_t k = key(by, c->v[i].logit);
        c->v[n] = c->v[i];
        n += (k < last_key) | ((k == last_key) & (c->v[i].id <= last.id)); /* unforeseeable: no branch */
    }
    c->n = n;
}

bool mf_cands_keep_best(mf_cands *c, mf_rank by, size_t k)
{
    mf_cand cut;
    if (k >= c->n) return true;
    if (!find_cut(c, &(measure){by, true, (double)k}, &cut)) return false;
    keep_to(c, by, cut);
    return true;
}

/* Drops weights below `least`. */
static void keep_heavy(mf_cands *c, double least)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->v[n] = c->v[i];
        n += c->v[i].weight >= least;
    }
    c->n = n;
}

bool mf_cands_keep_share(mf_cands *c, mf_rank by, double share)
{
    mf_cand cut;
    double total = mf_cands_total(c), spare = (1 - share) * total;
    /* By logit, weights so small that all together they cannot make up what is spare are never needed. Half
     * of that, lest rounding drop the best. */
    if (!by.near) keep_heavy(c, 0.5 * spare / (double)c->n);
    if (!find_cut(c, &(measure){by, false, total - spare}, &cut)) return false;
    keep_to(c, by, cut);
    return true;
}

/* ---- filling */

static bool gather_all(mf_cands *c, const float *logits, size_t n)
{
    if (!mf_grow((void **)&c->v, &c->cap, n + 1, sizeof *c->v)) return false;
    for (size_t i = 0; i < n; i++) {
        c->v[c->n] = (mf_cand){0, logits[i], (int32_t)i};
        c->n += logits[i] > -INFINITY;
    }
    return true;
}

static bool gather_few(mf_cands *c, const float *logits, size_t n, size_t k)
{
    heap h;
    if (!heap_init(c, (mf_rank){0}, k, &h)) return false;
    if (!mf_grow((void **)&c->v, &c->cap, k, sizeof *c->v)) return false;
    float floor = -INFINITY; /* what does not exceed it is not among the best: ids ascend */
    for (size_t i = 0; i < n; i++) {
        if (!(logits[i] > floor)) continue;
        offer(&h, (mf_cand){0, logits[i], (int32_t)i});
        if (h.n == k) floor = h.v[0].logit;
    }
    h.by = (mf_rank){true, INFINITY}; /* all equally far: sorts by id */
    sort_best_first(&h);
    memcpy(c->v, h.v, h.n * sizeof *c->v);
    c->n = h.n;
    return true;
}

bool mf_cands_gather(mf_cands *c, const float *logits, size_t n, size_t k)
{
    c->n = 0;
    c->weighed = 0;
    if (k > 0 && k <= FEW) return gather_few(c, logits, n, k);
    return gather_all(c, logits, n) && (k == 0 || mf_cands_keep_best(c, (mf_rank){0}, k));
}
