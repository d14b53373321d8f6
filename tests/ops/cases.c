#include "ops/cases.h"

#include <math.h>

enum { FEWER = 8, MOST_WORK = 6000000 }; /* one case of so many under sanitizers; products in one attention */

typedef struct gen {
    op_use_fn *use;
    void *user;
    mf_rng rng;
    unsigned count;
} gen;

/* A group has at least one case, whatever is left out. */
static void group(gen *g)
{
    g->count = 0;
}

static void emit(gen *g, op_case c)
{
    if (SANITIZED && g->count++ % FEWER != 0) return;
    g->use(g->user, &c);
}

static int32_t pick(gen *g, const int32_t *from, size_t n)
{
    return from[op_below(&g->rng, (uint32_t)n)];
}
#define PICK(g, list) pick(g, list, COUNT(list))

static bool coin(gen *g)
{
    return op_below(&g->rng, 2);
}

static const int32_t tokens[] = {1, 2, 3, 5, 7, 8, 9, 12, 13, 16, 17, 31, 33, 64};
static const int32_t widths[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100, 127, 128, 257, 512};
static const int32_t out_rows[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 48, 64, 65, 97, 130};
static const int32_t head_dims[] = {2, 6, 16, 20, 32, 48, 64, 80, 96, 128, 256};
static const int32_t heads[] = {1, 2, 3, 5, 8};
static const op_style finite_styles[] = {STYLE_PLAIN, STYLE_WIDE, STYLE_SPIKES};

static const mf_type weight_types[] = {MF_TYPE_F32,  MF_TYPE_F16,  MF_TYPE_BF16, MF_TYPE_Q4_0,
                                       MF_TYPE_Q4_1, MF_TYPE_Q5_0, MF_TYPE_Q5_1, MF_TYPE_Q8_0,
                                       MF_TYPE_Q4_K, MF_TYPE_Q5_K, MF_TYPE_Q6_K};
static const mf_type cache_types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};

static int32_t block_of(mf_type t)
{
    return mf_type_get((uint32_t)t)->block_values;
}

/* ---- elements and rows ---- */

/* Widths and tokens in a third of all pairs, then few tokens that are divided by features. */
static void element_cases(gen *g, op_case c)
{
    static const int32_t wide[][2] = {{4096, 1}, {2080, 2}, {1024, 5}, {544, 8}};
    group(g);
    for (size_t i = 0; i < COUNT(widths); i++)
        for (size_t j = i % 3; j < COUNT(tokens); j += 3) {
            c.n = widths[i];
            c.nt = tokens[j];
            c.style = finite_styles[(i + j / 3) % COUNT(finite_styles)];
            emit(g, c);
        }
    for (size_t i = 0; i < COUNT(wide); i++) {
        c.n = wide[i][0];
        c.nt = wide[i][1];
        c.style = STYLE_PLAIN;
        emit(g, c);
    }
}

static void cases_add(gen *g, op_case c)
{
    element_cases(g, c);
    c.bias = true;
    element_cases(g, c);
}

static void cases_binary(gen *g, op_case c)
{
    for (c.variant = 0; c.variant < (c.op == MF_OP_SWIGLU ? 3 : 1); c.variant++) {
        c.in_place = c.variant > 0;
        element_cases(g, c);
    }
}

/* One source: left as it was, in place where the op may, and of four dimensions. */
static void cases_unary(gen *g, op_case c)
{
    static const int64_t shapes[][4] = {{5, 3, 2, 2}, {32, 1, 7, 1}, {16, 4, 1, 3}, {1, 1, 1, 1}};
    c.factor = c.op == MF_OP_RMS_NORM ? 1e-5f : c.op == MF_OP_SCALE ? -3.7f : 0;
    element_cases(g, c);
    c.in_place = true;
    element_cases(g, c);
    c.in_place = false;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        memcpy(c.shape, shapes[i], sizeof c.shape);
        c.n = (int32_t)c.shape[0];
        c.nt = (int32_t)(c.shape[1] * c.shape[2] * c.shape[3]);
        emit(g, c);
    }
}

static void cases_scale(gen *g, op_case c)
{
    cases_unary(g, c);
    c.n = 33;
    c.nt = 3;
    c.style = STYLE_WIDE;
    c.factor = 0x1p-3f;
    emit(g, c);
    c.factor = 1e-30f;
    emit(g, c);
}

static void cases_qk_norm(gen *g, op_case c)
{
    group(g);
    c.factor = 1e-6f;
    for (size_t d = 0; d < COUNT(head_dims); d++)
        for (size_t h = 0; h < COUNT(heads); h++) {
            c.head_dim = head_dims[d];
            c.n_head = heads[h];
            c.nt = PICK(g, tokens);
            c.style = finite_styles[(d + h) % COUNT(finite_styles)];
            emit(g, c);
        }
}

static void cases_rope(gen *g, op_case c)
{
    group(g);
    for (int i = 0; i < 160; i++) {
        c.head_dim = PICK(g, head_dims);
        c.n_rot = i % 3 == 0 ? 2 + 2 * (int32_t)op_below(&g->rng, (uint32_t)c.head_dim / 2) : c.head_dim;
        c.n_head = PICK(g, heads);
        c.nt = PICK(g, tokens);
        c.interleaved = i % 2;
        c.factors = i / 2 % 3 == 0;
        c.in_place = i / 4 % 2;
        c.run = coin(g) ? RUN_APART : RUN_TOGETHER;
        c.variant = i / 8 % 2;
        c.factor = i % 5 ? 1.f : 0.25f;
        c.style = finite_styles[i % (int)COUNT(finite_styles)];
        emit(g, c);
    }
}

/* ---- products ---- */

static op_style product_style(size_t i, mf_type t)
{
    if (i % 11 == 10 && mf_type_get((uint32_t)t)->quantized) return STYLE_NOT_FINITE;
    return finite_styles[i % COUNT(finite_styles)];
}

/* Widths of a few blocks, or any. */
static int32_t width_for(mf_type t, size_t i)
{
    static const int32_t blocks[] = {1, 2, 3, 5, 9, 17};
    return block_of(t) == 1 ? widths[i % COUNT(widths)]
                            : block_of(t) * blocks[i % (block_of(t) == 32 ? 6 : 4)];
}

static void cases_matmul(gen *g, op_case c)
{
    static const int64_t shape[4] = {256, 3, 2, 2};
    for (size_t t = 0; t < COUNT(weight_types); t++) {
        group(g);
        c.type = weight_types[t];
        memset(c.shape, 0, sizeof c.shape);
        for (size_t i = 0; i < COUNT(out_rows); i++)
            for (size_t j = (i + t) % 2; j < COUNT(tokens); j += 2) {
                c.n = width_for(c.type, i + j / 2);
                c.rows = out_rows[i];
                c.nt = tokens[j];
                c.style = product_style(i * 7 + j / 2, c.type);
                emit(g, c);
            }
        c.style = STYLE_PLAIN;
        c.n = 4096, c.rows = 40, c.nt = 1; /* the activation is divided by features */
        emit(g, c);
        memcpy(c.shape, shape, sizeof shape);
        c.n = 256, c.nt = 12;
        emit(g, c);
    }
}

static void cases_get_rows(gen *g, op_case c)
{
    for (size_t t = 0; t < COUNT(weight_types); t++) {
        group(g);
        c.type = weight_types[t];
        for (size_t i = 0; i < 6; i++)
            for (size_t j = i % 2; j < COUNT(tokens); j += 2) {
                c.n = width_for(c.type, 3 * i + j / 2);
                c.rows = out_rows[(i + j) % COUNT(out_rows)];
                c.nt = tokens[j];
                c.style = finite_styles[(i + j) % COUNT(finite_styles)];
                emit(g, c);
            }
    }
    c.type = MF_TYPE_F32;
    c.gather = true;
    c.rows = 0;
    c.run = RUN_APART;
    element_cases(g, c);
}

static void cases_batch_matmul(gen *g, op_case c)
{
    static const int32_t sizes[] = {1, 2, 3, 7, 16, 17, 33};
    group(g);
    for (int i = 0; i < 40; i++) {
        c.shape[0] = PICK(g, widths);
        for (int a = 1; a < 3; a++) c.shape[a] = PICK(g, sizes);
        c.shape[3] = 1 + (int64_t)op_below(&g->rng, 9);
        c.nt = (int32_t)c.shape[3];
        c.style = finite_styles[i % (int)COUNT(finite_styles)];
        emit(g, c);
    }
}

/* ---- cache ---- */

static void cases_store(gen *g, op_case c)
{
    static const op_style styles[] = {STYLE_PLAIN, STYLE_WIDE, STYLE_SPIKES, STYLE_NOT_FINITE};
    for (size_t f = 0; f < COUNT(cache_types); f++) {
        group(g);
        c.type = c.cache = cache_types[f];
        for (int i = 0; i < 40; i++) {
            c.head_dim = c.type == MF_TYPE_Q8_0 ? 32 * (1 + i % 4) : head_dims[i % (int)COUNT(head_dims)];
            c.n_kv = PICK(g, heads);
            c.nt = PICK(g, tokens);
            c.n_ctx = c.nt + (int32_t)op_below(&g->rng, 40);
            c.style = styles[i % (int)COUNT(styles)];
            emit(g, c);
        }
    }
}

/* All cells filled. Every fourth has as many tokens as the loaded value has rows. */
static void cases_load(gen *g, op_case c)
{
    for (size_t f = 0; f < COUNT(cache_types); f++) {
        group(g);
        c.type = c.cache = cache_types[f];
        c.kind = MF_ATTN_MHA;
        for (int i = 0; i < 32; i++) {
            c.head_dim = c.type == MF_TYPE_Q8_0 ? 32 : head_dims[i % (int)COUNT(head_dims)];
            c.n_kv = i % 4 == 0 ? 1 : PICK(g, heads);
            c.nt = PICK(g, tokens);
            c.n_ctx = c.filled = c.nt + (i % 4 == 0 ? 0 : 1 + (int32_t)op_below(&g->rng, 20));
            c.is_v = i / 2 % 2;
            c.variant = c.type == MF_TYPE_F32 ? i % 5 : 0;
            if (c.variant == 4) c.head_dim = 32 * (1 + i % 3);
            c.style = finite_styles[i % (int)COUNT(finite_styles)];
            emit(g, c);
        }
    }
}

static int64_t attn_work(const op_case *c)
{
    return (int64_t)c->nt * c->n_head * c->filled * c->head_dim;
}

static void attn_case(gen *g, op_case c, int i)
{
    static const int32_t groups[] = {1, 2, 3, 4, 7, 8};
    static const int32_t kv[] = {1, 2, 3};
    static const int32_t ctx[] = {1, 5, 40, 255, 256, 257, 300, 520, 700, 1100};
    do {
        c.head_dim = c.cache == MF_TYPE_Q8_0 ? 32 * (1 + (int32_t)op_below(&g->rng, 4)) : PICK(g, head_dims);
        c.n_kv = PICK(g, kv);
        c.n_head = c.n_kv * (c.kind == MF_ATTN_MHA ? 1 : PICK(g, groups));
        c.nt = PICK(g, tokens);
        c.n_ctx = PICK(g, ctx);
        c.filled = c.n_ctx - (c.n_ctx > 20 ? (int32_t)op_below(&g->rng, 20) : 0);
    } while (c.nt > c.n_ctx || attn_work(&c) > MOST_WORK || (c.kind == MF_ATTN_GQA && c.n_head == c.n_kv));
    c.run = i % 2 ? RUN_APART : RUN_TOGETHER;
    c.factor = 1 / sqrtf((float)c.head_dim) * (i % 4 == 3 ? 8.f : 1.f);
    c.style = i % 5 == 4 ? STYLE_SPIKES : i % 5 == 3 ? STYLE_WIDE : STYLE_PLAIN;
    emit(g, c);
}

/* Keys and queries of 30: the dot products pass what a half float can hold. */
static void hot_case(gen *g, op_case c)
{
    c.n_head = 4, c.n_kv = 2, c.head_dim = 128, c.nt = 3, c.n_ctx = 300, c.filled = 290;
    c.style = STYLE_HOT;
    c.factor = 0.0883883f;
    emit(g, c);
}

static void cases_attn(gen *g, op_case c)
{
    for (size_t f = 0; f < COUNT(cache_types); f++)
        for (int w = 0; w < 3; w++) {
            group(g);
            for (int k = 0; k < 3; k++) {
                c.type = c.cache = cache_types[f];
                c.window = (mf_window)w;
                c.kind = (mf_attn_kind)k;
                for (int i = 0; i < 14; i++) attn_case(g, c, i);
            }
            c.kind = MF_ATTN_FLASH;
            hot_case(g, c);
        }
}

/* ---- shapes ---- */

/* n elements, or fewer, in four dimensions. */
static void random_shape(gen *g, int64_t n, bool all, int64_t shape[4])
{
    for (int i = 0; i < 3; i++) {
        shape[i] = 1 + op_below(&g->rng, (uint32_t)(n < 40 ? n : 40));
        while (all && n % shape[i]) shape[i]--;
        n /= shape[i];
    }
    shape[3] = all ? n : 1 + op_below(&g->rng, (uint32_t)n);
}

static void cases_view(gen *g, op_case c)
{
    group(g);
    for (int i = 0; i < 60; i++) {
        c.n = PICK(g, widths);
        c.nt = PICK(g, tokens);
        int64_t n = (int64_t)c.n * c.nt;
        c.offset = c.op == MF_OP_VIEW ? op_below(&g->rng, (uint32_t)n) : 0;
        random_shape(g, n - c.offset, c.op == MF_OP_RESHAPE, c.to);
        c.variant = i % (c.op == MF_OP_VIEW ? 3 : 2);
        emit(g, c);
    }
}

static void cases_reshape(gen *g, op_case c)
{
    cases_view(g, c);
    group(g);
    c = (op_case){.op = c.op, .type = MF_TYPE_I32};
    for (size_t i = 0; i < COUNT(tokens); i++) {
        c.nt = tokens[i];
        random_shape(g, c.nt, true, c.to);
        emit(g, c);
    }
}

static void cases_permute(gen *g, op_case c)
{
    static const int64_t shapes[][4] = {{3, 4, 5, 2}, {17, 2, 3, 1}, {1, 7, 1, 6}, {64, 1, 9, 2}};
    group(g);
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int p = 0; p < 256; p++) {
            int seen = 0;
            for (int i = 0; i < 4; i++) {
                c.axes[i] = p >> 2 * i & 3;
                seen |= 1 << c.axes[i];
            }
            memcpy(c.shape, shapes[s], sizeof c.shape);
            c.nt = (int32_t)(c.shape[1] * c.shape[2] * c.shape[3]);
            if (seen == 15) emit(g, c);
        }
}

/* ---- fused ---- */

static op_case qkv_case(op_case c, int i)
{
    static const int32_t shapes[][3] = {{4, 2, 16}, {3, 3, 32}, {6, 1, 64}, {2, 2, 128}};
    c.n_head = shapes[i % 4][0];
    c.n_kv = shapes[i % 4][1];
    c.head_dim = shapes[i % 4][2];
    c.n_rot = i % 3 == 2 ? c.head_dim / 2 : c.head_dim;
    c.interleaved = i % 2;
    c.factors = i % 4 == 1;
    c.bias = i % 3 > 0;
    c.variant = i % 5 % 3;
    c.factor = 1;
    c.nt = 1;
    c.n_ctx = 40;
    c.filled = 33;
    c.in_place = i % 2;
    return c;
}

static void cases_qkv(gen *g, op_case c)
{
    static const mf_type mixed[] = {MF_TYPE_Q6_K, MF_TYPE_F16, MF_TYPE_Q8_0, MF_TYPE_Q4_0};
    for (size_t t = 0; t < COUNT(weight_types); t++)
        for (size_t f = 0; f < COUNT(cache_types); f++) {
            group(g);
            c.type = weight_types[t];
            c.cache = cache_types[f];
            c.second = c.op == MF_OP_QKV_BIAS_ROPE_STORE ? mixed[t % 3 + (c.type == mixed[t % 3])]
                                                         : MF_TYPE_F32;
            for (int i = 0; i < 6; i++) {
                op_case q = qkv_case(c, i + (int)t);
                if (q.cache == MF_TYPE_Q8_0) q.head_dim = q.n_rot = 32;
                q.n = c.op == MF_OP_QKV_BIAS_ROPE_STORE ? 0 : 256 * (1 + i % 2);
                q.style = finite_styles[i % 3];
                emit(g, q);
            }
        }
}

static void cases_ffn(gen *g, op_case c)
{
    for (size_t t = 0; t < COUNT(weight_types); t++) {
        group(g);
        c.type = weight_types[t];
        c.nt = 1;
        for (size_t i = 0; i < COUNT(out_rows); i++) {
            c.n = width_for(c.type, i);
            c.rows = out_rows[i];
            c.style = finite_styles[i % 3];
            c.variant = 0;
            emit(g, c);
            c.rows = width_for(c.type, i / 3);
            c.variant = 1;
            emit(g, c);
        }
    }
}

/* ---- the table ---- */

typedef void cases_fn(gen *g, op_case c);

static cases_fn *const all_cases[MF_OP_COUNT] = {
    [MF_OP_ADD] = cases_add,           [MF_OP_MUL] = cases_binary,
    [MF_OP_SCALE] = cases_scale,       [MF_OP_SILU] = cases_unary,
    [MF_OP_SOFTMAX] = cases_unary,     [MF_OP_RMS_NORM] = cases_unary,
    [MF_OP_QK_NORM] = cases_qk_norm,   [MF_OP_MATMUL] = cases_matmul,
    [MF_OP_GET_ROWS] = cases_get_rows, [MF_OP_ROPE] = cases_rope,
    [MF_OP_ATTN] = cases_attn,         [MF_OP_KVCACHE_STORE] = cases_store,
    [MF_OP_KVCACHE_LOAD] = cases_load, [MF_OP_VIEW] = cases_view,
    [MF_OP_RESHAPE] = cases_reshape,   [MF_OP_PERMUTE] = cases_permute,
    [MF_OP_SWIGLU] = cases_binary,     [MF_OP_BATCH_MATMUL] = cases_batch_matmul,
    [MF_OP_FUSED_QKV] = cases_qkv,     [MF_OP_QKV_BIAS_ROPE_STORE] = cases_qkv,
    [MF_OP_FUSED_FFN] = cases_ffn,     [MF_OP_FUSED_QKV_NORM] = cases_qkv,
};

void op_cases(mf_op op, uint64_t seed, op_use_fn *use, void *user)
{
    gen g = {.use = use, .user = user};
    mf_rng_seed(&g.rng, seed * 1000003 + (uint64_t)op);
    if (all_cases[op]) all_cases[op](&g, (op_case){.op = op, .type = MF_TYPE_F32});
}

/* ---- combinations ---- */

/* Which of a case's types an op can be written with. */
static bool expressible(mf_op op, mf_type type)
{
    if (op == MF_OP_INPUT) return false;
    if (op == MF_OP_RESHAPE) return type == MF_TYPE_F32 || type == MF_TYPE_I32;
    bool typed = op == MF_OP_MATMUL || op == MF_OP_GET_ROWS || op == MF_OP_FUSED_FFN || op_has_cache(op);
    bool vector = op == MF_OP_ADD || op == MF_OP_RMS_NORM || op == MF_OP_QK_NORM;
    return type == MF_TYPE_F32 || typed || (vector && block_of(type) == 1);
}

bool op_case_minimal(mf_op op, mf_type type, mf_window window, mf_type cache, op_case *c)
{
    bool fused = op_has_cache(op) && op != MF_OP_ATTN && op != MF_OP_KVCACHE_LOAD &&
                 op != MF_OP_KVCACHE_STORE;
    int32_t size = block_of(type) * block_of(cache);
    if (!expressible(op, type) || size == 0) return false;
    *c = (op_case){
        .op = op, .type = type, .window = window, .cache = fused ? cache : type, .nt = 1, .factor = 1};
    c->n = c->rows = size < 8 ? 8 : size > 1024 ? 1024 : size;
    c->n_head = c->n_kv = 1;
    c->head_dim = c->n_rot = block_of(c->cache) < 8 ? 8 : block_of(c->cache);
    c->kind = op == MF_OP_KVCACHE_LOAD ? MF_ATTN_MHA : MF_ATTN_FLASH;
    c->n_ctx = c->filled = 4;
    c->bias = op == MF_OP_ADD && type != MF_TYPE_F32;
    for (int i = 0; i < 4; i++) {
        c->shape[i] = op == MF_OP_PERMUTE || op == MF_OP_BATCH_MATMUL ? 1 : 0;
        c->to[i] = i == 0 && type != MF_TYPE_I32 ? c->n : 1;
        c->axes[i] = i;
    }
    return true;
}

void op_bench_cases(op_use_fn *use, void *user)
{
    static const op_case all[] = {
        {.op = MF_OP_ADD, .type = MF_TYPE_F32, .n = 2048, .nt = 512},
        {.op = MF_OP_SWIGLU, .type = MF_TYPE_F32, .n = 8192, .nt = 128},
        {.op = MF_OP_RMS_NORM, .type = MF_TYPE_F32, .n = 2048, .nt = 512, .factor = 1e-5f},
        {.op = MF_OP_SOFTMAX, .type = MF_TYPE_F32, .n = 4096, .nt = 128},
        {.op = MF_OP_QK_NORM, .type = MF_TYPE_F32, .n_head = 16, .head_dim = 128, .nt = 512, .factor = 1e-6f},
        {.op = MF_OP_ROPE,
         .type = MF_TYPE_F32,
         .n_head = 16,
         .head_dim = 128,
         .n_rot = 128,
         .nt = 512,
         .factor = 1},
        {.op = MF_OP_GET_ROWS, .type = MF_TYPE_Q4_K, .n = 2048, .rows = 4096, .nt = 512},
        {.op = MF_OP_PERMUTE,
         .type = MF_TYPE_F32,
         .nt = 512,
         .shape = {2048, 512, 1, 1},
         .axes = {1, 0, 2, 3}},
    };
    for (size_t i = 0; i < COUNT(all); i++) use(user, &all[i]);
    for (size_t t = 0; t < COUNT(weight_types); t++)
        for (int32_t nt = 1; nt <= 128; nt = nt == 1 ? 8 : nt * 16) {
            op_case c = {.op = MF_OP_MATMUL, .type = weight_types[t], .n = 2048, .rows = 2048, .nt = nt};
            use(user, &c);
        }
    for (size_t f = 0; f < 2; f++)
        for (int32_t nt = 1; nt <= 128; nt *= 128) {
            op_case c = {
                .op = MF_OP_KVCACHE_STORE, .type = cache_types[f], .cache = cache_types[f], .nt = nt};
            c.n_kv = 4, c.head_dim = 128, c.n_ctx = 2048;
            use(user, &c);
            c.op = MF_OP_ATTN;
            c.n_head = 16, c.filled = 2000, c.factor = 0.088f;
            use(user, &c);
        }
}
