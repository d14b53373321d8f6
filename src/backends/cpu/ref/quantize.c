/* Quantizing activations to Q8_0 blocks of 32 in scalar C: the specification (docs/numerics.md). */
#include "backends/cpu/ref/ref.h"

#include "backends/cpu/act.h"
#include "base/half.h"

#include <math.h>

/* The largest |x| by its bits, which order as the values do, with infinity and NaN above all. */
static uint32_t amax_bits(const float *x)
{
    uint32_t m = 0;
    for (int i = 0; i < 32; i++) {
        uint32_t u = mf_f32_bits(x[i]) & 0x7fffffff;
        m = u > m ? u : m;
    }
    return m;
}

/* Returns d. */
static float quantize_block(const float *x, int8_t *q)
{
    uint32_t bits = amax_bits(x);
    float amax = mf_bits_f32(bits);
    bool finite = bits < 0x7f800000;
    if (!finite || amax < 0x1p-118f) {
        memset(q, 0, 32);
        return finite ? 0 : NAN;
    }
    float inv = 127 / amax;
    for (int i = 0; i < 32; i++) q[i] = (int8_t)rintf(x[i] * inv);
    return amax / 127;
}

void cpu_quantize_ref(const cpu_act *a, const float *x, size_t ldx, int32_t t0, int32_t t1, int32_t b0,
                      int32_t b1)
{
    for (int32_t t = t0; t < t1; t++)
        for (int32_t b = b0; b < b1; b++) {
            int8_t *q = a->q + (size_t)t * (size_t)a->k + (size_t)b * 32;
            float d = quantize_block(x + (size_t)t * ldx + (size_t)b * 32, q);
            int32_t bs[2] = {0, 0};
            for (int i = 0; i < 32; i++) bs[i / 16] += q[i];
            cpu_act_put(a, t, b, d, bs[0], bs[1]);
        }
}
