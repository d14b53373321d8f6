/* The real models: a session saved in the middle of a text goes on in another engine with the bits it would
 * have had, in every cache format, after prompt and after decoding. */
#include "kv/rig.h"

#include <sys/stat.h>

enum { CTX = 256, DECODED = 12 };

static const char text[] =
    "#include <stdio.h>\n\n/* Prints the first n squares. */\nvoid squares(int n)\n{\n";

static int32_t best(const float *logits, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[at]) at = i;
    return (int32_t)at;
}

/* Feeds token, then greedily; every row of logits to out. */
static void decode(minfer_session *s, int32_t token, size_t n_vocab, float *out)
{
    for (int i = 0; i < DECODED; i++, out += n_vocab) {
        rig_feed(s, &token, 1, out, 1);
        token = best(out, n_vocab);
    }
}

static size_t vocab_of(const minfer_engine *e)
{
    minfer_engine_info info;
    minfer_engine_get_info(e, &info);
    return (size_t)info.n_vocab;
}

static void goes_on(const minfer_model *m, minfer_cache_type cache)
{
    minfer_error err = {0};
    rig_options o = {.cache = cache, .n_ctx = CTX, .n_batch = 64, .threads = 2};
    minfer_engine *a = rig_engine(m, &o), *b = rig_engine(m, &o);
    size_t n_vocab = vocab_of(a), row = n_vocab * sizeof(float), n;
    float *want = mf_calloc(DECODED, row), *got = mf_calloc(DECODED, row);
    int32_t *ids;
    struct stat sb;
    assert_true(want && got);
    assert_ok(minfer_tokenize(m, text, strlen(text), 0, &ids, &n, &err), &err);
    minfer_session *s = rig_session(a);
    rig_feed(s, ids, n, want, 1);
    decode(s, best(want, n_vocab), n_vocab, want);
    assert_ok(minfer_session_remove(s, 3, 6, &err), &err);
    rig_save(s, rig_path("real.kv"), "{}");
    minfer_session *t = rig_restore(b, rig_path("real.kv"), "{}");
    decode(s, ids[0], n_vocab, want);
    decode(t, ids[0], n_vocab, got);
    assert_memory_equal(got, want, DECODED * row);
    assert_int_equal(stat(rig_path("real.kv"), &sb), 0);
    print_message("cache type %d: %zu tokens in %lld bytes\n", cache, minfer_session_length(s) - DECODED,
                  (long long)sb.st_size);
    minfer_free(ids);
    mf_free(want);
    mf_free(got);
    minfer_session_free(s);
    minfer_session_free(t);
    minfer_engine_free(a);
    minfer_engine_free(b);
}

static void goes_on_with(const char *file)
{
    minfer_error err = {0};
    minfer_model *m;
    const char *path = real_model(file);
    if (!path) SKIP_BECAUSE("%s is not in the model cache", file);
    assert_ok(minfer_model_open(path, NULL, NULL, &m, &err), &err);
    for (size_t i = 0; i < 3; i++) goes_on(m, rig_caches[i]);
    minfer_model_free(m);
}

static void smollm2_goes_on(void **state)
{
    (void)state;
    goes_on_with("SmolLM2-135M-Instruct.Q4_1.gguf");
}

static void qwen2_5_coder_goes_on(void **state)
{
    (void)state;
    goes_on_with("Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_goes_on),
        cmocka_unit_test(qwen2_5_coder_goes_on),
    };
    return cmocka_run_group_tests(tests, rig_folder_make, rig_folder_drop);
}
