/* What the first comment of minfer.h promises of every call: options that may be absent, NULL for what was
 * not made, objects that outlive others or need not. Only public names. */
#include "support/support.h"

#include "minfer.h"

#include <stdlib.h>

static const char tiny[] = "tiny/tiny-llama-Q4_0.gguf";
#define SCHEMA "{\"type\": \"object\"}"

typedef struct made {
    minfer_model *model;
    minfer_engine *engine;
    minfer_session *session, *fork;
    minfer_sampler *sampler;
    minfer_grammar *grammar;
    minfer_draft *lookup, *model_draft;
    minfer_conversation *conversation;
    int32_t *ids;
    size_t n;
    char *text;
} made;

static void free_all(made *m)
{
    minfer_conversation_free(m->conversation);
    minfer_draft_free(m->lookup);
    minfer_draft_free(m->model_draft);
    minfer_session_free(m->fork);
    minfer_session_free(m->session);
    minfer_engine_free(m->engine);
    minfer_model_free(m->model);
    minfer_sampler_free(m->sampler);
    minfer_grammar_free(m->grammar);
    minfer_free(m->ids);
    minfer_free(m->text);
}

/* One of everything, with the defaults. After a failure the pointer it was for is NULL, whatever it was. */
static minfer_status make_all(made *m, minfer_error *err)
{
    minfer_chat chat = {.messages = "[{\"role\": \"user\", \"content\": \"Hi\"}]"};
    MF_TRY(minfer_model_open(data_path(tiny), NULL, NULL, &m->model, err));
    MF_TRY(minfer_engine_create(m->model, NULL, &m->engine, err));
    MF_TRY(minfer_sampler_create(m->model, NULL, &m->sampler, err));
    MF_TRY(minfer_grammar_create_schema(SCHEMA, sizeof SCHEMA - 1, &m->grammar, err));
    MF_TRY(minfer_session_create(m->engine, &m->session, err));
    MF_TRY(minfer_session_fork(m->session, 0, &m->fork, err));
    MF_TRY(minfer_draft_create_lookup(NULL, &m->lookup, err));
    MF_TRY(minfer_draft_create_model(m->engine, m->model, NULL, &m->model_draft, err));
    MF_TRY(minfer_conversation_create(m->engine, NULL, &m->conversation, err));
    MF_TRY(minfer_chat_tokenize(m->model, &chat, &m->ids, &m->n, err));
    return minfer_chat_render(m->model, &chat, &m->text, &m->n, err);
}

/* Pointers that are no objects: one that is not overwritten is found by free_all. */
static made poisoned(void)
{
    static char rubbish[64];
    void *p = rubbish;
    return (made){p, p, p, p, p, p, p, p, p, p, 0, p};
}

/* Those that make_all has not come to. */
static void clear_rest(made *m)
{
    made rubbish = poisoned();
    void *p = rubbish.model;
    void **all[] = {(void **)&m->model,   (void **)&m->engine,      (void **)&m->sampler,
                    (void **)&m->grammar, (void **)&m->session,     (void **)&m->fork,
                    (void **)&m->lookup,  (void **)&m->model_draft, (void **)&m->conversation,
                    (void **)&m->ids,     (void **)&m->text};
    size_t n = sizeof all / sizeof *all, i = 0;
    while (i < n && *all[i] != p && *all[i]) i++;
    assert_true(i < n && !*all[i]); /* the first that was not made is NULL */
    while (++i < n) {
        assert_ptr_equal(*all[i], p);
        *all[i] = NULL;
    }
}

static void test_what_is_not_made_is_null(void **state)
{
    (void)state;
    for (long at = 1;; at++) {
        minfer_error err = {0};
        made m = poisoned();
        mf_mem_fail_at(at);
        minfer_status st = make_all(&m, &err);
        mf_mem_fail_at(0);
        if (st != MINFER_OK) {
            assert_int_equal(st, MINFER_ERR_NOMEM);
            assert_int_equal(err.code, st);
            assert_true(err.message[0] && !strchr(err.message, '\n'));
            clear_rest(&m);
        }
        free_all(&m);
        if (st == MINFER_OK) break;
    }
}

static void test_defaults(void **state)
{
    (void)state;
    minfer_error err;
    minfer_engine_options o;
    minfer_engine_info a, b;
    minfer_engine *same;
    made m = {0};
    assert_ok(make_all(&m, &err), &err);
    minfer_engine_options_init(&o);
    assert_ok(minfer_engine_create(m.model, &o, &same, &err), &err);
    minfer_engine_get_info(m.engine, &a);
    minfer_engine_get_info(same, &b);
    assert_int_equal(a.n_ctx, b.n_ctx);
    assert_int_equal(a.n_threads, b.n_threads);
    assert_string_equal(a.cache_type, b.cache_type);
    assert_string_equal(a.cpu_tier, b.cpu_tier);
    minfer_engine_free(same);
    free_all(&m);
}

/* The same draws with the defaults given and absent. */
static void test_default_sampling(void **state)
{
    (void)state;
    minfer_error err;
    minfer_model *m;
    minfer_sampling p;
    minfer_sampler *given, *absent;
    minfer_model_info info;
    assert_ok(minfer_model_open_vocab(data_path(tiny), &m, &err), &err);
    minfer_model_get_info(m, &info);
    minfer_sampling_init(&p);
    assert_ok(minfer_sampling_check(&p, info.n_vocab, &err), &err);
    assert_ok(minfer_sampler_create(m, &p, &given, &err), &err);
    assert_ok(minfer_sampler_create(m, NULL, &absent, &err), &err);
    minfer_model_free(m); /* samplers stand on their own */
    float *row = calloc((size_t)info.n_vocab, sizeof *row);
    for (int i = 0; i < 50; i++) {
        int32_t a, b, history[] = {i};
        row[i] = 3;
        assert_ok(minfer_sampler_sample(given, row, history, 1, &a, &err), &err);
        assert_ok(minfer_sampler_sample(absent, row, history, 1, &b, &err), &err);
        assert_int_equal(a, b);
    }
    free(row);
    minfer_sampler_free(given);
    minfer_sampler_free(absent);
}

static int32_t unused(const minfer_engine *e)
{
    minfer_engine_info info;
    minfer_engine_get_info(e, &info);
    return info.n_ctx_unused;
}

/* Shared cells count once. */
static void test_unused_cells(void **state)
{
    (void)state;
    minfer_error err;
    made m = {0};
    minfer_session *fork;
    const int32_t ids[] = {1, 2, 3, 4, 5, 6};
    assert_ok(make_all(&m, &err), &err);
    int32_t all = unused(m.engine);
    assert_ok(minfer_session_feed(m.session, ids, 6, NULL, 0, &err), &err);
    assert_int_equal(unused(m.engine), all - 6);
    assert_ok(minfer_session_fork(m.session, 4, &fork, &err), &err);
    assert_int_equal(unused(m.engine), all - 6);
    assert_ok(minfer_session_feed(fork, ids, 2, NULL, 0, &err), &err);
    assert_int_equal(unused(m.engine), all - 8);
    assert_ok(minfer_session_rollback(m.session, 1, &err), &err);
    assert_int_equal(unused(m.engine), all - 6);
    minfer_session_free(fork);
    assert_int_equal(unused(m.engine), all - 1);
    free_all(&m);
}

static bool forget(void *user, int32_t id, const char *text, size_t n)
{
    (void)user, (void)id, (void)text, (void)n;
    return false;
}

/* What a session holds after an answer: all of it, but not the token at which the callback cancelled. */
static void test_session_after_generation(void **state)
{
    (void)state;
    minfer_error err;
    made m = {0};
    minfer_generate_result r;
    const int32_t prompt[] = {5, 6, 7};
    assert_ok(make_all(&m, &err), &err);
    minfer_generate_options o = {.ignore_end = true};
    assert_ok(minfer_generate(m.session, m.sampler, prompt, 3, &o, &r, &err), &err); /* max_tokens 0 */
    assert_int_equal(minfer_session_length(m.session), 3);
    assert_int_equal(r.finish, MINFER_FINISH_LENGTH);
    o.max_tokens = 4;
    assert_ok(minfer_generate(m.session, m.sampler, prompt, 3, &o, &r, &err), &err);
    assert_int_equal(minfer_session_length(m.session), 10);
    o.on_text = forget;
    assert_ok(minfer_generate(m.session, m.sampler, prompt, 3, &o, &r, &err), &err);
    assert_int_equal(minfer_session_length(m.session), 13);
    assert_int_equal(r.finish, MINFER_FINISH_CANCELLED);
    free_all(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_made_is_null), cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_default_sampling),         cmocka_unit_test(test_unused_cells),
        cmocka_unit_test(test_session_after_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
