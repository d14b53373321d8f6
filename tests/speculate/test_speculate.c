/* Drafts change nothing but speed: tokens, text, the reason of the end, errors and what the session holds are
 * those of plain decoding, whatever drafts, how well, how deep, in every cache format, at every kind of end.
 */
#include "speculate/answer.h"

enum { CTX = 160, PROMPT = 24, SOURCES = 5 };

static const char *const models[] = {"tiny-llama-Q4_1.gguf", "tiny-qwen2-Q4_K.gguf", "tiny-qwen3-Q5_K.gguf"};
static const minfer_cache_type caches[] = {MINFER_CACHE_F32, MINFER_CACHE_F16, MINFER_CACHE_Q8_0};
enum { N_MODELS = 3, N_CACHES = 3 };

/* A model with an engine and a session, and models that draft for it: itself, and its first layer alone. */
typedef struct rig {
    minfer_model *m, *twin, *small;
    minfer_engine *e, *self, *first;
    minfer_session *s;
    int32_t n_vocab;
    int32_t prompt[PROMPT];
} rig;

static minfer_engine *engine_new(minfer_model *m, minfer_cache_type cache, int32_t n_ctx)
{
    minfer_error err = {0};
    minfer_engine_options o;
    minfer_engine *e;
    minfer_engine_options_init(&o);
    o.n_ctx = n_ctx;
    o.n_threads = 1;
    o.cache_type = cache;
    assert_ok(minfer_engine_create(m, &o, &e, &err), &err);
    return e;
}

static void rig_open(rig *r, const char *file, minfer_cache_type cache, int32_t n_ctx)
{
    minfer_error err = {0};
    *r = (rig){0};
    assert_ok(minfer_model_open(data_path("tiny/%s", file), NULL, NULL, &r->m, &err), &err);
    assert_ok(minfer_model_open_draft(data_path("tiny/%s", file), NULL, NULL, &r->twin, &err), &err);
    assert_ok(minfer_model_open_draft(data_path("tiny/%s", file), NULL, NULL, &r->small, &err), &err);
    assert_int_equal(strncmp(r->small->bound->layers[0].wq->name, "draft.", 6), 0);
    r->e = engine_new(r->m, cache, n_ctx);
    r->self = engine_new(r->twin, cache, n_ctx);
    r->small->bound->hp.n_layer = 1;
    r->first = engine_new(r->small, cache, n_ctx / 2); /* drafts end before the text does */
    r->n_vocab = mf_tokenizer_n_vocab(r->m->tok);
    for (int32_t i = 0; i < PROMPT; i++) r->prompt[i] = (i % 7 * 31 + i / 12) % r->n_vocab;
    assert_ok(minfer_session_create(r->e, &r->s, &err), &err);
}

static void rig_close(rig *r)
{
    minfer_session_free(r->s);
    minfer_engine_free(r->e);
    minfer_engine_free(r->first);
    minfer_engine_free(r->self);
    minfer_model_free(r->small);
    minfer_model_free(r->twin);
    minfer_model_free(r->m);
}

/* ---- ways to generate ---- */

static task greedy(const rig *r)
{
    task t = {.prompt = r->prompt, .n_prompt = PROMPT};
    minfer_sampling_init(&t.sampling);
    t.sampling.temperature = 0;
    t.sampling.repeat_penalty = 1;
    t.o.max_tokens = 40;
    t.o.ignore_end = true;
    return t;
}

static task seeded(const rig *r)
{
    static const minfer_logit_bias bias[] = {{3, 2.0f}, {40, -1000.0f}};
    task t = greedy(r);
    minfer_sampling_init(&t.sampling);
    t.sampling.seed = 7;
    t.sampling.repeat_penalty = 1.3f;
    t.sampling.xtc_probability = 0.3f;
    t.sampling.logit_bias = bias;
    t.sampling.n_logit_bias = 2;
    return t;
}

static task mirostat(const rig *r)
{
    task t = seeded(r);
    t.sampling.mirostat = 2;
    t.sampling.mirostat_tau = 2;
    return t;
}

static task dry(const rig *r)
{
    task t = seeded(r);
    t.sampling.dry_multiplier = 0.8f;
    t.sampling.temperature = 0;
    t.sampling.repeat_last_n = -1;
    return t;
}

static task (*const ways[])(const rig *r) = {greedy, seeded, mirostat, dry};
enum { N_WAYS = 4 };

/* ---- sources of drafts ---- */

static minfer_draft *draft_open(rig *r, int source, int32_t depth, bool adaptive, const answer *truth,
                                scripted_draft *scripted)
{
    static const double wrong[] = {0.0, 0.3};
    minfer_draft_options o = {.n_max = depth, .adaptive = adaptive};
    minfer_error err = {0};
    minfer_draft *d = &scripted->base;
    if (source < 2)
        scripted_draft_init(scripted, depth, truth, wrong[source], r->n_vocab, (uint64_t)depth);
    else if (source == 2)
        assert_ok(minfer_draft_create_lookup(&o, &d, &err), &err);
    else
        assert_ok(minfer_draft_create_model(source == 3 ? r->self : r->first, r->m, &o, &d, &err), &err);
    d->adaptive = adaptive;
    return d;
}

static void check_counts(const answer *a, int32_t depth, const char *what)
{
    const minfer_generate_result *r = &a->r;
    if (r->n_accepted > r->n_drafted || r->n_drafted > r->n_rounds * (size_t)depth ||
        r->n_accepted + r->n_rounds + 1 < r->n_generated)
        fail_msg("%s: %zu rounds, %zu drafted, %zu accepted, %zu tokens", what, r->n_rounds, r->n_drafted,
                 r->n_accepted, r->n_generated);
}

/* One task with one source, against plain decoding. Returns the share of drafted tokens that were right. */
static double check(rig *r, const task *t, const answer *want, int source, int32_t depth, bool adaptive)
{
    char what[96];
    answer got;
    scripted_draft scripted;
    snprintf(what, sizeof what, "source %d, depth %d%s, cache %d", source, depth,
             adaptive ? ", adaptive" : "", (int)r->e->base.kv_format);
    minfer_draft *d = draft_open(r, source, depth, adaptive, want, &scripted);
    answer_make(&got, r->s, t, d);
    answer_compare(want, &got, what);
    check_counts(&got, depth, what);
    double share = got.r.n_drafted ? (double)got.r.n_accepted / (double)got.r.n_drafted : 0;
    minfer_draft_free(d);
    answer_free(&got);
    return share;
}

static void check_all_sources(rig *r, const task *t, int32_t depth)
{
    answer want;
    answer_make(&want, r->s, t, NULL);
    assert_int_equal(want.r.n_rounds, 0);
    for (int source = 0; source < SOURCES; source++) {
        double share = check(r, t, &want, source, depth, false);
        bool right = source == 0 || (source == 3 && t->sampling.temperature == 0 &&
                                     !t->sampling.n_logit_bias && !t->grammar);
        if (right && want.r.n_generated > 20) assert_true(share > 0.9);
        check(r, t, &want, source, depth, true);
    }
    answer_free(&want);
}

static void all_ways_of_drawing(void **state)
{
    (void)state;
    int32_t depth = 0;
    for (int m = 0; m < N_MODELS; m++)
        for (int c = 0; c < N_CACHES; c++) {
            rig r;
            rig_open(&r, models[m], caches[c], CTX);
            for (int w = 0; w < N_WAYS; w++) {
                task t = ways[w](&r);
                check_all_sources(&r, &t, 1 + depth++ % 8);
            }
            rig_close(&r);
        }
}

static void every_depth(void **state)
{
    (void)state;
    for (int c = 0; c < N_CACHES; c++) {
        rig r;
        rig_open(&r, models[1], caches[c], CTX);
        for (int32_t depth = 1; depth <= MINFER_DRAFT_MAX; depth += depth < 8 ? 1 : 8)
            for (int w = 0; w < 2; w++) {
                task t = ways[w](&r);
                check_all_sources(&r, &t, depth);
            }
        rig_close(&r);
    }
}

/* ---- ends ---- */

static void every_number_of_tokens(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    for (int32_t n = 0; n < 14; n++) {
        task t = seeded(&r);
        t.o.max_tokens = n;
        check_all_sources(&r, &t, 5);
    }
    rig_close(&r);
}

static void the_end_of_the_context(void **state)
{
    (void)state;
    for (int32_t n_ctx = PROMPT + 2; n_ctx < PROMPT + 16; n_ctx++) {
        rig r;
        rig_open(&r, models[1], MINFER_CACHE_F16, n_ctx);
        task t = seeded(&r);
        t.o.max_tokens = -1;
        check_all_sources(&r, &t, 4);
        rig_close(&r);
    }
}

/* The end of the turn at every place of a draft. */
static void the_end_of_the_turn(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    for (int i = 0; i < 12; i++) {
        minfer_logit_bias bias[] = {{mf_tokenizer_eos(r.m->tok), (float)i * 0.7f}};
        task t = seeded(&r);
        t.sampling.logit_bias = bias;
        t.sampling.n_logit_bias = 1;
        t.sampling.seed = (uint64_t)i;
        t.o.ignore_end = false;
        t.o.special = i % 2;
        check_all_sources(&r, &t, 1 + i % 8);
    }
    rig_close(&r);
}

/* A stop string that ends at each place of the answer in turn, alone and across tokens. */
static void stop_strings(void **state)
{
    (void)state;
    rig r;
    answer a;
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    task t = seeded(&r);
    answer_make(&a, r.s, &t, NULL);
    for (size_t i = 0; i + 4 < a.text.len; i += 5) {
        char stop[5] = {0};
        memcpy(stop, a.text.data + i, 4);
        const char *strings[] = {stop, "not in there"};
        if (strlen(stop) == 0) continue;
        task s = t;
        s.o.stop = strings;
        s.o.n_stop = 2;
        check_all_sources(&r, &s, 1 + (int32_t)(i % 8));
    }
    answer_free(&a);
    rig_close(&r);
}

static void cancelling(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    for (size_t n = 1; n < 12; n++) {
        task t = seeded(&r);
        t.cancel = n;
        check_all_sources(&r, &t, 6);
    }
    rig_close(&r);
}

/* A grammar sees each token of the answer once, also where the draft breaks it or goes beyond its end. */
static void grammars(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "root ::= \"[\" item (\",\" item){3,9} \"]\"\nitem ::= [a-z]{1,4} | [0-9]+ \"!\"",
        "root ::= [ab]{1,12}", "root ::= (\"x\" | \"yy\")* \"end\""};
    rig r;
    minfer_error err = {0};
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    for (int i = 0; i < 3; i++)
        for (int w = 0; w < N_WAYS; w++) {
            task t = ways[w](&r);
            assert_ok(minfer_grammar_create(texts[i], strlen(texts[i]), &t.grammar, &err), &err);
            for (int32_t depth = 1; depth < 8; depth += 3) check_all_sources(&r, &t, depth);
            minfer_grammar_free(t.grammar);
        }
    rig_close(&r);
}

/* Another session holds most cells: the error of plain decoding comes, and comes at the same place. */
static void a_cache_that_others_use(void **state)
{
    (void)state;
    for (size_t others = 0; others < 10; others++) {
        rig r;
        minfer_session *other;
        minfer_error err = {0};
        int32_t tokens[CTX] = {0};
        rig_open(&r, models[1], MINFER_CACHE_F16, 64);
        assert_ok(minfer_session_create(r.e, &other, &err), &err);
        assert_ok(minfer_session_feed(other, tokens, 20 + others, NULL, 0, &err), &err);
        task t = seeded(&r);
        t.o.max_tokens = -1;
        answer a;
        answer_make(&a, r.s, &t, NULL);
        assert_int_equal(a.st, MINFER_ERR_LIMIT);
        for (int source = 1; source < SOURCES; source++) check(&r, &t, &a, source, 5, false);
        answer_free(&a);
        minfer_session_free(other);
        rig_close(&r);
    }
}

/* A draft in the target's own engine, and in one whose cells others hold. */
static void drafts_without_room(void **state)
{
    (void)state;
    rig r;
    answer want, got;
    minfer_error err = {0};
    minfer_session *other;
    minfer_draft *d;
    minfer_draft_options o = {.n_max = 4};
    int32_t tokens[CTX] = {0};
    rig_open(&r, models[1], MINFER_CACHE_F16, 100);
    task t = greedy(&r);
    answer_make(&want, r.s, &t, NULL);
    assert_ok(minfer_draft_create_model(r.e, r.m, &o, &d, &err), &err);
    answer_make(&got, r.s, &t, d);
    assert_int_equal(got.st,
                     MINFER_ERR_LIMIT); /* the draft's cells are missing now, which is the caller's doing */
    assert_memory_equal(got.ids, want.ids, got.n_ids * sizeof *got.ids);
    answer_free(&got);
    minfer_draft_free(d);

    assert_ok(minfer_session_create(r.self, &other, &err), &err);
    assert_ok(minfer_session_feed(other, tokens, 60, NULL, 0, &err), &err);
    assert_ok(minfer_draft_create_model(r.self, r.m, &o, &d, &err), &err);
    answer_make(&got, r.s, &t, d);
    answer_compare(&want, &got, "a full draft engine");
    assert_true(got.r.n_accepted > 0 && got.r.n_accepted < 20);
    answer_free(&got);
    minfer_draft_free(d);
    minfer_session_free(other);
    answer_free(&want);
    rig_close(&r);
}

/* ---- what a draft remembers ---- */

/* One draft for one answer after the other, of sessions with other texts. */
static void one_draft_for_many_answers(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    for (int source = 2; source < SOURCES; source++) {
        minfer_draft *d = draft_open(&r, source, 4, source == 2, NULL, &(scripted_draft){0});
        for (int i = 0; i < 12; i++) {
            int32_t prompt[PROMPT];
            answer want, got;
            task t = ways[i % N_WAYS](&r);
            for (int32_t k = 0; k < PROMPT; k++) prompt[k] = (r.prompt[k] + (k > i ? i * 13 : 0)) % r.n_vocab;
            t.prompt = prompt;
            t.n_prompt = (size_t)(PROMPT - i);
            answer_make(&want, r.s, &t, NULL);
            answer_make(&got, r.s, &t, d);
            answer_compare(&want, &got, "a draft with a past");
            if (source == 3 && i % N_WAYS == 0) assert_true(got.r.n_accepted + 4 >= got.r.n_drafted);
            answer_free(&want);
            answer_free(&got);
        }
        minfer_draft_free(d);
    }
    rig_close(&r);
}

/* The logits behind an answer are those of a session that never drafted. */
static void nothing_stays_in_the_cache(void **state)
{
    (void)state;
    for (int c = 0; c < N_CACHES; c++) {
        static float want[1024], got[1024];
        rig r;
        answer a, b;
        scripted_draft d;
        minfer_error err = {0};
        int32_t next = 11;
        rig_open(&r, models[0], caches[c], CTX);
        task t = seeded(&r);
        answer_make(&a, r.s, &t, NULL);
        assert_ok(minfer_session_feed(r.s, &next, 1, want, 1, &err), &err);
        scripted_draft_init(&d, 7, &a, 0.4, r.n_vocab, 5);
        answer_make(&b, r.s, &t, &d.base);
        assert_ok(minfer_session_feed(r.s, &next, 1, got, 1, &err), &err);
        assert_memory_equal(want, got, (size_t)r.m->bound->hp.n_vocab * sizeof *want);
        answer_free(&a);
        answer_free(&b);
        rig_close(&r);
    }
}

/* ---- refusals ---- */

static void bad_options(void **state)
{
    (void)state;
    rig r;
    minfer_draft *d = NULL;
    minfer_error err = {0};
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    for (int32_t n = -1; n <= MINFER_DRAFT_MAX + 1; n++) {
        minfer_draft_options o = {.n_max = n};
        bool good = n >= 1 && n <= MINFER_DRAFT_MAX;
        minfer_status st = minfer_draft_create_lookup(&o, &d, &err);
        if (good) assert_ok(st, &err);
        if (!good) assert_fails(st, MINFER_ERR_ARG, &err, "1 to 16 are possible");
        minfer_draft_free(d);
        if (!good)
            assert_fails(minfer_draft_create_model(r.self, r.m, &o, &d, &err), MINFER_ERR_ARG, &err,
                         "tokens");
        assert_true(good || !d);
    }
    rig_close(&r);
}

/* A draft that was made for one model does not serve another; nothing is fed. */
static void another_target(void **state)
{
    (void)state;
    rig r;
    answer a;
    minfer_error err = {0};
    minfer_draft *d;
    minfer_draft_options o = {.n_max = 2};
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    assert_ok(minfer_draft_create_model(r.self, r.small, &o, &d, &err), &err);
    task t = greedy(&r);
    answer_make(&a, r.s, &t, d);
    assert_fails(a.st, MINFER_ERR_ARG, &a.err, "another model");
    assert_int_equal(a.n_timeline, PROMPT - 1);
    answer_free(&a);
    minfer_draft_free(d);
    rig_close(&r);
}

/* ---- short memory ---- */

/* Every allocation fails once: an error, and the session holds a part of the plain answer, no draft. */
static void short_memory(void **state)
{
    (void)state;
    rig r;
    answer want, got;
    rig_open(&r, models[1], MINFER_CACHE_F16, CTX);
    task t = greedy(&r);
    t.o.max_tokens = 12;
    answer_make(&want, r.s, &t, NULL);
    for (int source = 2; source < SOURCES; source++)
        for (long at = 1, done = 0; !done; at++) {
            minfer_draft_options o = {.n_max = 3};
            minfer_error err = {0};
            minfer_draft *d = NULL;
            minfer_generate_result result;
            minfer_sampler *sampler;
            assert_ok(minfer_session_rollback(r.s, PROMPT - 1, &err), &err);
            assert_ok(minfer_sampler_create(r.m, &t.sampling, &sampler, &err), &err);
            mf_mem_fail_at(at);
            minfer_status st = source == 2 ? minfer_draft_create_lookup(&o, &d, &err)
                                           : minfer_draft_create_model(source == 3 ? r.self : r.first, r.m,
                                                                       &o, &d, &err);
            if (st == MINFER_OK) {
                t.o.draft = d;
                st = minfer_generate(r.s, sampler, r.prompt + PROMPT - 1, 1, &t.o, &result, &err);
            }
            mf_mem_fail_at(0);
            done = st == MINFER_OK;
            assert_true(done || st == MINFER_ERR_NOMEM);
            size_t n = minfer_session_length(r.s);
            assert_true(n <= want.n_timeline);
            assert_memory_equal(minfer_session_tokens(r.s), want.timeline, n * sizeof *want.timeline);
            minfer_draft_free(d);
            minfer_sampler_free(sampler);
        }
    t.o.draft = NULL;
    answer_make(&got, r.s, &t, NULL);
    answer_compare(&want, &got, "after all failures");
    answer_free(&want);
    answer_free(&got);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_of_drawing),
        cmocka_unit_test(every_depth),
        cmocka_unit_test(every_number_of_tokens),
        cmocka_unit_test(the_end_of_the_context),
        cmocka_unit_test(the_end_of_the_turn),
        cmocka_unit_test(stop_strings),
        cmocka_unit_test(cancelling),
        cmocka_unit_test(grammars),
        cmocka_unit_test(a_cache_that_others_use),
        cmocka_unit_test(drafts_without_room),
        cmocka_unit_test(one_draft_for_many_answers),
        cmocka_unit_test(nothing_stays_in_the_cache),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(another_target),
        cmocka_unit_test(short_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
