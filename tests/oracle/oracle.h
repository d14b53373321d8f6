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

double logsumexp(const float *x, int32_t n);

/* How far logits are from others, over positions added one by one. */
typedef struct distance {
    double kl, worst; /* sum and largest of KL(a || b) over the whole vocabulary, nats */
    size_t n, same;   /* positions; those whose best token is the same */
} distance;

void distance_add(distance *d, const float *a, const float *b, int32_t n_vocab);

/* A model with a cache of each type, and the distances that the tolerance classes of docs/numerics.md bound:
 * F16 from F32, and Q8_0 from F16. */
typedef struct cache_rig {
    running_model r[3];
    distance d[2];
} cache_rig;

void cache_rig_open(cache_rig *g, const char *path);
/* Adds the n positions of a text. */
void cache_rig_add(cache_rig *g, const int32_t *tokens, size_t n);
/* Prints the distances, and fails the test where a mean or a largest KL is beyond its bound. */
typedef struct cache_bounds {
    double mean[2], worst[2];
} cache_bounds;
void cache_rig_check(const cache_rig *g, const char *model, const cache_bounds *b);
void cache_rig_close(cache_rig *g);

/* Feeds the prompt and follows the oracle's greedy continuation as far as its gap to the second-best token
 * exceeds `margin`. Fails the test at the first difference; returns how many tokens were compared. */
size_t check_greedy(running_model *r, const json_t *greedy, const char *prompt_key, double margin);

#endif
