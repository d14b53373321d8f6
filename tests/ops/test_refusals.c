/* What ops do not take: shapes that their inputs do not fit, and numbers in inputs that point outside. Each
 * is refused with a line that names the node and the values, and nothing is written where it should not be.
 */
#include "ops/check.h"

static op_device *devices;
static size_t n_devices;

/* ---- shapes ---- */

typedef struct {
    mf_builder *b;
    mf_weight table, wide, square, narrow;
    mf_attr_kv kv;
    mf_attr_rope rope;
    mf_attr_qkv qkv;
} shop;

enum { WIDTH = 32, TOKENS = 6 };

static void stock(shop *s, mf_builder *b)
{
    *s = (shop){.b = b,
                .table = {"table", MF_TYPE_F32, {WIDTH, 9}},
                .wide = {"wide", MF_TYPE_F32, {2 * WIDTH, 9}},
                .square = {"square", MF_TYPE_F32, {WIDTH, WIDTH}},
                .narrow = {"narrow", MF_TYPE_F32, {WIDTH / 2, 4}},
                .kv = {.layer = 0, .n_kv = 2, .head_dim = 16, .n_ctx = 8},
                .rope = {.n_head = 2, .head_dim = 16, .n_rot = 16, .freq_base = 1e4f, .freq_scale = 1}};
}

static void stock_qkv(shop *s)
{
    s->qkv = (mf_attr_qkv){
        .kv = s->kv, .rope = s->rope, .wq = &s->square, .wk = &s->square, .wv = &s->square};
}

static mf_id flat(shop *s, const char *name)
{
    return mf_build_embed(s->b, name, &s->table, mf_build_input(s->b, MF_INPUT_TOKEN_IDS));
}

/* [WIDTH, TOKENS, 2, 1] of a table twice as wide. */
static mf_id deep(shop *s, const char *name)
{
    const int64_t shape[4] = {WIDTH, TOKENS, 2, 1};
    mf_id x = mf_build_embed(s->b, name, &s->wide, mf_build_input(s->b, MF_INPUT_TOKEN_IDS));
    return mf_build_reshape(s->b, "deep", x, shape);
}

static mf_id bad_rope(shop *s)
{
    return mf_build_rope(s->b, "op", deep(s, "x"), &s->rope);
}

static mf_id bad_store(shop *s)
{
    mf_id x = deep(s, "x");
    return mf_build_kv_store(s->b, "op", x, x, &s->kv);
}

static mf_id bad_attn(shop *s)
{
    mf_id x = flat(s, "x"), store = mf_build_kv_store(s->b, "store", x, x, &s->kv);
    return mf_build_attn(s->b, "op", deep(s, "q"), store, &s->kv, 2, 1.f);
}

static mf_id bad_qkv(shop *s)
{
    return mf_build_fused_qkv(s->b, MF_OP_FUSED_QKV, "op", deep(s, "x"), &s->qkv);
}

static mf_id bad_qkv_store(shop *s)
{
    mf_id x = flat(s, "x");
    return mf_build_qkv_store(s->b, "op", x, x, deep(s, "v"), &s->qkv);
}

/* k of fewer tokens than q */
static mf_id short_qkv_store(shop *s)
{
    const int64_t part[4] = {WIDTH, TOKENS - 1, 1, 1};
    mf_id x = flat(s, "x"), k = mf_build_view(s->b, "k", x, 0, part);
    return mf_build_qkv_store(s->b, "op", x, k, x, &s->qkv);
}

static mf_id bad_ffn(shop *s)
{
    return mf_build_fused_ffn(s->b, "op", deep(s, "x"), &s->square, &s->square);
}

/* A matmul over a part of a fused product. */
static mf_id part_of_ffn(shop *s)
{
    return mf_build_matmul(s->b, "op", mf_build_fused_ffn(s->b, "ffn", flat(s, "x"), &s->square, &s->square),
                           &s->narrow);
}

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        mf_id (*build)(shop *s);
        const char *words;
    } all[] = {
        {bad_rope, "node op (rope): third dimension is 2, must be 1"},
        {bad_store, "node op (kvcache_store): third dimension is 2, must be 1"},
        {bad_attn, "node op (attn): third dimension is 2, must be 1"},
        {bad_qkv, "node op (fused_qkv): third dimension is 2, must be 1"},
        {bad_qkv_store, "node op (qkv_bias_rope_store): third dimension is 2, must be 1"},
        {short_qkv_store, "node op (qkv_bias_rope_store): number of tokens is 5, must be 6"},
        {bad_ffn, "node op (fused_ffn): third dimension is 2, must be 1"},
        {part_of_ffn, "node op: source ffn has 32 features, weight narrow reads 16"},
    };
    mf_graph_params p = {.n_tokens = TOKENS, .n_out = TOKENS, .n_ctx = 8, .flash_attn = true};
    for (size_t i = 0; i < COUNT(all); i++) {
        mf_graph g;
        mf_builder b;
        shop s;
        minfer_error err = {0};
        mf_graph_init(&g);
        mf_build_begin(&b, &g, &p, 1, &err);
        stock(&s, &b);
        stock_qkv(&s);
        all[i].build(&s);
        assert_fails(b.status, MINFER_ERR_ARG, &err, all[i].words);
        mf_graph_free(&g);
    }
}

/* ---- heads the CPU has no room for ---- */

static void test_heads_too_large_for_the_cpu(void **state)
{
    (void)state;
    op_case c = {
        .op = MF_OP_ATTN, .type = MF_TYPE_F32, .cache = MF_TYPE_F32, .n_head = 2, .n_kv = 1, .head_dim = 258};
    c.nt = 20, c.n_ctx = c.filled = 30;
    for (size_t i = 0; i < n_devices; i++) {
        char why[OP_WHY];
        op_data d;
        op_result r;
        if (!devices[i].dev || devices[i].other_bits) continue;
        op_data_make(&c, 1, &d);
        assert_false(op_run_case(&devices[i], &c, &d, false, &r, why));
        if (!strstr(why, "node l1.op (attn): heads of 258 values")) fail_msg("%s: %s", devices[i].name, why);
        op_result_free(&r);
        op_data_free(&d);
    }
}

/* ---- numbers that point outside ---- */

static void row_behind(op_data *d)
{
    d->ids[3] = 9;
}
static void row_before(op_data *d)
{
    d->ids[5] = -1;
}
static void far_token(op_data *d)
{
    d->positions[2] = 7;
}
static void cell_behind(op_data *d)
{
    d->cells[1] = 40;
}
static void cell_before(op_data *d)
{
    d->cells[0] = INT32_MIN;
}
static void far_position(op_data *d)
{
    d->positions[4] = 40;
}
static void last_position(op_data *d)
{
    d->positions[4] = INT32_MAX;
}
static void empty_span(op_data *d)
{
    d->window[6] = d->window[7];
}
static void long_span(op_data *d)
{
    d->window[7] = 41;
}
static void span_before(op_data *d)
{
    d->window[6] = -2;
}
static void empty_map(op_data *d)
{
    for (int i = 1; i < 8; i += 2) d->window[8 * 3 + i] = 0;
}
static void backward_map(op_data *d)
{
    d->window[8 * 3 + 3] = -5;
}
/* Four spans, each within the cache, together more than it holds. */
static void large_map(op_data *d)
{
    for (int i = 0; i < 4; i++) d->window[8 * 3 + 2 * i] = 0, d->window[8 * 3 + 2 * i + 1] = 11;
}

#define ATTN                                                                                             \
    .op = MF_OP_ATTN, .type = MF_TYPE_F16, .cache = MF_TYPE_F16, .n_head = 2, .n_kv = 1, .head_dim = 16, \
    .nt = 7, .n_ctx = 40, .filled = 40
#define STORE                                                                                                \
    .op = MF_OP_KVCACHE_STORE, .type = MF_TYPE_F32, .cache = MF_TYPE_F32, .n_kv = 2, .head_dim = 8, .nt = 7, \
    .n_ctx = 40

static const struct {
    op_case c;
    void (*spoil)(op_data *d);
    const char *words;
} inputs[] = {
    {{.op = MF_OP_GET_ROWS, .type = MF_TYPE_Q4_K, .n = 256, .rows = 9, .nt = 7},
     row_behind,
     "(get_rows): row 9 of 9"},
    {{.op = MF_OP_GET_ROWS, .type = MF_TYPE_F32, .n = 5, .rows = 9, .nt = 7},
     row_before,
     "(get_rows): row -1 of 9"},
    {{.op = MF_OP_GET_ROWS, .n = 33, .nt = 7, .gather = true}, far_token, "(get_rows): row 7 of 7"},
    {{STORE}, cell_behind, "(kvcache_store): cell 40 of 40"},
    {{STORE}, cell_before, "(kvcache_store): cell -2147483648 of 40"},
    {{ATTN}, far_position, "(attn): position 40 of token 4 in a cache of 40 cells"},
    {{ATTN}, last_position, "(attn): position 2147483647 of token 4"},
    {{ATTN, .window = MF_WINDOW_SPAN}, empty_span, "of token 3 in a cache of 40 cells"},
    {{ATTN, .window = MF_WINDOW_SPAN}, long_span, "41, ... of token 3 in a cache of 40 cells"},
    {{ATTN, .window = MF_WINDOW_SPAN}, span_before, "(attn): window -2, "},
    {{ATTN, .window = MF_WINDOW_MAP}, empty_map, "of token 3 in a cache of 40 cells"},
    {{ATTN, .window = MF_WINDOW_MAP}, backward_map, "of token 3 in a cache of 40 cells"},
    {{ATTN, .window = MF_WINDOW_MAP}, large_map, "(attn): window 0, 11, ... of token 3"},
};

/* Cells that no token names are as they were. */
static void check_nobodys_cells(const op_device *dv, const op_case *c, const op_data *d, const op_result *r)
{
    char why[OP_WHY];
    op_want unknown = {0};
    if (!op_check_cache(c, d, &unknown, r, why)) fail_msg("%s: %s", dv->name, why);
}

static void test_inputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(inputs); i++)
        for (size_t k = 0; k < n_devices; k++) {
            op_case c = inputs[i].c;
            op_data d;
            op_result r;
            char why[OP_WHY];
            if (!devices[k].dev || !op_declared(&devices[k].caps, c.op, c.type, c.window, c.cache)) continue;
            op_data_make(&c, 1, &d);
            inputs[i].spoil(&d);
            assert_false(op_run_case(&devices[k], &c, &d, false, &r, why));
            if (!strstr(why, "node l1.op") || !strstr(why, inputs[i].words))
                fail_msg("%s: \"%s\", not \"%s\"", devices[k].name, why, inputs[i].words);
            check_nobodys_cells(&devices[k], &c, &d, &r);
            op_result_free(&r);
            op_data_free(&d);
        }
}

static int open_all(void **state)
{
    (void)state;
    devices = op_devices_open(&n_devices);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    op_devices_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_heads_too_large_for_the_cpu),
        cmocka_unit_test(test_inputs),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
