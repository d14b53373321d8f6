/* test_identity [FOLDER [TEST]]: models of another folder, one test only.
 *
 * The same bits, whatever the threads, the chunks, the instruction set, the cache of graphs, the devices and
 * the fusions. Each tiny model's logits over a text are computed once, plainly, and every other way of
 * computing them is compared byte for byte. */
#include "device/test_device.h"
#include "support/support.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels.h"
#include "minfer.h"
#include "runtime/engine.h"

#include <dirent.h>
#include <stdlib.h>

enum { N = 300, MAX_MODELS = 40 };

static char *models[MAX_MODELS];
static int n_models;

/* One way to compute. */
typedef struct way {
    minfer_engine_options o;
    int32_t n_logits;   /* rows wanted at once: N, or 1 per token */
    bool mixed;         /* a test device beside the CPU */
    uint64_t seed;      /* of its random assignment; 0 = by priority */
    uint32_t fused_ops; /* build-time fused ops it offers */
    bool twice;         /* run once before, so that graphs are reused */
    const char *what;
} way;

static uint64_t wish_seed;

static int32_t random_wish(void *user, const mf_graph *g, mf_id id)
{
    uint64_t s = *(const uint64_t *)user * 1000003u + (uint64_t)id * 7919u;
    (void)g;
    return (int32_t)(mf_splitmix64(&s) % 2);
}

static minfer_engine *open_engine(minfer_model *m, const way *w)
{
    minfer_error err = {0};
    minfer_engine *e = NULL;
    if (!w->mixed) {
        assert_ok(minfer_engine_create(m, &w->o, &e, &err), &err);
        return e;
    }
    mf_engine_devices on = {.n = 2, .wish = w->seed ? random_wish : NULL, .user = &wish_seed};
    test_device_options t = {.fused_ops = w->fused_ops};
    mf_backend_options b = {.n_threads = 2, .cpu_tier = -1};
    wish_seed = w->seed;
    assert_ok(test_device_open(&t, &on.devices[0], &err), &err);
    assert_ok(mf_cpu_open(&b, &on.devices[1], &err), &err);
    assert_ok(mf_engine_create_on(m, &w->o, &on, &e, &err), &err);
    return e;
}

static void feed(minfer_session *s, const int32_t *tokens, int32_t rows, size_t n_vocab, float *out)
{
    minfer_error err = {0};
    assert_ok(minfer_session_rollback(s, 0, &err), &err);
    if (rows == N) {
        assert_ok(minfer_session_feed(s, tokens, N, out, N, &err), &err);
        return;
    }
    for (int32_t i = 0; i < N; i++)
        assert_ok(minfer_session_feed(s, tokens + i, 1, out + (size_t)i * n_vocab, 1, &err), &err);
}

static float *compute(const char *path, const way *w, size_t *bytes)
{
    minfer_error err = {0};
    minfer_model *m;
    minfer_session *s;
    minfer_engine_info info;
    assert_ok(minfer_model_open(path, NULL, NULL, &m, &err), &err);
    minfer_engine *e = open_engine(m, w);
    e->graphs.check_reuse = w->twice; /* as debug builds do */
    assert_ok(minfer_session_create(e, &s, &err), &err);
    minfer_engine_get_info(e, &info);
    size_t n_vocab = (size_t)info.n_vocab;
    int32_t tokens[N];
    for (int32_t i = 0; i < N; i++) tokens[i] = (i * 37 + i * i % 11) % info.n_vocab;
    *bytes = (size_t)N * n_vocab * sizeof(float);
    float *out = mf_malloc(*bytes);
    if (w->twice) feed(s, tokens, w->n_logits, n_vocab, out);
    memset(out, 0, *bytes);
    feed(s, tokens, w->n_logits, n_vocab, out);
    minfer_session_free(s);
    minfer_engine_free(e);
    minfer_model_free(m);
    return out;
}

static way plain(const char *what)
{
    way w = {.n_logits = N, .what = what};
    minfer_engine_options_init(&w.o);
    w.o.n_ctx = 512;
    w.o.n_threads = 1;
    w.o.n_batch = 512;
    return w;
}

static void check(const char *path, const float *want, size_t bytes, way w)
{
    size_t got_bytes;
    float *got = compute(path, &w, &got_bytes);
    assert_int_equal(got_bytes, bytes);
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        if (memcmp(&want[i], &got[i], sizeof(float)) != 0)
            fail_msg("%s, %s: value %zu is %.9g, plainly computed %.9g", path, w.what, i, (double)got[i],
                     (double)want[i]);
    mf_free(got);
}

static void for_all_models(void (*body)(const char *path, const float *want, size_t bytes))
{
    for (int i = 0; i < n_models; i++) {
        size_t bytes;
        way w = plain("plain");
        float *want = compute(models[i], &w, &bytes);
        body(models[i], want, bytes);
        mf_free(want);
    }
}

/* All chunks with two threads, the first ones also with one and three. */
static void threads_and_chunks(const char *path, const float *want, size_t bytes)
{
    static const int32_t chunks[] = {1, 7, 64, 512, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    for (int32_t t = 1; t <= 3; t++)
        for (size_t c = 0; c < (t == 2 ? sizeof chunks / sizeof *chunks : 4); c++) {
            char what[64];
            way w = plain(what);
            snprintf(what, sizeof what, "%d threads, chunks of %d", t, chunks[c]);
            w.o.n_threads = t;
            w.o.n_batch = chunks[c];
            check(path, want, bytes, w);
        }
}

static void tiers(const char *path, const float *want, size_t bytes)
{
    for (int t = 0; t < CPU_TIER_COUNT; t++) {
        if (!cpu_tier_usable((cpu_tier)t)) {
            if (path == models[0])
                print_message("SKIP tier %s: this machine has it not\n", cpu_tier_name((cpu_tier)t));
            continue;
        }
        static const int32_t chunks[] = {1, 7, 512};
        for (size_t c = 0; c < 3; c++) {
            way w = plain(cpu_tier_name((cpu_tier)t));
            w.o.cpu_tier = cpu_tier_name((cpu_tier)t);
            w.o.n_batch = chunks[c];
            check(path, want, bytes, w);
        }
    }
}

static void reuse_and_rows(const char *path, const float *want, size_t bytes)
{
    way again = plain("graphs reused"), single = plain("one token at a time, one row each"),
        classic = plain("classic attention"), unfused = plain("no peephole fusion"),
        measured = plain("times are measured");
    again.twice = true;
    again.o.n_batch = 64;
    single.n_logits = 1;
    single.twice = true;
    classic.o.no_flash_attn = true;
    unfused.o.no_fuse = true;
    measured.o.op_timing = true;
    measured.o.n_threads = 2;
    measured.o.n_batch = 7;
    check(path, want, bytes, again);
    check(path, want, bytes, single);
    check(path, want, bytes, classic);
    check(path, want, bytes, unfused);
    check(path, want, bytes, measured);
}

static void mixed_devices(const char *path, const float *want, size_t bytes)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        char what[64];
        way w = plain(what);
        snprintf(what, sizeof what, "test device, assignment %d", (int)seed);
        w.mixed = true;
        w.seed = seed;
        w.twice = seed == 1;
        w.o.op_timing = seed == 3;
        w.o.n_batch = seed % 2 ? 7 : 512;
        check(path, want, bytes, w);
    }
}

static void fused_ops(const char *path, const float *want, size_t bytes)
{
    static const uint32_t sets[] = {TEST_FUSED_ALL, 1u << MF_OP_FUSED_FFN, 1u << MF_OP_QKV_BIAS_ROPE_STORE,
                                    1u << MF_OP_FUSED_QKV | 1u << MF_OP_FUSED_QKV_NORM};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            char what[64];
            way w = plain(what);
            snprintf(what, sizeof what, "build-time fusions %zu, assignment %d", i, (int)seed);
            w.mixed = true;
            w.seed = seed;
            w.fused_ops = sets[i];
            w.n_logits = 1;
            check(path, want, bytes, w);
        }
}

static void test_threads_and_chunks(void **state)
{
    (void)state, for_all_models(threads_and_chunks);
}
static void test_tiers(void **state)
{
    (void)state, for_all_models(tiers);
}
static void test_reuse_and_rows(void **state)
{
    (void)state, for_all_models(reuse_and_rows);
}
static void test_mixed_devices(void **state)
{
    (void)state, for_all_models(mixed_devices);
}
static void test_fused_ops(void **state)
{
    (void)state, for_all_models(fused_ops);
}

/* Another storage gives other bits, but the same identities. */
static void one_cache_type(const char *path, minfer_cache_type type)
{
    way w = plain("another cache type"), chunks = w, classic = w, single = w, scalar = w, mixed = w;
    size_t bytes;
    w.o.cache_type = type;
    chunks.o.n_batch = 7;
    chunks.o.n_threads = 3;
    classic.o.no_flash_attn = true;
    classic.o.n_batch = 64;
    single.n_logits = 1;
    single.o.n_threads = 2;
    single.twice = true;
    scalar.o.cpu_tier = "scalar";
    mixed.mixed = true;
    mixed.o.n_batch = 17;
    way *const all[] = {&chunks, &classic, &single, &scalar, &mixed};
    float *want = compute(path, &w, &bytes);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        all[i]->o.cache_type = type;
        check(path, want, bytes, *all[i]);
    }
    for (mixed.seed = 1; mixed.seed < 5; mixed.seed++) { /* random assignments, fused ops in every other */
        mixed.fused_ops = mixed.seed % 2 ? 0 : TEST_FUSED_ALL;
        mixed.n_logits = mixed.seed % 2 ? N : 1;
        mixed.o.no_flash_attn = mixed.seed > 2;
        check(path, want, bytes, mixed);
    }
    mf_free(want);
}

/* The files are named tiny-<architecture>-<type>, in order. */
enum { ARCH_NAME = 5 };
static const char *arch_of(const char *path)
{
    return strrchr(path, '/') + 1 + strlen("tiny-");
}

static void test_cache_types(void **state)
{
    (void)state;
    one_cache_type(models[0], MINFER_CACHE_F32);
    for (int i = 0; i < n_models; i++)
        if (i == 0 || strncmp(arch_of(models[i]), arch_of(models[i - 1]), ARCH_NAME) != 0)
            one_cache_type(models[i], MINFER_CACHE_Q8_0);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find_models(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d)) && n_models < MAX_MODELS;) {
        size_t n = strlen(e->d_name);
        if (n < 5 || strcmp(e->d_name + n - 5, ".gguf") != 0) continue;
        models[n_models] = malloc(strlen(dir) + n + 2);
        sprintf(models[n_models++], "%s/%s", dir, e->d_name);
    }
    closedir(d);
    qsort(models, (size_t)n_models, sizeof *models, by_name);
}

int main(int argc, char **argv)
{
    find_models(argc > 1 ? argv[1] : MF_TEST_DATA "/tiny");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_and_chunks), cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_reuse_and_rows),     cmocka_unit_test(test_mixed_devices),
        cmocka_unit_test(test_fused_ops),          cmocka_unit_test(test_cache_types),
    };
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
