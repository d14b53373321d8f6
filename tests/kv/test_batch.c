/* Many sessions on one engine: whatever is fed together, forked, cut back and moved, each has the logits it
 * has alone, byte for byte, on the CPU and mixed with the test device, in every cache format. */
#include "device/test_device.h"
#include "support/support.h"

#include "backends/cpu/cpu.h"
#include "runtime/engine.h"

enum { CTX = 256, SESSIONS = 6, MAX_VOCAB = 600 };

/* Formats of cache the CPU has, by name of the option. */
static const struct {
    minfer_cache_type type;
    mf_type format;
} formats[] = {
    {MINFER_CACHE_F32, MF_TYPE_F32}, {MINFER_CACHE_F16, MF_TYPE_F16}, {MINFER_CACHE_Q8_0, MF_TYPE_Q8_0}};

typedef struct {
    minfer_model *m;
    minfer_engine *many, *alone;
    minfer_session *s[SESSIONS], *ref; /* ref: the only session of alone */
    int32_t text[SESSIONS][CTX];
    size_t n[SESSIONS];
    size_t n_vocab;
    mf_rng rng;
} world;

static int32_t wish(void *user, const mf_graph *g, mf_id id)
{
    (void)user;
    (void)g;
    uint64_t s = (uint64_t)id * 7919u + 3;
    return (int32_t)(mf_splitmix64(&s) % 2);
}

static minfer_engine *engine_new(const minfer_model *m, minfer_cache_type cache, int32_t threads, bool mixed)
{
    minfer_error err = {0};
    minfer_engine_options o;
    minfer_engine *e;
    minfer_engine_options_init(&o);
    o.n_ctx = CTX;
    o.n_batch = 48;
    o.cache_type = cache;
    o.n_threads = threads;
    if (!mixed) {
        assert_ok(minfer_engine_create(m, &o, &e, &err), &err);
        return e;
    }
    mf_engine_devices on = {.n = 2, .wish = wish};
    test_device_options t = {0};
    mf_backend_options b = {.n_threads = threads, .cpu_tier = -1};
    assert_ok(test_device_open(&t, &on.devices[0], &err), &err);
    assert_ok(mf_cpu_open(&b, &on.devices[1], &err), &err);
    assert_ok(mf_engine_create_on(m, &o, &on, &e, &err), &err);
    return e;
}

static void world_open(world *w, const char *model, minfer_cache_type cache, int32_t threads, bool mixed)
{
    minfer_error err = {0};
    minfer_engine_info info;
    memset(w, 0, sizeof *w);
    assert_ok(minfer_model_open(data_path("tiny/%s", model), NULL, NULL, &w->m, &err), &err);
    w->many = engine_new(w->m, cache, threads, mixed);
    w->alone = engine_new(w->m, cache, 1, false);
    assert_ok(minfer_session_create(w->alone, &w->ref, &err), &err);
    minfer_engine_get_info(w->many, &info);
    w->n_vocab = (size_t)info.n_vocab;
    assert_true(w->n_vocab <= MAX_VOCAB);
    for (int i = 0; i < SESSIONS; i++) assert_ok(minfer_session_create(w->many, &w->s[i], &err), &err);
}

static void world_close(world *w)
{
    for (int i = 0; i < SESSIONS; i++) minfer_session_free(w->s[i]);
    minfer_session_free(w->ref);
    minfer_engine_free(w->many);
    minfer_engine_free(w->alone);
    minfer_model_free(w->m);
}

static int32_t below(world *w, size_t n)
{
    return (int32_t)(mf_rng_u64(&w->rng) % n);
}

/* The logits of session i's last n_logits tokens, computed alone. */
static void check_logits(world *w, int i, const float *got, size_t n_logits)
{
    static float want[CTX * MAX_VOCAB];
    minfer_error err = {0};
    assert_ok(minfer_session_rollback(w->ref, 0, &err), &err);
    assert_ok(minfer_session_feed(w->ref, w->text[i], w->n[i], want, n_logits, &err), &err);
    if (memcmp(want, got, n_logits * w->n_vocab * sizeof *want) != 0)
        fail_msg("session %d of %zu tokens, %zu rows: other bits than alone", i, w->n[i], n_logits);
}

static void one_batch(world *w)
{
    static float logits[SESSIONS][CTX * MAX_VOCAB];
    minfer_feed f[SESSIONS];
    minfer_error err = {0};
    size_t n = 0, used = 0;
    int who[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) used += w->n[i];
    for (int i = 0; i < SESSIONS; i++) {
        size_t more = below(w, 4) ? 1 + (size_t)below(w, 2) : (size_t)below(w, 70);
        if (below(w, 3) == 0 || w->n[i] + more > CTX / 2 || used + more > CTX) continue;
        used += more;
        for (size_t k = 0; k < more; k++) w->text[i][w->n[i] + k] = below(w, w->n_vocab);
        f[n] = (minfer_feed){w->s[i], w->text[i] + w->n[i], more, logits[i], (size_t)below(w, more + 1)};
        who[n++] = i;
    }
    minfer_status st = minfer_feed_batch(w->many, f, n, &err);
    if (st == MINFER_ERR_LIMIT && strstr(err.message, "in 4 runs")) return;
    assert_ok(st, &err);
    for (size_t k = 0; k < n; k++) {
        w->n[who[k]] += f[k].n;
        assert_int_equal(minfer_session_length(w->s[who[k]]), w->n[who[k]]);
        if (f[k].n_logits) check_logits(w, who[k], logits[who[k]], f[k].n_logits);
    }
}

/* A session becomes a fork of another, or is cut back. */
static void one_change(world *w)
{
    minfer_error err = {0};
    int i = below(w, SESSIONS), from = below(w, SESSIONS);
    if (i == from || below(w, 2)) {
        w->n[i] = (size_t)below(w, w->n[i] + 1);
        assert_ok(minfer_session_rollback(w->s[i], w->n[i], &err), &err);
        return;
    }
    minfer_session_free(w->s[i]);
    w->n[i] = (size_t)below(w, w->n[from] + 1);
    memcpy(w->text[i], w->text[from], sizeof w->text[i]);
    assert_ok(minfer_session_fork(w->s[from], w->n[i], &w->s[i], &err), &err);
    assert_memory_equal(minfer_session_tokens(w->s[i]), w->text[i], w->n[i] * sizeof(int32_t));
}

static void run_world(const char *model, minfer_cache_type cache, int32_t threads, bool mixed, int steps)
{
    world w;
    world_open(&w, model, cache, threads, mixed);
    mf_rng_seed(&w.rng, (uint64_t)threads * 31 + (uint64_t)cache * 7 + mixed);
    for (int i = 0; i < steps; i++) {
        one_batch(&w);
        if (i % 2) one_change(&w);
    }
    world_close(&w);
}

static const char *const models[] = {"tiny-llama-Q4_1.gguf", "tiny-qwen2-Q4_K.gguf", "tiny-qwen3-Q5_K.gguf"};

static void sessions_together_have_the_bits_of_each_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
            if (mf_cpu_caps.types[MF_OP_ATTN] >> formats[k].format & 1)
                run_world(models[i], formats[k].type, 2, false, 30);
}

static void also_with_another_device(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        if (mf_cpu_caps.types[MF_OP_ATTN] >> formats[k].format & 1)
            run_world(models[0], formats[k].type, 2, true, 15);
}

/* Refusals leave every session as it was. */
static void bad_batches_change_nothing(void **state)
{
    (void)state;
    world w;
    minfer_error err = {0};
    float row[MAX_VOCAB];
    int32_t many[CTX + 1] = {0}, bad = 100000;
    world_open(&w, models[0], MINFER_CACHE_F16, 1, false);
    minfer_feed ok = {w.s[0], many, 3, row, 1};
    assert_ok(minfer_feed_batch(w.many, &ok, 1, &err), &err);
    minfer_feed twice[] = {{w.s[0], many, 1, NULL, 0}, {w.s[0], many, 1, NULL, 0}};
    assert_fails(minfer_feed_batch(w.many, twice, 2, &err), MINFER_ERR_ARG, &err, "same session");
    minfer_feed foreign[] = {{w.s[0], many, 1, NULL, 0}, {w.ref, many, 1, NULL, 0}};
    assert_fails(minfer_feed_batch(w.many, foreign, 2, &err), MINFER_ERR_ARG, &err, "another engine");
    minfer_feed id[] = {{w.s[0], many, 1, NULL, 0}, {w.s[1], &bad, 1, NULL, 0}};
    assert_fails(minfer_feed_batch(w.many, id, 2, &err), MINFER_ERR_ARG, &err, "100000");
    minfer_feed full[] = {{w.s[0], many, 100, NULL, 0}, {w.s[1], many, CTX - 102, NULL, 0}};
    assert_fails(minfer_feed_batch(w.many, full, 2, &err), MINFER_ERR_LIMIT, &err, "153 of 256 are unused");
    minfer_feed rows = {w.s[0], many, 1, NULL, 1};
    assert_fails(minfer_feed_batch(w.many, &rows, 1, &err), MINFER_ERR_ARG, &err, "rows of logits");
    assert_int_equal(minfer_session_length(w.s[0]), 3);
    assert_int_equal(minfer_session_length(w.s[1]), 0);
    minfer_session *f;
    assert_fails(minfer_session_fork(w.s[0], 4, &f, &err), MINFER_ERR_ARG, &err, "fork at 4 of 3");
    world_close(&w);
}

/* The number of sequences is data: at equal shape nothing is built anew. */
static void more_sessions_reuse_the_graph(void **state)
{
    (void)state;
    world w;
    minfer_error err = {0};
    minfer_engine_info a, b;
    static float rows[4][MAX_VOCAB];
    int32_t ids[4] = {5, 6, 7, 8};
    world_open(&w, models[0], MINFER_CACHE_F16, 1, false);
    for (int i = 0; i < 4; i++) assert_ok(minfer_session_feed(w.s[i], ids, 2, NULL, 0, &err), &err);
    minfer_feed two[] = {{w.s[0], ids, 2, rows[0], 1}, {w.s[1], ids, 2, rows[1], 1}},
                one[] = {{w.s[2], ids, 2, rows[0], 1}, {w.s[3], ids, 2, rows[1], 1}};
    assert_ok(minfer_feed_batch(w.many, two, 2, &err), &err);
    minfer_engine_get_info(w.many, &a);
    assert_ok(minfer_feed_batch(w.many, one, 2, &err), &err);
    minfer_feed three[] = {
        {w.s[0], ids, 2, rows[0], 1}, {w.s[1], ids, 1, rows[1], 1}, {w.s[2], ids, 1, rows[2], 0}};
    assert_ok(minfer_feed_batch(w.many, three, 3, &err), &err);
    minfer_engine_get_info(w.many, &b);
    assert_int_equal(a.graphs_built, b.graphs_built);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_together_have_the_bits_of_each_alone),
        cmocka_unit_test(also_with_another_device),
        cmocka_unit_test(bad_batches_change_nothing),
        cmocka_unit_test(more_sessions_reuse_the_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
