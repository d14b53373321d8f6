/* The op matrix: every op, type, window and cache format a device declares, in many shapes, against scalar C
 * bit for bit and against a formula in double precision; what it does not declare is refused. The same cases,
 * larger, are the benchmark.
 *
 *   test_ops [--seed N] [--case PART-OF-A-NAME] [--bench]
 *
 * A failing case prints how to run it alone. */
#include "ops/bench.h"
#include "ops/cases.h"
#include "ops/check.h"

#include "graph/cache.h"

#include <stdlib.h>

static struct {
    uint64_t seed;
    const char *only;
    bool bench;
} options = {.seed = 1};

enum { MAX_DEVICES = 16, WINDOWS = 3 };

static op_device *devices;
static size_t n_devices;

/* Combinations with a case that passed, by device. */
static bool covered[MAX_DEVICES][MF_OP_COUNT][MF_TYPE_COUNT][WINDOWS][MF_TYPE_COUNT];

static const struct {
    mf_op op;
    const char *reason;
} excused[] = {
    {MF_OP_INPUT,
     "no device runs it: the host fills it; the cases of GET_ROWS, ROPE, ATTN and RESHAPE read it"},
};

/* ---- one case ---- */

/* What runs now: told when a test ends in a crash. */
static char running[320];

typedef struct {
    int cases, runs;
} tally;

static bool declares(const op_device *dv, const op_case *c)
{
    return op_declared(&dv->caps, c->op, c->type, c->window, c->cache) &&
           (!c->second || op_declared(&dv->caps, c->op, c->second, c->window, c->cache));
}

/* The case with ops that every device has, for scalar C to be the measure of fused ones. */
static bool scalar_runs(const op_case *c, bool *plain)
{
    const mf_caps *caps = &devices[0].caps;
    *plain = !declares(&devices[0], c);
    if (!*plain) return true;
    bool fused = c->op == MF_OP_FUSED_FFN || (op_stores(c->op) && c->op != MF_OP_KVCACHE_STORE);
    return fused && op_declared(caps, MF_OP_MATMUL, c->type, 0, 0) &&
           (c->op == MF_OP_FUSED_FFN || op_declared(caps, MF_OP_KVCACHE_STORE, c->cache, 0, 0));
}

static void complain(const op_device *dv, const op_case *c, const char *why)
{
    char name[256];
    op_case_name(c, name, sizeof name);
    running[0] = 0;
    print_error("FAIL on %s: %s\n     seed %llu: %s\n     again: test_ops --seed %llu --case '%s'\n",
                dv->name, name, (unsigned long long)options.seed, why, (unsigned long long)options.seed,
                name);
    fail();
}

static bool fused_as_meant(const op_case *c, const op_result *r, char why[OP_WHY])
{
    int want = c->op == MF_OP_SWIGLU && c->variant ? 1 : 0;
    if (r->n_fused == want) return true;
    snprintf(why, OP_WHY, "%d peephole fusions, not %d", r->n_fused, want);
    return false;
}

static void run_on(size_t i, const op_case *c, const op_data *d, const op_want *w, const op_result *scalar,
                   tally *n)
{
    op_device *dv = &devices[i];
    char why[OP_WHY] = "", name[256];
    op_result r;
    op_case_name(c, name, sizeof name);
    snprintf(running, sizeof running, "%s on %s", name, dv->name);
    bool ok = op_run_case(dv, c, d, false, &r, why) && fused_as_meant(c, &r, why) &&
              op_check_cache(c, d, w, &r, why) && (!dv->other_bits || op_check_formula(c, w, &r, why)) &&
              (dv->other_bits || op_check_bits(c, d, scalar, &r, why));
    op_result_free(&r);
    if (!ok) complain(dv, c, why);
    covered[i][c->op][c->type][c->window][c->cache] = true;
    n->runs++;
}

static void one_case(void *user, const op_case *c)
{
    char name[256], why[OP_WHY] = "";
    op_data d;
    op_want w;
    op_result scalar;
    bool plain;
    op_case_name(c, name, sizeof name);
    if ((options.only && !strstr(name, options.only)) || !scalar_runs(c, &plain)) return;
    snprintf(running, sizeof running, "%s on %s", name, devices[0].name);
    op_data_make(c, options.seed, &d);
    op_want_make(c, &d, &w);
    bool ok = op_run_case(&devices[0], c, &d, plain, &scalar, why) && op_check_formula(c, &w, &scalar, why) &&
              op_check_cache(c, &d, &w, &scalar, why);
    if (!ok) complain(&devices[0], c, why);
    if (!plain) covered[0][c->op][c->type][c->window][c->cache] = true;
    for (size_t i = 1; i < n_devices; i++)
        if (devices[i].dev && declares(&devices[i], c)) run_on(i, c, &d, &w, &scalar, user);
    op_result_free(&scalar);
    op_want_free(&w);
    op_data_free(&d);
    running[0] = 0;
    ((tally *)user)->cases++;
}

static int tell_crash(void **state)
{
    (void)state;
    if (running[0])
        print_error("FAIL in the middle of %s, seed %llu\n", running, (unsigned long long)options.seed);
    running[0] = 0;
    return 0;
}

static void test_op(void **state)
{
    mf_op op = *(const mf_op *)*state;
    tally n = {0};
    op_cases(op, options.seed, one_case, &n);
    if (n.cases) print_message("%s: %d cases, %d runs\n", mf_op_table[op].name, n.cases, n.runs);
    if (n.cases == 0) SKIP_BECAUSE("%s has no case here", mf_op_table[op].name);
}

/* ---- tables of capabilities ---- */

typedef void combination_fn(op_device *dv, mf_op op, mf_type type, mf_window window, mf_type cache);

static void each_combination(op_device *dv, combination_fn *f)
{
    for (int op = 0; op < MF_OP_COUNT; op++)
        for (int type = 0; type < MF_TYPE_COUNT; type++)
            for (int window = 0; window < (op == MF_OP_ATTN ? WINDOWS : 1); window++)
                for (int cache = 0; cache < MF_TYPE_COUNT; cache++) {
                    bool free_cache = op_stores((mf_op)op) && op != MF_OP_KVCACHE_STORE;
                    bool own_cache = op_has_cache((mf_op)op) && !free_cache;
                    if (own_cache ? cache == type : free_cache || cache == 0)
                        f(dv, (mf_op)op, (mf_type)type, (mf_window)window, (mf_type)cache);
                }
}

static mf_node *node_under_test(mf_graph *g, mf_op op)
{
    for (mf_id i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i].name, OP_NODE) == 0) return &g->nodes[i];
    for (mf_id i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == op) return &g->nodes[i];
    return NULL;
}

/* supports, mf_caps_has and the table agree about a node as the builder makes it. */
static void check_supports(op_device *dv, const op_case *c, op_model *m)
{
    mf_graph g;
    mf_builder b;
    minfer_error err = {0};
    mf_graph_params p = op_params(c);
    bool declared = declares(dv, c);
    mf_graph_init(&g);
    mf_build_begin(&b, &g, &p, OP_LAYERS, &err);
    if (op_build(m, &b) == MINFER_OK) {
        mf_node *n = node_under_test(&g, c->op);
        assert_non_null(n);
        if (dv->ops.supports(dv->dev, &g, n) != declared) complain(dv, c, "supports is not what is declared");
        if (mf_caps_has(&dv->caps, n) != declared) complain(dv, c, "mf_caps_has reads the table differently");
    } else if (declared) {
        complain(dv, c, err.message);
    }
    mf_graph_free(&g);
}

/* The whole way to a graph that could run: refused with a line that names the node and the type. */
static void check_refused(op_device *dv, const op_case *c, op_model *m)
{
    static const char *const windows[] = {"", "span", "map"};
    mf_graph_cache cache = {0};
    mf_cached_graph *g;
    mf_assign assign = {.devices = &dv->dev, .n_devices = 1};
    mf_graph_params p = op_params(c);
    minfer_error err = {0};
    assert_ok(mf_graph_cache_init(&cache, &assign, OP_LAYERS, op_build, m, &err), &err);
    minfer_status st = mf_graph_cache_get(&cache, &p, &g, &err);
    mf_graph_cache_free(&cache);
    bool declared = declares(dv, c),
         by_window = declared != op_declared(&dv->caps, c->op, c->type, 0, c->cache);
    if (declared && st != MINFER_OK) complain(dv, c, err.message);
    if (declared) return;
    if (st != MINFER_ERR_UNSUPPORTED) complain(dv, c, st == MINFER_OK ? "it was not refused" : err.message);
    const char *name = c->op == MF_OP_KVCACHE_LOAD || c->op == MF_OP_ATTN ? "node l1." : OP_NODE;
    if (!strstr(err.message, name) || !strstr(err.message, mf_type_name(c->type)) ||
        (by_window && !strstr(err.message, windows[c->window])))
        complain(dv, c, err.message);
}

static void check_combination(op_device *dv, mf_op op, mf_type type, mf_window window, mf_type cache)
{
    op_case c;
    op_data d;
    if (!op_case_minimal(op, type, window, cache, &c)) {
        bool odd = type < 32 && op != MF_OP_INPUT && dv->caps.types[op] >> type & 1 && !op_has_cache(op);
        if (odd)
            fail_msg("%s declares %s %s, which no graph can hold", dv->name, mf_op_table[op].name,
                     mf_type_name(type));
        return;
    }
    op_data_make(&c, options.seed, &d);
    op_model m = {.c = &c, .d = &d};
    check_supports(dv, &c, &m);
    check_refused(dv, &c, &m);
    op_data_free(&d);
}

static void test_declared_is_supported(void **state)
{
    op_device *dv = *state;
    if (!dv->dev) SKIP_BECAUSE("%s: %s", dv->name, dv->absent.message);
    if (options.only) SKIP_BECAUSE("only some cases were run");
    each_combination(dv, check_combination);
}

static int uncovered;

static void check_covered(op_device *dv, mf_op op, mf_type type, mf_window window, mf_type cache)
{
    if (!op_declared(&dv->caps, op, type, window, cache)) return;
    if (covered[dv - devices][op][type][window][cache]) return;
    for (size_t i = 0; i < COUNT(excused); i++)
        if (excused[i].op == op) return;
    print_error("%s declares %s %s, window %d, cache %s: no case has passed\n", dv->name,
                mf_op_table[op].name, mf_type_name(type), (int)window, mf_type_name(cache));
    uncovered++;
}

static void test_every_declared_combination_has_a_case(void **state)
{
    op_device *dv = *state;
    if (!dv->dev) SKIP_BECAUSE("%s: %s", dv->name, dv->absent.message);
    if (options.only) SKIP_BECAUSE("only some cases were run");
    uncovered = 0;
    each_combination(dv, check_covered);
    assert_int_equal(uncovered, 0);
}

/* ---- main ---- */

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--bench") == 0)
            options.bench = true;
        else if (strcmp(argv[i], "--seed") == 0 && more)
            options.seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--case") == 0 && more)
            options.only = argv[++i];
        else
            return false;
    }
    return true;
}

static size_t add_device_tests(struct CMUnitTest *tests, size_t n, const char *what, CMUnitTestFunction f)
{
    static char names[2 * MAX_DEVICES][80];
    static size_t used;
    for (size_t i = 0; i < n_devices; i++, used++) {
        snprintf(names[used], sizeof names[0], "%s: %s", devices[i].name, what);
        tests[n++] = (struct CMUnitTest){names[used], f, NULL, NULL, &devices[i]};
    }
    return n;
}

int main(int argc, char **argv)
{
    static mf_op ops[MF_OP_COUNT];
    static struct CMUnitTest tests[MF_OP_COUNT + 2 * MAX_DEVICES];
    size_t n = 0;
    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: %s [--seed N] [--case PART-OF-A-NAME] [--bench]\n", argv[0]);
        return 2;
    }
    devices = op_devices_open(&n_devices);
    if (options.bench) {
        op_bench(devices, n_devices, options.only);
        op_devices_close();
        return 0;
    }
    for (int op = 0; op < MF_OP_COUNT; op++) {
        ops[op] = (mf_op)op;
        if (op != MF_OP_INPUT)
            tests[n++] = (struct CMUnitTest){mf_op_table[op].name, test_op, NULL, tell_crash, &ops[op]};
    }
    n = add_device_tests(tests, n, "supports what it declares, and refuses the rest",
                         test_declared_is_supported);
    n = add_device_tests(tests, n, "each declared combination has a case",
                         test_every_declared_combination_has_a_case);
    int failed = _cmocka_run_group_tests("ops", tests, n, NULL, NULL);
    op_devices_close();
    return failed;
}
