/* Real vocabularies and models: answers under a schema parse and validate; what masks cost. */
#include "common.h"
#include "validate.h"

#include "grammar/grammar.h"
#include "sampling/sampler.h"

#include <time.h>

static const char *const files[] = {"SmolLM2-135M-Instruct.Q4_1.gguf",
                                    "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"};

static const char person[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":30},"
    "\"age\":{\"type\":\"integer\","
    "\"minimum\":0,\"maximum\":130},\"email\":{\"type\":[\"string\",\"null\"],\"maxLength\":30},\"tags\":{"
    "\"type\":\"array\",\"items\":{\"enum\":[\"x\",\"y\",\"z\"]},"
    "\"minItems\":1,\"maxItems\":3}},\"required\":[\"name\",\"age\",\"tags\"],\"additionalProperties\":"
    "false}";
static const char list[] =
    "{\"$defs\":{\"l\":{\"type\":\"object\",\"properties\":{\"next\":{\"anyOf\":[{\"type\":\"null\"},{\"$"
    "ref\":\"#/$defs/l\"}]}},\"required\":[\"next\"]}},\"$ref\":\"#/$defs/l\"}";

typedef struct answer {
    mf_buf text;
} answer;

static bool take(void *user, int32_t id, const char *text, size_t n)
{
    (void)id;
    return mf_buf_append(&((answer *)user)->text, text, n);
}

/* One answer of the model; *st tells how it went. */
static minfer_finish ask(minfer_model *m, minfer_engine *e, minfer_grammar *g, uint64_t seed, int32_t most,
                         bool ignore_end, answer *a)
{
    minfer_error err = {0};
    minfer_session *s;
    minfer_sampler *sampler;
    minfer_sampling p;
    minfer_generate_result result;
    int32_t *ids;
    size_t n;
    static const char messages[] = "[{\"role\":\"user\",\"content\":\"Describe a person as JSON.\"}]";
    minfer_chat chat = {.messages = messages, .add_generation_prompt = true};
    minfer_sampling_init(&p);
    p.temperature = 1.5f;
    p.seed = seed;
    a->text.len = 0;
    assert_ok(minfer_chat_tokenize(m, &chat, &ids, &n, &err), &err);
    assert_ok(minfer_session_create(e, &s, &err), &err);
    assert_ok(minfer_sampler_create(m, &p, &sampler, &err), &err);
    assert_ok(minfer_sampler_set_grammar(sampler, m, g, &err), &err);
    minfer_generate_options o = {.max_tokens = most, .on_text = take, .user = a, .ignore_end = ignore_end};
    assert_ok(minfer_generate(s, sampler, ids, n, &o, &result, &err), &err);
    minfer_sampler_free(sampler);
    minfer_session_free(s);
    minfer_free(ids);
    return result.finish;
}

static void check_schema(minfer_model *m, minfer_engine *e, const char *schema, int turns)
{
    minfer_error err = {0};
    minfer_grammar *g;
    answer a = {0};
    int whole = 0;
    json_t *j = json_loads(schema, 0, NULL);
    assert_ok(minfer_grammar_create_schema(schema, strlen(schema), &g, &err), &err);
    for (int i = 0; i < turns; i++) {
        if (ask(m, e, g, (uint64_t)i, 100, false, &a) != MINFER_FINISH_STOP) continue;
        json_t *v = json_loadb(a.text.data, a.text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!v || !is_valid(j, j, v)) fail_msg("%.*s", (int)a.text.len, a.text.data);
        json_decref(v);
        if (whole++ == 0) print_message("  %.*s\n", (int)a.text.len, a.text.data);
    }
    print_message("  %d of %d answers are whole\n", whole, turns);
    assert_true(whole > 0);
    minfer_grammar_free(g);
    json_decref(j);
    mf_buf_free(&a.text);
}

/* The grammars of case 29. */
static void check_small_grammars(minfer_model *m, minfer_engine *e)
{
    static const struct {
        const char *grammar, *text;
        minfer_finish finish;
        bool ignore_end;
    } cases[] = {{"root ::= \"[\" \"]\"", "[]", MINFER_FINISH_STOP, false},
                 {"root ::= \"ok\"", "ok", MINFER_FINISH_STOP, true},
                 {"root ::= \"\"", "", MINFER_FINISH_STOP, false},
                 {"root ::= \"\xF0\x9F\xA6\x8A\"", "\xF0\x9F\xA6\x8A", MINFER_FINISH_STOP, false},
                 {"root ::= [a-z]{100,100000}", NULL, MINFER_FINISH_LENGTH, false}};
    minfer_error err = {0};
    answer a = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        minfer_grammar *g;
        assert_ok(minfer_grammar_create(cases[i].grammar, strlen(cases[i].grammar), &g, &err), &err);
        assert_int_equal(ask(m, e, g, i, 8, cases[i].ignore_end, &a), cases[i].finish);
        if (cases[i].text) assert_string_equal(a.text.data, cases[i].text);
        for (size_t k = 0; k < a.text.len && !cases[i].text; k++)
            assert_true(a.text.data[k] >= 'a' && a.text.data[k] <= 'z');
        minfer_grammar_free(g);
    }
    mf_buf_free(&a.text);
}

static void test_answers(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = real_model(files[i]);
        minfer_error err = {0};
        minfer_model *m;
        minfer_engine *e;
        minfer_engine_options o;
        if (!path) SKIP_BECAUSE("%s is not in the model cache", files[i]);
        assert_ok(minfer_model_open(path, NULL, NULL, &m, &err), &err);
        minfer_engine_options_init(&o);
        o.n_ctx = 512;
        assert_ok(minfer_engine_create(m, &o, &e, &err), &err);
        check_schema(m, e, person, i ? 2 : 20);
        check_schema(m, e, list, i ? 2 : 20);
        check_small_grammars(m, e);
        minfer_engine_free(e);
        minfer_model_free(m);
    }
}

/* ---- times */

/* Of the processor, so that other work on the machine does not count. */
static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Reads text token by token under the grammar, and twice, and prints what masks took. */
static void time_text(minfer_model *m, const char *what, const char *schema, const char *text)
{
    minfer_error err = {0};
    minfer_grammar *g;
    minfer_sampler *s;
    minfer_sampling p;
    minfer_model_info info;
    int32_t *ids;
    size_t n;
    minfer_model_get_info(m, &info);
    minfer_sampling_init(&p);
    p.temperature = 0;
    p.repeat_penalty = 1;
    float *row = mf_calloc((size_t)info.n_vocab, sizeof *row);
    int64_t t = cpu_ns();
    assert_ok(minfer_grammar_create_schema(schema, strlen(schema), &g, &err), &err);
    print_message("  %s: compiled in %.2f ms\n", what, (double)(cpu_ns() - t) * 1e-6);
    assert_ok(minfer_sampler_create(m, &p, &s, &err), &err);
    t = cpu_ns();
    assert_ok(minfer_sampler_set_grammar(s, m, g, &err), &err);
    print_message("    set in %.2f ms\n", (double)(cpu_ns() - t) * 1e-6);
    assert_ok(minfer_tokenize(m, text, strlen(text), 0, &ids, &n, &err), &err);
    for (int turn = 0; turn < 3; turn++) {
        int64_t sum = 0, most = 0;
        const mf_cands *c;
        assert_ok(minfer_sampler_set_grammar(s, m, turn < 2 ? g : NULL, &err), &err);
        for (size_t i = 0; i < n; i++) {
            t = cpu_ns();
            assert_ok(mf_sampler_candidates(s, row, NULL, 0, &c, &err), &err);
            assert_ok(minfer_sampler_accept(s, ids[i], &err), &err);
            t = cpu_ns() - t;
            sum += t;
            if (t > most) most = t;
        }
        print_message("    %s: %.3f ms per token on average, %.3f at most\n",
                      turn == 0   ? "first time"
                      : turn == 1 ? "again"
                                  : "without a grammar",
                      (double)sum * 1e-6 / (double)n, (double)most * 1e-6);
    }
    minfer_free(ids);
    minfer_sampler_free(s);
    minfer_grammar_free(g);
    mf_free(row);
}

static void test_times(void **state)
{
    (void)state;
    const char *path = real_model(files[1]);
    minfer_error err = {0};
    minfer_model *m;
    if (!path) SKIP_BECAUSE("%s is not in the model cache", files[1]);
    assert_ok(minfer_model_open_vocab(path, &m, &err), &err);
    time_text(m, "any object", "{\"type\":\"object\"}",
              "{\"name\": \"Ada Lovelace\", \"born\": 1815, \"works\": [\"Notes on the Analytical Engine\", "
              "{\"a\": null, "
              "\"text\": \"a longer text, with commas; \\\"quotes\\\" and more of it than before\"}], \"x\": "
              "-1.5e3}");
    time_text(m, "a schema", person,
              "{\"name\": \"Grace Brewster Murray Hopper\", \"age\": 85, \"email\": \"grace@example.com\", "
              "\"tags\": "
              "[\"x\", \"z\"]}");
    time_text(m, "long strings", "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":100000}}",
              "[\"one two three four five six seven eight nine ten\", \"eleven twelve thirteen\"]");
    minfer_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times), cmocka_unit_test(test_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
