/* The allocator: liveness, aliases, size classes, staging, regions, budgets. */
#include "graph/toy.h"

#include "device/test_device.h"

#include "backends/cpu/cpu.h"
#include "graph/fuse.h"

typedef struct {
    toy_model m;
    toy_store store;
    mf_device *devices[2];
    mf_graph_cache cache;
} setup;

static uint64_t wish_seed;

/* A seeded device for every node. */
static int32_t random_wish(void *user, const mf_graph *g, mf_id id)
{
    uint64_t s = wish_seed * 1000003u + (uint64_t)id * 7919u;
    (void)g;
    return user ? (int32_t)(mf_splitmix64(&s) % 2) : -1;
}

static void start(setup *s, bool random)
{
    minfer_error err = {0};
    mf_backend_options o = {.n_threads = 1, .cpu_tier = -1};
    test_device_options t = {0};
    *s = (setup){0};
    toy_model_init(&s->m, MF_TYPE_F32);
    assert_ok(test_device_open(&t, &s->devices[0], &err), &err);
    assert_ok(mf_cpu_open(&o, &s->devices[1], &err), &err);
    for (int i = 0; i < 2; i++) toy_register(&s->m, &s->store, s->devices[i]);
    mf_assign a = {.devices = s->devices, .n_devices = 2, .wish = random_wish, .user = random ? s : NULL};
    assert_ok(mf_graph_cache_init(&s->cache, &a, 2, toy_build, &s->m, &err), &err);
}

static void stop(setup *s)
{
    mf_graph_cache_free(&s->cache);
    for (int i = 0; i < 2; i++) s->devices[i]->ops->close(s->devices[i]);
    toy_store_free(&s->store);
}

static mf_id node(const mf_graph *g, const char *name)
{
    for (mf_id i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i].name, name) == 0) return i;
    fail_msg("no node %s", name);
    return -1;
}

static bool overlap(const mf_loc *a, const mf_loc *b)
{
    return a->place == MF_PLACE_ARENA && b->place == MF_PLACE_ARENA && a->device == b->device && a->bytes &&
           b->bytes && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* An independent check: whoever is written at node i must not lie over anything that is read at i or later,
 * its own alias excepted. */
static void check_no_overlap(const mf_graph *g, const mf_plan *p)
{
    for (mf_id i = 0; i < g->n_nodes; i++) {
        if (!mf_node_executes(&g->nodes[i]) || p->value[i].place != MF_PLACE_ARENA) continue;
        for (mf_id v = 0; v < g->n_nodes; v++) {
            if (v == i || g->nodes[v].dead || mf_graph_root(g, v) != v) continue;
            bool later = v < i && (g->nodes[v].output || g->nodes[v].op == MF_OP_INPUT);
            for (mf_id r = i; r < g->n_nodes; r++)
                for (int32_t k = 0; k < g->nodes[r].n_src && v < i; k++)
                    later |= !g->nodes[r].dead && mf_graph_root(g, g->nodes[r].src[k]) == v;
            if (!later && g->nodes[v].op != MF_OP_INPUT) continue;
            if (p->alias_of[i] == v) continue;
            if (overlap(&p->value[i], &p->value[v]) || overlap(&p->value[i], &p->extra[v]) ||
                overlap(&p->extra[i], &p->value[v]))
                fail_msg("%s is written over %s", g->nodes[i].name, g->nodes[v].name);
        }
        for (int32_t s = 0; s < p->n_staged; s++)
            if (overlap(&p->value[i], &p->staged[s].loc) || overlap(&p->extra[i], &p->staged[s].loc))
                fail_msg("%s lies over a staged value", g->nodes[i].name);
        for (int d = 0; d < 2; d++)
            if (overlap(&p->value[i], &p->scratch[d])) fail_msg("%s lies over scratch", g->nodes[i].name);
    }
    for (int32_t a = 0; a < p->n_staged; a++)
        for (int32_t b = 0; b < a; b++) assert_false(overlap(&p->staged[a].loc, &p->staged[b].loc));
}

static void test_live_values_never_overlap(void **state)
{
    (void)state;
    for (wish_seed = 0; wish_seed < 40; wish_seed++) {
        setup s;
        minfer_error err = {0};
        start(&s, wish_seed > 0);
        s.cache.fuse = wish_seed % 3 != 0;
        mf_graph_params p = toy_params(1 + (int32_t)(wish_seed % 5), 1);
        p.flash_attn = wish_seed % 2;
        mf_cached_graph *g;
        assert_ok(mf_graph_cache_get(&s.cache, &p, &g, &err), &err);
        check_no_overlap(&g->graph, &g->plan);
        for (mf_id i = 0; i < g->graph.n_nodes; i++)
            for (int d = 0; d < 2; d++) {
                const mf_loc *l = &g->plan.value[i];
                if (l->place == MF_PLACE_ARENA)
                    assert_true(l->offset + l->bytes <= g->plan.arena_bytes[l->device]);
            }
        stop(&s);
    }
}

static void test_memory_is_reused(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    start(&s, false);
    mf_graph_params p = toy_params(4, 1);
    mf_cached_graph *g;
    size_t sum = 0;
    assert_ok(mf_graph_cache_get(&s.cache, &p, &g, &err), &err);
    for (mf_id i = 0; i < g->graph.n_nodes; i++)
        if (g->plan.value[i].place == MF_PLACE_ARENA && mf_graph_root(&g->graph, i) == i)
            sum += mf_alloc_class(g->plan.value[i].bytes / 4) * 4;
    assert_true((g->plan.arena_bytes[0] - g->plan.scratch[0].bytes) * 3 < sum * 2);
    stop(&s);
}

static void test_aliases(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    start(&s, false);
    s.cache.fuse = false;
    mf_graph_params p = toy_params(2, 1);
    mf_cached_graph *g;
    assert_ok(mf_graph_cache_get(&s.cache, &p, &g, &err), &err);
    const mf_graph *gr = &g->graph;
    const mf_plan *pl = &g->plan;
    mf_id rope = node(gr, "l0.q_rope"), bias = node(gr, "l0.q_bias"), silu = node(gr, "l1.silu");
    assert_int_equal(pl->alias_of[rope], bias);
    assert_int_equal(pl->value[rope].offset, pl->value[bias].offset);
    assert_int_equal(pl->alias_of[silu], node(gr, "l1.gate"));
    assert_int_equal(pl->alias_of[bias], -1); /* ADD does not alias */
    assert_int_equal(pl->alias_of[node(gr, "l0.mul")], -1);
    assert_int_equal(pl->last_use[gr->output], gr->n_nodes);
    stop(&s);
    /* from another device, or with a second reader, nothing is aliased */
    for (wish_seed = 1; wish_seed < 30; wish_seed++) {
        start(&s, true);
        s.cache.fuse = false;
        assert_ok(mf_graph_cache_get(&s.cache, &p, &g, &err), &err);
        for (mf_id i = 0; i < g->graph.n_nodes; i++)
            if (g->plan.alias_of[i] >= 0)
                assert_int_equal(g->graph.nodes[i].device, g->graph.nodes[g->plan.alias_of[i]].device);
        stop(&s);
    }
}

static void test_two_readers_prevent_alias(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    mf_graph g;
    mf_builder b;
    mf_plan plan;
    mf_weight w = {"embd", MF_TYPE_F32, {TOY_EMBD, TOY_VOCAB}};
    mf_graph_params p = toy_params(1, 1);
    start(&s, false);
    mf_graph_init(&g);
    mf_build_begin(&b, &g, &p, 1, &err);
    mf_id x = mf_build_embed(&b, "x", &w, mf_build_input(&b, MF_INPUT_TOKEN_IDS));
    const int64_t shape[4] = {TOY_EMBD / 2, 1, 1, 1};
    mf_id twice = mf_build_unary(&b, MF_OP_SILU, "twice", x);
    mf_id view = mf_build_view(&b, "view", twice, TOY_EMBD / 2, shape);
    mf_id once = mf_build_unary(&b, MF_OP_SILU, "once", twice);
    mf_id viewed = mf_build_unary(&b, MF_OP_SILU, "viewed", view);
    mf_id joined = mf_build_view(&b, "joined", once, 0, shape);
    assert_ok(mf_build_finish(&b, mf_build_binary(&b, MF_OP_ADD, "out", joined, viewed)), &err);
    mf_assign a = {.devices = s.devices, .n_devices = 2};
    assert_ok(mf_assign_devices(&g, &p, &a, NULL, &err), &err);
    assert_ok(mf_plan_make(&s.cache.alloc, &g, &plan, &err), &err);
    assert_int_equal(plan.alias_of[twice], x);
    assert_int_equal(plan.alias_of[once], -1);   /* its source is also viewed */
    assert_int_equal(plan.alias_of[viewed], -1); /* its source is a view */
    assert_int_equal(plan.value[view].offset, plan.value[twice].offset + TOY_EMBD / 2 * sizeof(float));
    check_no_overlap(&g, &plan);
    mf_plan_free(&plan);
    mf_graph_free(&g);
    stop(&s);
}

static void test_size_classes(void **state)
{
    (void)state;
    assert_int_equal(mf_alloc_class(1), 256);
    assert_int_equal(mf_alloc_class(256), 256);
    assert_int_equal(mf_alloc_class(257), 512);
    assert_int_equal(mf_alloc_class(2049), 4096);
    assert_int_equal(mf_alloc_class(4096), 4096);
    assert_int_equal(mf_alloc_class(4097), 8192);
    assert_int_equal(mf_alloc_class(12288), 12288);
    assert_int_equal(mf_alloc_class(12289), 16384);
}

static void test_regions_outlive_graphs(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    float logits[TOY_VOCAB];
    start(&s, false);
    assert_null(mf_alloc_kv_pair(&s.cache.alloc, 0));
    mf_graph_params p = toy_params(1, 1);
    toy_run(&s.cache, &p, 0, logits);
    const mf_kv_pair *first = mf_alloc_kv_pair(&s.cache.alloc, 1);
    assert_non_null(first);
    void *k = first->k;
    for (int32_t n = 2; n < 14; n++) { /* more graphs than the cache keeps */
        p = toy_params(n, 1);
        toy_run(&s.cache, &p, 1, logits);
    }
    assert_ptr_equal(mf_alloc_kv_pair(&s.cache.alloc, 1)->k, k);
    assert_null(mf_alloc_kv_pair(&s.cache.alloc, 2));
    assert_null(mf_alloc_kv_pair(&s.cache.alloc, -1));
    p.n_ctx = 16; /* another geometry for a layer that has its regions */
    mf_cached_graph *g;
    assert_fails(mf_graph_cache_get(&s.cache, &p, &g, &err), MINFER_ERR_STATE, &err,
                 "another shape or format");
    stop(&s);
}

static void test_budget_is_refused_in_mib(void **state)
{
    (void)state;
    setup s;
    minfer_error err = {0};
    mf_graph_params p = toy_params(4, 1);
    mf_cached_graph *g;
    start(&s, false);
    s.devices[0]->budget = 1 << 20;
    int before = test_device_buffers(s.devices[0]);
    assert_fails(mf_graph_cache_get(&s.cache, &p, &g, &err), MINFER_ERR_NOMEM, &err,
                 "test: working memory needs 1.0 MiB, 0.0 of 1.0 MiB are in use");
    assert_int_equal(test_device_buffers(s.devices[0]), before);
    s.devices[0]->budget = 0;
    assert_ok(mf_graph_cache_get(&s.cache, &p, &g, &err), &err);
    stop(&s);
}

static void test_plan_survives_failed_allocations(void **state)
{
    (void)state;
    for (long at = 1;; at++) {
        setup s;
        minfer_error err = {0};
        float logits[TOY_VOCAB];
        start(&s, false);
        mf_graph_params p = toy_params(2, 1);
        mf_cached_graph *g;
        mf_mem_fail_at(at);
        minfer_status st = mf_graph_cache_get(&s.cache, &p, &g, &err);
        mf_mem_fail_at(0);
        if (st != MINFER_OK) {
            assert_int_equal(st, MINFER_ERR_NOMEM);
            toy_run(&s.cache, &p, 0, logits); /* and it works afterwards */
        }
        stop(&s);
        if (st == MINFER_OK) break;
        assert_true(at < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_values_never_overlap),
        cmocka_unit_test(test_memory_is_reused),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_two_readers_prevent_alias),
        cmocka_unit_test(test_size_classes),
        cmocka_unit_test(test_regions_outlive_graphs),
        cmocka_unit_test(test_budget_is_refused_in_mib),
        cmocka_unit_test(test_plan_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
