/* Measured speeds, the work they stand for, and how they are printed. */
#ifndef APP_CLI_BENCH_H
#define APP_CLI_BENCH_H

#include "common/limits.h"
#include "common/options.h"

typedef enum bench_kind {
    BENCH_PREFILL, /* n tokens in one go, with the logits of the last */
    BENCH_DECODE,  /* n tokens one after the other, each with its logits */
} bench_kind;

/* One test: work that is timed after `depth` tokens that are not, in each of `batch` sequences (more than
 * one: decode, all together). */
typedef struct bench_test {
    bench_kind kind;
    int32_t n, depth, batch;
} bench_test;

/* What a test has to do in one run: bytes of weights and of the cache that decoding reads, products that
 * prefill makes in matrices. 0: not asked of its kind. */
typedef struct bench_work {
    double bytes, products;
} bench_work;

typedef struct bench_result {
    bench_test test;
    int32_t n;       /* runs */
    double *rates;   /* [n] tokens/s, of all sequences together */
    double mean, sd; /* of rates; sd with n - 1, 0 for one run */
    bench_work work; /* 10^9 a second, from the mean */
} bench_result;

/* What all tests share. */
typedef struct bench_setup {
    minfer_model_info model;
    minfer_engine_info engine;
    const char *type; /* of the weights that take most of the file */
    int32_t n_batch;
    app_limits limits; /* of the CPU; 0 where something else runs the model */
} bench_setup;

/* Bytes of the weights that one token reads: an embedding's row, and everything else, which is also what tied
 * embeddings are as an output matrix. */
uint64_t bench_weight_bytes(const minfer_model *m, const minfer_model_info *info);
bench_work bench_work_of(const minfer_model *m, const bench_setup *s, const bench_test *t);

/* What a model calls itself. It may hold anything a file holds: bench_cell appends it with what would break a
 * table's cell replaced. */
const char *bench_name(const minfer_model_info *m);
bool bench_cell(const char *text, const char *special, mf_buf *out);

/* Head (of the table or the array), one result (`first`: nothing stands before it), and end. */
bool bench_head(app_table_format f, mf_buf *out);
bool bench_row(app_table_format f, const bench_setup *s, const bench_result *r, bool first, mf_buf *out);
bool bench_end(app_table_format f, mf_buf *out);

#endif
