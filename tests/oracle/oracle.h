/* Comparing whole models with the float64 oracle: what the fixtures hold, and the numbers that follow. */
#ifndef MF_TESTS_ORACLE_H
#define MF_TESTS_ORACLE_H

#include <jansson.h>

#include "minfer.h"
#include "support/support.h"

/* A model with engine and session. Opening fails the test. */
typedef struct running_model {
    minfer_model *model;
    minfer_engine *engine;
    minfer_session *session;
    int32_t n_vocab;
} running_model;

void running_open(running_model *r, const char *path, const minfer_engine_options *o);
void running_close(running_model *r);
/* Starts the session over. */
void running_reset(running_model *r);

/* JSON array of integers -> ids; the caller frees with mf_free. */
int32_t *json_ids(const json_t *array, size_t *n);

/* Logits of all n tokens, n rows of n_vocab; the caller frees with mf_free. */
float *all_logits(running_model *r, const int32_t *tokens, size_t n);

/* Feeds the prompt and follows the oracle's greedy continuation as far as its gap to the second-best token
 * exceeds `margin`. Fails the test at the first difference; returns how many tokens were compared. */
size_t check_greedy(running_model *r, const json_t *greedy, const char *prompt_key, double margin);

#endif
