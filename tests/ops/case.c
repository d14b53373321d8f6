#include "ops/case.h"

#include "base/half.h"
#include "base/strmap.h"

#include <math.h>

/* ---- names ---- */

static const char *const style_names[STYLE_COUNT] = {"plain", "wide", "spikes", "hot", "not-finite"};
static const char *const window_names[] = {"causal", "span", "map"};
static const char *const kind_names[] = {"flash", "gqa", "mha"};

typedef struct {
    char *p;
    size_t left;
} text;

static void say(text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->p, t->left, fmt, ap);
    va_end(ap);
    size_t step = n < 0 ? 0 : (size_t)n < t->left ? (size_t)n : t->left - 1;
    t->p += step;
    t->left -= step;
}

static void say_numbers(text *t, const op_case *c)
{
    const struct {
        const char *name;
        int64_t value;
    } all[] = {
        {"n", c->n},           {"rows", c->rows},     {"nt", c->nt},           {"heads", c->n_head},
        {"kv", c->n_kv},       {"dim", c->head_dim},  {"rot", c->n_rot},       {"ctx", c->n_ctx},
        {"filled", c->filled}, {"offset", c->offset}, {"variant", c->variant},
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].value) say(t, " %s=%lld", all[i].name, (long long)all[i].value);
}

static void say_shape(text *t, const char *name, const int64_t shape[4])
{
    if (shape[0])
        say(t, " %s=%lldx%lldx%lldx%lld", name, (long long)shape[0], (long long)shape[1], (long long)shape[2],
            (long long)shape[3]);
}

static void say_flags(text *t, const op_case *c)
{
    const struct {
        const char *name;
        bool on;
    } all[] = {{"interleaved", c->interleaved}, {"factors", c->factors}, {"bias", c->bias},
               {"gather", c->gather},           {"v", c->is_v},          {"in-place", c->in_place}};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].on) say(t, " %s", all[i].name);
}

void op_case_name(const op_case *c, char *name, size_t size)
{
    text t = {name, size};
    say(&t, "%s %s", mf_op_table[c->op].name, mf_type_name(c->type));
    if (c->second) say(&t, "+%s", mf_type_name(c->second));
    if (op_has_cache(c->op) && c->cache != c->type) say(&t, " cache=%s", mf_type_name(c->cache));
    say_numbers(&t, c);
    say_shape(&t, "shape", c->shape);
    say_shape(&t, "to", c->to);
    if (c->op == MF_OP_PERMUTE) say(&t, " axes=%d%d%d%d", c->axes[0], c->axes[1], c->axes[2], c->axes[3]);
    if (c->factor != 0) say(&t, " factor=%g", (double)c->factor);
    if (c->op == MF_OP_ATTN) say(&t, " %s %s", kind_names[c->kind], window_names[c->window]);
    if (c->run) say(&t, " apart");
    say_flags(&t, c);
    say(&t, " %s", style_names[c->style]);
}

/* ---- values ---- */

static float uniform(mf_rng *r)
{
    return (float)(2 * mf_rng_f64(r) - 1);
}

static float wide(mf_rng *r)
{
    uint64_t u = mf_rng_u64(r);
    float sign = u & 1 ? -1.f : 1.f;
    if ((u >> 1) % 8 == 0) return u >> 8 & 1 ? sign * 0.f : sign * (float)(u >> 40) * 0x1p-149f;
    return ldexpf(sign * (1.f + (float)(u >> 40) * 0x1p-24f), (int)((u >> 8) % 38) - 30);
}

static float spikes(mf_rng *r, size_t i)
{
    if (i / 32 % 5 == 3) return 0.f;
    return i % 37 == 5 ? 400.f * uniform(r) : 0.5f * uniform(r);
}

static float not_finite(mf_rng *r)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    return op_below(r, 150) ? uniform(r) : odd[op_below(r, COUNT(odd))];
}

static float value(mf_rng *r, op_style style, size_t i)
{
    switch (style) {
    case STYLE_WIDE: return wide(r);
    case STYLE_SPIKES: return spikes(r, i);
    case STYLE_HOT: return 30.f;
    case STYLE_NOT_FINITE: return not_finite(r);
    default: return 2 * uniform(r);
    }
}

/* Where the half floats of a quantized block are; -1: none. */
typedef struct {
    mf_type type;
    int at[2];
} scale_place;

static const scale_place scales[] = {
    {MF_TYPE_Q4_0, {0, -1}}, {MF_TYPE_Q4_1, {0, 2}}, {MF_TYPE_Q5_0, {0, -1}}, {MF_TYPE_Q5_1, {0, 2}},
    {MF_TYPE_Q8_0, {0, -1}}, {MF_TYPE_Q4_K, {0, 2}}, {MF_TYPE_Q5_K, {0, 2}},  {MF_TYPE_Q6_K, {208, -1}},
};

static void fill_block(mf_rng *r, mf_type type, uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t u = mf_rng_u64(r);
        memcpy(p + i, &u, bytes - i < 8 ? bytes - i : 8);
    }
    for (size_t s = 0; s < COUNT(scales); s++)
        for (int i = 0; i < 2 && scales[s].type == type; i++) {
            uint16_t h = op_below(r, 16) ? mf_f32_to_f16(uniform(r) * 0.05f) : (uint16_t)op_below(r, 0x400);
            if (scales[s].at[i] >= 0) memcpy(p + scales[s].at[i], &h, sizeof h);
        }
}

/* n values of a type: random blocks, or floats in a style. */
static void fill(mf_rng *r, mf_type type, op_style style, uint8_t *p, size_t n)
{
    const mf_type_info *info = mf_type_get((uint32_t)type);
    if (type != MF_TYPE_F32 && type != MF_TYPE_F16 && type != MF_TYPE_BF16) {
        for (size_t i = 0; i < n / info->block_values; i++, p += info->block_bytes)
            fill_block(r, type, p, info->block_bytes);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        float f = value(r, style, i);
        uint16_t h = type == MF_TYPE_F16 ? mf_f32_to_f16(f) : mf_f32_to_bf16(f);
        if (type == MF_TYPE_F32)
            memcpy(p + 4 * i, &f, 4);
        else
            memcpy(p + 2 * i, &h, 2);
    }
}

/* ---- operands ---- */

static op_operand *add(op_data *d, mf_rng *r, const char *name, mf_type type, op_style style, int64_t in,
                       int64_t out)
{
    size_t row;
    assert_true(d->n_all < OP_MAX_OPERANDS);
    op_operand *o = &d->all[d->n_all++];
    snprintf(o->name, sizeof o->name, "%s", name);
    o->w = (mf_weight){o->name, type, {in, out}};
    assert_true(mf_type_row_bytes(type, (uint64_t)in, &row));
    o->bytes = row * (size_t)out;
    o->data = mf_malloc(o->bytes);
    assert_non_null(o->data);
    fill(r, type, style, o->data, (size_t)(in * out));
    return o;
}

/* Rows of activations: a few more than tokens. */
static op_operand *rows(const op_case *c, op_data *d, mf_rng *r, const char *name, int64_t n)
{
    return add(d, r, name, MF_TYPE_F32, c->style, n, c->nt + 3);
}

static void vectors(const op_case *c, op_data *d, mf_rng *r, int64_t nq, int64_t nk)
{
    const int64_t width[3] = {nq, nk, nk};
    static const char *const names[3] = {"bq", "bk", "bv"};
    for (int i = 0; i < 3 && c->bias; i++)
        d->b[i] = add(d, r, names[i], MF_TYPE_F32, STYLE_PLAIN, width[i], 1);
    for (int i = 0; i < 2 && c->op == MF_OP_FUSED_QKV_NORM; i++)
        d->norm[i] = add(d, r, i ? "nk" : "nq", MF_TYPE_F32, STYLE_PLAIN, c->head_dim, 1);
    if (!c->factors) return;
    d->factors = add(d, r, "factors", MF_TYPE_F32, STYLE_PLAIN, c->n_rot / 2, 1);
    for (int32_t i = 0; i < c->n_rot / 2; i++) ((float *)d->factors->data)[i] = 1 + 4 * (float)mf_rng_f64(r);
}

static void qkv_weights(const op_case *c, op_data *d, mf_rng *r, int64_t in, int64_t nq, int64_t nk)
{
    d->w[0] = add(d, r, "wq", c->type, STYLE_PLAIN, in, nq);
    d->w[1] = add(d, r, "wk", c->second ? c->second : c->type, STYLE_PLAIN, in, nk);
    d->w[2] = add(d, r, "wv", c->type, STYLE_PLAIN, in, nk);
}

static void make_one(const op_case *c, op_data *d, mf_rng *r)
{
    if (c->type == MF_TYPE_F32) d->x = rows(c, d, r, "x", c->shape[0] ? c->shape[0] : c->n);
}

static void make_two(const op_case *c, op_data *d, mf_rng *r)
{
    d->x = rows(c, d, r, "x", c->n);
    if (c->bias)
        d->b[0] = add(d, r, "bias", c->type, c->style, c->n, 1);
    else
        d->y = rows(c, d, r, "y", c->n);
}

static void make_norm(const op_case *c, op_data *d, mf_rng *r)
{
    bool by_head = c->op == MF_OP_QK_NORM;
    d->x = rows(c, d, r, "x", by_head ? (int64_t)c->n_head * c->head_dim : c->n);
    d->norm[0] = add(d, r, "norm", c->type, STYLE_PLAIN, by_head ? c->head_dim : c->n, 1);
}

static void make_matmul(const op_case *c, op_data *d, mf_rng *r)
{
    d->x = rows(c, d, r, "x", c->n);
    d->w[0] = add(d, r, "w", c->type, STYLE_PLAIN, c->n, c->rows);
}

static void make_get_rows(const op_case *c, op_data *d, mf_rng *r)
{
    if (c->gather)
        d->x = rows(c, d, r, "x", c->n);
    else
        d->w[0] = add(d, r, "w", c->type, c->style, c->n, c->rows);
}

static void make_batch(const op_case *c, op_data *d, mf_rng *r)
{
    d->x = rows(c, d, r, "x", c->shape[0] * c->shape[1]);
    d->y = rows(c, d, r, "y", c->shape[0] * c->shape[2]);
}

/* q as x, k and v as y and z, as far as the op has them. */
static void make_heads(const op_case *c, op_data *d, mf_rng *r)
{
    int64_t nq = (int64_t)c->n_head * c->head_dim, nk = (int64_t)c->n_kv * c->head_dim;
    if (nq) d->x = rows(c, d, r, "x", nq);
    if (c->op == MF_OP_QKV_BIAS_ROPE_STORE) qkv_weights(c, d, r, MF_QK256, nq, nk);
    if (c->op == MF_OP_KVCACHE_LOAD && c->variant == 4)
        d->w[0] = add(d, r, "w", MF_TYPE_Q8_0, STYLE_PLAIN, c->head_dim, OP_LOAD_ROWS);
    vectors(c, d, r, nq, nk);
    if (!op_has_cache(c->op)) return;
    d->y = rows(c, d, r, "y", nk);
    d->z = rows(c, d, r, "z", nk);
}

static void make_qkv(const op_case *c, op_data *d, mf_rng *r)
{
    int64_t nq = (int64_t)c->n_head * c->head_dim, nk = (int64_t)c->n_kv * c->head_dim;
    d->x = rows(c, d, r, "x", c->n);
    qkv_weights(c, d, r, c->n, nq, nk);
    vectors(c, d, r, nq, nk);
}

static void make_ffn(const op_case *c, op_data *d, mf_rng *r)
{
    d->x = rows(c, d, r, "x", c->n);
    d->w[0] = add(d, r, "gate", c->type, STYLE_PLAIN, c->n, c->rows);
    d->w[1] = add(d, r, "up", c->type, STYLE_PLAIN, c->n, c->rows);
    if (c->variant) d->w[2] = add(d, r, "down", c->type, STYLE_PLAIN, c->rows, 24);
}

typedef void make_fn(const op_case *c, op_data *d, mf_rng *r);

static make_fn *const makers[MF_OP_COUNT] = {
    [MF_OP_ADD] = make_two,
    [MF_OP_MUL] = make_two,
    [MF_OP_SWIGLU] = make_two,
    [MF_OP_SCALE] = make_one,
    [MF_OP_SILU] = make_one,
    [MF_OP_SOFTMAX] = make_one,
    [MF_OP_VIEW] = make_one,
    [MF_OP_RESHAPE] = make_one,
    [MF_OP_PERMUTE] = make_one,
    [MF_OP_RMS_NORM] = make_norm,
    [MF_OP_QK_NORM] = make_norm,
    [MF_OP_MATMUL] = make_matmul,
    [MF_OP_GET_ROWS] = make_get_rows,
    [MF_OP_BATCH_MATMUL] = make_batch,
    [MF_OP_ROPE] = make_heads,
    [MF_OP_ATTN] = make_heads,
    [MF_OP_KVCACHE_STORE] = make_heads,
    [MF_OP_KVCACHE_LOAD] = make_heads,
    [MF_OP_QKV_BIAS_ROPE_STORE] = make_heads,
    [MF_OP_FUSED_QKV] = make_qkv,
    [MF_OP_FUSED_QKV_NORM] = make_qkv,
    [MF_OP_FUSED_FFN] = make_ffn,
};

/* ---- inputs ---- */

/* n different numbers below limit, in any order. */
static void pick_cells(mf_rng *r, int32_t *cells, int32_t n, int32_t limit)
{
    for (int32_t i = 0; i < n; i++) {
        bool again;
        do {
            cells[i] = (int32_t)op_below(r, (uint32_t)limit);
            again = false;
            for (int32_t k = 0; k < i; k++) again |= cells[k] == cells[i];
        } while (again);
    }
}

static void positions(const op_case *c, op_data *d, mf_rng *r)
{
    int32_t limit = c->filled ? c->filled : c->gather ? c->nt : 1 << 20;
    int32_t first = c->nt < limit ? (int32_t)op_below(r, (uint32_t)(limit - c->nt + 1)) : 0;
    for (int32_t t = 0; t < c->nt; t++)
        d->positions[t] = c->run == RUN_TOGETHER && c->nt <= limit ? first + t
                                                                   : (int32_t)op_below(r, (uint32_t)limit);
}

/* Windows of one span: growing from one cell, or any. */
static void spans(const op_case *c, op_data *d, mf_rng *r)
{
    int32_t low = (int32_t)op_below(r, (uint32_t)(c->filled + 1) / 2);
    for (int32_t t = 0; t < c->nt; t++) {
        if (c->run == RUN_APART) low = (int32_t)op_below(r, (uint32_t)c->filled);
        int32_t room = c->filled - low, grown = room - c->nt + 1 + t;
        d->window[2 * t] = low;
        d->window[2 * t + 1] = low + (c->run == RUN_TOGETHER && room >= c->nt
                                          ? grown
                                          : 1 + (int32_t)op_below(r, (uint32_t)room));
    }
}

/* Up to four spans in any places, some of them empty, together at most n_ctx cells; a token with one span
 * every now and then. */
static void maps(const op_case *c, op_data *d, mf_rng *r)
{
    for (int32_t t = 0; t < c->nt; t++) {
        int32_t *m = d->window + 8 * t, left = c->n_ctx, keep = (int32_t)op_below(r, 4);
        bool one = op_below(r, 4) == 0;
        for (int32_t i = 0; i < 4; i++) {
            m[2 * i] = (int32_t)op_below(r, (uint32_t)c->filled);
            int32_t most = c->filled - m[2 * i] < left ? c->filled - m[2 * i] : left;
            bool empty = i != keep && (one || op_below(r, 4) == 0);
            m[2 * i + 1] = empty || most == 0 ? 0 : 1 + (int32_t)op_below(r, (uint32_t)most);
            left -= m[2 * i + 1];
        }
        if (m[1] + m[3] + m[5] + m[7] == 0) m[1] = 1;
    }
}

static int32_t *numbers(size_t n)
{
    int32_t *p = mf_calloc(n, sizeof *p);
    assert_non_null(p);
    return p;
}

static void make_inputs(const op_case *c, op_data *d, mf_rng *r)
{
    size_t nt = (size_t)c->nt;
    d->ids = numbers(nt);
    d->positions = numbers(nt);
    d->cells = numbers(nt);
    d->window = numbers(8 * nt);
    int32_t table = c->op == MF_OP_GET_ROWS && !c->gather ? c->rows : c->nt + 3;
    for (int32_t t = 0; t < c->nt; t++) d->ids[t] = (int32_t)op_below(r, (uint32_t)table);
    positions(c, d, r);
    if (op_has_cache(c->op)) pick_cells(r, d->cells, c->nt, c->n_ctx);
    if (c->op != MF_OP_ATTN) return;
    if (c->window == MF_WINDOW_SPAN) spans(c, d, r);
    if (c->window == MF_WINDOW_MAP) maps(c, d, r);
}

/* ---- cache ---- */

bool op_has_cache(mf_op op)
{
    return op == MF_OP_ATTN || op == MF_OP_KVCACHE_LOAD || op_stores(op);
}

bool op_stores(mf_op op)
{
    return op == MF_OP_KVCACHE_STORE || op == MF_OP_FUSED_QKV || op == MF_OP_FUSED_QKV_NORM ||
           op == MF_OP_QKV_BIAS_ROPE_STORE;
}

/* Cells that somebody may see hold numbers, all others the poison. */
static void make_cache(const op_case *c, op_data *d, mf_rng *r)
{
    d->kv = (mf_attr_kv){
        .layer = OP_LAYER, .n_kv = c->n_kv, .head_dim = c->head_dim, .n_ctx = c->n_ctx, .format = c->cache};
    assert_true(mf_type_row_bytes(c->cache, (uint64_t)c->head_dim, &d->row_bytes));
    d->cache_bytes = d->row_bytes * (size_t)c->n_ctx * (size_t)c->n_kv;
    for (int i = 0; i < 2; i++) {
        d->cache[i] = mf_malloc(d->cache_bytes);
        assert_non_null(d->cache[i]);
        op_poison(d->cache[i], d->cache_bytes);
        for (int32_t h = 0; h < c->n_kv; h++)
            fill(r, c->cache, c->style, d->cache[i] + (size_t)h * (size_t)c->n_ctx * d->row_bytes,
                 (size_t)c->filled * (size_t)c->head_dim);
    }
}

/* ---- all of it ---- */

void op_data_make(const op_case *c, uint64_t seed, op_data *d)
{
    char name[256];
    mf_rng r;
    *d = (op_data){0};
    op_case_name(c, name, sizeof name);
    mf_rng_seed(&r, mf_hash_bytes(name, strlen(name), seed));
    makers[c->op](c, d, &r);
    make_inputs(c, d, &r);
    if (op_has_cache(c->op)) make_cache(c, d, &r);
}

void op_data_free(op_data *d)
{
    for (int i = 0; i < d->n_all; i++) mf_free(d->all[i].data);
    for (int i = 0; i < 2; i++) mf_free(d->cache[i]);
    mf_free(d->ids);
    mf_free(d->positions);
    mf_free(d->cells);
    mf_free(d->window);
    *d = (op_data){0};
}

const float *op_row(const op_data *d, const op_operand *o, int32_t t)
{
    return (const float *)o->data + (size_t)d->ids[t] * (size_t)o->w.dims[0];
}

/* ---- poison ---- */

enum { PERIOD = 1 << 16 }; /* bytes after which it repeats */

static const uint8_t *poison_table(void)
{
    static uint32_t words[PERIOD / 4];
    for (uint32_t i = 0; i < PERIOD / 4 && !words[PERIOD / 4 - 1]; i++) {
        uint32_t h = i * 2654435761u;
        words[i] = (0xFFC0u | h >> 26) << 16 | 0x7E00u | (h >> 10 & 0x1FF);
    }
    return (const uint8_t *)words;
}

static size_t piece(size_t from, size_t to)
{
    size_t n = PERIOD - from % PERIOD;
    return n < to - from ? n : to - from;
}

void op_poison(uint8_t *p, size_t bytes)
{
    const uint8_t *table = poison_table();
    for (size_t i = 0, n; i < bytes; i += n) {
        n = piece(i, bytes);
        memcpy(p + i, table + i % PERIOD, n);
    }
}

size_t op_first_unpoisoned(const uint8_t *p, size_t from, size_t to)
{
    const uint8_t *table = poison_table();
    for (size_t i = from, n; i < to; i += n) {
        n = piece(i, to);
        if (memcmp(p + i, table + i % PERIOD, n) == 0) continue;
        while (p[i] == table[i % PERIOD]) i++;
        return i;
    }
    return to;
}
