/* Attention: every tier against scalar C bit for bit, rows and tiles split in every way, scalar C against
 * softmax in double with bounds that follow from the roundings. */
#include "cpu/guard.h"
#include "cpu/matmul_exact.h"

#include "base/half.h"

#include <math.h>
#include <stdlib.h>

static const double U = 0x1p-24; /* half an ulp */
static const double E = 2.4e-7;  /* error of e(x) */

enum { MAX_ROWS = 80 };

/* One call with memory of its own: cells end at a trapping page after the last row's last cell. */
typedef struct attn_case {
    cpu_attn_tile t;
    guard q, k, v, part;
    const float *rows[MAX_ROWS];
    int32_t n[MAX_ROWS];
    size_t part_floats;
} attn_case;

/* Values that K and V take: wild ones are far from each other and of both zeros, and their dots stay finite.
 */
static float kv_value(mf_rng *r, bool wild, bool half)
{
    float x = wild ? random_wild(r, half ? 60000.f : 1e10f) : 2 * random_unit(r);
    return half ? mf_f16_to_f32(mf_f32_to_f16(x)) : x;
}

static void put_value(void *kv, mf_type type, size_t at, float x)
{
    uint16_t h = mf_f32_to_f16(x);
    if (type == MF_TYPE_F16)
        memcpy((unsigned char *)kv + at, &h, sizeof h);
    else
        memcpy((unsigned char *)kv + at, &x, sizeof x);
}

static float get_value(const cpu_attn_tile *t, const void *kv, int32_t c, int32_t d)
{
    const unsigned char *cell = (const unsigned char *)kv + (size_t)c * t->cell_bytes;
    uint16_t h;
    float x;
    if (t->kv_type == MF_TYPE_Q8_0) return (float)exact_weight(MF_TYPE_Q8_0, cell, (size_t)d);
    memcpy(&h, cell + 2 * d, sizeof h);
    if (t->kv_type == MF_TYPE_F16) return mf_f16_to_f32(h);
    memcpy(&x, cell + 4 * d, sizeof x);
    return x;
}

typedef struct shape {
    int32_t head_dim, rows;
    mf_type type;
    bool wild, apart; /* apart: other heads lie between the cells */
} shape;

/* Blocks of Q8_0 in all bit patterns but scales that are not finite. */
static void fill_packed(unsigned char *p, size_t bytes, bool wild, mf_rng *r)
{
    for (size_t i = 0; i < bytes; i += MF_BYTES_Q8_0) {
        put_value(p, MF_TYPE_F16, i, wild ? random_wild(r, 60000.f) : 0.02f * (1.5f + random_unit(r)));
        for (size_t k = 2; k < MF_BYTES_Q8_0; k++) p[i + k] = (unsigned char)mf_rng_u64(r);
    }
}

static void fill_cells(void *kv, shape s, size_t cells, size_t step, mf_rng *r)
{
    size_t value = s.type == MF_TYPE_F16 ? 2 : 4, head = (size_t)s.head_dim;
    if (s.type == MF_TYPE_Q8_0) {
        fill_packed(kv, cells * step, s.wild, r);
        return;
    }
    for (size_t i = 0; i < cells * head; i++)
        put_value(kv, s.type, i / head * step + i % head * value, kv_value(r, s.wild, s.type == MF_TYPE_F16));
}

static void case_new(attn_case *c, shape s, const int32_t *n, mf_rng *r)
{
    size_t value = s.type == MF_TYPE_F32 ? 4 : 2, head = (size_t)s.head_dim, cell;
    assert_true(mf_type_row_bytes(s.type, head, &cell));
    size_t step = s.apart && s.type != MF_TYPE_Q8_0 ? 3 * cell + 64 : cell, cells = (size_t)n[s.rows - 1],
           used = (cells - 1) * step + cell;
    c->q = guard_new(head * (size_t)s.rows * sizeof(float), 4 * (mf_rng_u64(r) % 16));
    c->k = guard_new(used, value * (mf_rng_u64(r) % 16));
    c->v = guard_new(used, value * (mf_rng_u64(r) % 16));
    c->part_floats = (head + 2) * (size_t)s.rows;
    c->part = guard_new(c->part_floats * sizeof(float), 4 * (mf_rng_u64(r) % 16));
    for (size_t i = 0; i < head * (size_t)s.rows; i++)
        ((float *)c->q.p)[i] = s.wild ? random_wild(r, 1e6f) : 3 * random_unit(r);
    fill_cells(c->k.p, s, cells, step, r);
    fill_cells(c->v.p, s, cells, step, r);
    for (int32_t i = 0; i < s.rows; i++) {
        c->rows[i] = (float *)c->q.p + (size_t)i * head;
        c->n[i] = n[i];
    }
    c->t = (cpu_attn_tile){.head_dim = s.head_dim,
                           .rows = s.rows,
                           .scale = s.wild ? 1e-9f : 1 / sqrtf((float)s.head_dim),
                           .kv_type = s.type,
                           .k = c->k.p,
                           .v = c->v.p,
                           .cell_bytes = step,
                           .q = c->rows,
                           .n = c->n,
                           .part = c->part.p};
}

static void case_free(attn_case *c)
{
    guard_free(&c->q);
    guard_free(&c->k);
    guard_free(&c->v);
    guard_free(&c->part);
}

/* The partial results by another table, in rows [r0, r1) of the call. */
static void rows_by(const cpu_kernels *k, const attn_case *c, int32_t r0, int32_t r1, float *part)
{
    cpu_attn_tile t = c->t;
    t.q += r0;
    t.n += r0;
    t.rows = r1 - r0;
    t.part = part + (size_t)r0 * (size_t)(2 + t.head_dim);
    k->attn_tile(&t);
}

static void compare(const cpu_kernels *ref, const cpu_kernels *k, shape s, const int32_t *n, mf_rng *r)
{
    attn_case c;
    char what[160];
    case_new(&c, s, n, r);
    float *want = mf_malloc(c.part_floats * sizeof(float));
    assert_non_null(want);
    rows_by(ref, &c, 0, s.rows, want);
    k->attn_tile(&c.t);
    snprintf(what, sizeof what, "head_dim %d, %d rows of n %d..%d, %s%s", s.head_dim, s.rows, n[0],
             n[s.rows - 1], mf_type_name(s.type), s.wild ? ", wild" : "");
    assert_same_bits(what, want, c.part.p, c.part_floats);
    mf_free(want);
    case_free(&c);
}

static int by_value(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* Windows as calls have them: one token; heads of tokens one after the other; any. */
static void fill_n(int32_t *n, int32_t rows, int kind, mf_rng *r)
{
    int32_t first = 1 + (int32_t)(mf_rng_u64(r) % CPU_ATTN_TILE), heads = 1 + (int32_t)(mf_rng_u64(r) % 7);
    for (int32_t i = 0; i < rows; i++) {
        int32_t causal = first + i / heads;
        n[i] = kind == 0 ? first : kind == 1 ? causal : 1 + (int32_t)(mf_rng_u64(r) % CPU_ATTN_TILE);
        if (n[i] > CPU_ATTN_TILE) n[i] = CPU_ATTN_TILE;
    }
    qsort(n, (size_t)rows, sizeof *n, by_value);
}

/* Any of the types that cells of this size can have. */
static mf_type type_for(int32_t head_dim, uint64_t u)
{
    static const mf_type types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    return types[u % (head_dim % MF_QK32 ? 2 : 3)];
}

static void test_shapes_same_bits(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    static const int32_t dims[] = {2,  6,   16,  20,  24,  32,  48,  64,  64,  72,  80,  80, 96,
                                   96, 112, 128, 128, 144, 160, 176, 192, 208, 224, 256, 256};
    static const int32_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 21, 31, 32, 33, 48, 53};
    mf_rng r;
    int32_t n[MAX_ROWS];
    mf_rng_seed(&r, 31);
    for (size_t d = 0; d < COUNT(dims); d++)
        for (size_t i = d % 2; i < COUNT(rows); i += 2) { /* common sizes come twice */
            uint64_t u = mf_rng_u64(&r);
            shape s = {dims[d], rows[i], type_for(dims[d], u >> 8), u >> 1 & 1, u >> 2 & 1};
            fill_n(n, s.rows, (int)(u >> 3) % 3, &r);
            compare(&ref, &k, s, n, &r);
        }
}

static void test_every_n_same_bits(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    mf_rng r;
    int32_t n[MAX_ROWS];
    mf_rng_seed(&r, 32);
    for (int32_t c = 1; c <= CPU_ATTN_TILE; c++)
        for (int i = 0; i < 4; i++) {
            shape s = {16, i % 2 ? 16 : 3, c % 2 ? MF_TYPE_F16 : MF_TYPE_F32, c % 3 == 0, false};
            if (i > 1) s.type = MF_TYPE_Q8_0, s.head_dim = 32;
            for (int32_t row = 0; row < s.rows; row++) n[row] = row < 2 ? (c + 1) / 2 : c;
            compare(&ref, &k, s, n, &r);
        }
}

/* Every head size from 2 on, on the path it takes. */
static void test_every_head_dim_same_bits(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    mf_rng r;
    int32_t n[MAX_ROWS];
    mf_rng_seed(&r, 33);
    for (int32_t d = 2; d <= CPU_ATTN_HEAD; d += 2) {
        shape s = {d, 4, d % 4 ? MF_TYPE_F16 : MF_TYPE_F32, false, true};
        fill_n(n, s.rows, 1, &r);
        for (int i = 0; i < 4; i++) n[i] = (n[i] + 7) / 8;
        compare(&ref, &k, s, n, &r);
        s.type = MF_TYPE_Q8_0;
        if (d % MF_QK32 == 0) compare(&ref, &k, s, n, &r);
    }
}

/* A row is the same alone, in any company, and in any split of a call. */
static void test_any_split_of_rows(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    mf_rng r;
    int32_t n[MAX_ROWS];
    mf_rng_seed(&r, 34);
    for (int round = 0; round < 12; round++) {
        int32_t dim = round % 2 ? 64 : 80;
        shape s = {dim, MAX_ROWS - round, type_for(dim, (uint64_t)round / 2), round % 4 == 3, false};
        attn_case c;
        fill_n(n, s.rows, round % 3, &r);
        case_new(&c, s, n, &r);
        float *want = mf_malloc(c.part_floats * sizeof(float));
        assert_non_null(want);
        for (int32_t i = 0; i < s.rows; i++) rows_by(&k, &c, i, i + 1, want);
        for (int32_t i = 0, take; i < s.rows; i += take) {
            take = 1 + (int32_t)(mf_rng_u64(&r) % (round == 0 ? MAX_ROWS : 24));
            take = take > s.rows - i ? s.rows - i : take;
            rows_by(&k, &c, i, i + take, c.part.p);
        }
        assert_same_bits("split", want, c.part.p, c.part_floats);
        mf_free(want);
        case_free(&c);
    }
}

static void test_no_rows(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    cpu_attn_tile t = {.head_dim = 64, .scale = 1, .kv_type = MF_TYPE_F16, .cell_bytes = 128};
    k.attn_tile(&t);
}

/* ---- merging ---- */

/* n_tiles partials as tiles make them: every l is at least 1. */
static void random_partials(float *part, size_t stride, int32_t n_tiles, int32_t head_dim, mf_rng *r)
{
    for (int32_t i = 0; i < n_tiles; i++) {
        float *p = part + (size_t)i * stride;
        p[0] = (mf_rng_u64(r) % 4 ? 8.f : 100.f) * random_unit(r);
        p[1] = 1 + 255 * fabsf(random_unit(r));
        for (int32_t d = 0; d < head_dim; d++) p[2 + d] = 50 * random_unit(r);
    }
}

static void test_merge_same_bits(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    mf_rng r;
    mf_rng_seed(&r, 35);
    for (int32_t d = 2; d <= CPU_ATTN_HEAD; d += d < 40 ? 2 : 8)
        for (int32_t n_tiles = 1; n_tiles <= 40; n_tiles += 3) {
            size_t stride = (size_t)d + 2 + (size_t)(n_tiles % 2) * 7, size = (size_t)d * sizeof(float);
            guard part = guard_new(((size_t)(n_tiles - 1) * stride + 2 + (size_t)d) * sizeof(float), 0);
            guard y = guard_new(size, 4 * (mf_rng_u64(&r) % 8));
            float want[CPU_ATTN_HEAD];
            random_partials(part.p, stride, n_tiles, d, &r);
            ref.attn_merge(part.p, stride, n_tiles, d, want);
            k.attn_merge(part.p, stride, n_tiles, d, y.p);
            assert_same_bits("merge", want, y.p, (size_t)d);
            guard_free(&part);
            guard_free(&y);
        }
}

static void assert_near(const char *what, double want, float got, double bound)
{
    if (!(fabs(want - (double)got) <= bound))
        fail_msg("%s: %a, should be %a within %g", what, (double)got, want, bound);
}

/* The weight of a tile has the error of e and of a rounded difference; numerator and denominator are chains
 * of n_tiles steps, and one division. */
static void test_merge_against_double(void **state)
{
    (void)state;
    cpu_kernels ref;
    enum { DIM = 10, MOST = 40, STRIDE = DIM + 2 };
    float part[MOST * STRIDE], y[DIM];
    mf_rng r;
    mf_rng_seed(&r, 36);
    rows_tier(CPU_TIER_SCALAR, &ref);
    for (int32_t n = 1; n <= MOST; n++) {
        double m = -INFINITY, l = 0;
        random_partials(part, STRIDE, n, DIM, &r);
        for (int32_t i = 0; i < n; i++) m = fmax(m, (double)part[i * STRIDE]);
        for (int32_t i = 0; i < n; i++) l += (double)part[i * STRIDE + 1] * exp((double)part[i * STRIDE] - m);
        ref.attn_merge(part, STRIDE, n, DIM, y);
        for (int32_t d = 0; d < DIM; d++) {
            double o = 0, size = 0;
            for (int32_t i = 0; i < n; i++) {
                double term = (double)part[i * STRIDE + 2 + d] * exp((double)part[i * STRIDE] - m);
                o += term;
                size += fabs(term);
            }
            assert_near("merge", o / l, y[d], size / l * (2 * (E + 88 * U) + (2 * n + 2) * U) + 1e-35);
        }
    }
}

/* ---- scalar C against softmax in double ---- */

/* Attention of one row over cells [0, n), with the bound of what float arithmetic in tiles may do to it. */
typedef struct exact {
    double s[2048], s_error, max, l;
} exact;

static void exact_scores(exact *x, const cpu_attn_tile *t, const float *q, int32_t n)
{
    x->max = -INFINITY;
    x->s_error = 0;
    x->l = 0;
    for (int32_t c = 0; c < n; c++) {
        double dot = 0, size = 0;
        for (int32_t d = 0; d < t->head_dim; d++) {
            double p = (double)q[d] * (double)get_value(t, t->k, c, d);
            dot += p;
            size += fabs(p);
        }
        double scale = fabs((double)t->scale),
               e = scale * (size * (t->head_dim / 16 + 1 + 4) + fabs(dot)) * U;
        x->s[c] = dot * (double)t->scale;
        x->max = fmax(x->max, x->s[c]);
        x->s_error = fmax(x->s_error, e);
    }
    for (int32_t c = 0; c < n; c++) x->l += exp(x->s[c] - x->max);
}

/* Errors of scores and of the maximum, a rounded difference, e; tiles repeat the last two. Then the chains of
 * a tile, the chain over tiles, the sum's tree, and the division. */
static void assert_attention(const exact *x, const cpu_attn_tile *t, int32_t n, const float *y)
{
    int32_t tiles = (n + CPU_ATTN_TILE - 1) / CPU_ATTN_TILE;
    double weight = expm1(2 * x->s_error + 2 * (88 * U)) + 2.1 * E;
    double chains = (CPU_ATTN_TILE + CPU_ATTN_TILE / 16 + 4 + 2 * tiles + 2) * U;
    for (int32_t d = 0; d < t->head_dim; d++) {
        double o = 0, size = 0;
        for (int32_t c = 0; c < n; c++) {
            double term = exp(x->s[c] - x->max) * (double)get_value(t, t->v, c, d);
            o += term;
            size += fabs(term);
        }
        assert_near("attention", o / x->l, y[d], size / x->l * (2 * weight + chains) + 1e-30);
    }
}

/* A window of n cells at the start of a sequence, tile by tile, and merged. part: one partial a tile. */
static void window(const cpu_kernels *k, const cpu_attn_tile *all, int32_t n, float *part, float *y)
{
    size_t stride = (size_t)(2 + all->head_dim);
    int32_t tiles = 0;
    for (int32_t c = 0; c < n; c += CPU_ATTN_TILE, tiles++) {
        cpu_attn_tile t = *all;
        int32_t seen = n - c < CPU_ATTN_TILE ? n - c : CPU_ATTN_TILE;
        t.k = (const char *)all->k + (size_t)c * all->cell_bytes;
        t.v = (const char *)all->v + (size_t)c * all->cell_bytes;
        t.n = &seen;
        t.rows = 1;
        t.part = part + (size_t)tiles * stride;
        k->attn_tile(&t);
    }
    k->attn_merge(part, stride, tiles, all->head_dim, y);
}

/* One call per tile for the rows that see it, as a prefill makes them, gives what each row gives alone. */
static void prefill(const cpu_kernels *k, const cpu_attn_tile *all, const float *const *q, int32_t first,
                    int32_t rows, float *part)
{
    size_t row = (size_t)(2 + all->head_dim);
    for (int32_t c = 0, tile = 0; c < first + rows; c += CPU_ATTN_TILE, tile++) {
        int32_t skip = c > first ? c - first : 0, n[MAX_ROWS];
        cpu_attn_tile t = *all;
        for (int32_t i = skip; i < rows; i++) {
            n[i] = first + i + 1 - c;
            n[i] = n[i] < CPU_ATTN_TILE ? n[i] : CPU_ATTN_TILE;
        }
        t.k = (const char *)all->k + (size_t)c * all->cell_bytes;
        t.v = (const char *)all->v + (size_t)c * all->cell_bytes;
        t.n = n + skip;
        t.q = q + skip;
        t.rows = rows - skip;
        t.part = part + ((size_t)tile * MAX_ROWS + (size_t)skip) * row;
        k->attn_tile(&t);
    }
}

static void test_windows_in_tiles(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    enum { DIM = 64, CELLS = 560, TILES = 3 };
    static uint16_t kv[2][CELLS * DIM];
    static float q[MAX_ROWS * DIM], alone[TILES * (DIM + 2)], part[TILES * MAX_ROWS * (DIM + 2)];
    const float *rows[MAX_ROWS];
    float want[DIM], y[DIM];
    exact x;
    mf_rng r;
    mf_rng_seed(&r, 37);
    for (int i = 0; i < CELLS * DIM; i++) {
        kv[0][i] = mf_f32_to_f16(2 * random_unit(&r));
        kv[1][i] = mf_f32_to_f16(random_unit(&r));
    }
    for (int i = 0; i < MAX_ROWS * DIM; i++) q[i] = 3 * random_unit(&r);
    for (int i = 0; i < MAX_ROWS; i++) rows[i] = q + (size_t)i * DIM;
    cpu_attn_tile t = {
        .head_dim = DIM, .scale = 0.125f, .kv_type = MF_TYPE_F16, .k = kv[0], .v = kv[1], .q = rows};
    t.cell_bytes = DIM * 2;
    static const int32_t first[] = {0, 1, 200, 240, 255, 256, 480};
    for (size_t i = 0; i < COUNT(first); i++) {
        prefill(&k, &t, rows, first[i], MAX_ROWS, part);
        for (int32_t row = 0; row < MAX_ROWS; row++) {
            int32_t n = first[i] + row + 1, tiles = (n + CPU_ATTN_TILE - 1) / CPU_ATTN_TILE;
            t.q = &rows[row];
            window(&ref, &t, n, alone, want);
            k.attn_merge(part + row * (DIM + 2), MAX_ROWS * (DIM + 2), tiles, DIM, y);
            assert_same_bits("window", want, y, DIM);
            exact_scores(&x, &t, rows[row], n);
            assert_attention(&x, &t, n, y);
        }
    }
}

static void test_against_double(void **state)
{
    (void)state;
    cpu_kernels ref;
    static exact x;
    mf_rng r;
    float y[CPU_ATTN_HEAD];
    mf_rng_seed(&r, 38);
    rows_tier(CPU_TIER_SCALAR, &ref);
    static const int32_t dims[] = {2, 20, 64, 80, 96, 128, 256};
    for (size_t i = 0; i < COUNT(dims); i++)
        for (int32_t n = 1; n <= CPU_ATTN_TILE; n = 3 * n / 2 + 1) {
            attn_case c;
            case_new(&c, (shape){dims[i], 1, n % 2 ? MF_TYPE_F16 : MF_TYPE_F32, false, true}, &n, &r);
            ref.attn_tile(&c.t);
            ref.attn_merge(c.part.p, 0, 1, dims[i], y);
            exact_scores(&x, &c.t, c.rows[0], n);
            assert_attention(&x, &c.t, n, y);
            assert_near("m", x.max, ((float *)c.part.p)[0], x.s_error);
            case_free(&c);
        }
}

/* ---- extreme scores ---- */

enum { BIG_DIM = 128, BIG_ROWS = 17 };

/* BIG_ROWS equal query rows over n cells of F16; row BIG_ROWS - 1 runs with the groups, the others as a
 * block. */
typedef struct big_case {
    uint16_t k[CPU_ATTN_TILE][BIG_DIM], v[CPU_ATTN_TILE][BIG_DIM];
    float q[BIG_DIM], part[BIG_ROWS][2 + BIG_DIM];
    const float *rows[BIG_ROWS];
    int32_t n[BIG_ROWS];
    cpu_attn_tile t;
} big_case;

static void big_fill(big_case *b, int32_t n, float q, float k)
{
    for (int i = 0; i < BIG_DIM; i++) b->q[i] = q;
    for (int c = 0; c < CPU_ATTN_TILE; c++)
        for (int i = 0; i < BIG_DIM; i++) {
            b->k[c][i] = mf_f32_to_f16(k);
            b->v[c][i] = mf_f32_to_f16((float)(c % 7) + (float)i / 128);
        }
    for (int i = 0; i < BIG_ROWS; i++) {
        b->rows[i] = b->q;
        b->n[i] = n;
    }
    b->t = (cpu_attn_tile){.head_dim = BIG_DIM, .rows = BIG_ROWS, .scale = 1, .kv_type = MF_TYPE_F16};
    b->t.k = b->k;
    b->t.v = b->v;
    b->t.cell_bytes = sizeof b->k[0];
    b->t.q = b->rows;
    b->t.n = b->n;
    b->t.part = b->part[0];
}

/* 128 * 30 * 30 = 115200 does not fit a half, and is exact in float. */
static void test_dot_beyond_half(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    static big_case b;
    big_fill(&b, 14, 30, 30);
    k.attn_tile(&b.t);
    for (int r = 0; r < BIG_ROWS; r++) {
        assert_true(b.part[r][0] == 115200);
        assert_true(b.part[r][1] == 14); /* all equal: every p is 1 */
        for (int d = 0; d < BIG_DIM; d++) assert_true(b.part[r][2 + d] == 2 * 21 + 14 * ((float)d / 128));
    }
}

/* One channel of K far off, as in a model whose key bias is 354 and query bias 28.9. */
static void test_shifted_keys(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    static big_case b;
    static exact x;
    float y[BIG_DIM];
    mf_rng r;
    mf_rng_seed(&r, 39);
    big_fill(&b, 200, 0, 0);
    b.t.scale = 1 / sqrtf(BIG_DIM);
    for (int c = 0; c < CPU_ATTN_TILE; c++)
        for (int i = 0; i < BIG_DIM; i++) {
            b.k[c][i] = mf_f32_to_f16(2 * random_unit(&r) + (i == 5 ? 354.f : 0.f));
            b.v[c][i] = mf_f32_to_f16(random_unit(&r));
        }
    for (int i = 0; i < BIG_DIM; i++) b.q[i] = 2 * random_unit(&r) + (i == 5 ? 28.9f : 0.f);
    k.attn_tile(&b.t);
    exact_scores(&x, &b.t, b.q, 200);
    for (int row = 0; row < BIG_ROWS; row++) {
        k.attn_merge(b.part[row], 0, 1, BIG_DIM, y);
        assert_attention(&x, &b.t, 200, y);
    }
}

/* ---- packed cells */

/* Attention in double over cells as they were before they were stored. */
static void unstored_attention(float (*k)[BIG_DIM], float (*v)[BIG_DIM], const float *q, int n, double *y)
{
    double s[CPU_ATTN_TILE], max = -INFINITY, sum = 0;
    for (int c = 0; c < n; c++) {
        s[c] = 0;
        for (int d = 0; d < BIG_DIM; d++) s[c] += (double)q[d] * (double)k[c][d] / sqrt(BIG_DIM);
        max = fmax(max, s[c]);
    }
    for (int d = 0; d < BIG_DIM; d++) y[d] = 0;
    for (int c = 0; c < n; c++) sum += exp(s[c] - max);
    for (int c = 0; c < n; c++)
        for (int d = 0; d < BIG_DIM; d++) y[d] += exp(s[c] - max) / sum * (double)v[c][d];
}

static double difference(const double *want, const float *got)
{
    double sum = 0, size = 0;
    for (int d = 0; d < BIG_DIM; d++) {
        sum += (want[d] - (double)got[d]) * (want[d] - (double)got[d]);
        size += want[d] * want[d];
    }
    return sqrt(sum / size);
}

/* The shifted channel takes the other 31 of its block to a step of 354 / 127; the blocks without it still
 * tell cells apart. Every twentieth key resembles the query there. */
static void test_shifted_keys_packed(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    enum { N = 200 };
    static big_case b;
    static float key[N][BIG_DIM], value[N][BIG_DIM];
    static uint8_t packed[2][N][BIG_DIM / MF_QK32 * MF_BYTES_Q8_0];
    double want[BIG_DIM];
    float y[BIG_DIM];
    mf_rng r;
    mf_rng_seed(&r, 41);
    big_fill(&b, N, 0, 0);
    for (int i = 0; i < BIG_DIM; i++) b.q[i] = 2 * random_unit(&r) + (i == 5 ? 28.9f : 0.f);
    for (int c = 0; c < N; c++) {
        for (int i = 0; i < BIG_DIM; i++) {
            key[c][i] = 2 * random_unit(&r) + (i == 5 ? 354.f : c % 20 == 7 && i >= MF_QK32 ? b.q[i] : 0.f);
            value[c][i] = random_unit(&r);
        }
        k.store_row(MF_TYPE_Q8_0, packed[0][c], key[c], BIG_DIM);
        k.store_row(MF_TYPE_Q8_0, packed[1][c], value[c], BIG_DIM);
    }
    b.t.scale = 1 / sqrtf(BIG_DIM);
    b.t.kv_type = MF_TYPE_Q8_0;
    b.t.k = packed[0];
    b.t.v = packed[1];
    b.t.cell_bytes = sizeof packed[0][0];
    k.attn_tile(&b.t);
    unstored_attention(key, value, b.q, N, want);
    for (int row = 0; row < BIG_ROWS; row++) {
        k.attn_merge(b.part[row], 0, 1, BIG_DIM, y);
        if (difference(want, y) > 0.1) fail_msg("relative difference %g", difference(want, y));
    }
}

/* A block that is not a number, in K or in V, spoils the rows that see it; a query that is not, all its
 * cells. */
static void test_nan_in_packed_cells(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    int32_t n[BIG_ROWS];
    mf_rng r;
    mf_rng_seed(&r, 42);
    for (int i = 0; i < BIG_ROWS; i++) n[i] = i < 14 ? 9 : 10;
    for (int where = 0; where < 3; where++) {
        attn_case c;
        case_new(&c, (shape){64, BIG_ROWS, MF_TYPE_Q8_0, false, false}, n, &r);
        if (where < 2) put_value(where ? c.v.p : c.k.p, MF_TYPE_F16, 9 * c.t.cell_bytes, NAN);
        if (where == 2) ((float *)c.q.p)[3 * 64 + 40] = INFINITY;
        k.attn_tile(&c.t);
        for (int i = 0; i < BIG_ROWS; i++) {
            const float *part = (float *)c.part.p + i * (2 + 64);
            bool hit = where == 2 ? i == 3 : i >= 14;
            assert_true(isnan(part[2]) == hit);
            assert_true(isnan(part[1]) == (hit && where != 1));
            assert_true(isnan(part[2 + 32]) == (hit && where != 1)); /* the next block of V is well */
        }
        case_free(&c);
    }
}

static void test_one_cell_dominates(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    static big_case b;
    static const int32_t where[] = {0, 3, 31, 32, 100, 255};
    for (size_t i = 0; i < COUNT(where); i++) {
        big_fill(&b, 256, 1, 0);
        for (int d = 0; d < BIG_DIM; d++) b.k[where[i]][d] = mf_f32_to_f16(79); /* 128 * 79 = 10112 */
        k.attn_tile(&b.t);
        for (int r = 0; r < BIG_ROWS; r++) {
            assert_true(b.part[r][0] == 10112 && b.part[r][1] == 1);
            for (int d = 0; d < BIG_DIM; d++)
                assert_true(b.part[r][2 + d] == mf_f16_to_f32(b.v[where[i]][d]));
        }
    }
}

/* Scores that are zeros of both signs have the maximum +0 in whatever order they are compared. A tiny q makes
 * dots of -0 by underflow. */
static void test_zero_maximum(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    static big_case b;
    for (int kind = 0; kind < 3; kind++) {
        big_fill(&b, 40, 0x1p-149f, 0);
        for (int c = 0; c < 40; c++)
            for (int d = 0; d < BIG_DIM; d++)
                b.k[c][d] = mf_f32_to_f16(kind == 2 || c % 5 == kind ? -0x1p-24f : 0.f);
        k.attn_tile(&b.t);
        for (int r = 0; r < BIG_ROWS; r++) {
            assert_int_equal(mf_f32_bits(b.part[r][0]), 0);
            assert_true(b.part[r][1] == 40);
        }
    }
}

/* A sum of underflows is -0, and stays so for rows that do not see the cells their neighbours go on with. */
static void test_negative_zero_stays(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    enum { DIM = 16 };
    attn_case c;
    mf_rng r;
    int32_t n[17];
    mf_rng_seed(&r, 40);
    for (int i = 0; i < 17; i++) n[i] = i < 15 ? 2 : 4;
    case_new(&c, (shape){DIM, 17, MF_TYPE_F32, false, false}, n, &r);
    for (int i = 0; i < 17 * DIM; i++) ((float *)c.q.p)[i] = 1;
    for (size_t i = 0; i < 4 * DIM; i++) {
        put_value(c.k.p, MF_TYPE_F32, 4 * i, i < DIM ? -10.f : 0.f);
        put_value(c.v.p, MF_TYPE_F32, 4 * i, i < DIM ? -1e-40f : i < 2 * DIM ? -0.f : 1.f);
    }
    k.attn_tile(&c.t);
    for (int i = 0; i < 17; i++)
        for (int d = 0; d < DIM; d++) {
            float o = ((float *)c.part.p)[i * (2 + DIM) + 2 + d];
            assert_true(i < 15 ? o == 0 && signbit(o) : o == 2);
        }
    case_free(&c);
}

/* Cells that are not numbers spoil exactly the rows that see them. */
static void test_nan_is_seen(void **state)
{
    TIER_OR_SKIP(state, ref, k);
    (void)ref;
    static big_case b;
    for (int in_k = 0; in_k < 2; in_k++) {
        big_fill(&b, 8, 1, 1);
        (in_k ? b.k : b.v)[9][7] = 0x7e00;
        b.n[14] = 10;
        b.n[15] = 10;
        b.n[16] = 10;
        k.attn_tile(&b.t);
        for (int r = 0; r < BIG_ROWS; r++) {
            bool spoiled = isnan(b.part[r][2 + 7]);
            assert_true(spoiled == (r >= 14));
            assert_true(isnan(b.part[r][1]) == (in_k && r >= 14));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAST_TIERS(test_shapes_same_bits),
        ON_FAST_TIERS(test_every_n_same_bits),
        ON_FAST_TIERS(test_every_head_dim_same_bits),
        ON_ALL_TIERS(test_any_split_of_rows),
        ON_ALL_TIERS(test_no_rows),
        ON_FAST_TIERS(test_merge_same_bits),
        cmocka_unit_test(test_merge_against_double),
        ON_ALL_TIERS(test_windows_in_tiles),
        cmocka_unit_test(test_against_double),
        ON_ALL_TIERS(test_dot_beyond_half),
        ON_ALL_TIERS(test_shifted_keys),
        ON_ALL_TIERS(test_shifted_keys_packed),
        ON_ALL_TIERS(test_nan_in_packed_cells),
        ON_ALL_TIERS(test_one_cell_dominates),
        ON_ALL_TIERS(test_zero_maximum),
        ON_ALL_TIERS(test_negative_zero_stays),
        ON_ALL_TIERS(test_nan_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
