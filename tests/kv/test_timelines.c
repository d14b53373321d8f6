/* Many sessions on one engine with too few cells for their comfort, driven at random: fed alone and together,
 * forked, cut back, ranges taken out, closed, saved and restored, moved and packed. After every step each is
 * what the plain model says, and its logits are the plain model's byte for byte, on the CPU and mixed with
 * the test device, in every cache format. */
#include "kv/plain.h"

enum { CTX = 160, SESSIONS = 7, LONGEST = 100, MOST = 24 };

typedef struct {
    minfer_model *m;
    minfer_engine *e;
    plain p;
    minfer_session *s[SESSIONS]; /* NULL: closed */
    plain_seq want[SESSIONS];
    mf_rng rng;
    int n_fed, n_limits, n_removed, n_restored, n_moved;
    bool check_rows;
} world;

static int32_t below(world *w, int32_t n)
{
    return (int32_t)(mf_rng_u64(&w->rng) % (uint64_t)n);
}

/* ---- moves are counted: without any, the test would prove little ---- */

static int *moves;
static mf_kv_move_fn *move_cells;

static minfer_status counted_move(void *user, int32_t from, int32_t to, int32_t n, minfer_error *err)
{
    ++*moves;
    return move_cells(user, from, to, n, err);
}

static void world_open(world *w, const char *model, const rig_options *o, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    mf_rng_seed(&w->rng, seed);
    w->m = rig_model(model);
    w->e = rig_engine(w->m, o);
    w->check_rows = !o->mixed;
    moves = &w->n_moved;
    move_cells = w->e->kv.move;
    w->e->kv.move = counted_move;
    plain_open(&w->p, w->m, o->cache, CTX);
    for (int i = 0; i < SESSIONS; i++) w->want[i] = plain_seq_new(&w->p);
}

static void world_close(world *w)
{
    for (int i = 0; i < SESSIONS; i++) {
        minfer_session_free(w->s[i]);
        plain_seq_free(&w->want[i]);
    }
    assert_int_equal(mf_kv_unused(&w->e->kv), CTX);
    plain_close(&w->p);
    minfer_engine_free(w->e);
    minfer_model_free(w->m);
}

static void close_one(world *w, int i)
{
    minfer_session_free(w->s[i]);
    w->s[i] = NULL;
    w->want[i].n = 0;
}

/* ---- steps ---- */

static void check_feed(world *w, int i, const minfer_feed *f)
{
    static float want[MOST * RIG_MAX_VOCAB];
    plain_feed(&w->p, &w->want[i], f->tokens, (int32_t)f->n, want);
    const float *from = want + (f->n - f->n_logits) * w->p.n_vocab;
    if (f->n_logits && memcmp(from, f->logits, f->n_logits * w->p.n_vocab * sizeof *want) != 0)
        fail_msg("session %d of %d tokens, %zu rows: other bits than the plain model's", i, w->want[i].n,
                 f->n_logits);
    w->n_fed++;
}

/* Some sessions, or one. */
static void step_feed(world *w)
{
    static float logits[SESSIONS][MOST * RIG_MAX_VOCAB];
    static int32_t tokens[SESSIONS][MOST];
    minfer_feed f[SESSIONS];
    minfer_error err = {0};
    int who[SESSIONS], most = 1 + below(w, SESSIONS);
    size_t n = 0;
    for (int i = 0; i < SESSIONS && (int)n < most; i++) {
        int32_t more = below(w, 3) ? 1 + below(w, 2) : below(w, MOST + 1);
        if (!w->s[i] || below(w, 3) == 0 || w->want[i].n + more > LONGEST) continue;
        rig_random_tokens(&w->rng, w->p.n_vocab, tokens[i], (size_t)more);
        f[n] = (minfer_feed){w->s[i], tokens[i], (size_t)more, logits[i], (size_t)below(w, more + 1)};
        who[n++] = i;
    }
    minfer_status st = minfer_feed_batch(w->e, f, n, &err);
    if (st == MINFER_ERR_LIMIT) {
        assert_non_null(strstr(err.message, "do not fit"));
        w->n_limits++;
        return;
    }
    assert_ok(st, &err);
    for (size_t k = 0; k < n; k++) check_feed(w, who[k], &f[k]);
}

static void step_fork(world *w, int i, int from)
{
    minfer_error err = {0};
    if (!w->s[from] || i == from) return;
    int32_t n = below(w, w->want[from].n + 1);
    close_one(w, i);
    assert_ok(minfer_session_fork(w->s[from], (size_t)n, &w->s[i], &err), &err);
    plain_copy(&w->p, &w->want[i], &w->want[from], n);
}

static void step_rollback(world *w, int i)
{
    minfer_error err = {0};
    int32_t n = below(w, w->want[i].n + 1);
    assert_ok(minfer_session_rollback(w->s[i], (size_t)n, &err), &err);
    w->want[i].n = n;
}

static void step_remove(world *w, int i)
{
    minfer_error err = {0};
    int32_t n = w->want[i].n, from = below(w, n + 1), most = n - from < 9 ? n - from : 9,
            to = from + below(w, most + 1);
    minfer_status st = minfer_session_remove(w->s[i], (size_t)from, (size_t)to, &err);
    if (st == MINFER_ERR_LIMIT) { /* only where sessions share */
        assert_non_null(strstr(err.message, "5 runs of cells"));
        assert_int_equal(w->s[i]->seq.n_spans, MF_KV_SPANS);
        w->n_limits++;
        return;
    }
    assert_ok(st, &err);
    plain_remove(&w->p, &w->want[i], from, to);
    w->n_removed += to > from;
}

/* Its cells may be needed by others meanwhile: then it stays closed. */
static void step_restore(world *w, int i)
{
    minfer_error err = {0};
    rig_save(w->s[i], rig_path("s.kv"), "");
    minfer_session_free(w->s[i]);
    minfer_status st = minfer_session_restore(w->e, rig_path("s.kv"), &w->s[i], NULL, NULL, &err);
    w->n_restored += st == MINFER_OK;
    if (st == MINFER_OK) return;
    assert_fails(st, MINFER_ERR_LIMIT, &err, "do not fit");
    w->want[i].n = 0;
}

static void step(world *w)
{
    minfer_error err = {0};
    int i = below(w, SESSIONS), what = below(w, 20);
    if (!w->s[i]) {
        if (what % 3 == 0)
            step_fork(w, i, below(w, SESSIONS));
        else
            assert_ok(minfer_session_create(w->e, &w->s[i], &err), &err);
        return;
    }
    if (what < 10)
        step_feed(w);
    else if (what < 12)
        step_fork(w, i, below(w, SESSIONS));
    else if (what < 14)
        step_rollback(w, i);
    else if (what < 18)
        step_remove(w, i);
    else if (what < 19)
        step_restore(w, i);
    else
        close_one(w, i);
}

static void run(const char *model, const rig_options *o, uint64_t seed, int steps)
{
    world w;
    world_open(&w, model, o, seed);
    for (int n = 0; n < steps; n++) {
        step(&w);
        for (int i = 0; i < SESSIONS; i++)
            if (w.s[i]) plain_compare(&w.p, &w.want[i], w.s[i], w.check_rows && n % 4 == 0);
    }
    print_message("%s: %d feeds, %d removals, %d restored, %d moves, %d limits\n", model, w.n_fed,
                  w.n_removed, w.n_restored, w.n_moved, w.n_limits);
    assert_true(w.n_fed > steps / 4 && w.n_removed > steps / 40 && w.n_restored > 0 && w.n_moved > 0);
    world_close(&w);
}

static void random_timelines_are_the_plain_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            rig_options o = {.cache = rig_caches[k], .n_ctx = CTX, .n_batch = 32, .threads = 2};
            run(rig_models[i], &o, 10 * i + k, 250);
        }
}

static void also_with_another_device(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        rig_options o = {.cache = rig_caches[k], .n_ctx = CTX, .n_batch = 32, .threads = 2, .mixed = true};
        run(rig_models[k], &o, 100 + k, 120);
    }
}

/* ---- removal by example ---- */

/* One session, whose gaps are more than a window has spans for: what it alone holds moves together. */
static void a_lone_session_may_have_any_number_of_gaps(void **state)
{
    (void)state;
    minfer_error err = {0};
    rig_options o = {.cache = MINFER_CACHE_F16, .n_ctx = CTX, .n_batch = 32, .threads = 1};
    static float got[RIG_MAX_VOCAB], want[60 * RIG_MAX_VOCAB];
    world w;
    int32_t tokens[60] = {0};
    world_open(&w, rig_models[0], &o, 1);
    minfer_session *s = rig_session(w.e);
    rig_random_tokens(&w.rng, w.p.n_vocab, tokens, 60);
    rig_feed(s, tokens, 60, NULL, 0);
    plain_feed(&w.p, &w.want[0], tokens, 60, want);
    for (int32_t at = 50; at >= 5; at -= 5) {
        assert_ok(minfer_session_remove(s, (size_t)at, (size_t)at + 2, &err), &err);
        plain_remove(&w.p, &w.want[0], at, at + 2);
        assert_in_range(s->seq.n_spans, 1, MF_KV_SPANS);
        plain_compare(&w.p, &w.want[0], s, true);
    }
    assert_int_equal(s->positions[39], 59);
    rig_feed(s, tokens, 1, got, 1);
    plain_feed(&w.p, &w.want[0], tokens, 1, want);
    assert_memory_equal(got, want, w.p.n_vocab * sizeof *got);
    assert_int_equal(s->positions[40], 60);
    minfer_session_free(s);
    world_close(&w);
}

/* A gap at the front leaves one run from cell 0 on when it is packed: still not a causal window. */
static void a_packed_session_keeps_its_positions(void **state)
{
    (void)state;
    minfer_error err = {0};
    rig_options o = {.cache = MINFER_CACHE_F32, .n_ctx = CTX, .n_batch = 32, .threads = 1};
    static float got[RIG_MAX_VOCAB], want[130 * RIG_MAX_VOCAB];
    world w;
    int32_t tokens[130];
    world_open(&w, rig_models[1], &o, 2);
    minfer_session *s = rig_session(w.e);
    rig_random_tokens(&w.rng, w.p.n_vocab, tokens, 130);
    rig_feed(s, tokens, 130, NULL, 0);
    plain_feed(&w.p, &w.want[0], tokens, 130, want);
    assert_ok(minfer_session_remove(s, 0, 70, &err), &err);
    plain_remove(&w.p, &w.want[0], 0, 70);
    rig_feed(s, tokens, 95, NULL, 0); /* does not fit behind: it moves to the front */
    plain_feed(&w.p, &w.want[0], tokens, 95, want);
    assert_int_equal(s->seq.spans[0].cell, 0);
    assert_int_equal(s->seq.n_spans, 1);
    rig_feed(s, tokens, 1, got, 1);
    plain_feed(&w.p, &w.want[0], tokens, 1, want);
    assert_memory_equal(got, want, w.p.n_vocab * sizeof *got);
    minfer_session_free(s);
    world_close(&w);
}

/* Kept tokens keep what they saw, so the session is not a fresh one of the kept tokens; all of it gone is. */
static void what_a_removal_means(void **state)
{
    (void)state;
    minfer_error err = {0};
    rig_options o = {.cache = MINFER_CACHE_F32, .n_ctx = CTX, .n_batch = 32, .threads = 1};
    float a[RIG_MAX_VOCAB], b[RIG_MAX_VOCAB];
    const int32_t tokens[6] = {3, 14, 15, 92, 65, 35};
    minfer_model *m = rig_model(rig_models[2]);
    minfer_engine *e = rig_engine(m, &o);
    minfer_session *s = rig_session(e), *fresh = rig_session(e);
    size_t row = rig_n_vocab(e) * sizeof *a;
    rig_feed(s, tokens, 5, NULL, 0);
    assert_fails(minfer_session_remove(s, 3, 2, &err), MINFER_ERR_ARG, &err, "removing 3..2 of 5 tokens");
    assert_fails(minfer_session_remove(s, 0, 6, &err), MINFER_ERR_ARG, &err, "removing 0..6 of 5 tokens");
    assert_ok(minfer_session_remove(s, 2, 2, &err), &err);
    assert_int_equal(minfer_session_length(s), 5);
    assert_ok(minfer_session_remove(s, 1, 3, &err), &err);
    rig_feed(s, tokens + 5, 1, a, 1);
    rig_feed(fresh, (const int32_t[]){3, 92, 65, 35}, 4, b, 1);
    assert_true(memcmp(a, b, row) != 0);
    assert_ok(minfer_session_remove(s, 2, 4, &err), &err); /* the end: a rollback */
    assert_int_equal(s->positions[1], 3);
    assert_ok(minfer_session_remove(s, 0, 2, &err), &err);
    rig_feed(s, (const int32_t[]){3, 92, 65, 35}, 4, a, 1);
    assert_memory_equal(a, b, row);
    minfer_session_free(s);
    minfer_session_free(fresh);
    minfer_engine_free(e);
    minfer_model_free(m);
}

/* Positions end with the context the model was trained with, however few cells are in use. */
static void positions_have_an_end(void **state)
{
    (void)state;
    minfer_error err = {0};
    rig_options o = {.cache = MINFER_CACHE_F16, .n_ctx = 64, .n_batch = 32, .threads = 1};
    minfer_model *m = rig_model(rig_models[0]);
    minfer_engine *e = rig_engine(m, &o);
    minfer_session *s = rig_session(e);
    int32_t tokens[32] = {0}, trained = m->bound->hp.n_ctx;
    for (int32_t at = 0; at + 32 <= trained; at += 32) {
        rig_feed(s, tokens, 32, NULL, 0);
        assert_ok(minfer_session_remove(s, 1, minfer_session_length(s) - 1, &err), &err);
    }
    int32_t left = trained - 1 - s->positions[1];
    assert_fails(minfer_session_feed(s, tokens, (size_t)left + 1, NULL, 0, &err), MINFER_ERR_LIMIT, &err,
                 "the model has 2048 positions");
    if (left) rig_feed(s, tokens, (size_t)left, NULL, 0);
    minfer_session_free(s);
    minfer_engine_free(e);
    minfer_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_timelines_are_the_plain_models),
        cmocka_unit_test(also_with_another_device),
        cmocka_unit_test(a_lone_session_may_have_any_number_of_gaps),
        cmocka_unit_test(a_packed_session_keeps_its_positions),
        cmocka_unit_test(what_a_removal_means),
        cmocka_unit_test(positions_have_an_end),
    };
    return cmocka_run_group_tests(tests, rig_folder_make, rig_folder_drop);
}
