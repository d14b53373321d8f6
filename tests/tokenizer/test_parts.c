/* The parts against slow and plain twins: merging, normalization, the expression engine with and without
 * generated code, bytes and their spelling. */
#include "support/support.h"
#include "tokenizer/made.h"
#include "tokenizer/random_text.h"

#include "base/utf8.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pretok.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <stdlib.h>
#include <utf8proc.h>

static void read_small(loaded *l, mf_vocab *v)
{
    minfer_error err;
    load_tokenizer(l, data_path("tokenizer/small.gguf"), NULL);
    assert_ok(mf_vocab_read(v, l->g, &err), &err);
}

/* The definition: while any pair merges, merge the one of the lowest rank, the leftmost of several. */
static size_t merge_slowly(const mf_vocab *v, mf_str piece, uint32_t *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < piece.n; i++) {
        int32_t id = v->bytes[(unsigned char)piece.s[i]];
        if (id >= 0) ids[n++] = (uint32_t)id;
    }
    for (;;) {
        const mf_merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const mf_merge *m = mf_vocab_slot(v, ids[i], ids[i + 1]);
            if (m->rank == MF_NO_RANK || (best && m->rank >= best->rank)) continue;
            best = m;
            at = i;
        }
        if (!best) return n;
        ids[at] = best->merged;
        memmove(&ids[at + 1], &ids[at + 2], (--n - at - 1) * sizeof *ids);
    }
}

static void test_bpe_paths_agree(void **state)
{
    (void)state;
    enum { MAX = 300 };
    static const char letters[] = "aaabehinorst   ndg\xC3\xA9\xD0\xBE\xD1\x81";
    loaded l;
    mf_vocab v = {0};
    mf_bpe b = {0};
    mf_tokens got = {0};
    mf_rng r;
    char text[MAX];
    uint32_t want[MAX];
    read_small(&l, &v);
    v.bytes['g'] = -1; /* as a vocabulary that has no token for a byte */
    mf_rng_seed(&r, 2);
    for (int i = 0; i < 5000; i++) {
        size_t n = random_below(&r, i % 2 ? 40 : MAX);
        for (size_t k = 0; k < n; k++) text[k] = letters[random_below(&r, i % 3 ? sizeof letters - 1 : 3)];
        size_t n_want = merge_slowly(&v, (mf_str){text, n}, want);
        got.n = 0;
        assert_true(mf_bpe_encode(&b, &v, (mf_str){text, n}, &got));
        assert_int_equal(got.n, n_want);
        if (n_want > 0) assert_memory_equal(got.ids, want, n_want * sizeof *want);
    }
    mf_bpe_free(&b);
    mf_tokens_free(&got);
    mf_vocab_free(&v);
    unload(&l);
}

static void assert_nfc(mf_normalizer *z, const char *text, size_t n)
{
    mf_str got;
    utf8proc_uint8_t *want = NULL;
    assert_true(mf_normalize(z, (mf_str){text, n}, true, &got));
    utf8proc_ssize_t m = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &want,
                                      UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    assert_int_equal(got.n, m);
    if (m > 0) assert_memory_equal(got.s, want, (size_t)m);
    free(want);
}

static void test_nfc_of_every_character(void **state)
{
    (void)state;
    mf_normalizer z = {0};
    for (uint32_t c = 0; c < 0x110000; c++) {
        char text[4];
        if (c >= 0xD800 && c < 0xE000) continue;
        assert_nfc(&z, text, mf_utf8_encode(c, text));
    }
    mf_normalizer_free(&z);
}

static void test_nfc_of_random_text(void **state)
{
    (void)state;
    mf_normalizer z = {0};
    mf_buf text = {0};
    mf_rng r;
    mf_rng_seed(&r, 3);
    for (int i = 0; i < 20000; i++) {
        random_text(&r, i % 100 ? 12 : 400, &text);
        assert_nfc(&z, text.data, text.len);
    }
    /* Runs of marks, short and long, in any order. */
    for (uint32_t n = 0; n < 400; n++) {
        text.len = 0;
        assert_true(mf_buf_char(&text, 'a'));
        for (uint32_t i = 0; i < n; i++) {
            char mark[4];
            assert_true(mf_buf_append(&text, mark, mf_utf8_encode(0x300 + random_below(&r, 0x4F), mark)));
        }
        assert_nfc(&z, text.data, text.len);
    }
    mf_buf_free(&text);
    mf_normalizer_free(&z);
}

static void test_broken_bytes(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"ab\xE4\xB8", "ab\uFFFD"},
        {"\xFF\xFE", "\uFFFD\uFFFD"},
        {"\xED\xA0\x80x", "\uFFFD\uFFFD\uFFFDx"},
        {"\xF0\x9F\x98\xF0\x9F\x98\x80", "\uFFFD\U0001F600"},
        {"e\xCC", "e\uFFFD"},
        {"\x80\xCC\x81", "\uFFFD\xCC\x81"},
        {"plain", "plain"},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        mf_normalizer z = {0};
        mf_str got;
        const char *const *row = rows[i / 2];
        assert_true(mf_normalize(&z, (mf_str){row[0], strlen(row[0])}, i % 2, &got));
        assert_int_equal(got.n, strlen(row[1]));
        assert_memory_equal(got.s, row[1], got.n);
        mf_normalizer_free(&z);
    }
    /* Without NFC a mark stays where it is. */
    mf_normalizer z = {0};
    mf_str got;
    assert_true(mf_normalize(&z, (mf_str){"e\xCC\x81", 3}, false, &got));
    assert_int_equal(got.n, 3);
    mf_normalizer_free(&z);
}

typedef struct cuts { /* where pieces end */
    uint64_t hash, n;
    const char *start;
} cuts;

static minfer_status count_piece(void *arg, mf_str piece, minfer_error *err)
{
    (void)err;
    cuts *c = arg;
    c->n++;
    c->hash = c->hash * 0x9e3779b97f4a7c15u + (uint64_t)(piece.s + piece.n - c->start);
    return MINFER_OK;
}

static cuts split_all(const mf_pretok *p, mf_str text)
{
    minfer_error err;
    cuts c = {.start = text.s};
    assert_ok(mf_pretok_split(p, text, count_piece, &c, &err), &err);
    return c;
}

static void compile_kind(mf_pretok *p, const char *name)
{
    const mf_pretok_kind *kind;
    minfer_error err;
    *p = (mf_pretok){0};
    assert_ok(mf_pretok_find((mf_str){name, strlen(name)}, &kind, &err), &err);
    assert_ok(mf_pretok_compile(p, kind, &err), &err);
}

static const char *const kinds[] = {"qwen2", "qwen35", "smollm", "llama-bpe", "gpt-2"};

static void assert_engines_agree(mf_pretok *p, mf_str text)
{
    cuts fast = split_all(p, text);
    p->options |= PCRE2_NO_JIT;
    cuts slow = split_all(p, text);
    p->options &= ~(uint32_t)PCRE2_NO_JIT;
    assert_int_equal(fast.n, slow.n);
    assert_int_equal(fast.hash, slow.hash);
}

/* Ten megabytes of one pattern meet no limit of the engine, whichever way it runs. Blanks are where it tries
 * again and again; where it does not, the slow way is given less. */
static void test_engine_has_no_limit(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        bool blank;
    } rows[] = {
        {" ", true},  {"\n", true}, {" \n", true},           {"\xC2\xA0", true},  {"a", false},
        {"7", false}, {"!", false}, {"\xE4\xB8\xAD", false}, {"\xCC\x81", false},
    };
    enum { N = 10 << 20 };
    char *text = mf_malloc(N);
    assert_non_null(text);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        mf_pretok p;
        compile_kind(&p, kinds[k]);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            size_t len = strlen(rows[i].pattern), n = N / len * len;
            for (size_t j = 0; j < n; j++) text[j] = rows[i].pattern[j % len];
            assert_true(split_all(&p, (mf_str){text, k == 0 ? n : len}).n > 0);
            assert_engines_agree(&p, (mf_str){text, k == 0 && rows[i].blank ? n : n / 100 / len * len});
        }
        mf_pretok_free(&p);
    }
    mf_free(text);
}

static void test_engine_paths_agree(void **state)
{
    (void)state;
    mf_buf text = {0};
    mf_rng r;
    mf_rng_seed(&r, 4);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        mf_pretok p;
        compile_kind(&p, kinds[k]);
        for (int i = 0; i < 3000; i++) {
            random_text(&r, 40, &text);
            assert_engines_agree(&p, (mf_str){text.data, text.len});
        }
        mf_pretok_free(&p);
    }
    mf_buf_free(&text);
}

static bool is_one_piece(const mf_pretok *p, const char *before, uint32_t c)
{
    char text[8];
    size_t n = strlen(before);
    memcpy(text, before, n);
    n += mf_utf8_encode(c, text + n);
    return split_all(p, (mf_str){text, n}).n == 1;
}

/* Expects every character of a class of classes.json to go on a piece that begins with `before`, and to be
 * none of the other classes. */
static void check_class(const mf_pretok *p, const json_t *classes, const char *name, const char *before)
{
    static const char *const names[] = {"letter", "number", "mark", "space"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const json_t *list = json_object_get(classes, names[k]), *range;
        size_t i;
        assert_true(json_array_size(list) > 5);
        json_array_foreach(list, i, range)
        {
            int64_t last = json_integer_value(json_array_get(range, 1));
            for (int64_t c = json_integer_value(json_array_get(range, 0)); c <= last; c++)
                if (is_one_piece(p, before, (uint32_t)c) != (strcmp(name, names[k]) == 0))
                    fail_msg("U+%04X is %s, taken for %s or not", (unsigned)c, names[k], name);
        }
    }
}

/* Which characters are letters, numbers, marks and space is as in the library that the models' tokenizers run
 * on, whatever the engine here knows. */
static void test_character_classes(void **state)
{
    (void)state;
    json_error_t e;
    json_t *classes = json_load_file(data_path("tokenizer/classes.json"), 0, &e);
    mf_pretok gpt2, qwen2, qwen35;
    assert_non_null(classes);
    compile_kind(&gpt2, "gpt-2");
    compile_kind(&qwen2, "qwen2");
    compile_kind(&qwen35, "qwen35");
    check_class(&qwen2, classes, "letter", "a");
    check_class(&gpt2, classes, "number", "1");
    check_class(&gpt2, classes, "space", "\t");
    const json_t *list = json_object_get(classes, "mark"), *range;
    size_t i;
    json_array_foreach(list, i, range)
    {
        int64_t last = json_integer_value(json_array_get(range, 1));
        for (int64_t c = json_integer_value(json_array_get(range, 0)); c <= last; c++)
            assert_true(is_one_piece(&qwen35, "a", (uint32_t)c));
    }
    /* What older data calls a space, and what no data does. */
    assert_false(is_one_piece(&gpt2, "\t", 0x180E));
    assert_false(is_one_piece(&gpt2, "\t", 0x200B));
    mf_pretok_free(&gpt2);
    mf_pretok_free(&qwen2);
    mf_pretok_free(&qwen35);
    json_decref(classes);
}

/* Bytes that no text may hold are spelled and read back too. */
static void test_bytes_and_spelling(void **state)
{
    (void)state;
    static made_vocab v;
    made_vocab_init(&v, NULL);
    for (int b = 0; b < 256; b++) {
        char byte = (char)b;
        mf_buf spelled = {0}, back = {0};
        assert_true(mf_vocab_spell((mf_str){&byte, 1}, &spelled));
        assert_string_equal(spelled.data, v.bytes[b]);
        assert_true(mf_vocab_decode((mf_str){spelled.data, spelled.len}, &back));
        assert_int_equal(back.len, 1);
        assert_int_equal(back.data[0], byte);
        mf_buf_free(&spelled);
        mf_buf_free(&back);
    }
}

/* Bytes text can do without may be missing; what is beside them meets. */
static void test_missing_bytes_are_left_out(void **state)
{
    (void)state;
    static made_vocab v;
    made m = {0};
    minfer_error err;
    mf_tokenizer *t;
    mf_tokens ids = {0};
    static const unsigned char missing[] = {0, 4, 0x7F, 0xC0, 0xC1, 0xF1, 0xF4, 0xF5, 0xFF};
    made_vocab_init(&v, "smollm");
    for (size_t i = 0; i < sizeof missing; i++) {
        static char names[sizeof missing][8];
        snprintf(names[i], sizeof names[i], "none%zu", i);
        v.tokens[missing[i]] = (mf_str){names[i], strlen(names[i])};
    }
    int32_t joined = made_token(&v, "!!", MF_TOKEN_NORMAL);
    made_merge(&v, "! !");
    made_put_vocab(&m, &v);
    mf_gguf *g = made_parse(&m);
    assert_ok(mf_tokenizer_create(g, &t, &err), &err);
    assert_ok(mf_tokenizer_encode(t, "!\x04!\x7F", 4, 0, &ids, &err), &err);
    assert_int_equal(ids.n, 1);
    assert_int_equal(ids.ids[0], joined);
    mf_tokens_free(&ids);
    mf_tokenizer_free(t);
    mf_gguf_free(g);
    made_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bpe_paths_agree),
        cmocka_unit_test(test_nfc_of_every_character),
        cmocka_unit_test(test_nfc_of_random_text),
        cmocka_unit_test(test_broken_bytes),
        cmocka_unit_test(test_engine_has_no_limit),
        cmocka_unit_test(test_engine_paths_agree),
        cmocka_unit_test(test_character_classes),
        cmocka_unit_test(test_bytes_and_spelling),
        cmocka_unit_test(test_missing_bytes_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
