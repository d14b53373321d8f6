/* Exports: DOT that Graphviz reads, JSON that says everything about a node. */
#include "graph/toy.h"

#include "graph/export.h"

#include <jansson.h>
#include <stdlib.h>

#define ALL_OPS 0xFFFFFFFFu

static void make(toy_model *m, mf_graph *g, mf_device **devices, bool assigned)
{
    minfer_error err = {0};
    mf_builder b;
    mf_graph_params p = toy_params(3, 1);
    p.flash_attn = false;
    toy_model_init(m, MF_TYPE_F32);
    mf_graph_init(g);
    mf_build_begin(&b, g, &p, 2, &err);
    assert_ok(toy_build(m, &b), &err);
    mf_assign a = {.devices = devices, .n_devices = 2};
    if (assigned) assert_ok(mf_assign_devices(g, &p, &a, NULL, &err), &err);
}

static void test_json(void **state)
{
    (void)state;
    toy_model m;
    mf_graph g;
    mf_buf out = {0};
    minfer_error err = {0};
    paper_device gpu, cpu;
    mf_device *devices[] = {&gpu.base, &cpu.base};
    paper_device_init(&gpu, "cuda", 200, 1u << MF_OP_MATMUL);
    paper_device_init(&cpu, "cpu", 100, ALL_OPS);
    make(&m, &g, devices, true);
    mf_export e = {&g, devices, "toy \"model\"", MF_GRAPH_PREFILL};
    assert_ok(mf_export_json(&e, &out, &err), &err);
    json_error_t je;
    json_t *root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &je);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "format")), "minfer-graph");
    assert_int_equal(json_integer_value(json_object_get(root, "version")), 1);
    assert_string_equal(json_string_value(json_object_get(root, "model")), "toy \"model\"");
    assert_string_equal(json_string_value(json_object_get(root, "kind")), "prefill");
    json_t *nodes = json_object_get(root, "nodes");
    assert_int_equal(json_array_size(nodes), g.n_nodes);
    for (mf_id i = 0; i < g.n_nodes; i++) {
        static const char *const keys[] = {"id",    "name",    "op",  "detail", "shape",
                                           "dtype", "backend", "src", "meta"};
        json_t *n = json_array_get(nodes, (size_t)i);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) assert_non_null(json_object_get(n, keys[k]));
        assert_string_equal(json_string_value(json_object_get(n, "backend")),
                            g.nodes[i].op == MF_OP_MATMUL ? "cuda" : "cpu");
        assert_int_equal(json_array_size(json_object_get(n, "src")), g.nodes[i].n_src);
    }
    assert_int_equal(json_array_size(json_object_get(root, "inputs")), 4);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(root, "outputs"), 0)), g.output);
    json_decref(root);
    mf_buf_free(&out);
    mf_graph_free(&g);
}

/* Every op, however odd its attributes, exports as valid JSON with its numbers in meta. */
static void test_json_of_every_op(void **state)
{
    (void)state;
    mf_weight w = {"w", MF_TYPE_Q4_K, {256, 8}};
    for (int op = 0; op < MF_OP_COUNT; op++) {
        mf_node n = {.name = "n", .op = (mf_op)op, .dtype = MF_TYPE_F32, .shape = {1, 2, 3, 4}, .device = -1};
        minfer_error err = {0};
        mf_buf out = {0};
        if (mf_op_table[op].attr == MF_ATTR_WEIGHT) n.attr.weight.w = &w;
        if (mf_op_table[op].attr == MF_ATTR_QKV) n.attr.qkv.wq = n.attr.qkv.wk = n.attr.qkv.wv = &w;
        if (mf_op_table[op].attr == MF_ATTR_SCALE) n.attr.scale = (float)strtod("nan", NULL);
        mf_graph g = {.nodes = &n, .n_nodes = 1};
        mf_export e = {&g, NULL, "m", MF_GRAPH_DECODE};
        assert_ok(mf_export_json(&e, &out, &err), &err);
        json_error_t je;
        json_t *root = json_loadb(out.data, out.len, 0, &je),
               *node = json_array_get(json_object_get(root, "nodes"), 0);
        assert_string_equal(json_string_value(json_object_get(node, "op")), mf_op_table[op].name);
        assert_true(json_is_null(json_object_get(node, "backend")));
        if (mf_op_table[op].attr != MF_ATTR_NONE && mf_op_table[op].attr != MF_ATTR_RESHAPE &&
            mf_op_table[op].attr != MF_ATTR_FFN)
            assert_true(json_object_size(json_object_get(node, "meta")) >= 2);
        json_decref(root);
        mf_buf_free(&out);
    }
}

static void test_dot(void **state)
{
    (void)state;
    toy_model m;
    mf_graph g;
    mf_buf out = {0};
    paper_device gpu, cpu;
    mf_device *devices[] = {&gpu.base, &cpu.base};
    paper_device_init(&gpu, "metal", 300, 1u << MF_OP_MATMUL);
    paper_device_init(&cpu, "cpu", 100, ALL_OPS);
    make(&m, &g, devices, true);
    mf_export e = {&g, devices, "quote \" and \\ slash", MF_GRAPH_PREFILL};
    assert_true(mf_export_dot(&e, &out));
    assert_non_null(strstr(out.data, "lightblue"));
    assert_non_null(strstr(out.data, "lightyellow"));
    assert_non_null(strstr(out.data, "doublecircle"));
    assert_non_null(strstr(out.data, "l1.attn\\nattn"));
    e.devices = NULL;
    mf_buf plain = {0};
    assert_true(mf_export_dot(&e, &plain));
    assert_non_null(strstr(plain.data, "fillcolor=white"));
    assert_null(strstr(plain.data, "light"));
    mf_buf_free(&plain);
    char path[] = "/tmp/minfer_dot_XXXXXX", cmd[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    assert_int_equal(fwrite(out.data, 1, out.len, f), out.len);
    fclose(f);
    snprintf(cmd, sizeof cmd, "dot -Tsvg %s >/dev/null 2>&1", path);
    int have = system("dot -V >/dev/null 2>&1"), rc = have == 0 ? system(cmd) : 0;
    remove(path);
    mf_buf_free(&out);
    mf_graph_free(&g);
    if (have != 0) SKIP_BECAUSE("Graphviz is not installed; the file was not read by dot");
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_json), cmocka_unit_test(test_json_of_every_op),
                                       cmocka_unit_test(test_dot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
