#include "cpu/matmul_exact.h"

#include <math.h>
#include <string.h>

static double half_value(const uint8_t *p)
{
    int bits = p[0] | p[1] << 8, e = bits >> 10 & 31, f = bits & 1023;
    double v = e == 31 ? (f ? NAN : INFINITY) : e ? ldexp(1024 + f, e - 25) : ldexp(f, -24);
    return bits & 0x8000 ? -v : v;
}

static double brain_value(const uint8_t *p)
{
    uint32_t u = (uint32_t)(p[0] | p[1] << 8) << 16;
    float f;
    memcpy(&f, &u, 4);
    return (double)f;
}

static int bit(const uint8_t *p, size_t i)
{
    return p[i / 8] >> i % 8 & 1;
}

static int nibble(const uint8_t *p, size_t i)
{
    return i < 16 ? p[i] & 15 : p[i - 16] >> 4;
}

/* Six bits out of the packed scales of Q4_K and Q5_K, by the position of each bit: number j of the scales,
 * 8 + j of the minimums. */
static int packed6(const uint8_t *s, int n)
{
    int j = n % 8, min = n / 8;
    if (j < 4) return s[j + 4 * min] % 64;
    int low = min ? s[j + 4] / 16 : s[j + 4] % 16;
    return low + 16 * (s[j - 4 + 4 * min] / 64);
}

static double k_weight(mf_type type, const uint8_t *p, size_t i)
{
    size_t j = i / 32, l = i % 32;
    const uint8_t *low = p + (type == MF_TYPE_Q4_K ? 16 : 48) + i / 64 * 32;
    int q = (j % 2 ? low[l] / 16 : low[l] % 16) + (type == MF_TYPE_Q5_K ? 16 * (p[16 + l] >> j & 1) : 0);
    return half_value(p) * packed6(p + 4, (int)j) * q - half_value(p + 2) * packed6(p + 4, 8 + (int)j);
}

static double q6_weight(const uint8_t *p, size_t i)
{
    size_t h = i / 128, part = i / 32 % 4, l = i % 32;
    int low = p[64 * h + 32 * (part % 2) + l], high = p[128 + 32 * h + l];
    int q = (part < 2 ? low % 16 : low / 16) + 16 * (high >> 2 * part & 3) - 32;
    return half_value(p + 208) * (int8_t)p[192 + i / 16] * q;
}

double exact_weight(mf_type type, const uint8_t *row, size_t i)
{
    size_t b = i / 32, j = i % 32;
    float f;
    switch (type) {
    case MF_TYPE_F32: memcpy(&f, row + 4 * i, 4); return (double)f;
    case MF_TYPE_F16: return half_value(row + 2 * i);
    case MF_TYPE_BF16: return brain_value(row + 2 * i);
    case MF_TYPE_Q4_0: row += 18 * b; return half_value(row) * (nibble(row + 2, j) - 8);
    case MF_TYPE_Q4_1: row += 20 * b; return half_value(row) * nibble(row + 4, j) + half_value(row + 2);
    case MF_TYPE_Q5_0:
        row += 22 * b;
        return half_value(row) * (nibble(row + 6, j) + 16 * bit(row + 2, j) - 16);
    case MF_TYPE_Q5_1:
        row += 24 * b;
        return half_value(row) * (nibble(row + 8, j) + 16 * bit(row + 4, j)) + half_value(row + 2);
    case MF_TYPE_Q8_0: row += 34 * b; return half_value(row) * (int8_t)row[2 + j];
    case MF_TYPE_Q4_K: return k_weight(type, row + 144 * (i / 256), i % 256);
    case MF_TYPE_Q5_K: return k_weight(type, row + 176 * (i / 256), i % 256);
    case MF_TYPE_Q6_K: return q6_weight(row + 210 * (i / 256), i % 256);
    default: return NAN;
    }
}

double exact_minimum(mf_type type, const uint8_t *row, size_t i)
{
    if (type == MF_TYPE_Q4_1) return half_value(row + i / 32 * 20 + 2);
    if (type == MF_TYPE_Q5_1) return half_value(row + i / 32 * 24 + 2);
    if (type != MF_TYPE_Q4_K && type != MF_TYPE_Q5_K) return 0;
    row += i / 256 * (type == MF_TYPE_Q4_K ? 144 : 176);
    return -half_value(row + 2) * packed6(row + 4, 8 + (int)(i % 256 / 32));
}

/* The bound: each 32-block contributes two terms of at most (|scaled sum| + |minimum * sum|), each term is
 * rounded at most twice before its chain (dw * da; ds; a K-quant's inner chain of 8 rounds it up to 8 times,
 * then it is scaled inside an fma), and an outer chain of n fmas rounds it at most n times: 2^-24 of the sum
 * of magnitudes for each. What underflows loses up to 2^-149 before it meets a factor of at most 2^23. */
exact_dot exact_quantized(mf_type type, const uint8_t *row, const cpu_act *a, int32_t t)
{
    size_t nb = (size_t)a->k / 32, first = (size_t)t * nb;
    double value = 0, magnitude = 0;
    for (size_t b = 0; b < nb; b++) {
        const int8_t *q = a->q + (first + b) * 32;
        double sum = 0, min = 0, d = (double)a->d[first + b];
        for (size_t j = 0; j < 32; j++) {
            double m = exact_minimum(type, row, b * 32 + j);
            sum += (exact_weight(type, row, b * 32 + j) - m) * q[j];
            min += m * q[j];
        }
        value += (sum + min) * d;
        magnitude += (fabs(sum) + fabs(min)) * d;
    }
    double roundings = 2 * (double)nb + 12;
    return (exact_dot){value, roundings * ldexp(magnitude, -24) * 1.001 + (double)nb * ldexp(1, -125)};
}

exact_dot exact_float(mf_type type, const uint8_t *row, const float *x, size_t k)
{
    double value = 0, magnitude = 0;
    for (size_t i = 0; i < k; i++) {
        double p = exact_weight(type, row, i) * (double)x[i];
        value += p;
        magnitude += fabs(p);
    }
    return (exact_dot){value,
                       ((double)k / 16 + 6) * ldexp(magnitude, -24) * 1.001 + (double)k * ldexp(1, -148)};
}
