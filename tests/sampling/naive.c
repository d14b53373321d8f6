#include "naive.h"

#include <math.h>
#include <stdlib.h>

static int count_of(const int32_t *v, int n, int32_t id)
{
    int count = 0;
    for (int i = 0; i < n; i++) count += v[i] == id;
    return count;
}

void naive_penalties(const minfer_sampling *p, float *logits, const int32_t *history, int n_history)
{
    int window = p->repeat_last_n == -1 || p->repeat_last_n > n_history ? n_history : p->repeat_last_n;
    const int32_t *w = window ? history + n_history - window : history; /* history may be NULL */
    for (int i = 0; i < window; i++) {
        if (count_of(w, i, w[i])) continue; /* seen before */
        double l = logits[w[i]];
        l = l > 0 ? l / p->repeat_penalty : l * p->repeat_penalty;
        l -= count_of(w, window, w[i]) * (double)p->frequency_penalty + (double)p->presence_penalty;
        logits[w[i]] = (float)l;
    }
}

/* Every place i whose preceding tokens equal the last ones; the token at i would go on with the repetition.
 */
void naive_dry(const minfer_sampling *p, float *logits, const int32_t *h, int n, const int32_t *breakers,
               int n_breakers)
{
    if (p->dry_multiplier == 0) return;
    int longest[NAIVE_MAX] = {0}, done[NAIVE_MAX] = {0};
    for (int i = 1; i < n; i++) {
        int len = 0;
        while (len < i && h[i - 1 - len] == h[n - 1 - len] && !count_of(breakers, n_breakers, h[n - 1 - len]))
            len++;
        if (len > longest[h[i]]) longest[h[i]] = len;
    }
    for (int i = 1; i < n; i++) {
        int len = longest[h[i]];
        if (done[h[i]]++ || len == 0 || len < p->dry_allowed_length) continue;
        if (count_of(breakers, n_breakers, h[i]) || logits[h[i]] == -INFINITY) continue;
        double penalty = p->dry_multiplier * pow(p->dry_base, len - p->dry_allowed_length);
        logits[h[i]] = (float)fmax(logits[h[i]] - penalty, -3.4028234663852886e38);
    }
}

static void softmax(naive *c, double t)
{
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < c->n; i++) top = fmax(top, c->v[i].logit);
    for (int i = 0; i < c->n; i++) sum += c->v[i].p = exp((c->v[i].logit - top) / t);
    for (int i = 0; i < c->n; i++) c->v[i].p /= sum;
}

static int by_key(const void *x, const void *y)
{
    const naive_cand *a = x, *b = y;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static void sort_by_logit(naive *c)
{
    for (int i = 0; i < c->n; i++) c->v[i].key = c->v[i].logit;
    qsort(c->v, (size_t)c->n, sizeof *c->v, by_key);
}

void naive_fill(naive *c, const float *logits, int n)
{
    c->n = 0;
    for (int i = 0; i < n; i++)
        if (logits[i] > -INFINITY) c->v[c->n++] = (naive_cand){i, logits[i], 0, 0};
    sort_by_logit(c);
    softmax(c, 1);
}

void naive_top_k(naive *c, int k)
{
    if (k > 0 && k < c->n) c->n = k;
    softmax(c, 1);
}

static void keep_share(naive *c, double share)
{
    double sum = 0;
    int n = 0;
    while (n < c->n && (n == 0 || sum < share)) sum += c->v[n++].p;
    c->n = n;
}

void naive_typical(naive *c, double share)
{
    double entropy = 0;
    if (share >= 1) return;
    for (int i = 0; i < c->n; i++)
        if (c->v[i].p > 0) entropy -= c->v[i].p * log(c->v[i].p);
    for (int i = 0; i < c->n; i++) c->v[i].key = -fabs(-log(c->v[i].p) - entropy);
    qsort(c->v, (size_t)c->n, sizeof *c->v, by_key);
    keep_share(c, share);
    sort_by_logit(c);
    softmax(c, 1);
}

void naive_top_p(naive *c, double share)
{
    if (share >= 1) return;
    keep_share(c, share);
    softmax(c, 1);
}

void naive_min_p(naive *c, double ratio)
{
    int n = 0;
    while (n < c->n && c->v[n].p >= ratio * c->v[0].p) n++;
    c->n = n;
    softmax(c, 1);
}

void naive_xtc(naive *c, double threshold)
{
    int n = 0;
    while (n < c->n && c->v[n].p >= threshold) n++;
    if (n < 2) return;
    memmove(c->v, c->v + n - 1, sizeof *c->v * (size_t)(c->n - n + 1));
    c->n -= n - 1;
    softmax(c, 1);
}

void naive_temperature(naive *c, double t)
{
    softmax(c, t);
}

static int mirostat_1(const naive *c, double mu)
{
    double tb = 0, tt = 0;
    for (int i = 0; i < 99 && i + 1 < c->n; i++) {
        double t = log((i + 2.0) / (i + 1.0)), b = log(c->v[i].p / c->v[i + 1].p);
        tb += t * b;
        tt += t * t;
    }
    double s = tb / tt, e = s - 1;
    double k = pow(e * pow(2, mu) / (1 - pow(c->n, -e)), 1 / s);
    return k < 1 ? 1 : k > c->n ? c->n : (int)k;
}

void naive_mirostat(naive *c, int version, double mu, double temperature)
{
    softmax(c, temperature);
    int n = 1;
    if (version == 1)
        n = c->n < 2 ? c->n : mirostat_1(c, mu);
    else
        while (n < c->n && -log2(c->v[n].p) <= mu) n++;
    c->n = n;
    softmax(c, temperature);
}

void naive_chain(naive *c, const minfer_sampling *p, const float *logits, int n, const int32_t *history,
                 int n_history)
{
    float edited[NAIVE_MAX];
    memcpy(edited, logits, sizeof *logits * (size_t)n);
    naive_penalties(p, edited, history, n_history);
    naive_dry(p, edited, history, n_history, NULL, 0);
    naive_fill(c, edited, n);
    naive_top_k(c, p->top_k);
    naive_typical(c, p->typical_p);
    naive_top_p(c, p->top_p);
    naive_min_p(c, p->min_p);
    if (p->xtc_probability == 1) naive_xtc(c, p->xtc_threshold);
    naive_temperature(c, p->temperature);
}
