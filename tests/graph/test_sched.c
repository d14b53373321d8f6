/* The scheduler and the reuse cache on the test device: splits, staging, waits, errors, identity with the CPU
 * alone. */
#include "graph/toy.h"

#include "device/test_device.h"

#include "backends/cpu/cpu.h"

typedef struct {
    toy_model m;
    toy_store store;
    mf_device *devices[2];
    int32_t n;
    mf_graph_cache cache;
} setup;

static uint64_t wish_seed;

static int32_t random_wish(void *user, const mf_graph *g, mf_id id)
{
    uint64_t s = wish_seed * 1000003u + (uint64_t)id * 7919u;
    (void)user;
    (void)g;
    return wish_seed ? (int32_t)(mf_splitmix64(&s) % 2) : -1;
}

/* The CPU alone, or after a test device. */
static void start(setup *s, bool mixed, mf_type type, uint32_t fused_ops)
{
    minfer_error err = {0};
    mf_backend_options o = {.n_threads = 2, .cpu_tier = -1};
    test_device_options t = {.fused_ops = fused_ops};
    *s = (setup){.n = mixed ? 2 : 1};
    toy_model_init(&s->m, type);
    if (mixed) assert_ok(test_device_open(&t, &s->devices[0], &err), &err);
    assert_ok(mf_cpu_open(&o, &s->devices[s->n - 1], &err), &err);
    for (int i = 0; i < s->n; i++) toy_register(&s->m, &s->store, s->devices[i]);
    mf_assign a = {.devices = s->devices, .n_devices = s->n, .wish = mixed ? random_wish : NULL};
    assert_ok(mf_graph_cache_init(&s->cache, &a, 2, toy_build, &s->m, &err), &err);
}

static void stop(setup *s)
{
    mf_graph_cache_free(&s->cache);
    for (int i = 0; i < s->n; i++) s->devices[i]->ops->close(s->devices[i]);
    toy_store_free(&s->store);
}

/* Arenas hold nothing from run to run: what a run reads it must have written. */
static void poison(setup *s)
{
    for (int32_t d = 0; d < s->n; d++) {
        void *buf = s->cache.alloc.arena[d].buf;
        if (!buf) continue;
        if (d == s->n - 1)
            memset(buf, 0xFF, s->cache.alloc.arena[d].size);
        else
            test_device_poison(s->devices[d], buf, s->cache.alloc.arena[d].size);
    }
}

/* Prefill of five tokens, then single tokens, then a chunk again: everything a session does. */
enum { SCRIPT_ROWS = 5 + 3 + 2 };
static void script(setup *s, mf_graph_params base, float out[SCRIPT_ROWS][TOY_VOCAB])
{
    static const struct {
        int32_t n, out;
    } steps[] = {{5, 5}, {1, 1}, {1, 1}, {1, 1}, {4, 2}};
    int32_t at = 0, row = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        base.n_tokens = steps[i].n;
        base.n_out = steps[i].out;
        base.kind = steps[i].n == 1 ? MF_GRAPH_DECODE : MF_GRAPH_PREFILL;
        poison(s);
        toy_run(&s->cache, &base, at, out[row]);
        at += steps[i].n;
        row += steps[i].out;
    }
}

static void test_random_assignments_change_nothing(void **state)
{
    (void)state;
    static const mf_type types[] = {MF_TYPE_F32, MF_TYPE_Q8_0};
    static const mf_type formats[] = {MF_TYPE_F32, MF_TYPE_F16};
    for (size_t t = 0; t < 4; t++) {
        setup s;
        float want[SCRIPT_ROWS][TOY_VOCAB], got[SCRIPT_ROWS][TOY_VOCAB];
        mf_graph_params p = toy_params(1, 1);
        p.kv_format = formats[t / 2];
        start(&s, false, types[t % 2], 0);
        script(&s, p, want);
        stop(&s);
        for (wish_seed = 0; wish_seed < 25; wish_seed++) {
            mf_graph_params q = p;
            q.flash_attn = wish_seed % 2;
            q.explicit_span = wish_seed % 5 == 3;
            q.kv_map = wish_seed % 5 == 4;
            start(&s, true, types[t % 2], 0);
            s.cache.fuse = wish_seed % 3 > 0;
            script(&s, q, got);
            assert_memory_equal(want, got, sizeof want);
            assert_int_equal(test_device_get_stats(s.devices[0])->waits_without_copy, 0);
            stop(&s);
        }
    }
}

static mf_cached_graph *graph_of(setup *s, const mf_graph_params *p)
{
    minfer_error err = {0};
    mf_cached_graph *g;
    assert_ok(mf_graph_cache_get(&s->cache, p, &g, &err), &err);
    return g;
}

static int count(const mf_sched *s, mf_step_kind kind)
{
    int n = 0;
    for (int32_t i = 0; i < s->n_steps; i++) n += s->steps[i].kind == kind;
    return n;
}

/* One copy per crossing value and device, one wait per copy, each before its first reader and after its copy.
 */
static void test_one_wait_per_copy(void **state)
{
    (void)state;
    for (wish_seed = 1; wish_seed < 30; wish_seed++) {
        setup s;
        start(&s, true, MF_TYPE_F32, 0);
        mf_graph_params p = toy_params(3, 1);
        mf_cached_graph *g = graph_of(&s, &p);
        const mf_sched *sc = &g->sched;
        assert_int_equal(count(sc, MF_STEP_COPY), g->plan.n_staged);
        assert_int_equal(count(sc, MF_STEP_WAIT), g->plan.n_staged);
        for (int32_t v = 0; v < g->plan.n_staged; v++) {
            int32_t copy = -1, wait = -1, ran = -1;
            for (int32_t i = 0; i < sc->n_steps; i++) {
                const mf_step *st = &sc->steps[i];
                if (st->kind == MF_STEP_COPY && st->staged == v) copy = i;
                if (st->kind == MF_STEP_WAIT && st->staged == v) wait = i;
                if (st->kind == MF_STEP_RUN && g->plan.staged[v].node >= st->a &&
                    g->plan.staged[v].node < st->b)
                    ran = i;
            }
            assert_true(copy >= 0 && wait > copy && copy > ran);
            if (wait + 1 < sc->n_steps) { /* what follows the wait is another wait, or the run that begins
                                             with a reader */
                int32_t next = wait + 1;
                while (next < sc->n_steps && sc->steps[next].kind == MF_STEP_WAIT) next++;
                assert_int_equal(sc->steps[next].kind, MF_STEP_RUN);
                bool reads = false;
                const mf_node *n = &g->graph.nodes[sc->steps[next].a];
                for (int32_t k = 0; k < n->n_src; k++) reads |= n->src[k] == g->plan.staged[v].node;
                assert_true(reads);
            }
        }
        stop(&s);
    }
}

static void test_reading_before_waiting_is_an_error(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    float logits[TOY_VOCAB];
    wish_seed = 3;
    start(&s, true, MF_TYPE_F32, 0);
    mf_graph_params p = toy_params(1, 1);
    mf_cached_graph *g = graph_of(&s, &p);
    for (int32_t i = 0; i < g->sched.n_steps; i++)
        if (g->sched.steps[i].kind == MF_STEP_WAIT) { /* leave the last wait out */
            memmove(&g->sched.steps[i], &g->sched.steps[i + 1],
                    (size_t)(g->sched.n_steps - i - 1) * sizeof g->sched.steps[0]);
            g->sched.n_steps--;
            break;
        }
    const int32_t zero = 0;
    mf_inputs in = {.data = {&zero, &zero, &zero}, .n = {1, 1, 1}};
    assert_fails(mf_graph_cache_run(&s.cache, g, &in, logits, &err), MINFER_ERR_STATE, &err,
                 "has not been waited for");
    stop(&s);
}

static void test_buffer_on_another_device_is_an_error(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    mf_sched sched;
    wish_seed = 0;
    start(&s, true, MF_TYPE_F32, 0);
    mf_graph_params p = toy_params(1, 1);
    mf_cached_graph *g = graph_of(&s, &p);
    g->plan.value[g->graph.output].device = 1;
    assert_fails(mf_sched_build(&sched, &g->exec, &err), MINFER_ERR_STATE, &err,
                 "node logits runs on test, its buffer is on cpu");
    g->plan.value[g->graph.output].device = 0;
    stop(&s);
}

static void test_bad_data_names_node_and_value(void **state)
{
    (void)state;
    for (int mixed = 0; mixed < 2; mixed++) {
        setup s;
        minfer_error err = {0};
        float logits[TOY_VOCAB];
        wish_seed = 0;
        start(&s, mixed, MF_TYPE_F32, 0);
        mf_graph_params p = toy_params(1, 1);
        mf_cached_graph *g = graph_of(&s, &p);
        const int32_t zero = 0, far_id = TOY_VOCAB, neg = -1, far_cell = TOY_CTX;
        mf_inputs in = {.data = {&far_id, &zero, &zero}, .n = {1, 1, 1}};
        assert_fails(mf_graph_cache_run(&s.cache, g, &in, logits, &err), MINFER_ERR_ARG, &err,
                     "node embd (get_rows): row 40 of 40");
        in.data[0] = &neg;
        assert_fails(mf_graph_cache_run(&s.cache, g, &in, logits, &err), MINFER_ERR_ARG, &err,
                     "row -1 of 40");
        in.data[0] = &zero;
        in.data[2] = &far_cell;
        assert_fails(mf_graph_cache_run(&s.cache, g, &in, logits, &err), MINFER_ERR_ARG, &err,
                     "(kvcache_store): cell 32 of 32");
        in.data[2] = &zero;
        in.data[1] = &far_cell;
        assert_fails(mf_graph_cache_run(&s.cache, g, &in, logits, &err), MINFER_ERR_ARG, &err,
                     "(attn): position 32 of token 0 in a cache of 32");
        in.n[1] = 2;
        assert_fails(mf_graph_cache_run(&s.cache, g, &in, logits, &err), MINFER_ERR_STATE, &err,
                     "input positions has 2 values, the graph reads 1");
        in.n[1] = 1;
        in.data[1] = &zero;
        assert_ok(mf_graph_cache_run(&s.cache, g, &in, logits, &err), &err);
        stop(&s);
    }
}

static void test_failed_device_leaves_nothing_pending(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    float want[SCRIPT_ROWS][TOY_VOCAB], got[SCRIPT_ROWS][TOY_VOCAB], logits[TOY_VOCAB];
    wish_seed = 5;
    start(&s, true, MF_TYPE_F32, 0);
    mf_graph_params p = toy_params(1, 1);
    script(&s, p, want);
    const int32_t zero = 0, bad = TOY_VOCAB;
    mf_inputs in = {.data = {&bad, &zero, &zero}, .n = {1, 1, 1}};
    assert_true(mf_graph_cache_run(&s.cache, graph_of(&s, &p), &in, logits, &err) != MINFER_OK);
    script(&s, p, got);
    assert_memory_equal(want, got, sizeof want);
    stop(&s);
}

static void test_reuse(void **state)
{
    (void)state;
    setup s;
    wish_seed = 0;
    start(&s, true, MF_TYPE_F32, 0);
    s.cache.check_reuse = true;
    uint64_t uid[10];
    for (int32_t n = 1; n <= 10; n++) {
        mf_graph_params p = toy_params(n, 1);
        uid[n - 1] = graph_of(&s, &p)->graph.uid;
        assert_int_equal(uid[n - 1], n); /* fresh, from 1 */
    }
    for (int32_t n = 3; n <= 10; n++) { /* the eight most recent are kept */
        mf_graph_params p = toy_params(n, 1);
        assert_int_equal(graph_of(&s, &p)->graph.uid, uid[n - 1]);
    }
    assert_int_equal(s.cache.n_reused, 8);
    mf_graph_params first = toy_params(1, 1);
    assert_int_equal(graph_of(&s, &first)->graph.uid, 11);
    mf_graph_params third = toy_params(3, 1), fourth = toy_params(4, 1); /* 3 was the oldest and made room */
    assert_int_equal(graph_of(&s, &fourth)->graph.uid, 4);
    assert_int_equal(graph_of(&s, &third)->graph.uid, 12);
    stop(&s);
}

static toy_model twins[2];
static int builds;

/* Names another weight every second time. */
static minfer_status flickering_build(void *model, mf_builder *b)
{
    (void)model;
    return toy_build(&twins[builds++ % 2], b);
}

static void test_reuse_check_sees_a_changed_topology(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    mf_cached_graph *g;
    wish_seed = 0;
    start(&s, false, MF_TYPE_F32, 0);
    s.cache.check_reuse = true;
    s.cache.build = flickering_build;
    toy_model_init(&twins[0], MF_TYPE_F32);
    toy_model_init(&twins[1], MF_TYPE_F32);
    twins[1].bq[0].name = "blk.0.other";
    mf_graph_params p = toy_params(2, 1);
    assert_ok(mf_graph_cache_get(&s.cache, &p, &g, &err), &err);
    assert_fails(mf_graph_cache_get(&s.cache, &p, &g, &err), MINFER_ERR_STATE, &err, "l0.q_bias");
    stop(&s);
}

static void test_trace(void **state)
{
    (void)state;
    setup s;
    mf_buf out = {0};
    wish_seed = 0;
    start(&s, true, MF_TYPE_F32, 0);
    mf_graph_params p = toy_params(2, 1);
    mf_cached_graph *g = graph_of(&s, &p);
    assert_true(mf_sched_trace(&g->sched, &g->exec, &out));
    assert_non_null(strstr(out.data, "split 0: test, "));
    assert_non_null(strstr(out.data, "embd .. logits"));
    assert_non_null(strstr(out.data, "mat_mul 15"));
    assert_non_null(strstr(out.data, "swi_glu 2"));
    assert_non_null(strstr(out.data, "cpu: 0 nodes"));
    mf_buf_free(&out);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_assignments_change_nothing),
        cmocka_unit_test(test_one_wait_per_copy),
        cmocka_unit_test(test_reading_before_waiting_is_an_error),
        cmocka_unit_test(test_buffer_on_another_device_is_an_error),
        cmocka_unit_test(test_bad_data_names_node_and_value),
        cmocka_unit_test(test_failed_device_leaves_nothing_pending),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_reuse_check_sees_a_changed_topology),
        cmocka_unit_test(test_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
