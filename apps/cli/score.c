/* Log-probabilities, divergences, means. */
#include "cli/score.h"

#include "base/mathfn.h"

#include <math.h>

void cli_mean_add(cli_mean *m, double v)
{
    double from = v - m->mean;
    m->n++;
    m->mean += from / (double)m->n;
    m->squares += from * (v - m->mean);
}

double cli_mean_error(const cli_mean *m)
{
    return m->n > 1 ? sqrt(m->squares / (double)(m->n - 1) / (double)m->n) : 0;
}

enum { BLOCK = 256 };

/* p[i] = exp(logits[i] - shift) for a block of k, nothing smaller than the smallest power. */
static void powers(const float *logits, size_t k, double shift, double *p)
{
    for (size_t i = 0; i < k; i++) p[i] = fmax((double)logits[i] - shift, MF_EXP_F64_MIN);
    mf_math_exp_f64_n(p, k);
}

static size_t block_at(size_t i, size_t n)
{
    return n - i < BLOCK ? n - i : BLOCK;
}

bool cli_row_read(const float *logits, size_t n, cli_row *out)
{
    double p[BLOCK], sum = 0;
    *out = (cli_row){.logits = logits, .n = n};
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(logits[i])) return false;
        if (logits[i] > logits[out->best]) out->best = i;
    }
    double most = (double)logits[out->best];
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t k = block_at(i, n);
        powers(logits + i, k, most, p);
        for (size_t j = 0; j < k; j++) sum += p[j];
    }
    out->log_sum = most + mf_math_log_f64(sum);
    return true;
}

double cli_row_surprise(const cli_row *r, int32_t id)
{
    return r->log_sum - (double)r->logits[id];
}

double cli_row_divergence(const cli_row *p, const cli_row *q)
{
    double share[BLOCK], sum = 0;
    for (size_t i = 0; i < p->n; i += BLOCK) {
        size_t k = block_at(i, p->n);
        powers(p->logits + i, k, p->log_sum, share);
        for (size_t j = 0; j < k; j++) {
            double log_p = (double)p->logits[i + j] - p->log_sum,
                   log_q = (double)q->logits[i + j] - q->log_sum;
            sum += share[j] * (log_p - log_q);
        }
    }
    return sum;
}

double cli_quantile(const double *sorted, size_t n, double share)
{
    double at = share * (double)(n - 1);
    size_t below = (size_t)at, above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}
