/* Conversations: whatever was kept, dropped, edited or stopped, a turn answers as if everything were rendered
 * and evaluated anew, and leaves the same bits. */
#include "chat/talk.h"

#include <stdlib.h>

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
    say_and_check(&w, words[0]);
    say_and_check(&w, words[1]);
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
    say_and_check(&w, words[2]);
    minfer_conversation_clear(w.c);
    assert_int_equal(minfer_conversation_exchanges(w.c), 0);
    assert_int_equal(minfer_session_length(minfer_conversation_session(w.c)), 0);
    say_and_check(&w, words[3]);
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
    say_and_check(&w, words[0]);
    assert_ok(minfer_conversation_set_system(w.c, "Be \0 brief.", 11, &err), &err);
    assert_ok(minfer_conversation_get_system(w.c, &text, &n, &err), &err);
    assert_int_equal(n, 11);
    assert_memory_equal(text, "Be \0 brief.", 11);
    minfer_free(text);
    say_and_check(&w, words[1]);
    minfer_conversation_clear(w.c);
    assert_ok(minfer_conversation_get_system(w.c, &text, &n, &err), &err);
    assert_non_null(text);
    minfer_free(text);
    assert_fails(minfer_conversation_set_system(w.c, "a\xFF", 2, &err), MINFER_ERR_ARG, &err,
                 "byte 2 is 0xff");
    assert_ok(minfer_conversation_set_system(w.c, NULL, 0, &err), &err);
    say_and_check(&w, words[2]);
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
    say_and_check(&w, words[0]);
    say_and_check(&w, words[1]);
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
    say_and_check(&w, words[2]);
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
    say(&w, words[0]);
    say(&w, words[1]);
    say_and_check(&w, text);
    assert_int_equal(w.r.prompt.n_dropped, 1);
    assert_true(w.r.prompt.n_tokens > 200);
    world_close(&w);
}

static void test_cancel(void **state)
{
    (void)state;
    world w;
    world_open(&w, data_path("tiny/tiny-qwen2-Q4_K.gguf"), 512, 1);
    say_and_check(&w, words[0]);
    json_t *before = document(&w);

    w.cancel_prompt = 0; /* before anything was evaluated */
    say(&w, words[3]);
    assert_true(w.r.taken_back);
    same_history(&w, before);
    check_bits(&w);
    w.cancel_prompt = -1;

    w.cancel_after = 3; /* in the answer: it stays as it was shown */
    say(&w, words[3]);
    assert_false(w.r.taken_back);
    assert_int_equal(w.r.generate.finish, MINFER_FINISH_CANCELLED);
    json_t *now = document(&w);
    assert_string_equal(last_content(now), w.text.data);
    check_bits(&w);
    w.cancel_after = -1;
    say(&w, words[4]);
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
    say(&w, words[0]);
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
    assert_ok(minfer_sampler_create(w.m, &p, &w.sampler, &err), &err);
    minfer_conversation_clear(w.c);
    say_and_check(&w, words[0]);
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
    say_and_check(&w, words[0]);
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
    say(&w, words[0]);
    json_t *before = document(&w);
    w.o.generate.max_tokens = 3;
    minfer_status st = MINFER_ERR_NOMEM;
    for (long at = 1; st != MINFER_OK; at++) {
        mf_buf_free(&w.text); /* not the test's own allocations */
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
