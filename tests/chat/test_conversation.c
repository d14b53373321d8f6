/* Conversations: whatever was kept, dropped, edited or stopped, a turn answers as if everything were rendered
 * and evaluated anew, and leaves the same bits. */
#include "support/support.h"

#include "runtime/engine.h"

#include <jansson.h>
#include <stdlib.h>

/* A conversation, and beside it another engine that knows nothing of earlier turns. */
typedef struct {
    minfer_model *m;
    minfer_engine *e, *fresh;
    minfer_conversation *c;
    minfer_sampler *sampler, *twin; /* make the same draws */
    minfer_turn_options o;
    minfer_turn_result r;
    mf_buf text;      /* of the answer, as it was told */
    int cancel_after; /* pieces of text; < 0: never */
    int cancel_prompt;
    size_t n_vocab;
} world;

static bool take(void *user, int32_t id, const char *text, size_t n)
{
    world *w = user;
    (void)id;
    assert_true(mf_buf_append(&w->text, text, n));
    return w->cancel_after < 0 || w->cancel_after-- > 0;
}

static bool take_prompt(void *user, const minfer_turn_prompt *p)
{
    world *w = user;
    assert_true(p->n_reused + p->n_fed < p->n_tokens);
    return w->cancel_prompt < 0 || w->cancel_prompt-- > 0;
}

static minfer_engine *engine_new(const minfer_model *m, int32_t n_ctx)
{
    minfer_error err = {0};
    minfer_engine_options o;
    minfer_engine *e;
    minfer_engine_options_init(&o);
    o.n_ctx = n_ctx;
    o.n_threads = 2;
    assert_ok(minfer_engine_create(m, &o, &e, &err), &err);
    return e;
}

static void world_open(world *w, const char *model, int32_t n_ctx, float temperature)
{
    minfer_error err = {0};
    minfer_sampling p;
    minfer_engine_info info;
    memset(w, 0, sizeof *w);
    assert_ok(minfer_model_open(model, NULL, NULL, &w->m, &err), &err);
    w->e = engine_new(w->m, n_ctx);
    w->fresh = engine_new(w->m, n_ctx);
    minfer_sampling_init(&p);
    p.temperature = temperature;
    p.seed = 7;
    assert_ok(minfer_sampler_create_for(w->m, &p, &w->sampler, &err), &err);
    assert_ok(minfer_sampler_create_for(w->m, &p, &w->twin, &err), &err);
    assert_ok(minfer_conversation_create(w->e, NULL, &w->c, &err), &err);
    minfer_engine_get_info(w->e, &info);
    w->n_vocab = (size_t)info.n_vocab;
    w->o = (minfer_turn_options){.generate = {.max_tokens = 24, .on_text = take, .user = w},
                                 .on_prompt = take_prompt};
    w->cancel_after = w->cancel_prompt = -1;
}

static void world_close(world *w)
{
    minfer_conversation_free(w->c);
    minfer_sampler_free(w->sampler);
    minfer_sampler_free(w->twin);
    minfer_engine_free(w->e);
    minfer_engine_free(w->fresh);
    minfer_model_free(w->m);
    mf_buf_free(&w->text);
}

/* ---- the history, from outside ---- */

static json_t *document(const world *w)
{
    minfer_error err = {0};
    char *text;
    size_t n;
    assert_ok(minfer_conversation_get_json(w->c, &text, &n, &err), &err);
    json_t *j = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
    assert_non_null(j);
    minfer_free(text);
    return j;
}

static size_t dropped(const json_t *doc)
{
    return (size_t)json_integer_value(json_object_get(doc, "dropped"));
}

static const char *role(const json_t *m)
{
    return json_string_value(json_object_get(m, "role"));
}

static const char *last_content(const json_t *doc)
{
    const json_t *list = json_object_get(doc, "messages");
    return json_string_value(json_object_get(json_array_get(list, json_array_size(list) - 1), "content"));
}

/* The messages without `drop` exchanges; without the last message when it is the assistant's and `open`. */
static char *seen(const json_t *doc, size_t drop, bool open)
{
    const json_t *list = json_object_get(doc, "messages");
    json_t *out = json_array();
    size_t users = 0, n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        json_t *m = json_array_get(list, i);
        users += strcmp(role(m), "user") == 0;
        if (open && i + 1 == n && strcmp(role(m), "assistant") == 0) continue;
        if (strcmp(role(m), "system") == 0 || users > drop) json_array_append(out, m);
    }
    char *text = json_dumps(out, JSON_COMPACT);
    json_decref(out);
    return text;
}

static int32_t *tokens(const world *w, const char *messages, bool answer, size_t *n)
{
    minfer_error err = {0};
    int32_t *ids;
    minfer_chat chat = {.messages = messages, .add_generation_prompt = answer};
    assert_ok(minfer_chat_tokenize(w->m, &chat, &ids, n, &err), &err);
    return ids;
}

/* ---- what everything anew gives ---- */

/* The turn that w->r tells of, from the messages alone: same text, same end. */
static void check_turn(world *w)
{
    minfer_error err = {0};
    minfer_session *s;
    minfer_generate_result r;
    mf_buf was = w->text;
    json_t *doc = document(w);
    char *messages = seen(doc, dropped(doc), true);
    size_t n;
    int32_t *ids = tokens(w, messages, true, &n);
    w->text = (mf_buf){0};
    assert_ok(minfer_session_create(w->fresh, &s, &err), &err);
    assert_int_equal(n, w->r.prompt.n_tokens);
    assert_ok(minfer_generate(s, w->twin, ids, n, &w->o.generate, &r, &err), &err);
    assert_int_equal(w->text.len, was.len);
    if (was.len) assert_memory_equal(w->text.data, was.data, was.len);
    assert_int_equal(r.finish, w->r.generate.finish);
    assert_int_equal(r.n_generated, w->r.generate.n_generated);
    assert_string_equal(last_content(doc), was.data ? was.data : "");
    minfer_session_free(s);
    minfer_free(ids);
    free(messages);
    json_decref(doc);
    mf_buf_free(&was);
    w->text.len = 0;
}

/* The session holds a prefix of the rendered history, and feeding the rest gives the bits of feeding all. */
static void check_bits(world *w)
{
    minfer_error err = {0};
    minfer_session *s, *own = (minfer_session *)(uintptr_t)minfer_conversation_session(w->c);
    json_t *doc = document(w);
    char *messages = seen(doc, dropped(doc), false);
    size_t n, held = minfer_session_length(own);
    int32_t *ids = tokens(w, messages, false, &n);
    float *want = mf_malloc(w->n_vocab * sizeof *want), *got = mf_malloc(w->n_vocab * sizeof *got);
    assert_true(held <= n);
    assert_memory_equal(ids, minfer_session_tokens(own), held * sizeof *ids);
    assert_ok(minfer_session_create(w->fresh, &s, &err), &err);
    size_t all = n < (size_t)w->e->n_ctx ? n : (size_t)w->e->n_ctx, keep = held < all ? held : all - 1;
    assert_ok(minfer_session_feed(s, ids, all, want, 1, &err), &err);
    assert_ok(minfer_session_rollback(own, keep, &err), &err);
    assert_ok(minfer_session_feed(own, ids + keep, all - keep, got, 1, &err), &err);
    assert_memory_equal(want, got, w->n_vocab * sizeof *want);
    assert_ok(minfer_session_rollback(own, held < all ? held : all, &err), &err);
    mf_free(want);
    mf_free(got);
    minfer_session_free(s);
    minfer_free(ids);
    free(messages);
    json_decref(doc);
}

static void send(world *w, const char *text)
{
    minfer_error err = {0};
    w->text.len = 0;
    assert_ok(minfer_conversation_send(w->c, w->sampler, text, strlen(text), &w->o, &w->r, &err), &err);
}

static void send_and_check(world *w, const char *text)
{
    send(w, text);
    check_turn(w);
    check_bits(w);
}

static const char *const words[] = {
    "Hello there.",
    "What is the colour of the sky on a clear day?",
    "And at night?",
    "Tell me about the sea, its tides, its salt, and the animals that live in its depths, one by one.",
    "Why?",
    "Count to ten.",
    "a\tb\n\nc <|im_end|> \xF0\x9F\xA6\x8A",
    "Repeat the last answer, but shorter, and leave out every second word of it if you can.",
    "Good.",
    "Goodbye, and thank you for all the answers that you gave.",
};
enum { TURNS = sizeof words / sizeof *words };

/* Ten turns, at least two of them with an overflow; the system message stays, half the context gets free. */
static void ten_turns(const char *model, float temperature, int32_t n_ctx)
{
    world w;
    int overflows = 0;
    minfer_error err = {0};
    world_open(&w, model, n_ctx, temperature);
    assert_ok(minfer_conversation_set_system(w.c, "Be brief.", 9, &err), &err);
    for (size_t i = 0; i < TURNS; i++) {
        size_t reused = minfer_session_length(minfer_conversation_session(w.c));
        send_and_check(&w, words[i]);
        assert_int_equal(minfer_conversation_exchanges(w.c), i + 1);
        if (w.r.prompt.n_dropped) {
            overflows++;
            json_t *doc = document(&w);
            assert_true(w.r.prompt.n_tokens <= (size_t)n_ctx / 2 || dropped(doc) + 1 == i);
            json_decref(doc);
            assert_true(w.r.prompt.n_reused > 3 && w.r.prompt.n_reused < reused);
        } else /* only what is new was evaluated */
            assert_int_equal(w.r.prompt.n_reused, reused);
        assert_true(w.r.prompt.n_tokens + 24 <= (size_t)n_ctx);
    }
    assert_true(overflows >= 2);
    world_close(&w);
}

static void test_ten_turns(void **state)
{
    (void)state;
    ten_turns(data_path("tiny/tiny-llama-Q4_0.gguf"), 0, 340);
    ten_turns(data_path("tiny/tiny-llama-Q4_0.gguf"), 1, 340);
    ten_turns(data_path("tiny/tiny-qwen2-Q4_K.gguf"), 1, 340);
    ten_turns(data_path("tiny/tiny-qwen3-Q5_K.gguf"), 1, 340);
}

static void test_regenerate_and_undo(void **state)
{
    (void)state;
    world w;
    minfer_error err = {0};
    world_open(&w, data_path("tiny/tiny-qwen2-Q4_K.gguf"), 512, 1);
    assert_fails(minfer_conversation_regenerate(w.c, w.sampler, &w.o, &w.r, &err), MINFER_ERR_ARG, &err,
                 "no message");
    assert_fails(minfer_conversation_undo(w.c, &err), MINFER_ERR_ARG, &err, "no exchange");
    send_and_check(&w, words[0]);
    send_and_check(&w, words[1]);
    json_t *doc = document(&w);
    for (int i = 0; i < 3; i++) {
        w.text.len = 0;
        assert_ok(minfer_conversation_regenerate(w.c, w.sampler, &w.o, &w.r, &err), &err);
        assert_int_equal(w.r.prompt.n_reused, w.r.prompt.n_tokens - 1); /* back to the turn's start */
        check_turn(&w);
        check_bits(&w);
        assert_int_equal(minfer_conversation_exchanges(w.c), 2);
        json_t *now = document(&w);
        assert_string_not_equal(last_content(now), last_content(doc)); /* the draws go on */
        json_decref(now);
    }
    json_decref(doc);
    size_t before = minfer_session_length(minfer_conversation_session(w.c));
    assert_ok(minfer_conversation_undo(w.c, &err), &err);
    assert_int_equal(minfer_conversation_exchanges(w.c), 1);
    assert_true(minfer_session_length(minfer_conversation_session(w.c)) < before);
    check_bits(&w);
    send_and_check(&w, words[2]);
    minfer_conversation_clear(w.c);
    assert_int_equal(minfer_conversation_exchanges(w.c), 0);
    assert_int_equal(minfer_session_length(minfer_conversation_session(w.c)), 0);
    send_and_check(&w, words[3]);
    world_close(&w);
}

static void test_system(void **state)
{
    (void)state;
    world w;
    minfer_error err = {0};
    char *text;
    size_t n;
    world_open(&w, data_path("tiny/tiny-qwen2-Q4_K.gguf"), 512, 1);
    assert_ok(minfer_conversation_get_system(w.c, &text, &n, &err), &err);
    assert_null(text);
    send_and_check(&w, words[0]);
    assert_ok(minfer_conversation_set_system(w.c, "Be \0 brief.", 11, &err), &err);
    assert_ok(minfer_conversation_get_system(w.c, &text, &n, &err), &err);
    assert_int_equal(n, 11);
    assert_memory_equal(text, "Be \0 brief.", 11);
    minfer_free(text);
    send_and_check(&w, words[1]);
    minfer_conversation_clear(w.c);
    assert_ok(minfer_conversation_get_system(w.c, &text, &n, &err), &err);
    assert_non_null(text);
    minfer_free(text);
    assert_fails(minfer_conversation_set_system(w.c, "a\xFF", 2, &err), MINFER_ERR_ARG, &err,
                 "byte 2 is 0xff");
    assert_ok(minfer_conversation_set_system(w.c, NULL, 0, &err), &err);
    send_and_check(&w, words[2]);
    world_close(&w);
}

/* ---- ends of a turn ---- */

static void same_history(const world *w, const json_t *before)
{
    json_t *now = document(w);
    assert_true(json_equal(now, before));
    json_decref(now);
}

static void test_too_long(void **state)
{
    (void)state;
    world w;
    minfer_error err = {0};
    static char text[2000];
    memset(text, 'x', sizeof text - 1);
    world_open(&w, data_path("tiny/tiny-qwen2-Q4_K.gguf"), 300, 1);
    send_and_check(&w, words[0]);
    send_and_check(&w, words[1]);
    json_t *before = document(&w);
    size_t held = minfer_session_length(minfer_conversation_session(w.c));
    assert_fails(minfer_conversation_send(w.c, w.sampler, text, sizeof text - 1, &w.o, &w.r, &err),
                 MINFER_ERR_LIMIT, &err, "too long");
    same_history(&w, before);
    assert_int_equal(minfer_session_length(minfer_conversation_session(w.c)), held);
    check_bits(&w);
    assert_fails(minfer_conversation_send(w.c, w.sampler, "ab\xC3", 3, &w.o, &w.r, &err), MINFER_ERR_ARG,
                 &err, "byte 3 is 0xc3");
    same_history(&w, before);
    send_and_check(&w, words[2]);
    json_decref(before);
    world_close(&w);
}

/* A long message pushes out all exchanges but the last if that one fits beside it. */
static void test_last_exchange_stays(void **state)
{
    (void)state;
    world w;
    static char text[200];
    memset(text, 'y', sizeof text - 1);
    world_open(&w, data_path("tiny/tiny-qwen2-Q4_K.gguf"), 400, 0);
    send(&w, words[0]);
    send(&w, words[1]);
    send_and_check(&w, text);
    assert_int_equal(w.r.prompt.n_dropped, 1);
    assert_true(w.r.prompt.n_tokens > 200);
    world_close(&w);
}

static void test_cancel(void **state)
{
    (void)state;
    world w;
    world_open(&w, data_path("tiny/tiny-qwen2-Q4_K.gguf"), 512, 1);
    send_and_check(&w, words[0]);
    json_t *before = document(&w);

    w.cancel_prompt = 0; /* before anything was evaluated */
    send(&w, words[3]);
    assert_true(w.r.taken_back);
    same_history(&w, before);
    check_bits(&w);
    w.cancel_prompt = -1;

    w.cancel_after = 3; /* in the answer: it stays as it was shown */
    send(&w, words[3]);
    assert_false(w.r.taken_back);
    assert_int_equal(w.r.generate.finish, MINFER_FINISH_CANCELLED);
    json_t *now = document(&w);
    assert_string_equal(last_content(now), w.text.data);
    check_bits(&w);
    w.cancel_after = -1;
    send(&w, words[4]);
    check_bits(&w);

    w.cancel_prompt = 0; /* no new answer: the old one stays */
    minfer_error err = {0};
    json_decref(before);
    before = document(&w);
    assert_ok(minfer_conversation_regenerate(w.c, w.sampler, &w.o, &w.r, &err), &err);
    assert_true(w.r.taken_back);
    same_history(&w, before);
    check_bits(&w);
    json_decref(before);
    json_decref(now);
    world_close(&w);
}

/* Tokens of a stop string do not stay, and the text before it does. */
static void test_stop(void **state)
{
    (void)state;
    world w;
    minfer_error err = {0};
    world_open(&w, data_path("tiny/tiny-qwen2-Q4_K.gguf"), 512, 1);
    send(&w, words[0]);
    char stop[4] = {0};
    const char *stops[] = {stop};
    size_t at = 0;
    while (at + 2 < w.text.len && !(w.text.data[at] > ' ' && w.text.data[at] < 127 &&
                                    w.text.data[at + 1] > ' ' && w.text.data[at + 1] < 127))
        at++;
    assert_true(at + 2 < w.text.len);
    memcpy(stop, w.text.data + at, 2);
    w.o.generate.stop = stops;
    w.o.generate.n_stop = 1;
    minfer_sampler_free(w.sampler);
    minfer_sampling p;
    minfer_sampling_init(&p);
    p.temperature = 1;
    p.seed = 7;
    assert_ok(minfer_sampler_create_for(w.m, &p, &w.sampler, &err), &err);
    minfer_conversation_clear(w.c);
    send_and_check(&w, words[0]);
    assert_int_equal(w.r.generate.finish, MINFER_FINISH_STOP);
    json_t *doc = document(&w);
    assert_null(strstr(last_content(doc), stop));
    json_decref(doc);
    world_close(&w);
}

/* ---- JSON ---- */

static void test_json(void **state)
{
    (void)state;
    world w;
    minfer_error err = {0};
    static const struct {
        const char *json, *says;
    } bad[] = {
        {"", "line 1"},
        {"[", "line 1"},
        {"3", "line 1"},
        {"{}", "not an array"},
        {"[1]", "messages[0] is not an object"},
        {"[{\"content\":\"x\"}]", "messages[0].role"},
        {"[{\"role\":\"user\",\"content\":null}]", "messages[0].content"},
        {"[{\"role\":\"assistant\",\"content\":\"x\"}]", "'assistant' before the first of 'user'"},
        {"[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"system\",\"content\":\"x\"}]", "messages[1]"},
        {"{\"format\":\"other\",\"messages\":[]}", "'other'"},
        {"{\"version\":2,\"messages\":[]}", "version"},
        {"{\"dropped\":-1,\"messages\":[]}", "dropped"},
        {"[]x", "line 1"},
    };
    world_open(&w, data_path("tiny/tiny-qwen2-Q4_K.gguf"), 512, 1);
    send_and_check(&w, words[0]);
    json_t *before = document(&w);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        minfer_status st = minfer_conversation_set_json(w.c, bad[i].json, strlen(bad[i].json), &err);
        assert_fails(st, MINFER_ERR_FORMAT, &err, bad[i].says);
        assert_int_equal(minfer_conversation_check_json(bad[i].json, strlen(bad[i].json), &err), st);
        same_history(&w, before);
    }
    static const char open[] =
        "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"hi\"}]";
    assert_ok(minfer_conversation_set_json(w.c, open, sizeof open - 1, &err), &err);
    w.text.len = 0;
    assert_ok(minfer_conversation_regenerate(w.c, w.sampler, &w.o, &w.r, &err), &err);
    check_turn(&w); /* answered for the first time */
    char *text = json_dumps(before, 0);
    assert_ok(minfer_conversation_set_json(w.c, text, strlen(text), &err), &err);
    same_history(&w, before);
    check_bits(&w);
    free(text);
    json_decref(before);
    world_close(&w);
}

/* Whatever allocation fails, the conversation is as before, and goes on. */
static void test_no_memory(void **state)
{
    (void)state;
    world w;
    minfer_error err = {0};
    world_open(&w, data_path("tiny/tiny-llama-Q4_0.gguf"), 256, 0);
    send(&w, words[0]);
    json_t *before = document(&w);
    w.o.generate.max_tokens = 3;
    minfer_status st = MINFER_ERR_NOMEM;
    for (long at = 1; st != MINFER_OK; at++) {
        w.text = (mf_buf){0}; /* not the test's own allocations */
        w.o.generate.on_text = NULL;
        mf_mem_fail_at(at);
        st = minfer_conversation_send(w.c, w.sampler, words[2], strlen(words[2]), &w.o, &w.r, &err);
        mf_mem_fail_at(0);
        if (st == MINFER_OK) break;
        if (st != MINFER_ERR_NOMEM) fail_msg("allocation %ld: %s", at, err.message);
        same_history(&w, before);
    }
    check_bits(&w);
    assert_int_equal(minfer_conversation_exchanges(w.c), 2);
    json_decref(before);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_turns),
        cmocka_unit_test(test_regenerate_and_undo),
        cmocka_unit_test(test_system),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_last_exchange_stays),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
