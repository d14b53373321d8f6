/* The tiny models against the float64 forward: error of the logits relative to the error llama.cpp makes on
 * the same file, and greedy continuations. */
#include "oracle/oracle.h"

#include <math.h>

enum { VOCAB = 512 };

typedef struct {
    const char *dir;
    double sum;
    int n;
} tally;

/* Root mean square difference over the positions of one run. */
static double run_error(running_model *r, const json_t *run, const float *oracle)
{
    size_t n, n_pos = json_array_size(json_object_get(run, "positions"));
    int32_t *tokens = json_ids(json_object_get(run, "tokens"), &n);
    float *logits = all_logits(r, tokens, n);
    double sum = 0;
    for (size_t i = 0; i < n_pos; i++) {
        size_t at = (size_t)json_integer_value(json_array_get(json_object_get(run, "positions"), i));
        const float *want = oracle +
                            ((size_t)json_integer_value(json_object_get(run, "logits_at")) + i) * VOCAB;
        for (int k = 0; k < VOCAB; k++) {
            double d = (double)logits[at * VOCAB + (size_t)k] - (double)want[k];
            sum += d * d;
        }
    }
    mf_free(tokens);
    mf_free(logits);
    return sqrt(sum / ((double)n_pos * VOCAB));
}

static void check_model(const json_t *entry, tally *t)
{
    const char *name = json_string_value(json_object_get(entry, "model"));
    char path[512], logits_path[512];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    snprintf(logits_path, sizeof logits_path, "%s/%.*s.logits.f32", t->dir, (int)strlen(name) - 5, name);
    if (!file_exists(path)) return; /* the tree holds some of them, the fixtures all */
    running_model r;
    running_open(&r, path, NULL);
    assert_int_equal(r.n_vocab, VOCAB);
    float *oracle = (float *)(void *)read_all(logits_path, NULL);
    double worst = 0, rms = json_number_value(json_object_get(entry, "rms_logit"));
    json_t *runs = json_object_get(entry, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++)
        worst = fmax(worst, run_error(&r, json_array_get(runs, i), oracle));
    double ratio = worst / rms / json_number_value(json_object_get(entry, "peer_rel_rms"));
    size_t same = check_greedy(&r, json_object_get(entry, "greedy"), "prompt", 4 * worst);
    print_message("%-24s relative rms %.5f, %.3f of the peer's, %zu greedy tokens equal\n", name, worst / rms,
                  ratio, same);
    assert_true(ratio <= 1.25);
    t->sum += ratio;
    t->n++;
    mf_free(oracle);
    running_close(&r);
}

/* max_mean: the bound for all models is 0.9; a few of them may lie above it together. */
static void check_all(const char *dir, int want, double max_mean)
{
    char path[512];
    json_error_t e;
    tally t = {.dir = dir};
    snprintf(path, sizeof path, "%s/index.json", dir);
    json_t *index = json_load_file(path, 0, &e);
    assert_non_null(index);
    json_t *models = json_object_get(index, "models");
    for (size_t i = 0; i < json_array_size(models); i++) check_model(json_array_get(models, i), &t);
    json_decref(index);
    assert_true(t.n >= want);
    print_message("%d models: mean ratio to the peer %.3f\n", t.n, t.sum / t.n);
    assert_true(t.sum / t.n <= max_mean);
}

static void test_models_in_the_tree(void **state)
{
    (void)state;
    check_all(data_path("tiny"), 8, 1.0);
}

static void test_all_models(void **state)
{
    (void)state;
    const char *dir = fixture_path("tiny");
    if (!file_exists(fixture_path("tiny/index.json"))) SKIP_BECAUSE("no fixtures at %s", dir);
    check_all(dir, 33, 0.9);
}

/* The tolerance classes of cache types, on every architecture in the tree. */
static void test_cache_types(void **state)
{
    (void)state;
    static const char *const models[] = {"tiny-llama-Q8_0.gguf", "tiny-qwen2-Q6_K.gguf",
                                         "tiny-qwen3-Q5_K.gguf"};
    static const cache_bounds bounds = {.mean = {0.008, 0.024}, .worst = {0.25, 0.7}};
    int32_t tokens[300];
    for (int32_t i = 0; i < 300; i++) tokens[i] = (i * 37 + i * i % 11) % VOCAB;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        cache_rig rig;
        cache_rig_open(&rig, data_path("tiny/%s", models[i]));
        cache_rig_add(&rig, tokens, 300);
        cache_rig_check(&rig, models[i], &bounds);
        cache_rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models_in_the_tree),
                                       cmocka_unit_test(test_all_models), cmocka_unit_test(test_cache_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
