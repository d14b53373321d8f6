/* Norm, softmax, rotation, elements and KV storage: every tier against scalar C bit for bit, scalar C against
 * formulas in double with bounds that follow from the roundings. */
#include "cpu/guard.h"

#include "base/half.h"
#include "base/mathfn.h"

#include <math.h>

static const double U = 0x1p-24; /* half an ulp */
static const double E = 2.4e-7;  /* error of e(x) */

/* ---- kernels that map rows of floats to a row of floats ---- */

typedef void row_call(const cpu_kernels *k, float *y, const float *a, const float *b, int32_t n);

static void call_rms_norm(const cpu_kernels *k, float *y, const float *a, const float *b, int32_t n)
{
    k->rms_norm(y, a, b, n, 1e-5f);
}

static void call_softmax(const cpu_kernels *k, float *y, const float *a, const float *b, int32_t n)
{
    (void)b;
    k->softmax(y, a, n);
}

static void call_add(const cpu_kernels *k, float *y, const float *a, const float *b, int32_t n)
{
    k->add(y, a, b, n);
}

static void call_mul(const cpu_kernels *k, float *y, const float *a, const float *b, int32_t n)
{
    k->mul(y, a, b, n);
}

static void call_swiglu(const cpu_kernels *k, float *y, const float *a, const float *b, int32_t n)
{
    k->swiglu(y, a, b, n);
}

static void call_silu(const cpu_kernels *k, float *y, const float *a, const float *b, int32_t n)
{
    (void)b;
    k->silu(y, a, n);
}

static void call_scale(const cpu_kernels *k, float *y, const float *a, const float *b, int32_t n)
{
    (void)b;
    k->scale(y, a, -0.731f, n);
}

static const struct {
    const char *name;
    row_call *call;
    bool in_place_b; /* y may be b too */
} row_kernels[] = {
    {"rms_norm", call_rms_norm, false},
    {"softmax", call_softmax, false},
    {"add", call_add, true},
    {"mul", call_mul, true},
    {"swiglu", call_swiglu, true},
    {"silu", call_silu, false},
    {"scale", call_scale, false},
};

typedef struct row_case {
    const cpu_kernels *ref, *tier;
    int32_t n;
    size_t shift;
    guard a, b, y;
    float *want;
} row_case;

static void one_row(row_case *c, size_t kernel)
{
    size_t bytes = (size_t)c->n * sizeof(float);
    const char *name = row_kernels[kernel].name;
    row_call *call = row_kernels[kernel].call;
    call(c->ref, c->want, c->a.p, c->b.p, c->n);
    call(c->tier, c->y.p, c->a.p, c->b.p, c->n);
    assert_same_bits(name, c->want, c->y.p, (size_t)c->n);
    memcpy(c->y.p, c->a.p, bytes);
    call(c->tier, c->y.p, c->y.p, c->b.p, c->n);
    assert_same_bits(name, c->want, c->y.p, (size_t)c->n);
    memcpy(c->y.p, c->a.p, bytes);
    call(c->ref, c->y.p, c->y.p, c->b.p, c->n);
    assert_same_bits(name, c->want, c->y.p, (size_t)c->n);
    if (!row_kernels[kernel].in_place_b) return;
    memcpy(c->y.p, c->b.p, bytes);
    call(c->tier, c->y.p, c->a.p, c->y.p, c->n);
    assert_same_bits(name, c->want, c->y.p, (size_t)c->n);
}

static void rows_of(const cpu_kernels *ref, const cpu_kernels *tier, int32_t n, mf_rng *r)
{
    size_t bytes = (size_t)n * sizeof(float), shift = 4 * (size_t)(mf_rng_u64(r) % 16);
    row_case c = {ref,
                  tier,
                  n,
                  shift,
                  guard_new(bytes, shift),
                  guard_new(bytes, 4),
                  guard_new(bytes, 60 - shift),
                  mf_malloc(bytes)};
    assert_non_null(c.want);
    for (int wild = 0; wild < 2; wild++)
        for (size_t k = 0; k < COUNT(row_kernels); k++) {
            for (int32_t i = 0; i < n; i++) {
                ((float *)c.a.p)[i] = wild ? random_wild(r, 3e38f) : 9 * random_unit(r);
                ((float *)c.b.p)[i] = wild ? random_wild(r, 3e38f) : random_unit(r);
            }
            one_row(&c, k);
        }
    mf_free(c.want);
    guard_free(&c.a);
    guard_free(&c.b);
    guard_free(&c.y);
}

static void test_rows_same_bits(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    static const int32_t more[] = {96, 127, 128, 129, 255, 256, 257, 576, 1000, 1536, 4099};
    mf_rng r;
    mf_rng_seed(&r, 21);
    for (int32_t n = 1; n <= 70; n++) rows_of(&ref, &k, n, &r);
    for (size_t i = 0; i < COUNT(more); i++) rows_of(&ref, &k, more[i], &r);
}

static void test_empty_rows(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    guard y = guard_new(0, 0);
    for (int i = 0; i < 2; i++) {
        const cpu_kernels *t = i ? &k : &ref;
        t->add(y.p, y.p, y.p, 0);
        t->mul(y.p, y.p, y.p, 0);
        t->swiglu(y.p, y.p, y.p, 0);
        t->silu(y.p, y.p, 0);
        t->scale(y.p, y.p, 2, 0);
        t->store_row(MF_TYPE_F16, y.p, y.p, 0);
        t->store_row(MF_TYPE_Q8_0, y.p, y.p, 0);
    }
    guard_free(&y);
}

/* ---- scalar C against double ---- */

static void assert_near(const char *what, double want, float got, double bound)
{
    if (!(fabs(want - (double)got) <= bound))
        fail_msg("%s: %a, should be %a within %g", what, (double)got, want, bound);
}

enum { LONGEST = 5000 };

static const int32_t lengths[] = {1, 2, 15, 16, 17, 64, 100, 576, 1536, LONGEST};

/* A chain of n/16 fused steps and four levels of the tree, division, eps; half of it after the root; root,
 * division and two products. */
static void test_rms_norm_against_double(void **state)
{
    (void)state;
    cpu_kernels ref;
    static float x[LONGEST], w[LONGEST], y[LONGEST];
    mf_rng r;
    mf_rng_seed(&r, 22);
    rows_tier(CPU_TIER_SCALAR, &ref);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        int32_t n = lengths[i];
        double ss = 0;
        for (int32_t j = 0; j < n; j++) {
            x[j] = 3 * random_unit(&r);
            w[j] = random_unit(&r);
            ss += (double)x[j] * (double)x[j];
        }
        ref.rms_norm(y, x, w, n, 1e-5f);
        double scale = 1 / sqrt(ss / n + (double)1e-5f), bound = ((n / 16 + 1 + 4 + 2) / 2.0 + 4.1) * U;
        for (int32_t j = 0; j < n; j++) {
            double want = (double)x[j] * scale * (double)w[j];
            assert_near("rms_norm", want, y[j], fabs(want) * bound);
        }
    }
    const float zeros[3] = {0};
    ref.rms_norm(y, zeros, w, 3, 1e-5f);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
}

/* x - m is rounded, which e passes on; the same again in the sum, with its chain and tree; one division. */
static void test_softmax_against_double(void **state)
{
    (void)state;
    cpu_kernels ref;
    static float x[LONGEST], y[LONGEST];
    mf_rng r;
    mf_rng_seed(&r, 23);
    rows_tier(CPU_TIER_SCALAR, &ref);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        int32_t n = lengths[i];
        double m = -INFINITY, sum = 0, total = 0;
        for (int32_t j = 0; j < n; j++) {
            x[j] = 30 * random_unit(&r);
            m = fmax(m, (double)x[j]);
        }
        for (int32_t j = 0; j < n; j++) sum += exp((double)x[j] - m);
        ref.softmax(y, x, n);
        for (int32_t j = 0; j < n; j++) {
            double want = exp((double)x[j] - m) / sum, bound = 2 * (60 * U + E) + (n / 16 + 1 + 4 + 1.1) * U;
            assert_near("softmax", want, y[j], want * bound);
            total += (double)y[j];
        }
        assert_near("sum", total, 1, 1e-4);
    }
}

static void test_softmax_extremes(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    float x[40], y[40];
    for (int i = 0; i < 40; i++) x[i] = 7;
    k.softmax(y, x, 40);
    for (int i = 0; i < 40; i++) assert_true(y[i] == 1.f / 40);
    x[33] = 1e4f;
    k.softmax(y, x, 40);
    for (int i = 0; i < 40; i++) assert_true(y[i] == (i == 33));
    for (int i = 0; i < 40; i++) x[i] = i == 5 ? -1e38f : -INFINITY;
    k.softmax(y, x, 40);
    for (int i = 0; i < 40; i++) assert_true(y[i] == (i == 5));
    x[20] = NAN;
    k.softmax(y, x, 40);
    assert_true(isnan(y[20]) && isnan(y[5]));
}

static void test_elements_against_double(void **state)
{
    (void)state;
    cpu_kernels ref;
    float a[64], b[64], y[64];
    mf_rng r;
    mf_rng_seed(&r, 24);
    rows_tier(CPU_TIER_SCALAR, &ref);
    for (int i = 0; i < 64; i++) {
        a[i] = 20 * random_unit(&r);
        b[i] = random_unit(&r);
    }
    ref.add(y, a, b, 64);
    for (int i = 0; i < 64; i++) assert_true(y[i] == (float)((double)a[i] + (double)b[i]));
    ref.mul(y, a, b, 64);
    for (int i = 0; i < 64; i++) assert_true(y[i] == (float)((double)a[i] * (double)b[i]));
    ref.scale(y, a, 0.3f, 64);
    for (int i = 0; i < 64; i++) assert_true(y[i] == (float)((double)a[i] * (double)0.3f));
    ref.swiglu(y, a, b, 64);
    for (int i = 0; i < 64; i++) {
        double want = (double)a[i] / (1 + exp(-(double)a[i])) * (double)b[i];
        assert_near("swiglu", want, y[i], fabs(want) * (2 * E + 4 * U));
    }
    ref.silu(y, a, 64);
    for (int i = 0; i < 64; i++) assert_true(y[i] == mf_math_silu(a[i]));
}

/* ---- rotation ---- */

enum { HEADS = 3 };

static void rope_case(const cpu_kernels *ref, const cpu_kernels *k, int32_t head_dim, int32_t n_rot,
                      mf_rng *r)
{
    size_t n = (size_t)head_dim * HEADS, bytes = n * sizeof(float), cs_bytes = (size_t)n_rot * sizeof(float);
    size_t shift = 4 * (size_t)(mf_rng_u64(r) % 8);
    guard x = guard_new(bytes, shift), y = guard_new(bytes, 28 - shift), cs = guard_new(cs_bytes, 4);
    float *want = mf_malloc(bytes), *px = x.p, *pcs = cs.p;
    assert_non_null(want);
    for (size_t i = 0; i < n; i++) px[i] = i % 3 ? random_unit(r) : random_wild(r, 1e30f);
    for (int32_t i = 0; i < n_rot; i++) pcs[i] = i % 5 ? random_unit(r) : i % 2 ? 0.f : -0.f;
    for (int pairing = 0; pairing < 2; pairing++) {
        ref->rope(want, x.p, cs.p, HEADS, head_dim, n_rot, pairing);
        k->rope(y.p, x.p, cs.p, HEADS, head_dim, n_rot, pairing);
        assert_same_bits("rope", want, y.p, n);
        for (int i = 0; i < 2; i++) {
            memcpy(y.p, x.p, bytes);
            (i ? ref : k)->rope(y.p, y.p, cs.p, HEADS, head_dim, n_rot, pairing);
            assert_same_bits("rope in place", want, y.p, n);
        }
    }
    mf_free(want);
    guard_free(&x);
    guard_free(&y);
    guard_free(&cs);
}

static void test_rope_same_bits(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    mf_rng r;
    mf_rng_seed(&r, 25);
    for (int32_t head_dim = 2; head_dim <= 256; head_dim += head_dim < 80 ? 2 : 16)
        for (int32_t n_rot = head_dim; n_rot > 0; n_rot = n_rot / 2 & ~1)
            rope_case(&ref, &k, head_dim, n_rot, &r);
}

static void test_rope_pairs(void **state)
{
    (void)state;
    cpu_kernels ref;
    rows_tier(CPU_TIER_SCALAR, &ref);
    const float x[] = {1, 2, 3, 4, 5, 6},
                cs[] = {0, 1, 1, 0}; /* the first pair by a right angle, the second not */
    float y[6];
    ref.rope(y, x, cs, 1, 6, 4, true);
    const float neighbours[] = {-2, 1, 3, 4, 5, 6}, halves[] = {-3, 2, 1, 4, 5, 6};
    assert_same_bits("neighbours", neighbours, y, 6);
    ref.rope(y, x, cs, 1, 6, 4, false);
    assert_same_bits("halves", halves, y, 6);
}

/* Two products, each sum rounded once and one product before it. */
static void test_rope_against_double(void **state)
{
    (void)state;
    cpu_kernels ref;
    enum { DIM = 64 };
    float x[DIM], y[DIM], cs[DIM];
    double inv_freq[DIM / 2];
    mf_rng r;
    mf_rng_seed(&r, 26);
    rows_tier(CPU_TIER_SCALAR, &ref);
    static const int32_t positions[] = {0, 1, 2, 100, 9000, 131071, 1048576, INT32_MAX};
    for (int i = 0; i < DIM / 2; i++) inv_freq[i] = mf_math_pow(10000, -2.0 * i / DIM);
    for (size_t p = 0; p < COUNT(positions); p++) {
        ref.rope_angles(cs, inv_freq, DIM / 2, positions[p]);
        for (int i = 0; i < DIM; i++) x[i] = random_unit(&r);
        ref.rope(y, x, cs, 1, DIM, DIM, false);
        for (int i = 0; i < DIM / 2; i++) {
            double t = positions[p] * inv_freq[i], c = cos(t), s = sin(t), a = (double)x[i],
                   b = (double)x[i + DIM / 2];
            assert_near("cosine", c, cs[i], U / 2 * 1.001);
            assert_near("sine", s, cs[DIM / 2 + i], U / 2 * 1.001);
            double bound = 3.1 * U * (fabs(a) + fabs(b));
            assert_near("first", a * c - b * s, y[i], bound);
            assert_near("second", a * s + b * c, y[i + DIM / 2], bound);
        }
    }
}

/* ---- storage ---- */

static void store_case(const cpu_kernels *ref, const cpu_kernels *k, mf_type type, int32_t n, mf_rng *r)
{
    size_t bytes = type == MF_TYPE_F32   ? (size_t)n * 4
                   : type == MF_TYPE_F16 ? (size_t)n * 2
                                         : (size_t)(n / MF_QK32) * MF_BYTES_Q8_0;
    guard x = guard_new((size_t)n * sizeof(float), 4 * (size_t)(mf_rng_u64(r) % 8));
    guard y = guard_new(bytes, mf_rng_u64(r) % 8);
    unsigned char *want = mf_malloc(bytes);
    float *px = x.p;
    assert_non_null(want);
    for (int kind = 0; kind < 5; kind++) {
        for (int32_t i = 0; i < n; i++)
            px[i] = kind == 0   ? random_wild(r, 3e38f)
                    : kind == 1 ? random_unit(r)
                    : kind == 2 ? 70000 * random_unit(r)
                    : kind == 3 ? ldexpf(random_unit(r), -14 - i % 16) /* half denormals */
                                : ldexpf(random_unit(r), -116 - i / 32);
        if (kind == 4 && n) px[n / 2] = type == MF_TYPE_Q8_0 && n % 64 ? NAN : -INFINITY;
        ref->store_row(type, want, px, n);
        k->store_row(type, y.p, px, n);
        assert_memory_equal(want, y.p, bytes);
    }
    mf_free(want);
    guard_free(&x);
    guard_free(&y);
}

static void test_store_row_same_bits(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    mf_rng r;
    mf_rng_seed(&r, 27);
    for (int32_t n = 1; n <= 300; n++) {
        store_case(&ref, &k, MF_TYPE_F32, n, &r);
        store_case(&ref, &k, MF_TYPE_F16, n, &r);
        if (n <= 40) store_case(&ref, &k, MF_TYPE_Q8_0, n * MF_QK32, &r);
    }
}

static void test_store_row_means(void **state)
{
    (void)state;
    cpu_kernels ref;
    enum { N = 64 };
    float x[N], f[N];
    uint16_t h[N];
    unsigned char q[N / MF_QK32 * MF_BYTES_Q8_0];
    mf_rng r;
    mf_rng_seed(&r, 28);
    rows_tier(CPU_TIER_SCALAR, &ref);
    for (int i = 0; i < N; i++) x[i] = (i < MF_QK32 ? 1 : 100) * random_unit(&r);
    x[3] = -2;
    ref.store_row(MF_TYPE_F32, f, x, N);
    assert_same_bits("f32", x, f, N);
    ref.store_row(MF_TYPE_F16, h, x, N);
    for (int i = 0; i < N; i++) assert_int_equal(h[i], mf_f32_to_f16(x[i]));
    ref.store_row(MF_TYPE_Q8_0, q, x, N);
    for (int b = 0; b < N / MF_QK32; b++) {
        const unsigned char *block = q + b * MF_BYTES_Q8_0;
        double amax = 0, d;
        for (int i = 0; i < MF_QK32; i++) amax = fmax(amax, fabs((double)x[b * MF_QK32 + i]));
        d = (double)mf_f16_to_f32((uint16_t)(block[0] | block[1] << 8));
        assert_near("d", amax / 127, (float)d, amax / 127 * 0x1.01p-11);
        for (int i = 0; i < MF_QK32; i++) /* half a step, and 127 times the rounding of the step */
            assert_near("value", (double)x[b * MF_QK32 + i], (float)(d * (int8_t)block[2 + i]),
                        d * (0.5 + 127 * 0x1.02p-11));
    }
    assert_int_equal((int8_t)q[2 + 3], -127);
}

static void test_store_row_q8_0_edges(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    float x[MF_QK32] = {0};
    unsigned char q[MF_BYTES_Q8_0], zeros[MF_BYTES_Q8_0] = {0};
    k.store_row(MF_TYPE_Q8_0, q, x, MF_QK32);
    assert_memory_equal(q, zeros, sizeof q);
    x[9] = nextafterf(-0x1p-118f, 0);
    k.store_row(MF_TYPE_Q8_0, q, x, MF_QK32);
    assert_memory_equal(q, zeros, sizeof q);
    x[9] = -0x1p-118f;
    k.store_row(MF_TYPE_Q8_0, q, x, MF_QK32);
    assert_int_equal((int8_t)q[2 + 9], -127);
    const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < COUNT(bad); i++) {
        x[20] = bad[i];
        k.store_row(MF_TYPE_Q8_0, q, x, MF_QK32);
        assert_true(isnan(mf_f16_to_f32((uint16_t)(q[0] | q[1] << 8))));
        assert_memory_equal(q + 2, zeros, MF_QK32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAST_TIERS(test_rows_same_bits),
        ON_FAST_TIERS(test_empty_rows),
        ON_ALL_TIERS(test_softmax_extremes),
        ON_FAST_TIERS(test_rope_same_bits),
        ON_FAST_TIERS(test_store_row_same_bits),
        ON_ALL_TIERS(test_store_row_q8_0_edges),
        cmocka_unit_test(test_rms_norm_against_double),
        cmocka_unit_test(test_softmax_against_double),
        cmocka_unit_test(test_elements_against_double),
        cmocka_unit_test(test_rope_pairs),
        cmocka_unit_test(test_rope_against_double),
        cmocka_unit_test(test_store_row_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
