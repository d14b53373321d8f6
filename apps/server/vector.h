/* Vectors of texts: the states of their tokens, as the model's last norm leaves them, made into one. */
#ifndef APP_SERVER_VECTOR_H
#define APP_SERVER_VECTOR_H

#include "base/mem.h"

/* How the states of a text's tokens become its one vector, which is then brought to length 1. */
typedef enum srv_pooling { SRV_POOL_MEAN = 1, SRV_POOL_FIRST = 2, SRV_POOL_LAST = 3 } srv_pooling;
/* As the model's file says; the mean, where it says nothing. */
minfer_status srv_pooling_of(const minfer_model *m, srv_pooling *p, minfer_error *err);

/* Adds the states of tokens [at, at + n) of a text to sum[n_embd]; at 0 begins anew. */
void srv_vector_add(double *sum, const float *states, size_t n_embd, size_t at, size_t n, srv_pooling p);
/* false: there is no direction, for the sum is 0 or not a number. */
bool srv_vector_finish(const double *sum, size_t n_embd, float *out);

#endif
