/* Builder, shape rules, validation, parameters, comparison. */
#include "graph/toy.h"

#include "graph/shape.h"
#include "graph/validate.h"

static minfer_status build(toy_model *m, const mf_graph_params *p, mf_graph *g, minfer_error *err)
{
    mf_builder b;
    mf_graph_init(g);
    mf_build_begin(&b, g, p, 2, err);
    return toy_build(m, &b);
}

static mf_id node(const mf_graph *g, const char *name)
{
    for (mf_id i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i].name, name) == 0) return i;
    fail_msg("no node %s", name);
    return -1;
}

static void test_inputs_follow_params(void **state)
{
    (void)state;
    toy_model m;
    minfer_error err = {0};
    toy_model_init(&m, MF_TYPE_Q8_0);
    for (int c = 0; c < 4; c++) {
        mf_graph_params p = toy_params(5, c == 0 ? 5 : 2);
        p.explicit_span = c == 2;
        p.kv_map = c == 3;
        mf_graph g;
        assert_ok(build(&m, &p, &g, &err), &err);
        assert_int_equal(g.inputs[MF_INPUT_TOKEN_IDS], 0);
        assert_int_equal(g.inputs[MF_INPUT_POSITIONS], 1);
        assert_int_equal(g.inputs[MF_INPUT_CELLS], 2);
        assert_int_equal(g.inputs[MF_INPUT_TAIL_IDS], c == 0 ? -1 : 3);
        assert_int_equal(g.inputs[MF_INPUT_ATTN_SPAN] >= 0, c == 2);
        assert_int_equal(g.inputs[MF_INPUT_KV_MAP] >= 0, c == 3);
        assert_true(g.nodes[g.output].output);
        assert_int_equal(g.nodes[g.output].shape[0], TOY_VOCAB);
        assert_int_equal(g.nodes[g.output].shape[1], p.n_out);
        mf_graph_free(&g);
    }
}

/* Every kind of graph has the same nodes whenever its parameters are the same. */
static void test_equal_params_equal_graph(void **state)
{
    (void)state;
    toy_model m;
    minfer_error err = {0};
    toy_model_init(&m, MF_TYPE_F32);
    mf_graph_params p = toy_params(3, 1);
    mf_graph a, b;
    assert_ok(build(&m, &p, &a, &err), &err);
    assert_ok(build(&m, &p, &b, &err), &err);
    assert_ok(mf_graph_compare(&a, &b, &err), &err);
    b.nodes[node(&b, "l1.q_rope")].attr.rope.freq_base = 5000.f;
    assert_fails(mf_graph_compare(&a, &b, &err), MINFER_ERR_STATE, &err,
                 "l1.q_rope against l1.q_rope: attributes");
    mf_graph_free(&a);
    mf_graph_free(&b);
}

static void test_params_identity(void **state)
{
    (void)state;
    mf_graph_params base = toy_params(4, 2);
    mf_graph_params other[13];
    for (int i = 0; i < 13; i++) other[i] = base;
    other[0].n_tokens = 5;
    other[1].n_out = 1;
    other[2].kind = MF_GRAPH_DECODE;
    other[3].n_ctx = 64;
    other[4].flash_attn = false;
    other[5].fuse_qkv = false;
    other[6].fuse_ffn = false;
    other[7].explicit_span = true;
    other[8].kv_map = true;
    other[9].kv_format = MF_TYPE_F16;
    other[10].gpu_ops = 1;
    other[11].gpu_layers = 0;
    other[12].weights_version = 2;
    assert_true(mf_graph_params_equal(&base, &base));
    for (int i = 0; i < 13; i++) assert_false(mf_graph_params_equal(&base, &other[i]));
}

/* Every attribute takes part in the comparison of nodes. */
static void test_node_equal_sees_attributes(void **state)
{
    (void)state;
    mf_weight w1 = {"a", MF_TYPE_F32, {16, 1}}, w2 = {"b", MF_TYPE_F32, {16, 1}};
    const char *where;
    mf_node n = {.name = "n", .op = MF_OP_ATTN, .dtype = MF_TYPE_F32, .n_src = 2, .shape = {4, 1, 1, 1}};
    mf_node changed[16];
    for (int i = 0; i < 16; i++) changed[i] = n;
    changed[0].attr.attn.n_head = 1;
    changed[1].attr.attn.scale = 1;
    changed[2].attr.attn.kind = MF_ATTN_MHA;
    changed[3].attr.attn.window = MF_WINDOW_MAP;
    changed[4].attr.attn.kv.layer = 1;
    changed[5].attr.attn.kv.n_kv = 1;
    changed[6].attr.attn.kv.head_dim = 1;
    changed[7].attr.attn.kv.n_ctx = 1;
    changed[8].attr.attn.kv.format = MF_TYPE_F16;
    changed[9].shape[1] = 2;
    changed[10].dtype = MF_TYPE_I32;
    changed[11].src[1] = 1;
    changed[12].n_src = 1;
    changed[13].op = MF_OP_ADD;
    changed[14].layer = 3;
    changed[15].name = "m";
    assert_true(mf_node_equal(&n, &n, &where));
    for (int i = 0; i < 16; i++) assert_false(mf_node_equal(&n, &changed[i], &where));
    mf_node norm = {.name = "n", .op = MF_OP_RMS_NORM, .attr = {.norm = {.w = &w1, .eps = 1}}}, other = norm;
    other.attr.norm.w = &w2;
    assert_false(mf_node_equal(&norm, &other, &where));
    assert_string_equal(where, "weights");
}

typedef struct {
    const char *name; /* node of the toy graph */
    void (*damage)(mf_graph *g, mf_node *n);
    const char *words;
} damage_case;

#define DAMAGE(name, change)                  \
    static void name(mf_graph *g, mf_node *n) \
    {                                         \
        (void)g;                              \
        change;                               \
    }
DAMAGE(late_source, n->src[0] = g->output)
DAMAGE(no_source, n->src[0] = -7)
DAMAGE(far_source, n->src[0] = g->n_nodes)
DAMAGE(bad_dtype, n->dtype = MF_TYPE_I32)
DAMAGE(bad_shape, n->shape[1]++)
DAMAGE(bad_id, n->id++)
DAMAGE(same_name, n->name = g->nodes[0].name)
DAMAGE(second_store, n->attr.kv.layer = 0)
DAMAGE(far_layer, n->attr.kv.layer = 2)
DAMAGE(few_sources, n->n_src = 1)

static void test_validation_refuses(void **state)
{
    (void)state;
    static const damage_case cases[] = {
        {"l0.q", late_source, "cycle"},
        {"l0.q", no_source, "source 0 is -7"},
        {"l0.q", far_source, "the graph has"},
        {"l1.silu", bad_dtype, "shape or dtype"},
        {"l1.attn", bad_shape, "shape or dtype"},
        {"l1.k", bad_id, "at place"},
        {"l1.down", same_name, "both named token_ids"},
        {"l1.store", second_store, "both store layer 0"},
        {"l1.store", far_layer, "layer 2 of 2"},
        {"l0.q_rope", few_sources, "has 1 sources"},
    };
    toy_model m;
    minfer_error err = {0};
    toy_model_init(&m, MF_TYPE_F32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mf_graph_params p = toy_params(3, 1);
        mf_graph g;
        assert_ok(build(&m, &p, &g, &err), &err);
        cases[i].damage(&g, &g.nodes[node(&g, cases[i].name)]);
        minfer_status st = mf_graph_validate(&g, &err);
        assert_true(st != MINFER_OK);
        if (!strstr(err.message, cases[i].words)) fail_msg("case %zu: %s", i, err.message);
        mf_graph_free(&g);
    }
}

/* Shape rules: one bad node each, and the words of its refusal. Long because the table names what it
 * points to. */
static void test_shape_refusals(void **state)
{
    (void)state;
    mf_weight w = {"w", MF_TYPE_F32, {64, 32}}, v = {"v", MF_TYPE_F32, {64, 1}},
              short_v = {"short", MF_TYPE_F32, {63, 1}}, half = {"half", MF_TYPE_F16, {64, 1}},
              iw = {"iw", MF_TYPE_I32, {64, 8}};
    mf_node nodes[4] = {
        {.id = 0, .name = "x", .op = MF_OP_INPUT, .dtype = MF_TYPE_F32, .shape = {64, 3, 1, 1}},
        {.id = 1, .name = "y", .op = MF_OP_INPUT, .dtype = MF_TYPE_F32, .shape = {32, 3, 1, 1}},
        {.id = 2, .name = "ids", .op = MF_OP_INPUT, .dtype = MF_TYPE_I32, .shape = {3, 1, 1, 1}},
        {.id = 3, .name = "two", .op = MF_OP_INPUT, .dtype = MF_TYPE_I32, .shape = {2, 1, 1, 1}},
    };
    mf_graph g = {.nodes = nodes, .n_nodes = 4, .n_layer = 1};
    mf_attr_rope rope = {.n_head = 4, .head_dim = 16, .n_rot = 16};
    mf_attr_kv kv = {.n_kv = 2, .head_dim = 16, .n_ctx = 8, .format = MF_TYPE_F32};
    mf_attr_rope odd = rope, wide = rope;
    odd.n_rot = 15;
    wide.n_rot = 18;
    mf_attr_kv q8 = kv;
    q8.format = MF_TYPE_Q8_0;
    const struct {
        mf_node n;
        const char *words;
    } cases[] = {
        {{.op = MF_OP_ADD, .n_src = 2, .src = {0, 1}}, "is 32, must be 64"},
        {{.op = MF_OP_ADD, .n_src = 1, .src = {0}}, "needs two sources"},
        {{.op = MF_OP_ADD, .n_src = 1, .src = {0}, .attr = {.weight = {&short_v}}},
         "[63, 1], must be [64, 1]"},
        {{.op = MF_OP_ADD, .n_src = 1, .src = {0}, .attr = {.weight = {&half}}}, "is F16, must be F32"},
        {{.op = MF_OP_MUL, .n_src = 2, .src = {0, 2}}, "is I32, must be F32"},
        {{.op = MF_OP_MATMUL, .n_src = 1, .src = {1}, .attr = {.weight = {&w}}},
         "has 32 features, weight w reads 64"},
        {{.op = MF_OP_MATMUL, .n_src = 1, .src = {0}, .attr = {.weight = {&iw}}}, "has type I32"},
        {{.op = MF_OP_MATMUL, .n_src = 1, .src = {0}}, "has no weight"},
        {{.op = MF_OP_RMS_NORM, .n_src = 1, .src = {1}, .attr = {.norm = {.w = &v}}}, "must be [32, 1]"},
        {{.op = MF_OP_RMS_NORM, .n_src = 1, .src = {0}}, "has no weight"},
        {{.op = MF_OP_QK_NORM,
          .n_src = 1,
          .src = {0},
          .attr = {.norm = {.w = &v, .n_head = 2, .head_dim = 16}}},
         "width is 64, must be 32"},
        {{.op = MF_OP_GET_ROWS, .n_src = 2, .src = {0, 1}}, "is F32, must be I32"},
        {{.op = MF_OP_GET_ROWS, .n_src = 1, .src = {2}}, "needs ids and a weight"},
        {{.op = MF_OP_ROPE, .n_src = 2, .src = {0, 3}, .attr = {.rope = rope}},
         "number of positions is 2, must be 3"},
        {{.op = MF_OP_ROPE, .n_src = 2, .src = {1, 2}, .attr = {.rope = rope}}, "width is 32, must be 64"},
        {{.op = MF_OP_ROPE, .n_src = 2, .src = {0, 2}, .attr = {.rope = odd}}, "rotates 15 of 16"},
        {{.op = MF_OP_ROPE, .n_src = 2, .src = {0, 2}, .attr = {.rope = wide}}, "rotates 18 of 16"},
        {{.op = MF_OP_KVCACHE_STORE, .n_src = 3, .src = {0, 0, 2}, .attr = {.kv = kv}},
         "width is 64, must be 32"},
        {{.op = MF_OP_KVCACHE_STORE, .n_src = 3, .src = {1, 1, 3}, .attr = {.kv = kv}},
         "number of cells is 2, must be 3"},
        {{.op = MF_OP_KVCACHE_STORE, .n_src = 3, .src = {1, 1, 2}, .attr = {.kv = q8}}, "in Q8_0 cannot be"},
        {{.op = MF_OP_ATTN, .n_src = 3, .src = {0, 2, 2}, .attr = {.attn = {.kv = kv, .n_head = 3}}},
         "3 query heads on 2"},
        {{.op = MF_OP_ATTN, .n_src = 3, .src = {1, 2, 2}, .attr = {.attn = {.kv = kv, .n_head = 4}}},
         "width of the queries is 32, must be 64"},
        {{.op = MF_OP_ATTN, .n_src = 4, .src = {0, 2, 2, 2}, .attr = {.attn = {.kv = kv, .n_head = 4}}},
         "number of sources is 4, must be 3"},
        {{.op = MF_OP_ATTN,
          .n_src = 4,
          .src = {0, 2, 2, 2},
          .attr = {.attn = {.kv = kv, .n_head = 4, .window = MF_WINDOW_SPAN}}},
         "length of the window is 3, must be 6"},
        {{.op = MF_OP_VIEW, .n_src = 1, .src = {0}, .shape = {64, 3, 1, 1}, .attr = {.view_offset = 1}},
         "is 192, must be 191"},
        {{.op = MF_OP_RESHAPE, .n_src = 1, .src = {0}, .shape = {64, 4, 1, 1}}, "is 256, must be 192"},
        {{.op = MF_OP_PERMUTE, .n_src = 1, .src = {0}, .attr = {.permute = {0, 1, 1, 3}}}, "no permutation"},
        {{.op = MF_OP_BATCH_MATMUL, .n_src = 2, .src = {0, 1}}, "inner size is 32, must be 64"},
        {{.op = MF_OP_SILU, .n_src = 2, .src = {0, 1}}, "has 2 sources, takes 1 to 1"},
        {{.op = MF_OP_FUSED_FFN, .n_src = 1, .src = {0}, .attr = {.ffn = {&w, &v}}}, "rows of the up weight"},
        {{.op = (mf_op)99}, "op 99 is unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        minfer_error err = {0};
        mf_node n = cases[i].n;
        n.name = "bad";
        assert_true(mf_shape_infer(&g, &n, &err) != MINFER_OK);
        if (!strstr(err.message, cases[i].words) || !strstr(err.message, "bad"))
            fail_msg("case %zu: %s", i, err.message);
    }
}

static void test_builder_error_sticks(void **state)
{
    (void)state;
    mf_graph g;
    mf_builder b;
    minfer_error err = {0};
    mf_weight w = {"w", MF_TYPE_F32, {64, 32}};
    mf_graph_params p = toy_params(1, 1);
    mf_graph_init(&g);
    mf_build_begin(&b, &g, &p, 1, &err);
    mf_id x = mf_build_embed(&b, "x", &w, mf_build_input(&b, MF_INPUT_TOKEN_IDS));
    mf_id bad = mf_build_binary(&b, MF_OP_ADD, "sum", x, mf_build_matmul(&b, "y", x, &w));
    assert_int_equal(bad, -1);
    assert_int_equal(mf_build_unary(&b, MF_OP_SILU, "more", bad), -1);
    assert_fails(mf_build_finish(&b, bad), MINFER_ERR_ARG, &err, "node sum (add)");
    mf_graph_free(&g);
    p.n_out = 2;
    mf_graph_init(&g);
    mf_build_begin(&b, &g, &p, 1, &err);
    assert_fails(mf_build_finish(&b, 0), MINFER_ERR_ARG, &err, "2 outputs of 1 tokens");
    mf_graph_free(&g);
}

/* The gates of the build-time fused ops. */
static void test_fusion_gates(void **state)
{
    (void)state;
    mf_weight a = {"a", MF_TYPE_Q4_K, {64, 64}}, b = a, c = a, other = {"o", MF_TYPE_Q6_K, {64, 64}},
              wide = {"w", MF_TYPE_Q4_K, {64, 16385}};
    mf_graph_params p = toy_params(1, 1), many = toy_params(2, 1), none = p, closed = p;
    p.gpu_ops = many.gpu_ops = closed.gpu_ops = 1u << MF_OP_FUSED_QKV | 1u << MF_OP_QKV_BIAS_ROPE_STORE |
                                                1u << MF_OP_FUSED_FFN;
    closed.fuse_qkv = closed.fuse_ffn = false;
    assert_true(mf_graph_params_fuses(&p, MF_OP_FUSED_QKV, &a, &b, &c));
    assert_false(mf_graph_params_fuses(&p, MF_OP_FUSED_QKV, &a, &b, &other));
    assert_false(mf_graph_params_fuses(&p, MF_OP_FUSED_QKV_NORM, &a, &b, &c));
    assert_true(mf_graph_params_fuses(&p, MF_OP_QKV_BIAS_ROPE_STORE, &a, &b, &other));
    assert_false(mf_graph_params_fuses(&p, MF_OP_QKV_BIAS_ROPE_STORE, &a, &b, &c));
    assert_true(mf_graph_params_fuses(&p, MF_OP_FUSED_FFN, &a, &b, NULL));
    assert_false(mf_graph_params_fuses(&p, MF_OP_FUSED_FFN, &a, &other, NULL));
    assert_false(mf_graph_params_fuses(&p, MF_OP_FUSED_FFN, &wide, &wide, NULL));
    assert_false(mf_graph_params_fuses(&many, MF_OP_FUSED_QKV, &a, &b, &c));
    assert_false(mf_graph_params_fuses(&none, MF_OP_FUSED_QKV, &a, &b, &c));
    assert_false(mf_graph_params_fuses(&closed, MF_OP_FUSED_QKV, &a, &b, &c));
    assert_false(mf_graph_params_fuses(&closed, MF_OP_FUSED_FFN, &a, &b, NULL));
}

static void test_build_survives_failed_allocations(void **state)
{
    (void)state;
    toy_model m;
    toy_model_init(&m, MF_TYPE_F32);
    for (long at = 1;; at++) {
        minfer_error err = {0};
        mf_graph_params p = toy_params(3, 1);
        mf_graph g;
        mf_mem_fail_at(at);
        minfer_status st = build(&m, &p, &g, &err);
        mf_mem_fail_at(0);
        mf_graph_free(&g);
        if (st == MINFER_OK) break;
        assert_int_equal(st, MINFER_ERR_NOMEM);
        assert_true(at < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs_follow_params),
        cmocka_unit_test(test_equal_params_equal_graph),
        cmocka_unit_test(test_params_identity),
        cmocka_unit_test(test_node_equal_sees_attributes),
        cmocka_unit_test(test_validation_refuses),
        cmocka_unit_test(test_shape_refusals),
        cmocka_unit_test(test_builder_error_sticks),
        cmocka_unit_test(test_fusion_gates),
        cmocka_unit_test(test_build_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
