/* Properties of encoding: nothing is lost, nothing is read past the end, any length is near linear, special
 * tokens are cut out as promised, threads do not meet. */
#include "support/support.h"
#include "tokenizer/made.h"
#include "tokenizer/random_text.h"

#include "base/pool.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utf8proc.h>

static const char *const pres[] = {"qwen2", "qwen35", "smollm", "llama-bpe", "gpt-2"};
enum { N_PRES = sizeof pres / sizeof *pres };

static void load_small(loaded *l, const char *pre)
{
    load_tokenizer(l, data_path("tokenizer/small.gguf"), pre);
}

static void encode(const mf_tokenizer *t, const char *text, size_t n, unsigned flags, mf_tokens *out)
{
    minfer_error err;
    out->n = 0;
    assert_ok(mf_tokenizer_encode(t, text, n, flags, out, &err), &err);
}

static void decode(const mf_tokenizer *t, const mf_tokens *ids, mf_buf *out)
{
    out->len = 0;
    for (size_t i = 0; i < ids->n; i++) assert_true(mf_tokenizer_piece(t, ids->ids[i], true, out));
}

static void round_trips(const char *pre, bool nfc)
{
    loaded l;
    mf_rng r;
    mf_buf text = {0}, back = {0};
    mf_tokens ids = {0};
    load_small(&l, pre);
    mf_rng_seed(&r, 6);
    for (int i = 0; i < 10000; i++) {
        random_text(&r, 24, &text);
        encode(l.t, text.data, text.len, i % 2 ? MF_ENCODE_SPECIAL : 0, &ids);
        decode(l.t, &ids, &back);
        utf8proc_uint8_t *want = NULL;
        const utf8proc_option_t options = nfc ? UTF8PROC_STABLE | UTF8PROC_COMPOSE : 0;
        utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text.data, (utf8proc_ssize_t)text.len,
                                          &want, options);
        assert_int_equal(back.len, n);
        if (n > 0) assert_memory_equal(back.data, want, (size_t)n);
        free(want);
    }
    mf_tokens_free(&ids);
    mf_buf_free(&text);
    mf_buf_free(&back);
    unload(&l);
}

static void test_round_trip_is_nfc(void **state)
{
    (void)state;
    round_trips("qwen2", true);
    round_trips("qwen35", true);
}

static void test_round_trip_is_exact(void **state)
{
    (void)state;
    round_trips("llama-bpe", false);
    round_trips("smollm", false);
}

/* Broken bytes at the very end of what may be read. */
static void test_guard_page(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(mprotect(map + page, page, PROT_NONE), 0);
    mf_rng r;
    mf_tokens ids = {0};
    mf_rng_seed(&r, 8);
    for (int p = 0; p < N_PRES; p++) {
        loaded l;
        load_small(&l, pres[p]);
        for (int i = 0; i < 4000; i++) {
            size_t n = random_below(&r, 65);
            char *text = map + page - n;
            for (size_t k = 0; k < n; k++)
                text[k] = i % 3 ? (char)mf_rng_u64(&r) : "<|im_start|>\xE4\xB8\xAD"[random_below(&r, 15)];
            encode(l.t, text, n, MF_ENCODE_SPECIAL | MF_ENCODE_BOS, &ids);
        }
        unload(&l);
    }
    mf_tokens_free(&ids);
    munmap(map, 2 * page);
}

/* A megabyte of one pattern, each of which makes one piece, or a million, or one stretch of marks. */
static void test_long_texts(void **state)
{
    (void)state;
    static const char *const patterns[] = {"a",
                                           " ",
                                           "1",
                                           "\n",
                                           "<|im",
                                           "\xCC\x81\xCC\xA3",
                                           "\xCC\xA3\xCC\x81",
                                           " \n",
                                           "!a",
                                           "\xFF",
                                           "\xE1\x84\x80",
                                           "\xE4\xB8\xAD",
                                           "'s"};
    enum { N = 1 << 20 };
    char *text = mf_malloc(N);
    mf_buf back = {0};
    mf_tokens ids = {0};
    mf_rng r;
    assert_non_null(text);
    mf_rng_seed(&r, 1);
    for (size_t p = 0; p <= sizeof patterns / sizeof *patterns; p++) {
        bool random = p == sizeof patterns / sizeof *patterns;
        size_t len = random ? 1 : strlen(patterns[p]), n = N / len * len;
        for (size_t i = 0; i < n; i++) text[i] = random ? (char)mf_rng_u64(&r) : patterns[p][i % len];
        loaded l;
        load_small(&l, pres[p % N_PRES]);
        encode(l.t, text, n, MF_ENCODE_SPECIAL, &ids);
        decode(l.t, &ids, &back);
        if (mf_utf8_valid(text, n) && p % N_PRES > 1) {
            assert_int_equal(back.len, n);
            assert_memory_equal(back.data, text, n);
        }
        assert_true(back.len > n / 4);
        unload(&l);
    }
    mf_tokens_free(&ids);
    mf_buf_free(&back);
    mf_free(text);
}

static void assert_texts(const mf_tokenizer *t, const char *text, unsigned flags, const char *want)
{
    mf_tokens ids = {0};
    mf_buf got = {0};
    encode(t, text, strlen(text), flags, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        mf_token_type type = mf_tokenizer_type(t, ids.ids[i]);
        mf_str s = mf_tokenizer_text(t, ids.ids[i]);
        const char *format = type == MF_TOKEN_CONTROL        ? "{%.*s}"
                             : type == MF_TOKEN_USER_DEFINED ? "(%.*s)"
                                                             : "%.*s";
        assert_true(mf_buf_printf(&got, format, (int)s.n, s.s));
    }
    assert_string_equal(got.data, want);
    mf_tokens_free(&ids);
    mf_buf_free(&got);
}

/* {control} and (user-defined) tokens as they are found in text. */
static void test_special_tokens(void **state)
{
    (void)state;
    loaded l;
    load_small(&l, "qwen2");
    const unsigned on = MF_ENCODE_SPECIAL;
    assert_texts(l.t, "<|im_start|>", on, "{<|im_start|>}");
    assert_texts(l.t, "<|im_start|", on, "{<|im}_start|");
    assert_texts(l.t, "<|im<|im_end|><|i", on, "{<|im}{<|im_end|>}<|i");
    assert_texts(l.t, "<<|im_end|>>", on, "<{<|im_end|>}>");
    assert_texts(l.t, "a<think>b</think><tool_call>", on, "a(<think>)b(</think>)(<tool_call>)");
    assert_texts(l.t, "<｜end▁of▁sentence｜>", on, "{<｜end▁of▁sentence｜>}");
    assert_texts(l.t, "<unk><|end|>[PAD0]", on, "<unk><|end|>[PAD0]");
    assert_texts(l.t, "<|im_start|><think>", 0, "<|im_start|><think>");
    assert_int_equal(mf_tokenizer_find(l.t, "<think>", 7), mf_tokenizer_find(l.t, "<|endoftext|>", 13) + 6);
    assert_int_equal(mf_tokenizer_find(l.t, "<think", 6), -1);
    assert_int_equal(mf_tokenizer_find(l.t, NULL, 0), -1);
    mf_tokens none = {0};
    encode(l.t, NULL, 0, on, &none);
    assert_int_equal(none.n, 0);
    unload(&l);
}

/* A piece that is a normal token is taken whole where the tokenizer does so; no other type of token is. */
static void test_whole_pieces(void **state)
{
    (void)state;
    static made_vocab v;
    for (int whole = 0; whole < 2; whole++) {
        made m = {0};
        minfer_error err;
        mf_tokenizer *t;
        made_vocab_init(&v, whole ? "llama-bpe" : "qwen2");
        made_token(&v, "bc", MF_TOKEN_NORMAL);
        made_merge(&v, "b c");
        made_token(&v, "abc", MF_TOKEN_NORMAL); /* merges lead to a, bc only */
        made_token(&v, "ctl", MF_TOKEN_CONTROL);
        made_token(&v, "usr", MF_TOKEN_USER_DEFINED);
        made_put_vocab(&m, &v);
        mf_gguf *g = made_parse(&m);
        assert_ok(mf_tokenizer_create(g, &t, &err), &err);
        mf_tokens ids = {0};
        encode(t, "abc", 3, 0, &ids);
        assert_int_equal(ids.n, whole ? 1 : 2);
        encode(t, "ctl", 3, 0, &ids);
        assert_int_equal(ids.n, 3);
        encode(t, "usr", 3, 0, &ids);
        assert_int_equal(ids.n, 3);
        mf_tokens_free(&ids);
        mf_tokenizer_free(t);
        mf_gguf_free(g);
        made_free(&m);
    }
}

/* What each type of token gives as text. */
static void test_pieces_by_type(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *shown, *with_special;
    } rows[] = {
        {"<|im_end|>", "", "<|im_end|>"},
        {"<unk>", "", "<unk>"},
        {"<think>", "<think>", "<think>"},
        {"[PAD0]", "", ""},
        {"\xC4\xA0", " ", " "},
        {"\xC4\x8A", "\n", "\n"},
        {"Ġunmergeable", " unmergeable", " unmergeable"},
    };
    loaded l;
    load_small(&l, "qwen2");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mf_buf a = {0}, b = {0};
        int32_t id = mf_tokenizer_find(l.t, rows[i].text, strlen(rows[i].text));
        assert_true(id >= 0);
        assert_true(mf_buf_str(&a, "") && mf_buf_str(&b, ""));
        assert_true(mf_tokenizer_piece(l.t, id, false, &a));
        assert_true(mf_tokenizer_piece(l.t, id, true, &b));
        assert_string_equal(a.data, rows[i].shown);
        assert_string_equal(b.data, rows[i].with_special);
        mf_buf_free(&a);
        mf_buf_free(&b);
    }
    mf_buf none = {0};
    assert_true(mf_tokenizer_piece(l.t, -1, true, &none));
    assert_true(mf_tokenizer_piece(l.t, mf_tokenizer_n_vocab(l.t), true, &none));
    assert_int_equal(none.len, 0);
    assert_int_equal(mf_tokenizer_text(l.t, INT32_MIN).n, 0);
    assert_int_equal(mf_tokenizer_type(l.t, INT32_MAX), MF_TOKEN_UNUSED);
    unload(&l);
}

/* A normal token with a character that is no byte's is its own text, as Hugging Face decodes it. */
static void test_piece_outside_the_alphabet(void **state)
{
    (void)state;
    static made_vocab v;
    made m = {0};
    minfer_error err;
    mf_tokenizer *t;
    mf_buf out = {0};
    made_vocab_init(&v, "qwen2");
    made_token(&v, "ab", MF_TOKEN_NORMAL);
    made_merge(&v, "a b");
    int32_t id = made_token(&v, "Ġ中", MF_TOKEN_NORMAL);
    made_put_vocab(&m, &v);
    mf_gguf *g = made_parse(&m);
    assert_ok(mf_tokenizer_create(g, &t, &err), &err);
    assert_true(mf_tokenizer_piece(t, id, false, &out));
    assert_string_equal(out.data, "Ġ中");
    mf_buf_free(&out);
    mf_tokenizer_free(t);
    mf_gguf_free(g);
    made_free(&m);
}

typedef struct shared_use {
    const mf_tokenizer *t;
    uint64_t hashes[4];
} shared_use;

static void use_shared(void *arg, int ith, int nth)
{
    (void)nth;
    shared_use *u = arg;
    mf_rng r;
    mf_buf text = {0};
    mf_tokens ids = {0};
    mf_rng_seed(&r, 99);
    for (int i = 0; i < 1000; i++) {
        random_text(&r, 60, &text);
        minfer_error err;
        ids.n = 0;
        if (mf_tokenizer_encode(u->t, text.data, text.len, MF_ENCODE_SPECIAL, &ids, &err) != MINFER_OK)
            continue;
        for (size_t k = 0; k < ids.n; k++) u->hashes[ith] = u->hashes[ith] * 31 + (uint64_t)ids.ids[k];
    }
    mf_buf_free(&text);
    mf_tokens_free(&ids);
}

static void test_threads_share(void **state)
{
    (void)state;
    loaded l;
    mf_pool *pool;
    minfer_error err;
    load_small(&l, "qwen2");
    shared_use u = {.t = l.t};
    assert_ok(mf_pool_create(4, &pool, &err), &err);
    mf_pool_run(pool, use_shared, &u);
    mf_pool_free(pool);
    for (int i = 1; i < 4; i++) assert_int_equal(u.hashes[i], u.hashes[0]);
    assert_int_not_equal(u.hashes[0], 0);
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_is_nfc), cmocka_unit_test(test_round_trip_is_exact),
        cmocka_unit_test(test_guard_page),        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_special_tokens),    cmocka_unit_test(test_whole_pieces),
        cmocka_unit_test(test_pieces_by_type),    cmocka_unit_test(test_piece_outside_the_alphabet),
        cmocka_unit_test(test_threads_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
