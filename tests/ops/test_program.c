/* Programs of the CPU over random graphs: the same bits with any number of threads in any order, every
 * barrier that is needed in its place, and declarations of steps that are true.
 *
 *   test_program [SEED]      one graph only */
#include "backends/cpu/cpu.h"
#include "ops/case.h"
#include "ops/race.h"

#include <stdlib.h>

static uint64_t first_seed = 1, n_graphs = SANITIZED ? 12 : 40;

static mf_device *open_cpu(int32_t threads)
{
    mf_backend_options o = {.n_threads = threads, .cpu_tier = -1};
    minfer_error err = {0};
    mf_device *d;
    assert_ok(mf_cpu_open(&o, &d, &err), &err);
    return d;
}

/* ---- real threads ---- */

static void poison_arena(mf_graph_cache *c)
{
    op_poison(c->alloc.arena[0].buf, c->alloc.arena[0].size);
}

/* The output and the caches, as race_run gives them. */
static void run_threads(random_graph *graph, mf_device *d, int repeats, const uint8_t *want, size_t bytes)
{
    mf_graph_cache c;
    mf_cached_graph *g;
    mf_assign assign = {.devices = &d, .n_devices = 1};
    mf_inputs in = rg_inputs(graph);
    minfer_error err = {0};
    uint8_t *got = mf_malloc(bytes);
    assert_non_null(got);
    assert_ok(mf_graph_cache_init(&c, &assign, RG_LAYERS, rg_build, graph, &err), &err);
    assert_ok(mf_graph_cache_get(&c, &graph->params, &g, &err), &err);
    assert_ok(rg_register(graph, d, &err), &err);
    assert_ok(mf_alloc_commit(&c.alloc, &g->plan, &err), &err);
    for (int i = 0; i < repeats; i++) {
        size_t at = mf_node_bytes(&g->graph.nodes[g->graph.output]);
        poison_arena(&c);
        for (int32_t l = 0; l < RG_LAYERS; l++) {
            const mf_kv_pair *p = mf_alloc_kv_pair(&c.alloc, l);
            if (p) rg_fill_cache(graph, p->k, p->bytes);
            if (p) rg_fill_cache(graph, p->v, p->bytes);
        }
        assert_ok(mf_graph_cache_run(&c, g, &in, (float *)(void *)got, &err), &err);
        for (int32_t l = 0; l < RG_LAYERS; l++) {
            const mf_kv_pair *p = mf_alloc_kv_pair(&c.alloc, l);
            for (int s = 0; p && s < 2; s++, at += p->bytes) memcpy(got + at, s ? p->v : p->k, p->bytes);
        }
        if (memcmp(got, want, bytes) != 0)
            fail_msg("graph %llu: %d threads gave other bits in run %d", (unsigned long long)graph->seed,
                     mf_cpu_threads(d), i);
    }
    mf_graph_cache_free(&c);
    d->ops->weights_forget(d, "");
    mf_free(got);
}

/* ---- one graph at a time ---- */

typedef struct {
    random_graph graph;
    race race;
    uint8_t *want, *got; /* of one thread; of another way */
    size_t bytes;
    mf_rng rng;
} subject;

static void subject_open(subject *s, uint64_t seed, mf_device *cpu)
{
    static const int32_t only[1] = {0};
    rg_init(&s->graph, seed);
    race_open(&s->race, &s->graph, cpu);
    s->bytes = race_result_bytes(&s->race);
    s->want = mf_malloc(s->bytes);
    s->got = mf_malloc(s->bytes);
    assert_non_null(s->want);
    assert_non_null(s->got);
    mf_rng_seed(&s->rng, seed);
    race_run(&s->race, 1, only, NULL, s->want);
}

static void subject_close(subject *s)
{
    race_close(&s->race);
    rg_free(&s->graph);
    mf_free(s->want);
    mf_free(s->got);
}

static void for_all_graphs(void (*body)(subject *s))
{
    mf_device *cpu = open_cpu(RACE_THREADS);
    for (uint64_t i = 0; i < n_graphs; i++) {
        subject s;
        subject_open(&s, first_seed + i, cpu);
        body(&s);
        subject_close(&s);
    }
    cpu->ops->close(cpu);
}

static void shuffle(mf_rng *r, int32_t *order, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t k = (int32_t)op_below(r, (uint32_t)i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

/* Any order of the threads between barriers: false when the bits differ. Forwards, backwards, shuffled, and
 * step by step at random. */
static bool orders_agree(subject *s, int random_orders)
{
    for (int32_t nth = 2; nth <= RACE_THREADS; nth++)
        for (int i = 0; i < 2 + random_orders; i++) {
            int32_t order[RACE_THREADS];
            for (int32_t k = 0; k < nth; k++) order[k] = i == 0 ? k : nth - 1 - k;
            if (i > 1) shuffle(&s->rng, order, nth);
            race_run(&s->race, nth, i < 2 || i % 2 ? order : NULL, &s->rng, s->got);
            if (memcmp(s->want, s->got, s->bytes) != 0) return false;
        }
    return true;
}

static void graph_has_an_output(subject *s)
{
    for (size_t i = 0; i + 4 <= mf_node_bytes(&s->race.g->graph.nodes[s->race.g->graph.output]); i += 4) {
        uint32_t u;
        memcpy(&u, s->want + i, 4);
        if ((u & 0x7f800000) == 0x7f800000)
            fail_msg("graph %llu: output %zu is not finite", (unsigned long long)s->graph.seed, i / 4);
    }
}

static void check_orders(subject *s)
{
    graph_has_an_output(s);
    if (!orders_agree(s, 6))
        fail_msg("graph %llu: an order of the threads gives other bits", (unsigned long long)s->graph.seed);
}

static void check_declarations(subject *s)
{
    char why[RACE_WHY];
    if (!race_barriers_hold(&s->race, why) ||
        !race_declarations_hold(&s->race, 2 + (int32_t)(s->graph.seed % 3), why))
        fail_msg("graph %llu: %s", (unsigned long long)s->graph.seed, why);
}

/* ---- without a barrier ---- */

static struct {
    int barriers, found, seen; /* all; that the ranges call needed; without which bits came out otherwise */
} dropped;

/* What changes bits, the ranges must know of. */
static void drop_barriers(subject *s)
{
    char why[RACE_WHY];
    for (int32_t i = 0; i < s->race.program->n_steps; i++) {
        if (!s->race.program->steps[i].barrier) continue;
        s->race.program->steps[i].barrier = false;
        bool found = !race_barriers_hold(&s->race, why), seen = s->graph.seed % 4 == 0 && !orders_agree(s, 0);
        s->race.program->steps[i].barrier = true;
        if (seen && !found)
            fail_msg("graph %llu without the barrier of step %d: other bits, and no conflict of ranges",
                     (unsigned long long)s->graph.seed, i);
        dropped.barriers++;
        dropped.found += found;
        dropped.seen += seen;
    }
}

/* ---- tests ---- */

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    mf_device *cpu = open_cpu(RACE_THREADS);
    for (int32_t n = 1; n <= RACE_THREADS; n++) {
        mf_device *d = open_cpu(n);
        for (uint64_t i = 0; i < n_graphs; i++) {
            subject s;
            subject_open(&s, first_seed + i, cpu);
            run_threads(&s.graph, d, n == 1 ? 1 : 6, s.want, s.bytes);
            subject_close(&s);
        }
        d->ops->close(d);
    }
    cpu->ops->close(cpu);
}

static void test_any_order_gives_the_same_bits(void **state)
{
    (void)state;
    for_all_graphs(check_orders);
}

static void test_conflicting_steps_have_a_barrier(void **state)
{
    (void)state;
    for_all_graphs(check_declarations);
}

static void test_a_missing_barrier_is_found(void **state)
{
    (void)state;
    for_all_graphs(drop_barriers);
    print_message(
        "%d barriers dropped one at a time: %d found by the ranges; of every fourth graph, %d by the bits\n",
        dropped.barriers, dropped.found, dropped.seen);
    if (n_graphs == 1) return;
    assert_true(dropped.found * 100 > dropped.barriers * 95);
    assert_true(dropped.seen > 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 0);
        n_graphs = 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_gives_the_same_bits),
        cmocka_unit_test(test_conflicting_steps_have_a_barrier),
        cmocka_unit_test(test_a_missing_barrier_is_found),
        cmocka_unit_test(test_threads_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
