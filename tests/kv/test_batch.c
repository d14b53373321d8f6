/* Feeding in batches: what is refused changes nothing, and the number of sequences is data. That everything
 * fed together has the bits it has alone is in test_timelines.c. */
#include "kv/rig.h"

enum { CTX = 256, SESSIONS = 4 };

typedef struct {
    minfer_model *m;
    minfer_engine *e, *other;
    minfer_session *s[SESSIONS], *foreign; /* foreign: of other */
    float rows[SESSIONS][RIG_MAX_VOCAB];
} world;

static void world_open(world *w)
{
    rig_options o = {.cache = MINFER_CACHE_F16, .n_ctx = CTX, .n_batch = 48, .threads = 1};
    w->m = rig_model(rig_models[0]);
    w->e = rig_engine(w->m, &o);
    w->other = rig_engine(w->m, &o);
    w->foreign = rig_session(w->other);
    for (int i = 0; i < SESSIONS; i++) w->s[i] = rig_session(w->e);
}

static void world_close(world *w)
{
    for (int i = 0; i < SESSIONS; i++) minfer_session_free(w->s[i]);
    minfer_session_free(w->foreign);
    minfer_engine_free(w->e);
    minfer_engine_free(w->other);
    minfer_model_free(w->m);
}

/* Refusals leave every session as it was. */
static void bad_batches_change_nothing(void **state)
{
    (void)state;
    static world w;
    minfer_error err = {0};
    int32_t many[CTX + 1] = {0}, bad = 100000;
    world_open(&w);
    minfer_feed ok = {w.s[0], many, 3, w.rows[0], 1};
    assert_ok(minfer_feed_batch(w.e, &ok, 1, &err), &err);
    minfer_feed twice[] = {{w.s[0], many, 1, NULL, 0}, {w.s[0], many, 1, NULL, 0}};
    assert_fails(minfer_feed_batch(w.e, twice, 2, &err), MINFER_ERR_ARG, &err, "same session");
    minfer_feed foreign[] = {{w.s[0], many, 1, NULL, 0}, {w.foreign, many, 1, NULL, 0}};
    assert_fails(minfer_feed_batch(w.e, foreign, 2, &err), MINFER_ERR_ARG, &err, "another engine");
    minfer_feed id[] = {{w.s[0], many, 1, NULL, 0}, {w.s[1], &bad, 1, NULL, 0}};
    assert_fails(minfer_feed_batch(w.e, id, 2, &err), MINFER_ERR_ARG, &err, "100000");
    minfer_feed full[] = {{w.s[0], many, 100, NULL, 0}, {w.s[1], many, CTX - 102, NULL, 0}};
    assert_fails(minfer_feed_batch(w.e, full, 2, &err), MINFER_ERR_LIMIT, &err, "153 of 256 are unused");
    minfer_feed rows = {w.s[0], many, 1, NULL, 1};
    assert_fails(minfer_feed_batch(w.e, &rows, 1, &err), MINFER_ERR_ARG, &err, "rows of logits");
    assert_int_equal(minfer_session_length(w.s[0]), 3);
    assert_int_equal(minfer_session_length(w.s[1]), 0);
    minfer_session *f;
    assert_fails(minfer_session_fork(w.s[0], 4, &f, &err), MINFER_ERR_ARG, &err, "fork at 4 of 3");
    world_close(&w);
}

/* A device that knows only the causal window serves one session; a second one is refused by name. */
static void a_causal_device_refuses_a_second_session(void **state)
{
    (void)state;
    minfer_error err = {0};
    rig_options o = {.n_ctx = CTX, .n_batch = 48, .threads = 1, .mixed = true, .causal_only = true};
    minfer_model *m = rig_model(rig_models[0]);
    minfer_engine *e = rig_engine(m, &o);
    minfer_session *a = rig_session(e), *b = rig_session(e);
    int32_t ids[4] = {5, 6, 7, 8};
    float row[RIG_MAX_VOCAB];
    rig_feed(a, ids, 4, row, 1);
    assert_fails(minfer_session_feed(b, ids, 4, row, 1, &err), MINFER_ERR_UNSUPPORTED, &err,
                 "is on test, which cannot run it");
    assert_int_equal(minfer_session_length(b), 0);
    rig_feed(a, ids, 4, row, 1);
    minfer_session_free(a);
    minfer_session_free(b);
    minfer_engine_free(e);
    minfer_model_free(m);
}

static uint64_t built(const world *w)
{
    minfer_engine_info info;
    minfer_engine_get_info(w->e, &info);
    return info.graphs_built;
}

/* The number of sequences is data: at equal shape (four rows, two of them wanted) nothing is built anew,
 * whether one, two, three or four are fed. */
static void the_number_of_sequences_builds_nothing(void **state)
{
    (void)state;
    static world w;
    minfer_error err = {0};
    int32_t ids[4] = {5, 6, 7, 8};
    world_open(&w);
    for (int i = 0; i < SESSIONS; i++) rig_feed(w.s[i], ids, 2, NULL, 0);
    minfer_feed one[] = {{w.s[1], ids, 4, w.rows[0], 2}},
                two[] = {{w.s[0], ids, 2, w.rows[0], 1}, {w.s[1], ids, 2, w.rows[1], 1}},
                three[] = {{w.s[0], ids, 2, w.rows[0], 1},
                           {w.s[1], ids, 1, w.rows[1], 1},
                           {w.s[2], ids, 1, w.rows[2], 0}},
                four[] = {{w.s[3], ids, 1, w.rows[0], 1},
                          {w.s[2], ids, 1, w.rows[1], 0},
                          {w.s[1], ids, 1, w.rows[2], 1},
                          {w.s[0], ids, 1, w.rows[3], 0}};
    assert_ok(minfer_feed_batch(w.e, two, 2, &err), &err);
    uint64_t before = built(&w);
    assert_ok(minfer_feed_batch(w.e, one, 1, &err), &err);
    assert_ok(minfer_feed_batch(w.e, four, 4, &err), &err);
    assert_ok(minfer_feed_batch(w.e, three, 3, &err), &err);
    assert_ok(minfer_feed_batch(w.e, two, 2, &err), &err);
    assert_int_equal(built(&w), before);
    world_close(&w);
}

/* States have the same bits however they are cut into feeds, and logits go on behind them as ever. */
static void states_are_the_same_in_any_batch(void **state)
{
    (void)state;
    static world w;
    static float whole[64 * RIG_MAX_VOCAB], parts[64 * RIG_MAX_VOCAB], logits[2][RIG_MAX_VOCAB];
    minfer_error err = {0};
    int32_t ids[64];
    minfer_model_info info;
    for (int32_t i = 0; i < 64; i++) ids[i] = 3 + i * 7 % 50;
    world_open(&w);
    minfer_model_get_info(w.m, &info);
    size_t width = (size_t)info.n_embd;
    minfer_feed one = {w.s[0], ids, 64, whole, 64};
    assert_ok(minfer_feed_batch_states(w.e, &one, 1, &err), &err);
    minfer_feed head[] = {{w.s[1], ids, 5, parts, 5}, {w.s[2], ids + 9, 40, NULL, 0}},
                rest = {w.s[1], ids + 5, 59, parts + 5 * width, 59};
    assert_ok(minfer_feed_batch_states(w.e, head, 2, &err), &err);
    assert_ok(minfer_feed_batch_states(w.e, &rest, 1, &err), &err);
    assert_memory_equal(whole, parts, 64 * width * sizeof *whole);
    rig_feed(w.s[0], ids, 1, logits[0], 1);
    rig_feed(w.s[3], ids, 64, NULL, 0);
    rig_feed(w.s[3], ids, 1, logits[1], 1);
    assert_memory_equal(logits[0], logits[1], (size_t)info.n_vocab * sizeof(float));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_causal_device_refuses_a_second_session),
        cmocka_unit_test(bad_batches_change_nothing),
        cmocka_unit_test(states_are_the_same_in_any_batch),
        cmocka_unit_test(the_number_of_sequences_builds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
