/* The real models decode with drafts to the byte what they decode without: greedy and seeded, every depth to
 * 8, every cache format; drafts from lookup, from the model's first layers, from a script that is right and
 * wrong in turn, and from the model itself, which is right nearly always. */
#include "speculate/answer.h"

enum { CTX = 512, PROMPT_MAX = 400, ANSWER = 20, FIRST_LAYERS = 3 };

typedef struct rig {
    minfer_model *m, *small;
    minfer_engine *e;
    minfer_session *s;
    int32_t prompt[PROMPT_MAX];
    size_t n_prompt;
} rig;

static minfer_engine *engine_new(minfer_model *m, minfer_cache_type cache)
{
    minfer_error err = {0};
    minfer_engine_options o;
    minfer_engine *e;
    minfer_engine_options_init(&o);
    o.n_ctx = CTX;
    o.cache_type = cache;
    assert_ok(minfer_engine_create(m, &o, &e, &err), &err);
    return e;
}

/* A text that any model goes on repeating, so that lookup has something to find. */
static void make_prompt(rig *r)
{
    static const char text[] = "red = 1\ngreen = 2\nblue = 3\nwhite = 4\n"
                               "red = 1\ngreen = 2\nblue = 3\nwhite = 4\n"
                               "red = 1\ngreen = 2\nblue = 3\nwhite = 4\nred =";
    minfer_error err = {0};
    int32_t *ids;
    assert_ok(minfer_tokenize(r->m, text, strlen(text), MINFER_TOKENIZE_BOS, &ids, &r->n_prompt, &err), &err);
    assert_true(r->n_prompt <= PROMPT_MAX);
    memcpy(r->prompt, ids, r->n_prompt * sizeof *ids);
    minfer_free(ids);
}

static task task_of(const rig *r, bool seeded)
{
    task t = {.prompt = r->prompt, .n_prompt = r->n_prompt};
    minfer_sampling_init(&t.sampling);
    t.sampling.seed = 42;
    t.sampling.temperature = seeded ? 0.8f : 0;
    t.sampling.repeat_penalty = seeded ? 1.05f : 1;
    t.o.max_tokens = ANSWER;
    return t;
}

static size_t check(rig *r, const task *t, const answer *want, minfer_draft *d, const char *what)
{
    answer got;
    answer_make(&got, r->s, t, d);
    answer_compare(want, &got, what);
    size_t n = got.r.n_accepted;
    answer_free(&got);
    return n;
}

static void every_depth(rig *r, const task *t, const answer *want, minfer_engine *small, const char *cache)
{
    minfer_error err = {0};
    size_t found = 0;
    for (int32_t depth = 1; depth <= 8; depth++) {
        char what[80];
        minfer_draft_options o = {.n_max = depth, .adaptive = depth == 7};
        minfer_draft *d;
        scripted_draft scripted;
        snprintf(what, sizeof what, "depth %d, cache %s", depth, cache);
        scripted_draft_init(&scripted, depth, want, 0.2, mf_tokenizer_n_vocab(r->m->tok), (uint64_t)depth);
        assert_true(check(r, t, want, &scripted.base, what) > 0);
        assert_ok(minfer_draft_create_lookup(&o, &d, &err), &err);
        found += check(r, t, want, d, what);
        minfer_draft_free(d);
        if (depth % 4 != 1) continue;
        assert_ok(minfer_draft_create_model(small, r->m, &o, &d, &err), &err);
        check(r, t, want, d, what);
        minfer_draft_free(d);
    }
    if (t->sampling.temperature == 0) assert_true(found > 0);
    print_message("  cache %s, temperature %g: %zu tokens accepted from lookup\n", cache,
                  (double)t->sampling.temperature, found);
}

/* The model as its own draft: what it drafts greedily is what it chooses greedily. */
static void itself(rig *r, const answer *want, minfer_cache_type cache)
{
    minfer_error err = {0};
    minfer_draft_options o = {.n_max = 4};
    minfer_engine *e = engine_new(r->m, cache);
    minfer_draft *d;
    answer got;
    task t = task_of(r, false);
    assert_ok(minfer_draft_create_model(e, r->m, &o, &d, &err), &err);
    answer_make(&got, r->s, &t, d);
    answer_compare(want, &got, "itself");
    assert_true((double)got.r.n_accepted >=
                0.95 * (double)got.r.n_drafted - 4); /* the end cuts the last draft */
    minfer_draft_free(d);
    minfer_engine_free(e);
    answer_free(&got);
}

static void check_model(const char *file)
{
    static const char *const names[] = {"f32", "f16", "q8_0"};
    const char *path = real_model(file);
    minfer_error err = {0};
    rig r = {0};
    if (!path) SKIP_BECAUSE("%s is not in the model cache", file);
    print_message("%s\n", file);
    assert_ok(minfer_model_open(path, NULL, NULL, &r.m, &err), &err);
    assert_ok(minfer_model_open_draft(path, NULL, NULL, &r.small, &err), &err);
    int32_t n_layer = r.small->bound->hp.n_layer;
    make_prompt(&r);
    for (int c = 0; c < 3; c++) {
        minfer_cache_type cache = (minfer_cache_type)(MINFER_CACHE_F32 + c);
        r.e = engine_new(r.m, cache);
        r.small->bound->hp.n_layer = FIRST_LAYERS;
        minfer_engine *small = engine_new(r.small, cache);
        assert_ok(minfer_session_create(r.e, &r.s, &err), &err);
        for (int seeded = 0; seeded < 2; seeded++) {
            answer want;
            task t = task_of(&r, seeded);
            answer_make(&want, r.s, &t, NULL);
            every_depth(&r, &t, &want, small, names[c]);
            if (!seeded && c == 1) itself(&r, &want, cache);
            answer_free(&want);
        }
        minfer_session_free(r.s);
        minfer_engine_free(small);
        minfer_engine_free(r.e);
    }
    r.small->bound->hp.n_layer = n_layer;
    minfer_model_free(r.small);
    minfer_model_free(r.m);
}

static void test_smollm2(void **state)
{
    (void)state;
    check_model("SmolLM2-135M-Instruct.Q4_1.gguf");
}

static void test_qwen(void **state)
{
    (void)state;
    check_model("Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_smollm2), cmocka_unit_test(test_qwen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
