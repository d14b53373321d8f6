#include "ops/exact.h"

#include "cpu/matmul_exact.h"
#include "support/support.h"

#include <math.h>

static const double U = 0x1p-24, E = 2.4e-7, SLACK = 1.001, TINY = 0x1p-149;
static const double CUT = 1.7e-38; /* e^-87: what e(x) drops */

static void *doubles(size_t n)
{
    double *p = mf_calloc(n, sizeof *p);
    assert_non_null(p);
    return p;
}

/* ---- elements ---- */

op_num exact_add(op_num a, op_num b)
{
    double v = a.v + b.v;
    return (op_num){v, (a.e + b.e + U * fabs(v)) * SLACK};
}

op_num exact_mul(op_num a, op_num b)
{
    double v = a.v * b.v;
    return (op_num){v, (fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e + U * fabs(v)) * SLACK + TINY};
}

/* e(-|x|) once in the numerator and once in 1 + t, four further roundings; the slope of SiLU is at most 1.1.
 * Below -87 the result is 0. */
op_num exact_silu(op_num x)
{
    double v = x.v / (1 + exp(-x.v));
    return (op_num){v, ((2 * E + 4 * U) * fabs(v) + 1.1 * x.e) * SLACK + 90 * CUT};
}

/* ---- rows ---- */

static double chain(size_t n)
{
    return (double)((n + 15) / 16 + 4) * U;
}

void exact_softmax(const float *x, size_t n, op_num *y)
{
    double max = -INFINITY, sum = 0, off = 0;
    for (size_t i = 0; i < n; i++) max = fmax(max, (double)x[i]);
    for (size_t i = 0; i < n; i++) {
        double far = max - (double)x[i], p = exp(-far);
        y[i] = (op_num){p, p * (U * far + E) + CUT};
        sum += p;
        off += y[i].e;
    }
    off += chain(n) * sum;
    for (size_t i = 0; i < n; i++) {
        double v = y[i].v / sum;
        y[i] = (op_num){v, (y[i].e / sum + v * off / sum + U * v) * SLACK + TINY};
    }
}

void exact_rms_norm(const op_num *x, const float *w, size_t n, double eps, op_num *y)
{
    double ss = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        ss += x[i].v * x[i].v;
        off += 2 * fabs(x[i].v) * x[i].e + x[i].e * x[i].e;
    }
    double all = ss + (double)n * eps, r = 1 / sqrt(all / (double)n);
    double rel = 0.5 * ((chain(n) * ss + off) / all + 2 * U) + 2 * U;
    for (size_t i = 0; i < n; i++) {
        double v = x[i].v * r * (double)w[i], from = x[i].e * r * fabs((double)w[i]);
        y[i] = (op_num){v, (from + fabs(v) * (rel + 2 * U)) * SLACK + TINY * (1 + fabs((double)w[i]))};
    }
}

/* The angle in long double. The kernel's is off by 2.5e-15 of itself (the power 2e-15, then three roundings),
 * its sine and cosine by 1e-15, and both are rounded to float. */
static void turn(op_num *a, op_num *b, long double theta)
{
    double c = (double)cosl(theta), s = (double)sinl(theta), off = (double)fabsl(theta) * 2.5e-15 + 1e-15;
    double ec = U * fabs(c) + off, es = U * fabs(s) + off, x0 = a->v, x1 = b->v;
    double v0 = x0 * c - x1 * s, v1 = x1 * c + x0 * s;
    double from0 = a->e * fabs(c) + b->e * fabs(s), from1 = b->e * fabs(c) + a->e * fabs(s);
    double e0 = from0 + fabs(x0) * ec + fabs(x1) * es + U * (fabs(x1 * s) + fabs(v0));
    double e1 = from1 + fabs(x1) * ec + fabs(x0) * es + U * (fabs(x0 * s) + fabs(v1));
    *a = (op_num){v0, e0 * SLACK + 2 * TINY};
    *b = (op_num){v1, e1 * SLACK + 2 * TINY};
}

void exact_rope(const exact_rope_args *a, op_num *x)
{
    for (size_t i = 0; i < a->n_rot / 2; i++) {
        long double theta = (long double)a->position * (long double)a->scale *
                            powl((long double)a->base, -2.0L * (long double)i / (long double)a->n_rot);
        if (a->factors) theta /= (long double)a->factors[i];
        turn(x + (a->interleaved ? 2 * i : i), x + (a->interleaved ? 2 * i + 1 : i + a->n_rot / 2), theta);
    }
}

/* ---- products ---- */

op_num exact_product(const double *w, const float *x, size_t n)
{
    double v = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        double p = w[i] * (double)x[i];
        v += p;
        size += fabs(p);
    }
    return (op_num){v, chain(n) * size * SLACK + (double)n * TINY};
}

exact_weights exact_weights_make(mf_type type, const void *data, size_t rows, size_t k)
{
    exact_weights w = {doubles(rows * k), doubles(rows * k), rows, k};
    size_t bytes;
    assert_true(mf_type_row_bytes(type, k, &bytes));
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < k; i++) {
            const uint8_t *row = (const uint8_t *)data + r * bytes;
            w.min[r * k + i] = exact_minimum(type, row, i);
            w.main[r * k + i] = exact_weight(type, row, i) - w.min[r * k + i];
        }
    return w;
}

void exact_weights_free(exact_weights *w)
{
    mf_free(w->main);
    mf_free(w->min);
    *w = (exact_weights){0};
}

/* Quotients and products of floats, rounded once: a double holds the product, and enough of the quotient. */
static double float_div(double a, double b)
{
    return (double)(float)(a / b);
}
static double float_mul(double a, double b)
{
    return (double)(float)(a * b);
}

static double largest(const float *x, size_t n)
{
    double max = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite((double)x[i])) return NAN;
        max = fmax(max, fabs((double)x[i]));
    }
    return max;
}

exact_act exact_act_make(const float *x, size_t k)
{
    exact_act a = {doubles(k / 32), doubles(k), x, k};
    for (size_t b = 0; b < k / 32; b++) {
        double max = largest(x + b * 32, 32);
        a.d[b] = max < 0x1p-118 ? 0 : float_div(max, 127);
        for (size_t i = b * 32; i < b * 32 + 32 && max >= 0x1p-118; i++)
            a.q[i] = nearbyint(float_mul((double)x[i], float_div(127, max)));
    }
    return a;
}

void exact_act_free(exact_act *a)
{
    mf_free(a->d);
    mf_free(a->q);
    *a = (exact_act){0};
}

/* The bound: a block contributes two terms, main and minimum; each is rounded at most twelve times on its way
 * into the chain (dw * da; ds; a K-quant's inner chain of eight, its scale), and 2 * blocks fmas round it
 * there. What underflows before it meets a factor of at most 2^23 loses 2^-125 a block. */
op_num exact_quantized_dot(const exact_weights *w, size_t row, const exact_act *a, op_num *loose)
{
    const double *main = w->main + row * w->k, *min = w->min + row * w->k;
    double v = 0, size = 0, whole = 0, steps = 0, blocks = (double)(w->k / 32);
    for (size_t b = 0; b < w->k / 32; b++) {
        double sum = 0, low = 0, all = 0, max = 0;
        for (size_t i = b * 32; i < b * 32 + 32; i++) {
            sum += main[i] * a->q[i];
            low += min[i] * a->q[i];
            all += fabs(main[i] + min[i]);
            whole += (main[i] + min[i]) * (double)a->x[i];
            max = fmax(max, fabs((double)a->x[i]));
        }
        v += (sum + low) * a->d[b];
        size += (fabs(sum) + fabs(low)) * a->d[b];
        steps += all * (a->d[b] == 0 ? max : 0.5001 * a->d[b]);
    }
    double e = (2 * blocks + 12) * U * size * SLACK + blocks * 0x1p-125;
    *loose = (op_num){isnan(v) ? NAN : whole, e + steps * SLACK};
    return (op_num){v, e};
}

/* ---- attention ---- */

/* q . k of each cell. */
static void attn_dots(const exact_attn_args *a, op_num *dot)
{
    if (!a->packed) {
        for (size_t c = 0; c < a->n; c++) dot[c] = exact_product(a->k[c], a->q, a->head_dim);
        return;
    }
    exact_act q = exact_act_make(a->q, a->head_dim);
    exact_weights w = {doubles(a->head_dim), doubles(a->head_dim), 1, a->head_dim};
    for (size_t c = 0; c < a->n; c++) {
        op_num unused;
        memcpy(w.main, a->k[c], a->head_dim * sizeof *w.main);
        dot[c] = exact_quantized_dot(&w, 0, &q, &unused);
    }
    exact_weights_free(&w);
    exact_act_free(&q);
}

/* e(s - m) twice, once in a tile and once between tiles: the distances add up to M - s. The error of a score
 * acts on both of them only through s, because the maximum cancels. */
static double attn_weights(const exact_attn_args *a, op_num *p)
{
    double max = -INFINITY, worst = 0;
    attn_dots(a, p);
    for (size_t c = 0; c < a->n; c++) {
        op_num dot = p[c];
        p[c] = (op_num){dot.v * a->scale, dot.e * fabs(a->scale) + U * fabs(dot.v * a->scale) + TINY};
        max = fmax(max, p[c].v);
        worst = fmax(worst, p[c].e);
    }
    double sum = 0;
    for (size_t c = 0; c < a->n; c++) {
        double far = max - p[c].v, v = exp(-far);
        p[c] = (op_num){v, v * expm1((p[c].e + U * (far + 2 * worst) + 2 * E) * SLACK) + 2 * CUT};
        sum += v;
    }
    return sum;
}

void exact_attn(const exact_attn_args *a, op_num *y)
{
    op_num *p = doubles(2 * a->n);
    double sum = attn_weights(a, p), tiles = (double)((a->n + 255) / 256), off = 0;
    double in_tile = a->n < 256 ? (double)a->n : 256;
    for (size_t c = 0; c < a->n; c++) off += p[c].e;
    off += (16 + 4 + tiles + 1) * U * sum;
    for (size_t d = 0; d < a->head_dim; d++) {
        double v = 0, size = 0, from = 0;
        for (size_t c = 0; c < a->n; c++) {
            v += p[c].v * a->v[c][d];
            size += p[c].v * fabs(a->v[c][d]);
            from += p[c].e * fabs(a->v[c][d]);
        }
        double e = from + (in_tile + tiles + 1) * U * size;
        y[d] = (op_num){v / sum, ((e + fabs(v / sum) * off) / sum + U * fabs(v / sum)) * SLACK + 2 * TINY};
    }
    mf_free(p);
}

/* ---- storage ---- */

static double half(double x)
{
    double a = fabs(x);
    int e;
    if (!(a < 65520)) return isnan(x) ? NAN : copysign(INFINITY, x);
    frexp(a, &e);
    double ulp = ldexp(1, (e - 1 < -14 ? -14 : e - 1) - 10);
    return copysign(nearbyint(a / ulp) * ulp, x);
}

/* With an error in x, the nearest half may be the next one. */
op_num exact_stored(mf_type format, op_num x)
{
    if (format == MF_TYPE_F32) return x;
    double v = half(x.v);
    return (op_num){v, x.e > 0 ? (x.e + fabs(x.v) * 0x1p-10) * SLACK + 0x1p-24 : 0};
}

/* With errors in x, a value may fall to the next step, and the step may be another half. An integer 0 has no
 * sign. */
void exact_stored_block(const op_num *x, op_num *y)
{
    float f[32];
    double worst = 0;
    for (int i = 0; i < 32; i++) {
        f[i] = (float)x[i].v;
        worst = fmax(worst, x[i].e);
    }
    double max = largest(f, 32), step = max < 0x1p-118 ? 0 : half(float_div(max, 127));
    for (int i = 0; i < 32; i++) {
        double q = max < 0x1p-118 ? 0 : nearbyint(float_mul((double)f[i], float_div(127, max))) + 0.0;
        y[i] = (op_num){isnan(max) ? NAN : step * q,
                        worst > 0 ? (worst + step + fabs(x[i].v) * 0x1p-10) * SLACK + 0x1p-24 : 0};
    }
}

static void put_half(uint8_t *p, double x)
{
    double a = fabs(half(x));
    int e;
    frexp(a, &e);
    int bits = isinf(a)      ? 0x7c00
               : a < 0x1p-14 ? (int)ldexp(a, 24)
                             : (e + 14) * 1024 + (int)(ldexp(a, 11 - e) - 1024);
    p[0] = (uint8_t)(bits & 255);
    p[1] = (uint8_t)(bits >> 8 | (signbit(x) ? 128 : 0));
}

void exact_stored_bytes(mf_type format, const float *x, size_t n, uint8_t *row)
{
    if (format == MF_TYPE_F32) memcpy(row, x, n * sizeof *x);
    for (size_t i = 0; i < n && format == MF_TYPE_F16; i++) put_half(row + 2 * i, (double)x[i]);
    for (size_t b = 0; b < n && format == MF_TYPE_Q8_0; b += 32, row += MF_BYTES_Q8_0) {
        exact_act a = exact_act_make(x + b, 32);
        put_half(row, a.d[0]);
        for (size_t i = 0; i < 32; i++) row[2 + i] = (uint8_t)(int8_t)a.q[i];
        exact_act_free(&a);
    }
}
