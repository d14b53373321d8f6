/* Norms, softmax, rotation, elements and KV storage in scalar C: the specification. */
#include "backends/cpu/ref/rows.h"

#include "base/half.h"
#include "base/mathfn.h"

static void cpu_rms_norm_ref(float *y, const float *x, const float *w, int32_t n, float eps)
{
    float l[16] = {0};
    for (int32_t i = 0; i < n; i++) l[i % 16] = fmaf(x[i], x[i], l[i % 16]);
    float r = 1.f / sqrtf(mf_math_tree16(l) / (float)n + eps);
    for (int32_t i = 0; i < n; i++) y[i] = (x[i] * r) * w[i];
}

static void cpu_softmax_ref(float *y, const float *x, int32_t n)
{
    float m = -INFINITY, l[16] = {0};
    for (int32_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    for (int32_t i = 0; i < n; i++) {
        y[i] = mf_math_exp(x[i] - m);
        l[i % 16] += y[i];
    }
    float sum = mf_math_tree16(l);
    for (int32_t i = 0; i < n; i++) y[i] /= sum;
}

void cpu_rope_ref(float *y, const float *x, const float *cs, int32_t n_heads, int32_t head_dim, int32_t n_rot,
                  bool interleaved)
{
    int32_t half = n_rot / 2, step = interleaved ? 2 : 1, apart = interleaved ? 1 : half;
    for (int32_t h = 0; h < n_heads; h++, x += head_dim, y += head_dim) {
        for (int32_t i = 0; i < half; i++) {
            float x0 = x[i * step], x1 = x[i * step + apart], c = cs[i], s = cs[half + i];
            y[i * step] = fmaf(x0, c, -(x1 * s));
            y[i * step + apart] = fmaf(x1, c, x0 * s);
        }
        if (y != x) memcpy(y + n_rot, x + n_rot, (size_t)(head_dim - n_rot) * sizeof *y);
    }
}

static void cpu_rope_angles_ref(float *cs, const double *inv_freq, int32_t half, int32_t position)
{
    for (int32_t i = 0; i < half; i++) {
        double s, c;
        mf_math_sincos((double)position * inv_freq[i], &s, &c);
        cs[i] = (float)c;
        cs[half + i] = (float)s;
    }
}

static void cpu_add_ref(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void cpu_mul_ref(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void cpu_swiglu_ref(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = mf_math_silu(a[i]) * b[i];
}

static void cpu_silu_ref(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = mf_math_silu(x[i]);
}

static void cpu_scale_ref(float *y, const float *x, float s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * s;
}

static void store_f16(unsigned char *dst, const float *x, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        uint16_t h = mf_f32_to_f16(x[i]);
        memcpy(dst + 2 * i, &h, sizeof h);
    }
}

/* The largest magnitude is found among bit patterns, where everything that is not finite is larger than what
 * is. */
static void store_q8_0_block(unsigned char *dst, const float *x)
{
    uint32_t top = 0;
    for (int i = 0; i < MF_QK32; i++) {
        uint32_t u = mf_f32_bits(x[i]) & 0x7fffffff;
        top = u > top ? u : top;
    }
    float amax = mf_bits_f32(top);
    bool plain = amax >= CPU_Q8_0_MIN && amax < INFINITY;
    uint16_t d = plain ? mf_f32_to_f16(amax / 127.f) : amax < CPU_Q8_0_MIN ? 0 : CPU_F16_NAN;
    memcpy(dst, &d, sizeof d);
    for (int i = 0; i < MF_QK32; i++) dst[2 + i] = (uint8_t)(plain ? (int)rintf(x[i] * (127.f / amax)) : 0);
}

static void store_q8_0(unsigned char *dst, const float *x, int32_t n)
{
    for (int32_t b = 0; b < n; b += MF_QK32, dst += MF_BYTES_Q8_0) store_q8_0_block(dst, x + b);
}

static void cpu_store_row_ref(mf_type type, void *dst, const float *x, int32_t n)
{
    if (type == MF_TYPE_Q8_0)
        store_q8_0(dst, x, n);
    else if (type == MF_TYPE_F16)
        store_f16(dst, x, n);
    else
        memcpy(dst, x, (size_t)n * sizeof *x);
}

void cpu_rows_init_ref(cpu_kernels *k)
{
    k->attn_tile = cpu_attn_tile_ref;
    k->attn_merge = cpu_attn_merge_ref;
    k->rms_norm = cpu_rms_norm_ref;
    k->softmax = cpu_softmax_ref;
    k->rope = cpu_rope_ref;
    k->rope_angles = cpu_rope_angles_ref;
    k->add = cpu_add_ref;
    k->mul = cpu_mul_ref;
    k->swiglu = cpu_swiglu_ref;
    k->silu = cpu_silu_ref;
    k->scale = cpu_scale_ref;
    k->store_row = cpu_store_row_ref;
}
