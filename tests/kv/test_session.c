/* Session files: what is restored goes on with the bits the saved session would have had, and the file is the
 * same again when it is saved; what does not fit or is damaged is refused and changes nothing. */
#include "kv/rig.h"

#include "kv/session_file.h"

enum { CTX = 128, FED = 40, MORE = 12, GONE = 9 };

static rig_options options(minfer_cache_type cache, bool mixed)
{
    return (rig_options){.cache = cache, .n_ctx = CTX, .n_batch = 32, .threads = 2, .mixed = mixed};
}

static void assert_same_file(const char *a, const char *b)
{
    size_t na, nb;
    char *da = read_all(a, &na), *db = read_all(b, &nb);
    assert_int_equal(na, nb);
    assert_memory_equal(da, db, na);
    mf_free(da);
    mf_free(db);
}

/* A session of FED tokens, of which GONE are then removed when `gap`; a neighbour makes it lie in pieces. */
static minfer_session *make_session(minfer_engine *e, const int32_t *tokens, bool gap)
{
    minfer_error err = {0};
    minfer_session *s = rig_session(e), *fork;
    rig_feed(s, tokens, FED / 2, NULL, 0);
    assert_ok(minfer_session_fork(s, FED / 2 - 3, &fork, &err), &err);
    rig_feed(fork, tokens + FED / 2 - 3, FED / 2 + 3, NULL, 0);
    minfer_session_free(s);
    if (gap) assert_ok(minfer_session_remove(fork, 7, 7 + GONE, &err), &err);
    return fork;
}

static void goes_on(const char *model, rig_options o, bool gap)
{
    static float want[MORE * RIG_MAX_VOCAB], got[MORE * RIG_MAX_VOCAB];
    static const char host[] = "{\"turns\": [1, 2]}";
    minfer_model *m = rig_model(model);
    minfer_engine *a = rig_engine(m, &o), *b = rig_engine(m, &o);
    int32_t tokens[FED + MORE];
    size_t n_vocab = rig_n_vocab(a), n = FED - (gap ? GONE : 0);
    mf_rng r;
    mf_rng_seed(&r, 7);
    rig_random_tokens(&r, n_vocab, tokens, FED + MORE);
    minfer_session *s = make_session(a, tokens, gap), *other = rig_session(b);
    rig_feed(other, tokens, 21, NULL, 0); /* so that its cells lie elsewhere */
    rig_save(s, rig_path("a.kv"), host);
    minfer_session *t = rig_restore(b, rig_path("a.kv"), host);
    rig_save(t, rig_path("b.kv"), host);
    assert_same_file(rig_path("a.kv"), rig_path("b.kv"));
    assert_int_equal(minfer_session_length(t), n);
    assert_memory_equal(minfer_session_tokens(t), minfer_session_tokens(s), n * sizeof *tokens);
    rig_feed(s, tokens + FED, MORE, want, MORE);
    rig_feed(t, tokens + FED, MORE, got, MORE);
    assert_memory_equal(got, want, MORE * n_vocab * sizeof *want);
    minfer_session_free(s);
    minfer_session_free(t);
    minfer_session_free(other);
    minfer_engine_free(a);
    minfer_engine_free(b);
    minfer_model_free(m);
}

static void a_restored_session_goes_on_bit_for_bit(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            for (int gap = 0; gap < 2; gap++) goes_on(rig_models[i], options(rig_caches[k], false), gap);
}

static void also_with_another_device(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) goes_on(rig_models[k], options(rig_caches[k], true), k % 2);
}

/* Nothing in a file depends on threads, instruction sets or how the rows lie; and an empty session has a
 * file, too. */
static void tiers_and_threads_write_the_same_file(void **state)
{
    (void)state;
    minfer_model *m = rig_model(rig_models[1]);
    int32_t tokens[FED] = {0};
    for (int gap = 0; gap < 2; gap++) {
        rig_options one = options(MINFER_CACHE_Q8_0, false), two = one;
        two.threads = 1;
        two.n_batch = 7;
        minfer_engine *a = rig_engine(m, &one), *b = rig_engine(m, &two);
        minfer_session *s = make_session(a, tokens, gap), *other = rig_session(b);
        rig_feed(other, tokens, 5, NULL, 0);
        minfer_session *t = make_session(b, tokens, gap);
        rig_save(s, rig_path("a.kv"), "");
        rig_save(t, rig_path("b.kv"), "");
        assert_same_file(rig_path("a.kv"), rig_path("b.kv"));
        minfer_session_free(s);
        minfer_session_free(t);
        minfer_session_free(other);
        minfer_engine_free(a);
        minfer_engine_free(b);
    }
    minfer_model_free(m);
}

static void an_empty_session_has_a_file(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_model *m = rig_model(rig_models[0]);
    rig_options o = options(MINFER_CACHE_F16, false);
    minfer_engine *e = rig_engine(m, &o);
    minfer_session *s = rig_session(e), *t;
    static const char host[] = "nul \0 and \xff";
    char *text;
    size_t n;
    assert_ok(minfer_session_save(s, rig_path("e.kv"), host, sizeof host, &err), &err);
    assert_ok(minfer_session_restore(e, rig_path("e.kv"), &t, &text, &n, &err), &err);
    assert_int_equal(n, sizeof host);
    assert_memory_equal(text, host, n);
    assert_int_equal(text[n], 0);
    assert_int_equal(minfer_session_length(t), 0);
    minfer_free(text);
    minfer_session_free(t);
    assert_ok(minfer_session_save(s, rig_path("e.kv"), NULL, 0, &err), &err);
    assert_ok(minfer_session_restore(e, rig_path("e.kv"), &t, NULL, NULL, &err), &err);
    minfer_session_free(t);
    minfer_session_free(s);
    minfer_engine_free(e);
    minfer_model_free(m);
}

/* What is rolled back leaves no trace: neither in later logits nor in the file. */
static void rolled_back_tokens_leave_no_trace(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_model *m = rig_model(rig_models[2]);
    rig_options o = options(MINFER_CACHE_F16, false);
    minfer_engine *e = rig_engine(m, &o);
    int32_t tokens[FED];
    mf_rng r;
    mf_rng_seed(&r, 11);
    rig_random_tokens(&r, rig_n_vocab(e), tokens, FED);
    minfer_session *s = rig_session(e), *t = rig_session(e);
    for (size_t i = 0; i < FED; i += 5) {
        rig_feed(s, tokens, 4, NULL, 0); /* drafts that are refused */
        assert_ok(minfer_session_rollback(s, i, &err), &err);
        rig_feed(s, tokens + i, 5, NULL, 0);
        rig_feed(t, tokens + i, 5, NULL, 0);
    }
    rig_save(s, rig_path("a.kv"), "");
    rig_save(t, rig_path("b.kv"), "");
    assert_same_file(rig_path("a.kv"), rig_path("b.kv"));
    minfer_session_free(s);
    minfer_session_free(t);
    minfer_engine_free(e);
    minfer_model_free(m);
}

static void a_lost_cache_is_neither_saved_nor_restored_into(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_model *m = rig_model(rig_models[0]);
    rig_options o = options(MINFER_CACHE_F16, false);
    minfer_engine *e = rig_engine(m, &o);
    minfer_session *s = rig_session(e), *t;
    rig_save(s, rig_path("a.kv"), "");
    e->kv.lost = true;
    assert_fails(minfer_session_save(s, rig_path("a.kv"), NULL, 0, &err), MINFER_ERR_STATE, &err,
                 "a.kv: the cache was lost");
    assert_fails(minfer_session_restore(e, rig_path("a.kv"), &t, NULL, NULL, &err), MINFER_ERR_STATE, &err,
                 "a.kv: the cache was lost");
    minfer_session_free(s);
    minfer_engine_free(e);
    minfer_model_free(m);
}

/* An engine that differs in one thing refuses the file and says which, with both values. */
static void refused_by(const minfer_model *m, rig_options o, const char *word)
{
    minfer_error err = {0};
    minfer_session *s;
    minfer_engine *e = rig_engine(m, &o);
    char *host = (char *)1;
    int32_t unused = mf_kv_unused(&e->kv);
    assert_fails(minfer_session_restore(e, rig_path("a.kv"), &s, &host, NULL, &err), MINFER_ERR_ARG, &err,
                 word);
    assert_null(s);
    assert_null(host);
    assert_int_equal(mf_kv_unused(&e->kv), unused);
    assert_int_equal(e->kv.n_seqs, 0);
    minfer_engine_free(e);
}

static void what_does_not_fit_is_refused_by_name(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_model *m = rig_model(rig_models[0]), *other = rig_model("tiny-llama-Q4_0.gguf");
    rig_options o = options(MINFER_CACHE_F16, false), x;
    minfer_engine *e = rig_engine(m, &o);
    int32_t tokens[FED] = {0};
    minfer_session *s = make_session(e, tokens, false), *t;
    rig_save(s, rig_path("a.kv"), "");
    refused_by(other, o, "another model");
    x = o, x.n_ctx = CTX / 2;
    refused_by(m, x, "a context of 128, here it is 64");
    x = o, x.cache = MINFER_CACHE_Q8_0;
    refused_by(m, x, "cache type f16, here it is q8_0");
    x = o, x.cache = MINFER_CACHE_F32;
    refused_by(m, x, "cache type f16, here it is f32");
    x = o, x.mixed = true;
    refused_by(m, x, "was computed by backend 0 (cpu), here test");
    minfer_session *full = rig_session(e); /* the file's cells are not unused */
    rig_feed(full, (int32_t[CTX - FED]){0}, CTX - FED, NULL, 0);
    assert_fails(minfer_session_restore(e, rig_path("a.kv"), &t, NULL, NULL, &err), MINFER_ERR_LIMIT, &err,
                 "a.kv: 40 more cells do not fit: 0 of 128 are unused");
    assert_fails(minfer_session_restore(e, rig_path("none.kv"), &t, NULL, NULL, &err), MINFER_ERR_IO, &err,
                 "none.kv: No such file");
    assert_fails(minfer_session_restore(e, rig_path("."), &t, NULL, NULL, &err), MINFER_ERR_IO, &err,
                 "is a directory");
    minfer_session_free(full);
    minfer_session_free(s);
    minfer_engine_free(e);
    minfer_model_free(other);
    minfer_model_free(m);
}

/* ---- devices that fail ---- */

static int fail_at; /* the n-th transfer fails; 0: none */
static const mf_device_ops *real_ops;

static minfer_status failing_read(mf_device *d, mf_mem src, void *dst, size_t n, minfer_error *err)
{
    if (fail_at && --fail_at == 0) return mf_fail(err, MINFER_ERR_STATE, "the bus is down");
    return real_ops->read(d, src, dst, n, err);
}

static minfer_status failing_write(mf_device *d, mf_mem dst, const void *src, size_t n, minfer_error *err)
{
    if (fail_at && --fail_at == 0) return mf_fail(err, MINFER_ERR_STATE, "the bus is down");
    return real_ops->write(d, dst, src, n, err);
}

static void a_failing_device_leaves_file_and_engine(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_model *m = rig_model(rig_models[0]);
    rig_options o = options(MINFER_CACHE_F16, false);
    minfer_engine *e = rig_engine(m, &o);
    int32_t tokens[FED] = {0};
    minfer_session *s = make_session(e, tokens, false), *t;
    mf_device_ops ops = *e->devices[0]->ops;
    rig_save(s, rig_path("a.kv"), "old");
    rig_save(s, rig_path("b.kv"), "old");
    int32_t unused = mf_kv_unused(&e->kv);
    real_ops = e->devices[0]->ops;
    ops.read = failing_read;
    ops.write = failing_write;
    e->devices[0]->ops = &ops;
    for (int n = 1; n <= 6; n++) {
        fail_at = n;
        assert_fails(minfer_session_save(s, rig_path("a.kv"), "new", 3, &err), MINFER_ERR_STATE, &err,
                     "the bus is down");
        assert_same_file(rig_path("a.kv"), rig_path("b.kv"));
        assert_false(file_exists(rig_path("a.kv.tmp")));
        fail_at = n;
        assert_fails(minfer_session_restore(e, rig_path("a.kv"), &t, NULL, NULL, &err), MINFER_ERR_STATE,
                     &err, "a.kv: the bus is down");
        assert_null(t);
        assert_int_equal(mf_kv_unused(&e->kv), unused);
        assert_int_equal(e->kv.n_seqs, 1);
    }
    fail_at = 0;
    e->devices[0]->ops = real_ops;
    minfer_session_free(rig_restore(e, rig_path("a.kv"), "old"));
    minfer_session_free(s);
    minfer_engine_free(e);
    minfer_model_free(m);
}

static void memory_that_runs_out_leaves_file_and_engine(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_model *m = rig_model(rig_models[0]);
    rig_options o = options(MINFER_CACHE_F16, false);
    minfer_engine *e = rig_engine(m, &o);
    int32_t tokens[FED] = {0};
    minfer_session *s = make_session(e, tokens, true), *t = NULL;
    char *host;
    rig_save(s, rig_path("a.kv"), "old");
    rig_save(s, rig_path("b.kv"), "old");
    int32_t unused = mf_kv_unused(&e->kv);
    minfer_status st = MINFER_ERR_NOMEM;
    for (long n = 1; st != MINFER_OK; n++) {
        mf_mem_fail_at(n);
        st = minfer_session_restore(e, rig_path("a.kv"), &t, &host, NULL, &err);
        mf_mem_fail_at(0);
        if (st == MINFER_OK) break;
        assert_fails(st, MINFER_ERR_NOMEM, &err, "out of memory");
        assert_null(t);
        assert_null(host);
        assert_int_equal(mf_kv_unused(&e->kv), unused);
    }
    minfer_free(host);
    minfer_session_free(t);
    st = MINFER_ERR_NOMEM;
    for (long n = 1; st != MINFER_OK; n++) {
        assert_same_file(rig_path("a.kv"), rig_path("b.kv"));
        assert_false(file_exists(rig_path("a.kv.tmp")));
        mf_mem_fail_at(n);
        st = minfer_session_save(s, rig_path("a.kv"), "new", 3, &err);
        mf_mem_fail_at(0);
        if (st != MINFER_OK) assert_fails(st, MINFER_ERR_NOMEM, &err, "out of memory");
    }
    minfer_session_free(rig_restore(e, rig_path("a.kv"), "new"));
    minfer_session_free(s);
    minfer_engine_free(e);
    minfer_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restored_session_goes_on_bit_for_bit),
        cmocka_unit_test(also_with_another_device),
        cmocka_unit_test(tiers_and_threads_write_the_same_file),
        cmocka_unit_test(an_empty_session_has_a_file),
        cmocka_unit_test(rolled_back_tokens_leave_no_trace),
        cmocka_unit_test(a_lost_cache_is_neither_saved_nor_restored_into),
        cmocka_unit_test(what_does_not_fit_is_refused_by_name),
        cmocka_unit_test(a_failing_device_leaves_file_and_engine),
        cmocka_unit_test(memory_that_runs_out_leaves_file_and_engine),
    };
    return cmocka_run_group_tests(tests, rig_folder_make, rig_folder_drop);
}
