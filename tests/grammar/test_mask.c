/* Masks against trying each token; places that are copied, restarted, kept while memory is tidied; samplers.
 */
#include "common.h"

#include "grammar/matcher.h"
#include "sampling/sampler.h"

#include <math.h>

enum { MAX_TOKENS = 600 };

typedef struct words {
    char bytes[MAX_TOKENS][16];
    mf_str v[MAX_TOKENS];
    int32_t n, end;
    mf_trie *trie;
} words;

static void add(words *w, const char *s, size_t n)
{
    assert_true(w->n < MAX_TOKENS && n <= sizeof w->bytes[0]);
    memcpy(w->bytes[w->n], s, n);
    w->v[w->n] = (mf_str){w->bytes[w->n], n};
    w->n++;
}

/* Random pieces of the letters, some of them several times, one that ends, one without text. */
static void make_words(words *w, mf_rng *r, const char *letters, int n)
{
    minfer_error err = {0};
    *w = (words){0};
    add(w, "", 0);
    for (const char *c = letters; *c; c++) add(w, c, 1);
    while (w->n < n - 1) {
        char s[16];
        size_t len = 1 + below(r, 6);
        for (size_t i = 0; i < len; i++) s[i] = letters[below(r, strlen(letters))];
        add(w, s, len);
    }
    w->end = w->n;
    add(w, letters, 1); /* what it spells does not count */
    assert_ok(mf_trie_make(w->v, w->n, &w->end, 1, &w->trie, &err), &err);
}

static bool has(const uint64_t *bits, int32_t id)
{
    return bits[id / 64] >> id % 64 & 1;
}

/* The mask at a place, which `by_bytes` stands at, too. */
static void check_mask(mf_gplace *at, machine *m, const words *w)
{
    const uint64_t *bits;
    minfer_error err = {0};
    uint32_t before = m->set;
    assert_ok(mf_matcher_mask(at, &bits, &err), &err);
    for (int32_t id = 0; id < w->n; id++) {
        bool want = id == w->end ? mf_gsets_can_end(&m->sets, before) : w->v[id].n > 0;
        for (size_t i = 0; i < w->v[id].n && id != w->end; i++) machine_byte(m, (uint8_t)w->v[id].s[i]);
        if (id != w->end) want = want && m->set != MF_GSET_EMPTY;
        m->set = before;
        if (has(bits, id) != want)
            fail_msg("token %d '%.*s': %d, expected %d", id, (int)w->v[id].n, w->v[id].s, has(bits, id),
                     want);
    }
}

/* A token that may come next and does not end; -1: none. */
static int32_t choose(mf_gplace *at, const words *w, mf_rng *r)
{
    const uint64_t *bits;
    minfer_error err = {0};
    int32_t n = 0, ids[MAX_TOKENS];
    assert_ok(mf_matcher_mask(at, &bits, &err), &err);
    for (int32_t id = 0; id < w->n; id++)
        if (has(bits, id) && id != w->end) ids[n++] = id;
    return n ? ids[below(r, (size_t)n)] : -1;
}

static const char *const grammars[] = {
    "root ::= \"a\"{5,40} \"b\"? (\"c\" [ab]{2,7}){3,30}",
    "root ::= x*\nx ::= \"a\" x \"b\" | [ac]{4} | \"cc\" x",
    "root ::= (\"a\" | \"ab\" | \"bc\" | [^abc])+ \"c\"{0,1000}",
    "root ::= [abc]{100} root? | \"ba\"",
};

static void test_masks(void **state)
{
    (void)state;
    mf_rng r;
    minfer_error err = {0};
    static words w;
    mf_rng_seed(&r, 3);
    for (size_t g = 0; g < sizeof grammars / sizeof *grammars; g++) {
        machine m;
        mf_matcher *matcher;
        mf_gplace at = {0};
        make_words(&w, &r, g == 2 ? "abc\xC3\xA9\xE4\xB8\xAD" : "abc", 200);
        machine_open(&m, grammars[g], 3);
        assert_ok(mf_matcher_create(&m.p, w.trie, &matcher, &err), &err);
        assert_ok(mf_matcher_enter(matcher, &at, &err), &err);
        for (int turn = 0; turn < 200; turn++) {
            if (turn % 50 == 0) {
                assert_ok(mf_matcher_restart(&at, &err), &err);
                machine_start(&m);
            }
            check_mask(&at, &m, &w);
            int32_t id = choose(&at, &w, &r);
            if (id < 0) break;
            assert_ok(mf_matcher_accept(&at, id, &err), &err);
            for (size_t i = 0; i < w.v[id].n; i++) machine_byte(&m, (uint8_t)w.v[id].s[i]);
        }
        mf_matcher_leave(&at);
        mf_matcher_free(matcher);
        mf_trie_unref(w.trie);
        machine_close(&m);
    }
}

/* Many long texts, each with a stack of its own, so that sets are dropped several times on the way; then each
 * must be able to end as it began, and in no other way. */
static void test_bounded_memory(void **state)
{
    (void)state;
    enum { PLACES = 20, LENGTH = 30000 };
    static char history[PLACES][LENGTH];
    static words w;
    mf_rng r;
    minfer_error err = {0};
    machine m;
    mf_matcher *matcher;
    mf_gplace at[PLACES] = {0};
    const uint64_t *bits;
    mf_rng_seed(&r, 5);
    make_words(&w, &r, "abc", 5); /* 1, 2, 3: the letters */
    machine_open(&m, "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"c\"", 1);
    assert_ok(mf_matcher_create(&m.p, w.trie, &matcher, &err), &err);
    for (int i = 0; i < PLACES; i++) assert_ok(mf_matcher_enter(matcher, &at[i], &err), &err);
    for (int n = 0; n < LENGTH; n++)
        for (int i = 0; i < PLACES; i++) {
            history[i][n] = (char)(1 + below(&r, 2));
            assert_ok(mf_matcher_accept(&at[i], history[i][n], &err), &err);
            assert_true(mf_matcher_bytes(matcher) < 64 << 20);
        }
    for (int i = 0; i < PLACES; i++) {
        assert_ok(mf_matcher_accept(&at[i], 3, &err), &err);
        for (int n = LENGTH; n-- > 0;) {
            if (n % 1000 == 0) {
                assert_ok(mf_matcher_mask(&at[i], &bits, &err), &err);
                assert_int_equal(bits[0], 1u << history[i][n]);
            }
            assert_int_equal(mf_matcher_accept(&at[i], 3 - history[i][n], NULL), MINFER_ERR_ARG);
            assert_ok(mf_matcher_accept(&at[i], history[i][n], &err), &err);
        }
        assert_ok(mf_matcher_accept(&at[i], w.end, &err), &err);
        mf_matcher_leave(&at[i]);
    }
    mf_matcher_free(matcher);
    mf_trie_unref(w.trie);
    machine_close(&m);
}

/* A grammar with far too many readings is given up, within a moment. */
static void test_too_many_readings(void **state)
{
    (void)state;
    static words w;
    mf_rng r;
    minfer_error err = {0};
    machine m;
    mf_matcher *matcher;
    mf_gplace at = {0};
    const uint64_t *bits;
    minfer_status st = MINFER_OK;
    mf_rng_seed(&r, 5);
    make_words(&w, &r, "abc", 500);
    machine_open(&m, "root ::= ([abc]{3,60000} | \"a\" root \"b\"?)*", 6);
    assert_ok(mf_matcher_create(&m.p, w.trie, &matcher, &err), &err);
    assert_ok(mf_matcher_enter(matcher, &at, &err), &err);
    for (int i = 0; i < 1000000 && st == MINFER_OK; i++) {
        if (i % 100 == 0) st = mf_matcher_mask(&at, &bits, &err);
        if (st == MINFER_OK) st = mf_matcher_accept(&at, 1, &err);
    }
    assert_fails(st, MINFER_ERR_LIMIT, &err, "too many ways");
    mf_matcher_leave(&at);
    mf_matcher_free(matcher);
    mf_trie_unref(w.trie);
    machine_close(&m);
}

/* ---- readers and samplers */

static minfer_grammar *make_grammar(const char *text)
{
    minfer_grammar *g;
    minfer_error err = {0};
    assert_ok(minfer_grammar_create(text, strlen(text), &g, &err), &err);
    return g;
}

static minfer_sampler *make_sampler(int32_t n_vocab, uint64_t seed, float temperature)
{
    minfer_sampler *s;
    minfer_sampling p;
    minfer_error err = {0};
    minfer_sampling_init(&p);
    p.seed = seed;
    p.temperature = temperature;
    p.mirostat = 2;
    assert_ok(mf_sampler_create(&p, n_vocab, &s, &err), &err);
    return s;
}

static void test_sampler(void **state)
{
    (void)state;
    static words w;
    mf_rng r;
    minfer_error err = {0};
    float logits[MAX_TOKENS];
    int32_t id;
    mf_rng_seed(&r, 9);
    make_words(&w, &r, "ab", 20);
    for (int i = 0; i < w.n; i++) logits[i] = (float)i;
    minfer_grammar *g = make_grammar("root ::= \"ab\" \"a\"?");
    minfer_sampler *s = make_sampler(w.n, 1, 0);
    assert_ok(mf_sampler_set_grammar(s, g, w.trie, &err), &err);
    minfer_grammar_free(g); /* the sampler keeps it */
    mf_buf text = {0};
    for (int step = 0; step < 4; step++) {
        assert_ok(minfer_sampler_sample(s, logits, NULL, 0, &id, &err), &err);
        if (id == w.end) break;
        mf_buf_append(&text, w.v[id].s, w.v[id].n);
    }
    assert_int_equal(id, w.end); /* the greatest logit, as soon as it is allowed */
    assert_string_equal(text.data, "ab");
    assert_ok(minfer_sampler_sample(s, logits, NULL, 0, &id, &err), &err);
    assert_int_equal(id, w.end);
    assert_fails(minfer_sampler_accept(s, 1, &err), MINFER_ERR_ARG, &err, "after the end");
    assert_ok(mf_sampler_restart_grammar(s, &err), &err);
    assert_fails(minfer_sampler_accept(s, 2, &err), MINFER_ERR_ARG, &err,
                 "token 2 (\"b\") is not allowed here");
    assert_fails(minfer_sampler_accept(s, w.end, &err), MINFER_ERR_ARG, &err, "would end the text");
    assert_fails(minfer_sampler_accept(s, 0, &err), MINFER_ERR_ARG, &err, "has no text");
    assert_fails(minfer_sampler_accept(s, w.n, &err), MINFER_ERR_ARG, &err, "token 20 is not in 0..19");
    assert_ok(minfer_sampler_accept(s, 1, &err), &err);
    assert_fails(minfer_sampler_accept(s, 1, &err), MINFER_ERR_ARG, &err, "not allowed");
    assert_ok(minfer_sampler_accept(s, 2, &err), &err);
    assert_ok(mf_sampler_set_grammar(s, NULL, NULL, &err), &err);
    assert_ok(minfer_sampler_accept(s, 2, &err), &err);
    minfer_sampler_free(s);
    mf_trie_unref(w.trie);
    mf_buf_free(&text);
}

/* Draws n tokens from rows that the seed gives. */
static void draw(minfer_sampler *s, const words *w, uint64_t seed, int n, int32_t *ids)
{
    mf_rng r;
    minfer_error err = {0};
    float logits[MAX_TOKENS];
    mf_rng_seed(&r, seed);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < w->n; k++) logits[k] = k == w->end ? -30 : (float)mf_rng_f64(&r);
        assert_ok(minfer_sampler_sample(s, logits, NULL, 0, &ids[i], &err), &err);
    }
}

/* A copy goes on as the original does; neither sees what the other does. */
static void test_copy(void **state)
{
    (void)state;
    enum { N = 40 };
    static words w;
    mf_rng r;
    minfer_error err = {0};
    int32_t want[N], got[N], other[N];
    mf_rng_seed(&r, 11);
    make_words(&w, &r, "ab", 60);
    minfer_grammar *g = make_grammar("root ::= (\"ab\" [ab]{2,3} \"b\")*");
    minfer_sampler *s = make_sampler(w.n, 5, 1), *t = make_sampler(w.n, 5, 1),
                   *u = make_sampler(w.n - 1, 5, 1);
    assert_ok(mf_sampler_set_grammar(s, g, w.trie, &err), &err);
    draw(s, &w, 1, N, other);
    assert_ok(minfer_sampler_copy(t, s, &err), &err);
    draw(s, &w, 2, N, want);
    draw(t, &w, 2, N / 2, got);
    draw(s, &w, 3, N, other);
    assert_memory_equal(got, want, N / 2 * sizeof *got);
    assert_fails(minfer_sampler_copy(u, s, &err), MINFER_ERR_ARG, &err, "samplers for 59 and 60 tokens");
    assert_ok(minfer_sampler_copy(s, t, &err), &err);
    minfer_grammar_free(g);
    minfer_sampler_free(t);
    draw(s, &w, 4, N, other); /* the grammar lives on in it */
    assert_ok(minfer_sampler_copy(s, s, &err), &err);
    minfer_sampler_free(s);
    minfer_sampler_free(u);
    mf_trie_unref(w.trie);
}

/* No token can say that the text is complete; and no token can go on. */
static void test_nothing_left(void **state)
{
    (void)state;
    mf_trie *trie;
    minfer_error err = {0};
    int32_t id;
    const mf_str texts[] = {{"a", 1}, {"b", 1}};
    assert_ok(mf_trie_make(texts, 2, NULL, 0, &trie, &err), &err);
    minfer_grammar *g = make_grammar("root ::= \"ab\" | \"bc\"");
    minfer_sampler *s = make_sampler(2, 1, 0);
    assert_ok(mf_sampler_set_grammar(s, g, trie, &err), &err);
    assert_false(mf_sampler_exhausted(s));
    assert_ok(minfer_sampler_sample(s, (float[]){1, 0}, NULL, 0, &id, &err), &err);
    assert_ok(minfer_sampler_sample(s, (float[]){1, 0}, NULL, 0, &id, &err), &err);
    assert_int_equal(id, 1);
    assert_true(mf_sampler_exhausted(s));
    assert_ok(mf_sampler_restart_grammar(s, &err), &err);
    assert_ok(minfer_sampler_accept(s, 1, &err), &err);
    assert_fails(minfer_sampler_sample(s, (float[]){1, 0}, NULL, 0, &id, &err), MINFER_ERR_STATE, &err,
                 "grammar: no token of the vocabulary can go on");
    minfer_sampler *other = make_sampler(3, 1, 0);
    assert_fails(mf_sampler_set_grammar(other, g, trie, &err), MINFER_ERR_ARG, &err,
                 "a grammar for a vocabulary of 2 tokens, the sampler has 3");
    minfer_sampler_free(other);
    minfer_sampler_free(s);
    minfer_grammar_free(g);
    mf_trie_unref(trie);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static words w;
    mf_rng r;
    mf_rng_seed(&r, 13);
    make_words(&w, &r, "abc", 50);
    minfer_grammar *g = make_grammar(grammars[1]);
    for (long at = 1;; at++) {
        minfer_error err = {0};
        mf_trie *trie = NULL;
        int32_t id;
        float logits[50] = {0};
        minfer_sampler *s = make_sampler(w.n, 1, 1), *t = make_sampler(w.n, 1, 1);
        mf_mem_fail_at(at);
        minfer_status st = mf_trie_make(w.v, w.n, &w.end, 1, &trie, &err);
        if (st == MINFER_OK) st = mf_sampler_set_grammar(s, g, trie, &err);
        for (int i = 0; i < 5 && st == MINFER_OK; i++)
            st = minfer_sampler_sample(s, logits, NULL, 0, &id, &err);
        if (st == MINFER_OK) st = minfer_sampler_copy(t, s, &err);
        mf_mem_fail_at(0);
        minfer_sampler_free(s);
        minfer_sampler_free(t);
        mf_trie_unref(trie);
        if (st == MINFER_OK) break;
        assert_int_equal(st, MINFER_ERR_NOMEM);
        assert_true(at < 2000);
    }
    minfer_grammar_free(g);
    mf_trie_unref(w.trie);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_bounded_memory),
        cmocka_unit_test(test_too_many_readings),
        cmocka_unit_test(test_sampler),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
