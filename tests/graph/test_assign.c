/* Assignment, peephole fusion, backend selection. */
#include "graph/toy.h"

#include "backends/backend.h"
#include "graph/fuse.h"

#define ALL_OPS 0xFFFFFFFFu

typedef struct {
    toy_model m;
    mf_graph g;
    mf_graph_params p;
} setup;

static void start(setup *s, int32_t gpu_layers)
{
    minfer_error err = {0};
    mf_builder b;
    toy_model_init(&s->m, MF_TYPE_F32);
    s->p = toy_params(3, 1);
    s->p.gpu_layers = gpu_layers;
    mf_graph_init(&s->g);
    mf_build_begin(&b, &s->g, &s->p, 2, &err);
    assert_ok(toy_build(&s->m, &b), &err);
}

static int32_t device_of(const setup *s, const char *name)
{
    for (mf_id i = 0; i < s->g.n_nodes; i++)
        if (strcmp(s->g.nodes[i].name, name) == 0) return s->g.nodes[i].device;
    fail_msg("no node %s", name);
    return -1;
}

static void test_priority_and_capability(void **state)
{
    (void)state;
    setup s;
    paper_device gpu, cpu;
    minfer_error err = {0};
    mf_device *devices[] = {&gpu.base, &cpu.base};
    mf_assign a = {.devices = devices, .n_devices = 2};
    paper_device_init(&gpu, "gpu", 200, ALL_OPS & ~(1u << MF_OP_SILU));
    paper_device_init(&cpu, "cpu", 100, ALL_OPS);
    start(&s, -1);
    assert_ok(mf_assign_devices(&s.g, &s.p, &a, NULL, &err), &err);
    assert_int_equal(device_of(&s, "l0.q"), 0);
    assert_int_equal(device_of(&s, "l0.silu"), 1);
    assert_int_equal(device_of(&s, "l0.mul"), 0);
    assert_int_equal(device_of(&s, "token_ids"), 0);
    gpu.ops = 0;
    cpu.ops = ALL_OPS & ~(1u << MF_OP_ROPE);
    assert_fails(mf_assign_devices(&s.g, &s.p, &a, NULL, &err), MINFER_ERR_UNSUPPORTED, &err,
                 "l0.q_rope (rope");
    mf_graph_free(&s.g);
}

/* One layer's cache is on one device: if any of its nodes cannot run there, none does. */
static void test_cache_nodes_stay_together(void **state)
{
    (void)state;
    setup s;
    paper_device gpu, cpu;
    minfer_error err = {0};
    mf_device *devices[] = {&gpu.base, &cpu.base};
    mf_assign a = {.devices = devices, .n_devices = 2};
    paper_device_init(&gpu, "gpu", 200, ALL_OPS & ~(1u << MF_OP_ATTN));
    paper_device_init(&cpu, "cpu", 100, ALL_OPS);
    start(&s, -1);
    assert_ok(mf_assign_devices(&s.g, &s.p, &a, NULL, &err), &err);
    assert_int_equal(device_of(&s, "l1.store"), 1);
    assert_int_equal(device_of(&s, "l1.attn"), 1);
    assert_int_equal(device_of(&s, "l1.q"), 0);
    gpu.ops = ALL_OPS;
    const int32_t home[2] = {1, -1};
    assert_ok(mf_assign_devices(&s.g, &s.p, &a, home, &err), &err);
    assert_int_equal(device_of(&s, "l0.attn"), 1);
    assert_int_equal(device_of(&s, "l1.attn"), 0);
    gpu.ops = 0;
    const int32_t gone[2] = {0, 0};
    assert_fails(mf_assign_devices(&s.g, &s.p, &a, gone, &err), MINFER_ERR_UNSUPPORTED, &err,
                 "cache of layer 0 is on gpu");
    mf_graph_free(&s.g);
}

/* A graph with explicit windows goes, with the caches it attends to, to devices that read them. */
static void test_explicit_windows(void **state)
{
    (void)state;
    setup s;
    paper_device gpu, cpu;
    minfer_error err = {0};
    mf_builder b;
    mf_device *devices[] = {&gpu.base, &cpu.base};
    mf_assign a = {.devices = devices, .n_devices = 2};
    paper_device_init(&gpu, "gpu", 200, ALL_OPS);
    paper_device_init(&cpu, "cpu", 100, ALL_OPS);
    gpu.base.explicit_windows = false;
    for (int kind = 0; kind < 3; kind++) {
        start(&s, -1);
        mf_graph_free(&s.g);
        s.p.explicit_span = kind > 0;
        s.p.kv_map = kind > 1;
        mf_build_begin(&b, &s.g, &s.p, 2, &err);
        assert_ok(toy_build(&s.m, &b), &err);
        assert_ok(mf_assign_devices(&s.g, &s.p, &a, NULL, &err), &err);
        assert_int_equal(device_of(&s, "l0.attn"), kind > 0);
        assert_int_equal(device_of(&s, "l0.store"), kind > 0);
        assert_int_equal(device_of(&s, "l0.q"), 0);
        mf_graph_free(&s.g);
    }
}

static void test_gpu_layers(void **state)
{
    (void)state;
    static const struct {
        int32_t layers, first, second, outside;
    } cases[] = {{-1, 0, 0, 0}, {2, 0, 0, 0}, {1, 1, 0, 0}, {0, 1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup s;
        paper_device gpu, cpu;
        minfer_error err = {0};
        mf_device *devices[] = {&gpu.base, &cpu.base};
        mf_assign a = {.devices = devices, .n_devices = 2};
        paper_device_init(&gpu, "gpu", 200, ALL_OPS);
        paper_device_init(&cpu, "cpu", 100, ALL_OPS);
        start(&s, cases[i].layers);
        assert_ok(mf_assign_devices(&s.g, &s.p, &a, NULL, &err), &err);
        assert_int_equal(device_of(&s, "l0.attn"), cases[i].first);
        assert_int_equal(device_of(&s, "l0.down"), cases[i].first);
        assert_int_equal(device_of(&s, "l1.attn"), cases[i].second);
        assert_int_equal(device_of(&s, "logits"), cases[i].outside);
        mf_graph_free(&s.g);
    }
}

static int32_t mul_apart(void *user, const mf_graph *g, mf_id id)
{
    (void)user;
    return g->nodes[id].op == MF_OP_MUL;
}

static void test_fusion_needs_support_and_one_device(void **state)
{
    (void)state;
    for (int c = 0; c < 3; c++) {
        setup s;
        paper_device gpu, cpu;
        minfer_error err = {0};
        mf_device *devices[] = {&gpu.base, &cpu.base};
        mf_assign a = {.devices = devices, .n_devices = 2, .wish = c == 2 ? mul_apart : NULL};
        paper_device_init(&gpu, "gpu", 200, c == 0 ? ALL_OPS & ~(1u << MF_OP_SWIGLU) : ALL_OPS);
        paper_device_init(&cpu, "cpu", 100, ALL_OPS);
        start(&s, -1);
        assert_ok(mf_assign_devices(&s.g, &s.p, &a, NULL, &err), &err);
        int32_t n = mf_fuse_peephole(&s.g, devices), dead = 0, swiglu = 0;
        for (mf_id i = 0; i < s.g.n_nodes; i++) {
            dead += s.g.nodes[i].dead;
            if (s.g.nodes[i].op != MF_OP_SWIGLU) continue;
            swiglu++;
            assert_string_equal(s.g.nodes[s.g.nodes[i].src[0]].name,
                                i < s.g.n_nodes / 2 ? "l0.gate" : "l1.gate");
            assert_string_equal(s.g.nodes[s.g.nodes[i].src[1]].name, i < s.g.n_nodes / 2 ? "l0.up" : "l1.up");
        }
        assert_int_equal(n, c == 1 ? 2 : 0);
        assert_int_equal(swiglu, n);
        assert_int_equal(dead, n);
        mf_graph_free(&s.g);
    }
}

/* A Silu that something else reads stays alive. */
static void test_fusion_keeps_read_nodes(void **state)
{
    (void)state;
    mf_graph g;
    mf_builder b;
    minfer_error err = {0};
    mf_weight w = {"w", MF_TYPE_F32, {8, 8}};
    mf_graph_params p = toy_params(1, 1);
    paper_device cpu;
    mf_device *devices[] = {&cpu.base};
    paper_device_init(&cpu, "cpu", 100, ALL_OPS);
    mf_graph_init(&g);
    mf_build_begin(&b, &g, &p, 1, &err);
    mf_id x = mf_build_embed(&b, "x", &w, mf_build_input(&b, MF_INPUT_TOKEN_IDS));
    mf_id s = mf_build_unary(&b, MF_OP_SILU, "s", x);
    mf_id m = mf_build_binary(&b, MF_OP_MUL, "m", s, x);
    assert_ok(mf_build_finish(&b, mf_build_binary(&b, MF_OP_ADD, "a", m, s)), &err);
    mf_assign a = {.devices = devices, .n_devices = 1};
    assert_ok(mf_assign_devices(&g, &p, &a, NULL, &err), &err);
    assert_int_equal(mf_fuse_peephole(&g, devices), 1);
    assert_int_equal(g.nodes[m].op, MF_OP_SWIGLU);
    assert_false(g.nodes[s].dead);
    mf_graph_free(&g);
}

static minfer_status usable(minfer_error *why)
{
    (void)why;
    return MINFER_OK;
}

static minfer_status broken(minfer_error *why)
{
    return mf_fail(why, MINFER_ERR_UNSUPPORTED, "no device answers");
}

static void test_backend_selection(void **state)
{
    (void)state;
    static const mf_caps caps;
    const mf_backend table[] = {{0, "cpu", 100, &caps, usable, NULL},
                                {1, "metal", 300, NULL, NULL, NULL},
                                {2, "cuda", 200, &caps, broken, NULL},
                                {3, "sim", 250, &caps, usable, NULL}};
    const mf_backend *out[4];
    int32_t n;
    minfer_error err = {0};
    assert_ok(mf_backend_select_from(table, 4, NULL, out, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_string_equal(out[0]->name, "sim");
    assert_string_equal(out[1]->name, "cpu");
    assert_ok(mf_backend_select_from(table, 4, "cpu", out, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_ok(mf_backend_select_from(table, 4, "sim", out, &n, &err), &err);
    assert_int_equal(n, 2); /* the CPU always stays */
    assert_fails(mf_backend_select_from(table, 4, "sim,vulkan", out, &n, &err), MINFER_ERR_ARG, &err,
                 "'vulkan' is unknown; there are cpu, metal, cuda, sim");
    assert_fails(mf_backend_select_from(table, 4, "metal", out, &n, &err), MINFER_ERR_UNSUPPORTED, &err,
                 "'metal' is not compiled in");
    assert_fails(mf_backend_select_from(table, 4, "cuda", out, &n, &err), MINFER_ERR_UNSUPPORTED, &err,
                 "'cuda' is not usable here: no device answers");
    assert_fails(mf_backend_select_from(table, 4, "cpu,", out, &n, &err), MINFER_ERR_ARG, &err,
                 "'' is unknown");
    assert_ok(mf_backend_select("cpu", out, &n, &err), &err);
    assert_string_equal(out[0]->name, "cpu");
    for (int i = 0; i < MF_BACKEND_COUNT; i++) assert_int_equal(mf_backend_table[i].id, i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_priority_and_capability),
        cmocka_unit_test(test_cache_nodes_stay_together),
        cmocka_unit_test(test_explicit_windows),
        cmocka_unit_test(test_gpu_layers),
        cmocka_unit_test(test_fusion_needs_support_and_one_device),
        cmocka_unit_test(test_fusion_keeps_read_nodes),
        cmocka_unit_test(test_backend_selection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
