/* Session files: what is restored goes on with the bits the saved session would have had, and the file is the
 * same again when it is saved; what does not fit or is damaged is refused and changes nothing. */
#include "kv/rig.h"

#include "kv/session_file.h"

#include <stdlib.h>
#include <unistd.h>

enum { CTX = 128, FED = 40, MORE = 12, GONE = 9 };

static char folder[] = "/tmp/minfer-session-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static rig_options options(minfer_cache_type cache, bool mixed)
{
    return (rig_options){.cache = cache, .n_ctx = CTX, .n_batch = 32, .threads = 2, .mixed = mixed};
}

static void save(const minfer_session *s, const char *path, const char *host)
{
    minfer_error err = {0};
    assert_ok(minfer_session_save(s, path, host, strlen(host), &err), &err);
}

static minfer_session *restore(minfer_engine *e, const char *path, const char *want_host)
{
    minfer_error err = {0};
    minfer_session *s;
    char *host;
    size_t n;
    assert_ok(minfer_session_restore(e, path, &s, &host, &n, &err), &err);
    assert_int_equal(n, strlen(want_host));
    assert_string_equal(host, want_host);
    minfer_free(host);
    return s;
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
    save(s, in_folder("a.kv"), host);
    minfer_session *t = restore(b, in_folder("a.kv"), host);
    save(t, in_folder("b.kv"), host);
    assert_same_file(in_folder("a.kv"), in_folder("b.kv"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restored_session_goes_on_bit_for_bit),
        cmocka_unit_test(also_with_another_device),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
