/* What passes over several tokens cost beside one over a single token, and how that is printed. */
#ifndef APP_CLI_SPECVERIFY_H
#define APP_CLI_SPECVERIFY_H

#include "common/options.h"

typedef struct verify_result {
    int32_t n, depth; /* tokens of the pass, behind so many */
    int32_t repetitions;
    double mean, sd;     /* ms; sd with n - 1, 0 for one run */
    double cost;         /* of the fastest pass, in fastest passes over one token */
    double amortization; /* tokens per time when all are right, in those of plain decoding */
    double even; /* share of right tokens, the same at each place, from which on it gains; above 1: it never
                    does */
} verify_result;

/* The share p at which 1 + p + ... + p^(n-1) is cost, for n > 1. */
double verify_even(int32_t n, double cost);

typedef struct verify_setup {
    minfer_model_info model;
    minfer_engine_info engine;
} verify_setup;

/* Head (of the table or the array), one result (`first`: nothing stands before it), and end. */
bool verify_head(app_table_format f, mf_buf *out);
bool verify_row(app_table_format f, const verify_setup *s, const verify_result *r, bool first, mf_buf *out);
bool verify_end(app_table_format f, mf_buf *out);

#endif
