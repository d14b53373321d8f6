/* Predictions measured: log-probabilities, divergences, means with their errors. All sums in double, in the
 * order of the values. Knows no model. */
#ifndef APP_CLI_SCORE_H
#define APP_CLI_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A mean that grows by one value at a time. Zero-initialise. */
typedef struct cli_mean {
    uint64_t n;
    double mean, squares; /* squares: of the distances from the mean */
} cli_mean;
void cli_mean_add(cli_mean *m, double v);
double cli_mean_error(
    const cli_mean *m); /* standard error of the mean, as of independent values; 0 for one */

/* A row of logits as a distribution: p(i) = exp(logits[i] - log_sum). */
typedef struct cli_row {
    const float *logits;
    size_t n;
    double log_sum;
    size_t best; /* the likeliest, the first of equal ones */
} cli_row;

/* false: a logit is infinite or not a number. */
bool cli_row_read(const float *logits, size_t n, cli_row *out);
/* -ln p(id) */
double cli_row_surprise(const cli_row *r, int32_t id);
/* Kullback-Leibler divergence sum p ln(p / q) of rows of one length, in nats; exactly 0 for equal ones. */
double cli_row_divergence(const cli_row *p, const cli_row *q);

/* The value below which a share of 0..1 of the n >= 1 sorted values lie, interpolated between neighbours. */
double cli_quantile(const double *sorted, size_t n, double share);

#endif
