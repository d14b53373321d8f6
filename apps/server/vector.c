/* Pooling. */
#include "server/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

minfer_status srv_pooling_of(const minfer_model *m, srv_pooling *p, minfer_error *err)
{
    static const char name[] = ".pooling_type";
    minfer_model_info info;
    *p = SRV_POOL_MEAN;
    minfer_model_get_info(m, &info);
    for (size_t i = 0; i < info.n_metadata; i++) {
        char *key, *value;
        MF_TRY(minfer_model_metadata(m, i, &key, &value, err));
        size_t n = strlen(key);
        long said = strtol(value, NULL, 10);
        if (n >= sizeof name && strcmp(key + n - (sizeof name - 1), name) == 0 && said >= SRV_POOL_MEAN &&
            said <= SRV_POOL_LAST)
            *p = (srv_pooling)said;
        minfer_free(key);
        minfer_free(value);
    }
    return MINFER_OK;
}

void srv_vector_add(double *sum, const float *states, size_t n_embd, size_t at, size_t n, srv_pooling p)
{
    if (at == 0) memset(sum, 0, n_embd * sizeof *sum);
    for (size_t t = 0; t < n; t++, states += n_embd) {
        if (p == SRV_POOL_FIRST && at + t > 0) return;
        if (p == SRV_POOL_LAST) memset(sum, 0, n_embd * sizeof *sum);
        for (size_t i = 0; i < n_embd; i++) sum[i] += (double)states[i];
    }
}

bool srv_vector_finish(const double *sum, size_t n_embd, float *out)
{
    double squares = 0;
    for (size_t i = 0; i < n_embd; i++) squares += sum[i] * sum[i];
    if (!isfinite(squares) || squares <= 0) return false;
    double length = sqrt(squares);
    for (size_t i = 0; i < n_embd; i++) out[i] = (float)(sum[i] / length);
    return true;
}
