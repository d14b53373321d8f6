/* How well a text is predicted, and how that is printed. */
#ifndef APP_CLI_PERPLEXITY_H
#define APP_CLI_PERPLEXITY_H

#include "cli/score.h"
#include "common/logits_file.h"
#include "common/options.h"

/* What all windows share. */
typedef struct ppl_setup {
    minfer_model_info model;
    minfer_engine_info engine;
    const char *text, *base; /* files; NULL: not given */
    app_windows windows;
} ppl_setup;

/* The estimate from the first n windows. */
typedef struct ppl_result {
    int32_t n;
    size_t n_fed; /* tokens */
    int64_t ns;   /* feeding them */
    cli_mean surprise;

    /* against stored logits */
    cli_mean stored_surprise, more; /* more: surprise - stored surprise */
    cli_mean divergence, same;      /* same: 1 where the best tokens agree, else 0 */
    double *divergences;            /* [of all predictions]; sorted before ppl_end */
} ppl_result;

/* Head, one row after each window (`first`: nothing stands before it), and the final estimate. */
bool ppl_head(app_table_format f, const ppl_setup *s, mf_buf *out);
bool ppl_row(app_table_format f, const ppl_setup *s, const ppl_result *r, bool first, mf_buf *out);
bool ppl_end(app_table_format f, const ppl_setup *s, const ppl_result *r, mf_buf *out);

#endif
