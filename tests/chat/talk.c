/* Conversations under test. */
#include "chat/talk.h"

#include <stdlib.h>

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

void world_open(world *w, const char *model, int32_t n_ctx, float temperature)
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
    assert_ok(minfer_sampler_create(w->m, &p, &w->sampler, &err), &err);
    assert_ok(minfer_sampler_create(w->m, &p, &w->twin, &err), &err);
    assert_ok(minfer_conversation_create(w->e, NULL, &w->c, &err), &err);
    minfer_engine_get_info(w->e, &info);
    w->n_vocab = (size_t)info.n_vocab;
    w->o = (minfer_turn_options){.generate = {.max_tokens = 24, .on_text = take, .user = w},
                                 .on_prompt = take_prompt};
    w->cancel_after = w->cancel_prompt = -1;
}

void world_close(world *w)
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

json_t *document(const world *w)
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

size_t dropped(const json_t *doc)
{
    return (size_t)json_integer_value(json_object_get(doc, "dropped"));
}

static const char *role(const json_t *m)
{
    return json_string_value(json_object_get(m, "role"));
}

const char *last_content(const json_t *doc)
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

void check_turn(world *w)
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

void check_bits(world *w)
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

void say(world *w, const char *text)
{
    minfer_error err = {0};
    w->text.len = 0;
    assert_ok(minfer_conversation_send(w->c, w->sampler, text, strlen(text), &w->o, &w->r, &err), &err);
}

void say_and_check(world *w, const char *text)
{
    say(w, text);
    check_turn(w);
    check_bits(w);
}

const char *const words[TURNS] = {
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

void ten_turns(const char *model, float temperature, int32_t n_ctx)
{
    world w;
    int overflows = 0;
    minfer_error err = {0};
    world_open(&w, model, n_ctx, temperature);
    assert_ok(minfer_conversation_set_system(w.c, "Be brief.", 9, &err), &err);
    for (size_t i = 0; i < TURNS; i++) {
        size_t reused = minfer_session_length(minfer_conversation_session(w.c));
        say_and_check(&w, words[i]);
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
