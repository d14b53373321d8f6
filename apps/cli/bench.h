/* Measured speeds, and how they are printed. */
#ifndef APP_CLI_BENCH_H
#define APP_CLI_BENCH_H

#include "common/options.h"

/* One test: n_prompt tokens in one go, or n_gen one after the other. */
typedef struct bench_result {
    int32_t n_prompt, n_gen; /* one of them is 0 */
    int32_t n;               /* runs */
    double *rates;           /* [n] tokens/s */
    double mean, sd;         /* of rates; sd with n - 1, 0 for one run */
} bench_result;

/* What all tests share. */
typedef struct bench_setup {
    minfer_model_info model;
    minfer_engine_info engine;
    const char *type; /* of the weights that take most of the file */
    int32_t n_batch;
} bench_setup;

/* Head (of the table or the array), one result (`first`: nothing stands before it), and end. */
bool bench_head(app_table_format f, mf_buf *out);
bool bench_row(app_table_format f, const bench_setup *s, const bench_result *r, bool first, mf_buf *out);
bool bench_end(app_table_format f, mf_buf *out);

#endif
