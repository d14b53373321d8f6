/* The real models against transformers on the same weights: KL divergence over the 64 best tokens of every
 * position, perplexity, greedy texts. Bounds: llama.cpp has a mean KL of 0.0027 on the small model and 0.021
 * on the large one. And their cache types against each other. */
#include "oracle/oracle.h"

#include <math.h>

typedef struct {
    double kl, nll, oracle_nll;
    double err; /* rms difference of the best logits, the margin of greedy texts */
    size_t n, n_nll, agree;
} score;

/* KL(oracle || ours) over the oracle's best tokens, both renormalised over them plus one token for the rest.
 */
static void score_position(const float *ours, int32_t n_vocab, const json_t *ids, const json_t *tops,
                           double lse, score *s)
{
    double own = logsumexp(ours, n_vocab), kl = 0, best = -INFINITY;
    int32_t best_id = -1;
    size_t k = json_array_size(ids);
    for (size_t i = 0; i < k; i++) {
        size_t id = (size_t)json_integer_value(json_array_get(ids, i));
        double top = json_number_value(json_array_get(tops, i)), p = exp(top - lse),
               q = exp((double)ours[id] - own);
        kl += p * log(p / q);
        s->err += (top - (double)ours[id]) * (top - (double)ours[id]) / (double)k;
        if ((double)ours[id] > best) {
            best = (double)ours[id];
            best_id = (int32_t)id;
        }
    }
    s->kl += kl;
    s->agree += best_id == (int32_t)json_integer_value(json_array_get(ids, 0));
    s->n++;
}

static void score_text(running_model *r, const json_t *text, score *s)
{
    size_t n;
    int32_t *tokens = json_ids(json_object_get(text, "tokens"), &n);
    float *logits = all_logits(r, tokens, n);
    for (size_t i = 0; i < n; i++) {
        const float *row = logits + i * (size_t)r->n_vocab;
        double lse = json_number_value(json_array_get(json_object_get(text, "logsumexp"), i));
        score_position(row, r->n_vocab, json_array_get(json_object_get(text, "top_ids"), i),
                       json_array_get(json_object_get(text, "top_logits"), i), lse, s);
        if (i + 1 == n) break;
        s->nll += logsumexp(row, r->n_vocab) - (double)row[tokens[i + 1]];
        s->n_nll++;
    }
    s->oracle_nll += json_number_value(json_object_get(text, "mean_nll")) * (double)(n - 1);
    mf_free(tokens);
    mf_free(logits);
}

static void check_real(const char *file, const char *given, double max_kl)
{
    const char *path = real_model(file);
    json_error_t e;
    if (!path) SKIP_BECAUSE("%s is not in the model cache", file);
    json_t *g = json_load_file(data_path("models/%s", given), 0, &e);
    assert_non_null(g);
    running_model r;
    running_open(&r, path, NULL);
    score s = {0};
    json_t *texts = json_object_get(g, "encode"), *greedy = json_object_get(g, "greedy");
    for (size_t i = 0; i < json_array_size(texts); i++) score_text(&r, json_array_get(texts, i), &s);
    double kl = s.kl / (double)s.n, ppl = exp(s.nll / (double)s.n_nll),
           want = exp(s.oracle_nll / (double)s.n_nll);
    double err = sqrt(s.err / (double)s.n);
    print_message("%s: mean KL %.5f (bound %.4f), best token equal %.1f %%, perplexity %.4f against %.4f "
                  "(%+.3f %%), rms error %.4f\n",
                  file, kl, max_kl, 100.0 * (double)s.agree / (double)s.n, ppl, want, 100 * (ppl / want - 1),
                  err);
    assert_true(kl <= max_kl);
    assert_true(fabs(ppl / want - 1) <= 0.005);
    for (size_t i = 0; i < json_array_size(greedy); i++) {
        const json_t *c = json_array_get(greedy, i);
        print_message("  %s: %zu greedy tokens equal\n", json_string_value(json_object_get(c, "name")),
                      check_greedy(&r, c, "prompt_tokens", 4 * err));
    }
    json_decref(g);
    running_close(&r);
}

static void test_smollm2(void **state)
{
    (void)state;
    check_real("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2-given.json", 0.0027);
}

static void test_qwen(void **state)
{
    (void)state;
    check_real("Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf", "qwen2.5-coder-1.5b-given.json", 0.003);
}

/* ---- cache types */

/* Half as much again as the larger of what the two models give. */
static const cache_bounds bounds = {.mean = {0.006, 0.0085}, .worst = {0.06, 0.1}};

static void check_caches(const char *file, const char *given)
{
    const char *path = real_model(file);
    json_error_t e;
    if (!path) SKIP_BECAUSE("%s is not in the model cache", file);
    json_t *g = json_load_file(data_path("models/%s", given), 0, &e), *texts = json_object_get(g, "encode");
    assert_non_null(g);
    cache_rig rig;
    cache_rig_open(&rig, path);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        size_t n;
        int32_t *tokens = json_ids(json_object_get(json_array_get(texts, i), "tokens"), &n);
        cache_rig_add(&rig, tokens, n);
        mf_free(tokens);
    }
    cache_rig_check(&rig, file, &bounds);
    cache_rig_close(&rig);
    json_decref(g);
}

static void test_smollm2_caches(void **state)
{
    (void)state;
    check_caches("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2-given.json");
}

static void test_qwen_caches(void **state)
{
    (void)state;
    check_caches("Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf", "qwen2.5-coder-1.5b-given.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_smollm2), cmocka_unit_test(test_qwen),
                                       cmocka_unit_test(test_smollm2_caches),
                                       cmocka_unit_test(test_qwen_caches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
