/* Matmul and quantizing: every tier against the scalar one, bit by bit; the scalar one against double
 * precision. */
#include "support/support.h"

#include "backends/cpu/act.h"
#include "base/half.h"
#include "cpu/matmul_exact.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

typedef struct type_case {
    mf_type type;
    const char *name;
    size_t values, bytes; /* of a block */
    int scale_at[2];      /* offsets of its half floats, -1: none */
} type_case;

static const type_case types[] = {
    {MF_TYPE_F32, "F32", 1, 4, {-1, -1}},        {MF_TYPE_F16, "F16", 1, 2, {-1, -1}},
    {MF_TYPE_BF16, "BF16", 1, 2, {-1, -1}},      {MF_TYPE_Q4_0, "Q4_0", 32, 18, {0, -1}},
    {MF_TYPE_Q4_1, "Q4_1", 32, 20, {0, 2}},      {MF_TYPE_Q5_0, "Q5_0", 32, 22, {0, -1}},
    {MF_TYPE_Q5_1, "Q5_1", 32, 24, {0, 2}},      {MF_TYPE_Q8_0, "Q8_0", 32, 34, {0, -1}},
    {MF_TYPE_Q4_K, "Q4_K", 256, 144, {0, 2}},    {MF_TYPE_Q5_K, "Q5_K", 256, 176, {0, 2}},
    {MF_TYPE_Q6_K, "Q6_K", 256, 210, {208, -1}},
};

static bool is_float(const type_case *c)
{
    return c->values == 1;
}

/* ---- random data */

static uint32_t below(mf_rng *r, uint32_t n)
{
    return (uint32_t)((mf_rng_u64(r) >> 32) % n);
}

static float uniform(mf_rng *r)
{
    return (float)(2 * mf_rng_f64(r) - 1);
}

/* Plain: around 0.05. Extreme: the largest, the smallest denormal, any denormal, zeros, either sign. */
static uint16_t random_scale(mf_rng *r, bool extreme)
{
    static const uint16_t ends[] = {0x7bff, 0xfbff, 0x0001, 0x8001, 0x0000, 0x8000};
    if (!extreme) return mf_f32_to_f16(uniform(r) * 0.1f);
    uint32_t pick = below(r, 8);
    if (pick < LEN(ends)) return ends[pick];
    return pick == 6 ? (uint16_t)(mf_rng_u64(r) & 0x83ff) : mf_f32_to_f16(uniform(r));
}

/* Extreme: all sizes, and blocks in which every value is near the largest with one sign, for the largest
 * sums. */
static float random_activation(mf_rng *r, size_t i, bool extreme)
{
    static const float size[] = {1, 1e20f, 0, 1e-30f, 1e-42f, 1e-36f};
    if (!extreme) return uniform(r);
    float v = i / 32 % 4 == 1 ? (i / 128 % 2 ? 1 : -1) * (1 - 0.002f * fabsf(uniform(r))) : uniform(r);
    return v * size[i / 48 % LEN(size)];
}

static void random_floats(mf_rng *r, mf_type type, uint8_t *w, size_t n, bool extreme)
{
    for (size_t i = 0; i < n; i++) {
        float f = uniform(r) * (extreme ? (i / 40 % 3 == 0 ? 6e4f : i / 40 % 3 == 1 ? 5e-7f : 1) : 1);
        uint16_t h = type == MF_TYPE_F16 ? mf_f32_to_f16(f) : mf_f32_to_bf16(f);
        if (type == MF_TYPE_F32)
            memcpy(w + 4 * i, &f, 4);
        else
            memcpy(w + 2 * i, &h, 2);
    }
}

static void random_blocks(mf_rng *r, const type_case *c, uint8_t *w, size_t n, bool extreme)
{
    for (size_t b = 0; b < n; b++, w += c->bytes) {
        int fill = extreme ? (int)below(r, 4) : 3; /* all bits set, only the signs, one of both, any bits */
        for (size_t i = 0; i < c->bytes; i++) {
            uint8_t any = (uint8_t)mf_rng_u64(r);
            w[i] = fill == 0 ? 0xff : fill == 1 ? 0x80 : fill == 2 ? (any & 1 ? 0xff : 0x80) : any;
        }
        for (int i = 0; i < 2; i++) {
            uint16_t h = random_scale(r, extreme);
            if (c->scale_at[i] >= 0) memcpy(w + c->scale_at[i], &h, 2);
        }
    }
}

/* ---- memory that ends, or begins, at pages nobody may touch */

typedef struct guarded {
    uint8_t *map, *data;
    size_t map_bytes;
} guarded;

static guarded guarded_alloc(size_t bytes, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = mf_align_up(bytes, page);
    guarded g = {.map_bytes = inner + 2 * page};
    g.map = mmap(NULL, g.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    if (inner) assert_int_equal(mprotect(g.map + page, inner, PROT_READ | PROT_WRITE), 0);
    g.data = g.map + page + (at_end ? inner - bytes : 0);
    return g;
}

static void guarded_free(guarded *g)
{
    munmap(g->map, g->map_bytes);
}

/* ---- a problem of the largest size; its parts are what is compared */

enum { MAX_OUT_PAD = 7 };

typedef struct problem {
    const type_case *c;
    int32_t rows, k, nt;
    size_t row_bytes;
    guarded w, x, scratch;
    float *want; /* [nt][rows] */
    bool extreme;
} problem;

static problem problem_new(const type_case *c, int32_t rows, int32_t k, int32_t nt, bool extreme)
{
    mf_rng r;
    mf_rng_seed(&r, (uint64_t)c->type * 1000003 + (uint64_t)k * 17 + extreme);
    problem p = {.c = c, .rows = rows, .k = k, .nt = nt, .extreme = extreme};
    size_t n = (size_t)k * (size_t)nt, blocks = (size_t)rows * (size_t)k / c->values;
    p.row_bytes = (size_t)k / c->values * c->bytes;
    p.w = guarded_alloc(p.row_bytes * (size_t)rows, !(k & 64));
    p.x = guarded_alloc(n * sizeof(float), true);
    p.scratch = guarded_alloc(CPU_SCRATCH, true);
    if (is_float(c))
        random_floats(&r, c->type, p.w.data, blocks, extreme);
    else
        random_blocks(&r, c, p.w.data, blocks, extreme);
    for (size_t i = 0; i < n; i++) ((float *)(void *)p.x.data)[i] = random_activation(&r, i, extreme);
    p.want = mf_malloc((size_t)nt * (size_t)rows * sizeof(float));
    assert_non_null(p.want);
    return p;
}

static void problem_free(problem *p)
{
    guarded_free(&p->w);
    guarded_free(&p->x);
    guarded_free(&p->scratch);
    mf_free(p->want);
}

/* The last `rows` rows and the first nt tokens of p. */
static cpu_matmul part_of(const problem *p, int32_t rows, int32_t nt)
{
    const uint8_t *w = p->w.data + (size_t)(p->rows - rows) * p->row_bytes;
    return (cpu_matmul){.type = p->c->type,
                        .rows = rows,
                        .k = p->k,
                        .nt = nt,
                        .w = w,
                        .x = (const float *)(const void *)p->x.data,
                        .ldx = (size_t)p->k,
                        .scratch = p->scratch.data};
}

/* Memory of nt quantized tokens; a is bound to it and filled by the kernels' own quantize. */
static guarded quantize_all(const problem *p, const cpu_kernels *k, cpu_act *a, int32_t nt)
{
    guarded g = guarded_alloc(cpu_act_bytes(p->k, nt), true);
    cpu_act_bind(a, g.data, p->k, nt, k->few);
    k->quantize(a, (const float *)(const void *)p->x.data, (size_t)p->k, 0, nt, 0, p->k / 32);
    return g;
}

static void solve_scalar(problem *p)
{
    cpu_kernels k;
    cpu_act a = {0};
    guarded g = {0};
    cpu_kernels_select(&k, CPU_TIER_SCALAR);
    cpu_matmul m = part_of(p, p->rows, p->nt);
    if (!is_float(p->c)) g = quantize_all(p, &k, &a, p->nt);
    m.act = &a;
    m.y = p->want;
    m.ldy = (size_t)p->rows;
    k.matmul[p->c->type](&m, 0, p->rows);
    if (g.map) guarded_free(&g);
}

/* ---- comparing */

static bool same(float a, float b)
{
    return mf_f32_bits(a) == mf_f32_bits(b) || (isnan(a) && isnan(b));
}

static const uint32_t UNTOUCHED = 0xfff5a5a5;

static void fail_case(const problem *p, const cpu_matmul *m, int32_t t, int32_t r, const char *what)
{
    print_error("%s rows %d of %d, k %d, nt %d%s: token %d row %d %s: %a instead of %a\n", p->c->name,
                m->rows, p->rows, p->k, m->nt, p->extreme ? " extreme" : "", t, r, what,
                (double)m->y[(size_t)t * m->ldy + (size_t)r],
                (double)p->want[(size_t)t * (size_t)p->rows + (size_t)(p->rows - m->rows + r)]);
    fail();
}

/* Rows [r0, r1) are right. */
static void check_rows(const problem *p, const cpu_matmul *m, int32_t r0, int32_t r1)
{
    for (int32_t t = 0; t < m->nt; t++)
        for (int32_t r = r0; r < r1; r++) {
            const float *want = p->want + (size_t)t * (size_t)p->rows + (size_t)(p->rows - m->rows);
            if (!same(m->y[(size_t)t * m->ldy + (size_t)r], want[r])) fail_case(p, m, t, r, "differs");
        }
}

/* n values from y[0] on are what fill() wrote, but for rows [r0, r1) of each token. */
static void check_untouched(const problem *p, const cpu_matmul *m, const float *y, size_t n, int32_t r0,
                            int32_t r1)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = i - (size_t)(m->y - y), r = at % m->ldy;
        bool inside = y + i >= m->y && at / m->ldy < (size_t)m->nt && r >= (size_t)r0 && r < (size_t)r1;
        if (!inside && mf_f32_bits(y[i]) != UNTOUCHED) {
            print_error("%s rows %d, k %d, nt %d, rows [%d, %d): value %zu was written\n", p->c->name,
                        m->rows, p->k, m->nt, r0, r1, i);
            fail();
        }
    }
}

static void fill(float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) memcpy(y + i, &UNTOUCHED, 4);
}

/* One size: a middle part alone, with everything around it untouched; then the rest; then all at once. */
static void check_size(const problem *p, const cpu_kernels *k, const cpu_act *a, int32_t rows, int32_t nt,
                       mf_rng *r)
{
    enum { BEFORE = 19 };
    cpu_matmul m = part_of(p, rows, nt);
    size_t ldy = (size_t)rows + below(r, MAX_OUT_PAD + 1), n = BEFORE + ldy * (size_t)nt + 19;
    float *y = mf_malloc(n * sizeof *y);
    int32_t r0 = (int32_t)below(r, (uint32_t)rows), r1 = r0 + (int32_t)below(r, (uint32_t)(rows - r0)) + 1;
    assert_non_null(y);
    m.act = a;
    m.y = y + BEFORE;
    m.ldy = ldy;
    m.next = below(r, 2) ? p->w.data : NULL;
    fill(y, n);
    k->matmul[m.type](&m, r0, r1);
    check_rows(p, &m, r0, r1);
    check_untouched(p, &m, y, n, r0, r1);
    k->matmul[m.type](&m, r1, rows);
    k->matmul[m.type](&m, 0, r0);
    k->matmul[m.type](&m, r0, r0);
    check_rows(p, &m, 0, rows);
    check_untouched(p, &m, y, n, 0, rows);
    fill(y, n);
    k->matmul[m.type](&m, 0, rows);
    check_rows(p, &m, 0, rows);
    check_untouched(p, &m, y, n, 0, rows);
    mf_free(y);
}

typedef struct sizes {
    const int32_t *rows, *nt;
    size_t n_rows, n_nt;
} sizes;

static void check_problem(problem *p, const cpu_kernels *k, sizes s)
{
    mf_rng r;
    mf_rng_seed(&r, (uint64_t)p->k);
    solve_scalar(p);
    for (size_t i = 0; i < s.n_nt; i++) {
        cpu_act a = {0};
        guarded g = {0};
        if (!is_float(p->c)) g = quantize_all(p, k, &a, s.nt[i]);
        for (size_t j = 0; j < s.n_rows; j++) check_size(p, k, &a, s.rows[j], s.nt[i], &r);
        if (g.map) guarded_free(&g);
    }
    problem_free(p);
}

static const int32_t all_rows[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 12, 13, 15, 16,
                                   17, 20, 23, 24, 25, 29, 31, 32, 33, 37, 40, 64, 83, 256};
static const int32_t all_nt[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 64, 100};

/* Every size for small k, some for larger k. */
static void check_type(const type_case *c, const cpu_kernels *k)
{
    static const int32_t k1[] = {1, 3, 16, 17, 47, 96, 513}, k32[] = {32, 64, 96, 224, 352},
                         k256[] = {256, 768};
    static const int32_t rows[] = {1, 3, 8, 11, 16, 21, 50, 83}, nt[] = {1, 2, 3, 5, 8, 9, 13, 17};
    const int32_t *ks = c->values == 1 ? k1 : c->values == 32 ? k32 : k256;
    size_t n = c->values == 1 ? LEN(k1) : c->values == 32 ? LEN(k32) : LEN(k256);
    for (int extreme = 0; extreme < 2; extreme++) {
        for (size_t i = 0; i < n; i++) {
            problem p = problem_new(c, 256, ks[i], 100, extreme);
            check_problem(&p, k, (sizes){all_rows, all_nt, LEN(all_rows), LEN(all_nt)});
        }
        problem p = problem_new(c, 83, is_float(c) ? 1531 : 1536, 17, extreme);
        check_problem(&p, k, (sizes){rows, nt, LEN(rows), LEN(nt)});
    }
}

static cpu_kernels kernels_of(cpu_tier t)
{
    cpu_kernels k;
    cpu_kernels_select(&k, t);
    assert_string_equal(k.tier, cpu_tier_name(t));
    return k;
}

#define NEED(t) \
    if (!cpu_tier_usable(t)) SKIP_BECAUSE("%s is not usable here", cpu_tier_name(t))

static void check_tier(cpu_tier t)
{
    cpu_kernels k = kernels_of(t);
    for (size_t i = 0; i < LEN(types); i++) check_type(&types[i], &k);
}

static void avx2_has_the_bits_of_scalar(void **state)
{
    (void)state;
    NEED(CPU_TIER_AVX2);
    check_tier(CPU_TIER_AVX2);
}

static void avx512_has_the_bits_of_scalar(void **state)
{
    (void)state;
    NEED(CPU_TIER_AVX512);
    check_tier(CPU_TIER_AVX512);
}

static void neon_has_the_bits_of_scalar(void **state)
{
    (void)state;
    NEED(CPU_TIER_NEON);
    check_tier(CPU_TIER_NEON);
}

/* Rows so long that a panel does not fit the scratch memory, that fewer than a whole unit does, and that one
 * row of floats does not. */
static void check_long_rows(cpu_tier t)
{
    static const int32_t rows[] = {17, 20}, nt[] = {1, 2, 9}, more_rows[] = {83}, one_nt[] = {13};
    cpu_kernels k = kernels_of(t);
    for (size_t i = 0; i < LEN(types); i++) {
        bool f = is_float(&types[i]);
        problem p = problem_new(&types[i], 20, f ? CPU_SCRATCH / 4 + 19 : 256 * 500, 9, false);
        check_problem(&p, &k, (sizes){rows, nt, LEN(rows), LEN(nt)});
        p = problem_new(&types[i], 83, f ? 20011 : 15360, 13, false);
        check_problem(&p, &k, (sizes){more_rows, one_nt, 1, 1});
    }
}

static void long_rows_avx2(void **state)
{
    (void)state;
    NEED(CPU_TIER_AVX2);
    check_long_rows(CPU_TIER_AVX2);
}

static void long_rows_avx512(void **state)
{
    (void)state;
    NEED(CPU_TIER_AVX512);
    check_long_rows(CPU_TIER_AVX512);
}

static void long_rows_neon(void **state)
{
    (void)state;
    NEED(CPU_TIER_NEON);
    check_long_rows(CPU_TIER_NEON);
}

/* Chains of products that underflow to -0: a lane without an element must not add +0. */
static void products_that_underflow_keep_their_sign(void **state)
{
    (void)state;
    static const int32_t rows[] = {1, 3, 4, 9}, nt[] = {1, 2, 3, 7};
    for (cpu_tier tier = 0; tier < CPU_TIER_COUNT; tier++) {
        if (!cpu_tier_usable(tier)) continue;
        cpu_kernels k = kernels_of(tier);
        for (size_t i = 0; i < LEN(types); i++) {
            if (!is_float(&types[i])) continue;
            problem p = problem_new(&types[i], 9, 21, 7, false);
            uint16_t small = types[i].type == MF_TYPE_F16 ? mf_f32_to_f16(1e-4f) : mf_f32_to_bf16(1e-4f);
            for (size_t j = 0; j < 9 * 21; j++) {
                float f = 1e-4f;
                memcpy(p.w.data + j * types[i].bytes, types[i].bytes == 4 ? (void *)&f : &small,
                       types[i].bytes);
            }
            for (size_t j = 0; j < 21 * 7; j++) ((float *)(void *)p.x.data)[j] = -1e-44f;
            solve_scalar(&p);
            assert_int_equal(mf_f32_bits(p.want[0]), 0x80000000u);
            check_problem(&p, &k, (sizes){rows, nt, LEN(rows), LEN(nt)});
        }
    }
}

/* ---- the scalar tier against double precision */

static void scalar_is_near_the_exact_product(void **state)
{
    (void)state;
    cpu_kernels k = kernels_of(CPU_TIER_SCALAR);
    for (size_t i = 0; i < LEN(types); i++)
        for (int n = 0; n < 6; n++) {
            problem p = problem_new(&types[i], 9, 256 * (n / 2 + 1), 3, n % 2);
            cpu_act a = {0};
            guarded g = {0};
            solve_scalar(&p);
            if (!is_float(p.c)) g = quantize_all(&p, &k, &a, p.nt);
            for (int32_t t = 0; t < p.nt; t++)
                for (int32_t r = 0; r < p.rows; r++) {
                    const uint8_t *row = p.w.data + (size_t)r * p.row_bytes;
                    const float *x = (const float *)(const void *)p.x.data + (size_t)t * (size_t)p.k;
                    exact_dot e = is_float(p.c) ? exact_float(p.c->type, row, x, (size_t)p.k)
                                                : exact_quantized(p.c->type, row, &a, t);
                    double y = (double)p.want[t * p.rows + r];
                    if (fabs(y - e.value) <= e.bound) continue;
                    print_error("%s k %d row %d token %d: %a, exact %a, bound %a\n", p.c->name, p.k, r, t, y,
                                e.value, e.bound);
                    fail();
                }
            if (g.map) guarded_free(&g);
            problem_free(&p);
        }
}

/* ---- quantizing */

/* d and q of a block from double precision; d and ds are rounded once, q where it may not tip either way. */
static void check_block(const cpu_act *a, const float *x, int32_t t, int32_t b)
{
    size_t nb = (size_t)a->k / 32, at = (size_t)t * nb + (size_t)b;
    double amax = 0;
    int sum = 0;
    for (int i = 0; i < 32; i++) amax = fmax(amax, fabs((double)x[i]));
    if (amax < ldexp(1, -118)) amax = 0;
    assert_true(a->d[at] == (float)(amax / 127));
    for (int i = 0; i < 32; i++) {
        int q = a->q[at * 32 + (size_t)i];
        double v = amax > 0 ? (double)x[i] * 127 / amax : 0;
        assert_true(fabs(q - v) <= 0.5 + 127 * ldexp(3, -24) && q >= -127 && q <= 127);
        sum += q;
    }
    assert_true(a->ds[at] == (float)((double)a->d[at] * sum));
}

/* Every number of a tile, by its description. */
static void check_tile(const cpu_act *a, cpu_tier tier, int32_t t, int32_t b)
{
    size_t nb = (size_t)a->k / 32, at = (size_t)t * nb + (size_t)b;
    int32_t tile = t / a->tok, width = a->nt - tile * a->tok < a->tok ? a->nt - tile * a->tok : a->tok;
    const int32_t *p = a->tiles + ((size_t)(tile * a->tok) * nb + (size_t)(b * width)) * ACT_DWORDS +
                       t % a->tok;
    int s[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
        int8_t q = a->q[at * 32 + (size_t)i];
        int entry = i / 4, paired = entry / 2 * 2 * width + t % a->tok + entry % 2;
        s[i / 16] += q;
        uint32_t dword = (uint32_t)p[ACT_Q * width + (tier == CPU_TIER_NEON ? paired : entry * width)];
        assert_int_equal((int8_t)(dword >> 8 * (i % 4)), q);
    }
    assert_int_equal(p[ACT_Z * width], -8 * (s[0] + s[1]));
    assert_int_equal((int16_t)p[ACT_PAIR * width], -16 * s[0]);
    assert_int_equal(p[ACT_PAIR * width] >> 16, -16 * s[1]);
    assert_int_equal(p[ACT_Z16 * width], -32 * s[0]);
    assert_int_equal(p[(ACT_Z16 + 1) * width], -32 * s[1]);
    assert_memory_equal(p + ACT_D * width, a->d + at, 4);
    assert_memory_equal(p + ACT_DS * width, a->ds + at, 4);
}

enum { QUANT_K = 640 };

static void random_tokens(float *x, size_t n, uint64_t seed)
{
    mf_rng r;
    mf_rng_seed(&r, seed);
    for (size_t i = 0; i < n; i++) x[i] = random_activation(&r, i, true);
    for (size_t i = 0; i < n; i += 97) x[i] = i % 2 ? 3.4e38f : -3.4e38f;
    for (size_t i = 32; i + 32 <= n; i += 320) /* halves between two integers, exactly */
        for (size_t j = 0; j < 32; j++) x[i + j] = (j ? (float)j - 16.5f : 127) * 0.25f;
}

static void quantizing_is_right_and_the_same_everywhere(void **state)
{
    (void)state;
    static const int32_t nts[] = {1, 2, 7, 8, 9, 12, 13, 31};
    for (size_t i = 0; i < LEN(nts); i++) {
        int32_t nt = nts[i], nb = QUANT_K / 32, few = i % 2 ? CPU_TILE_SMALL : 32;
        size_t ldx = QUANT_K + 3, n = (size_t)nt * ldx, bytes = cpu_act_bytes(QUANT_K, nt);
        float *x = mf_malloc(n * sizeof *x);
        uint8_t *mem[2] = {mf_malloc_aligned(bytes), mf_malloc_aligned(bytes)};
        assert_true(x && mem[0] && mem[1]);
        random_tokens(x, n, (uint64_t)nt);
        for (cpu_tier tier = 0; tier < CPU_TIER_COUNT; tier++) {
            if (!cpu_tier_usable(tier)) continue;
            cpu_kernels k = kernels_of(tier);
            cpu_act a;
            memset(mem[tier != 0], 0xaa, bytes);
            cpu_act_bind(&a, mem[tier != 0], QUANT_K, nt, few);
            k.quantize(&a, x, ldx, nt / 2, nt, 0, 7);
            k.quantize(&a, x, ldx, 0, nt / 2, 0, nb);
            k.quantize(&a, x, ldx, nt / 2, nt, 7, nb);
            size_t same = tier == CPU_TIER_NEON ? (size_t)((uint8_t *)a.tiles - mem[1]) : bytes;
            if (tier) assert_memory_equal(mem[0], mem[1], same); /* NEON's tiles have an order of their own */
            for (int32_t t = 0; t < nt; t++)
                for (int32_t b = 0; b < nb; b++) {
                    check_block(&a, x + (size_t)t * ldx + (size_t)b * 32, t, b);
                    check_tile(&a, tier, t, b);
                }
        }
        mf_free(x);
        mf_free_aligned(mem[0]);
        mf_free_aligned(mem[1]);
    }
}

/* What is not finite must not become a number. */
static void values_that_are_not_finite_stay_visible(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (cpu_tier tier = 0; tier < CPU_TIER_COUNT; tier++) {
        if (!cpu_tier_usable(tier)) continue;
        cpu_kernels k = kernels_of(tier);
        for (size_t i = 0; i < LEN(bad); i++) {
            float x[64] = {0}, y[64];
            uint8_t w[34 * 2 * 16] = {0};
            void *mem = mf_malloc_aligned(cpu_act_bytes(64, 1) + CPU_SCRATCH);
            cpu_act a;
            assert_non_null(mem);
            x[40] = bad[i];
            cpu_act_bind(&a, mem, 64, 1, k.few);
            k.quantize(&a, x, 64, 0, 1, 0, 2);
            assert_true(a.d[0] == 0 && isnan(a.d[1]) && isnan(a.ds[1]));
            for (size_t j = 0; j < 64; j++) assert_int_equal(a.q[j], 0);
            cpu_matmul m = {
                .type = MF_TYPE_Q8_0, .rows = 16, .k = 64, .nt = 1, .w = w, .act = &a, .y = y, .ldy = 16};
            m.scratch = (uint8_t *)mem + cpu_act_bytes(64, 1);
            k.matmul[MF_TYPE_Q8_0](&m, 0, 16);
            for (size_t j = 0; j < 16; j++) assert_true(isnan(y[j]));
            mf_free_aligned(mem);
        }
    }
}

/* ---- tiers */

static void tiers_are_ordered_and_capped(void **state)
{
    (void)state;
    assert_true(cpu_tier_usable(CPU_TIER_SCALAR));
    for (cpu_tier cap = 0; cap < CPU_TIER_COUNT; cap++) {
        cpu_kernels k;
        cpu_tier best = CPU_TIER_SCALAR;
        for (cpu_tier t = 0; t <= cap; t++) best = cpu_tier_usable(t) ? t : best;
        cpu_kernels_select(&k, cap);
        assert_string_equal(k.tier, cpu_tier_name(best));
        for (size_t i = 0; i < LEN(types); i++) assert_true(k.matmul[types[i].type] != NULL);
        assert_null(k.matmul[MF_TYPE_I32]);
        assert_non_null(k.quantize);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiers_are_ordered_and_capped),
        cmocka_unit_test(quantizing_is_right_and_the_same_everywhere),
        cmocka_unit_test(values_that_are_not_finite_stay_visible),
        cmocka_unit_test(scalar_is_near_the_exact_product),
        cmocka_unit_test(avx2_has_the_bits_of_scalar),
        cmocka_unit_test(neon_has_the_bits_of_scalar),
        cmocka_unit_test(avx512_has_the_bits_of_scalar),
        cmocka_unit_test(long_rows_avx2),
        cmocka_unit_test(long_rows_neon),
        cmocka_unit_test(long_rows_avx512),
        cmocka_unit_test(products_that_underflow_keep_their_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
