/* What is refused, and that the message names it; the answers of a small vocabulary that is accepted; memory
 * that runs out. */
#include "support/support.h"
#include "tokenizer/made.h"

static mf_gguf *parse_vocab(made *m, const made_vocab *v)
{
    made_put_vocab(m, v);
    return made_parse(m);
}

static void refuse(made *m, minfer_status code, const char *word)
{
    minfer_error err;
    mf_tokenizer *t = NULL;
    mf_gguf *g = made_parse(m);
    assert_fails(mf_tokenizer_create(g, &t, &err), code, &err, word);
    assert_null(t);
    mf_gguf_free(g);
    made_free(m);
}

static void refuse_vocab(const made_vocab *v, const char *word)
{
    made m = {0};
    made_put_vocab(&m, v);
    refuse(&m, MINFER_ERR_FORMAT, word);
}

static made_vocab sound(void)
{
    static made_vocab v;
    made_vocab_init(&v, "gpt-2");
    made_token(&v, "ab", MF_TOKEN_NORMAL);
    made_merge(&v, "a b");
    return v;
}

static void test_models_and_names(void **state)
{
    (void)state;
    made m = {0};
    made_str(&m, "tokenizer.ggml.model", "llama");
    refuse(&m, MINFER_ERR_UNSUPPORTED, "tokenizer.ggml.model is 'llama'");
    m = (made){0};
    refuse(&m, MINFER_ERR_FORMAT, "tokenizer.ggml.model");
    static made_vocab v;
    made_vocab_init(&v, "tekken");
    m = (made){0};
    made_put_vocab(&m, &v);
    refuse(&m, MINFER_ERR_UNSUPPORTED,
           "tokenizer.ggml.pre is 'tekken'; known are qwen2, deepseek-r1-qwen, qwen35, smollm, llama-bpe, "
           "llama3, llama-v3, gpt-2, default");
    m = (made){0};
    made_str(&m, "tokenizer.ggml.model", "gpt2");
    refuse(&m, MINFER_ERR_FORMAT, "tokenizer.ggml.tokens");
}

static void test_tokens(void **state)
{
    (void)state;
    made_vocab v = sound();
    made_token(&v, "ab", MF_TOKEN_NORMAL);
    refuse_vocab(&v, "tokens 256 and 257 are both 'ab'");
    v = sound();
    v.n_tokens = 0;
    refuse_vocab(&v, "tokenizer.ggml.tokens is empty");
    v = sound();
    v.n_types--;
    refuse_vocab(&v, "tokenizer.ggml.token_type has 256 values for 257 tokens");
    v = sound();
    v.types[7] = 9;
    refuse_vocab(&v, "token 7 is 9");
    v = sound();
    v.types[8] = 0;
    refuse_vocab(&v, "token 8 is 0");
}

static void test_bytes(void **state)
{
    (void)state;
    made_vocab v = sound();
    v.tokens['q'] = (mf_str){"no q", 4};
    refuse_vocab(&v, "1 of the bytes that text needs, the first is 0x71");
    v = sound();
    v.tokens[' '] = (mf_str){" ", 1}; /* a blank is spelled otherwise */
    refuse_vocab(&v, "0x20");
    v = sound();
    v.tokens[0xE4] = (mf_str){"no e4", 5};
    refuse_vocab(&v, "0xE4");
    v = sound();
    v.tokens['\n'] = (mf_str){"no newline", 10};
    v.tokens[0x80] = (mf_str){"no 80", 5};
    refuse_vocab(&v, "2 of the bytes that text needs, the first is 0x0A");
}

static void test_merges(void **state)
{
    (void)state;
    static const char *const broken[][2] = {
        {"ab", "merge 1, 'ab', is not two tokens"},
        {"a  b", "merge 1, 'a  b', is not two tokens"},
        {" ab", "merge 1, ' ab', is not two tokens"},
        {"ab ", "merge 1, 'ab ', is not two tokens"},
        {"", "merge 1, ''"},
        {"ac b", "merge 1, 'ac b': its left part is no token"},
        {"a bc", "merge 1, 'a bc': its right part"},
        {"a c", "merge 1, 'a c': its result is no token"},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        made_vocab v = sound();
        made_merge(&v, broken[i][0]);
        refuse_vocab(&v, broken[i][1]);
    }
    made_vocab v = sound();
    v.n_merges = 0;
    refuse_vocab(&v, "tokenizer.ggml.merges is empty");
    made m = {0};
    v = sound();
    made_str(&m, "tokenizer.ggml.model", "gpt2");
    made_strs(&m, "tokenizer.ggml.tokens", v.tokens, v.n_tokens);
    refuse(&m, MINFER_ERR_FORMAT, "tokenizer.ggml.merges");
}

static void test_ids(void **state)
{
    (void)state;
    static const char *const keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    static const int32_t list[] = {3, 257}, negative[] = {-1};
    made m;
    char word[80];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        made_vocab v = sound();
        m = (made){0};
        made_put_vocab(&m, &v);
        made_u32(&m, keys[i], 257);
        snprintf(word, sizeof word, "%s is 257, but there are 257 tokens", keys[i]);
        refuse(&m, MINFER_ERR_FORMAT, word);
    }
    made_vocab v = sound();
    m = (made){0};
    made_put_vocab(&m, &v);
    made_i32s(&m, "tokenizer.ggml.eos_token_ids", list, 2);
    refuse(&m, MINFER_ERR_FORMAT, "tokenizer.ggml.eos_token_ids is 257");
    m = (made){0};
    made_put_vocab(&m, &v);
    made_i32s(&m, "tokenizer.ggml.eos_token_ids", negative, 1);
    refuse(&m, MINFER_ERR_FORMAT, "tokenizer.ggml.eos_token_ids is -1");
    m = (made){0};
    made_put_vocab(&m, &v);
    made_bool(&m, "tokenizer.ggml.add_bos_token", true);
    refuse(&m, MINFER_ERR_FORMAT, "add_bos_token is true, but");
}

static void assert_ids(const mf_tokenizer *t, const char *text, unsigned flags, const int32_t *want, size_t n)
{
    mf_tokens got = {0};
    minfer_error err;
    assert_ok(mf_tokenizer_encode(t, text, strlen(text), flags, &got, &err), &err);
    assert_int_equal(got.n, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(got.ids[i], want[i]);
    mf_tokens_free(&got);
}
#define IDS(t, text, flags, ...)                               \
    assert_ids(t, text, flags, (const int32_t[]){__VA_ARGS__}, \
               sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t))

typedef struct ends { /* a vocabulary with begin and end tokens */
    made m;
    mf_gguf *g;
    mf_tokenizer *t;
    int32_t bos, eos;
} ends;

/* add_bos and add_eos: 0, 1, or -1 for no such key. */
static void make_ends(ends *e, const char *pre, int add_bos, int add_eos)
{
    static made_vocab v;
    minfer_error err;
    *e = (ends){0};
    made_vocab_init(&v, pre);
    made_merge(&v, "a b");
    made_token(&v, "ab", MF_TOKEN_NORMAL);
    e->bos = made_token(&v, "<s>", MF_TOKEN_CONTROL);
    e->eos = made_token(&v, "<e>", MF_TOKEN_CONTROL);
    made_put_vocab(&e->m, &v);
    made_u32(&e->m, "tokenizer.ggml.bos_token_id", (uint32_t)e->bos);
    made_u32(&e->m, "tokenizer.ggml.eos_token_id", (uint32_t)e->eos);
    if (add_bos >= 0) made_bool(&e->m, "tokenizer.ggml.add_bos_token", add_bos);
    if (add_eos >= 0) made_bool(&e->m, "tokenizer.ggml.add_eos_token", add_eos);
    e->g = made_parse(&e->m);
    assert_ok(mf_tokenizer_create(e->g, &e->t, &err), &err);
}

static void free_ends(ends *e)
{
    mf_tokenizer_free(e->t);
    mf_gguf_free(e->g);
    made_free(&e->m);
}

static void test_bos_and_eos(void **state)
{
    (void)state;
    const unsigned both = MF_ENCODE_BOS | MF_ENCODE_SPECIAL;
    ends e;
    make_ends(&e, "qwen2", 1, 1);
    IDS(e.t, "x", 0, 'x');
    IDS(e.t, "x", MF_ENCODE_BOS, e.bos, 'x', e.eos);
    IDS(e.t, "", MF_ENCODE_BOS, e.bos, e.eos);
    IDS(e.t, "<s>x<e>", both, e.bos, 'x', e.eos);
    IDS(e.t, "<s><s>x", both, e.bos, e.bos, 'x', e.eos);
    IDS(e.t, "<s>", MF_ENCODE_BOS, e.bos, '<', 's', '>', e.eos);
    assert_int_equal(mf_tokenizer_bos(e.t), e.bos);
    assert_int_equal(mf_tokenizer_eos(e.t), e.eos);
    assert_true(mf_tokenizer_is_eog(e.t, e.eos));
    assert_false(mf_tokenizer_is_eog(e.t, e.bos));
    free_ends(&e);
}

static void test_bos_by_default(void **state)
{
    (void)state;
    static const struct {
        const char *pre;
        int key;
        bool adds;
    } rows[] = {
        {"qwen2", -1, false}, {"qwen35", -1, false},   {"smollm", -1, false},  {"gpt-2", -1, false},
        {NULL, -1, false},    {"llama-bpe", -1, true}, {"llama-v3", -1, true}, {"deepseek-r1-qwen", -1, true},
        {"qwen2", 1, true},   {"llama-bpe", 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ends e;
        make_ends(&e, rows[i].pre, rows[i].key, -1);
        assert_int_equal(mf_tokenizer_adds_bos(e.t), rows[i].adds);
        free_ends(&e);
    }
}

/* Appending keeps what is there, and the beginning of the new text is not the beginning of the array. */
static void test_appends(void **state)
{
    (void)state;
    ends e;
    minfer_error err;
    mf_tokens out = {0};
    make_ends(&e, "llama-bpe", -1, -1);
    assert_ok(mf_tokenizer_encode(e.t, "ab", 2, MF_ENCODE_BOS, &out, &err), &err);
    assert_ok(mf_tokenizer_encode(e.t, "<s>c", 4, MF_ENCODE_BOS | MF_ENCODE_SPECIAL, &out, &err), &err);
    assert_ok(mf_tokenizer_encode(e.t, "d", 1, 0, &out, &err), &err);
    const int32_t want[] = {e.bos, 256, e.bos, 'c', 'd'};
    assert_int_equal(out.n, 5);
    assert_memory_equal(out.ids, want, sizeof want);
    mf_tokens_free(&out);
    free_ends(&e);
}

static void test_end_tokens(void **state)
{
    (void)state;
    static made_vocab v;
    static const int32_t list[] = {'y', 'z'};
    made m = {0};
    minfer_error err;
    mf_tokenizer *t;
    made_vocab_init(&v, "qwen2");
    made_token(&v, "ab", MF_TOKEN_NORMAL);
    made_merge(&v, "a b");
    int32_t ends_too[] = {
        made_token(&v, "<|endoftext|>", MF_TOKEN_CONTROL),   made_token(&v, "<|im_end|>", MF_TOKEN_CONTROL),
        made_token(&v, "<|eot_id|>", MF_TOKEN_CONTROL),      made_token(&v, "<|eom_id|>", MF_TOKEN_CONTROL),
        made_token(&v, "<|end_of_text|>", MF_TOKEN_CONTROL), made_token(&v, "</s>", MF_TOKEN_CONTROL),
    };
    int32_t not [] = {
        made_token(&v, "<|end|>", MF_TOKEN_NORMAL),      made_token(&v, "<|im_start|>", MF_TOKEN_CONTROL),
        made_token(&v, "<|fim_pad|>", MF_TOKEN_CONTROL), made_token(&v, "<|EOT|>", MF_TOKEN_USER_DEFINED),
        made_token(&v, "<pad>", MF_TOKEN_CONTROL),       made_token(&v, "<s>", MF_TOKEN_CONTROL),
    };
    made_put_vocab(&m, &v);
    made_u32(&m, "tokenizer.ggml.bos_token_id", (uint32_t) not [5]);
    made_u32(&m, "tokenizer.ggml.padding_token_id", (uint32_t) not [4]);
    made_u32(&m, "tokenizer.ggml.eot_token_id", 'w');
    made_u32(&m, "tokenizer.ggml.eom_token_id", 'x');
    made_i32s(&m, "tokenizer.ggml.eos_token_ids", list, 2);
    mf_gguf *g = made_parse(&m);
    assert_ok(mf_tokenizer_create(g, &t, &err), &err);
    for (size_t i = 0; i < sizeof ends_too / sizeof *ends_too; i++)
        assert_true(mf_tokenizer_is_eog(t, ends_too[i]));
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++) assert_false(mf_tokenizer_is_eog(t, not [i]));
    for (int32_t id = 'w'; id <= 'z'; id++) assert_true(mf_tokenizer_is_eog(t, id));
    assert_false(mf_tokenizer_is_eog(t, 'v'));
    assert_false(mf_tokenizer_is_eog(t, -1));
    assert_false(mf_tokenizer_is_eog(t, INT32_MAX));
    assert_int_equal(mf_tokenizer_eos(t), -1);
    mf_tokenizer_free(t);
    mf_gguf_free(g);
    made_free(&m);
}

/* A file without types has normal tokens only. */
static void test_without_types(void **state)
{
    (void)state;
    made_vocab v = sound();
    made m = {0};
    minfer_error err;
    mf_tokenizer *t;
    made_str(&m, "tokenizer.ggml.model", "gpt2");
    made_strs(&m, "tokenizer.ggml.tokens", v.tokens, v.n_tokens);
    made_strs(&m, "tokenizer.ggml.merges", v.merges, v.n_merges);
    mf_gguf *g = made_parse(&m);
    assert_ok(mf_tokenizer_create(g, &t, &err), &err);
    assert_int_equal(mf_tokenizer_type(t, 256), MF_TOKEN_NORMAL);
    IDS(t, "cab", MF_ENCODE_SPECIAL, 'c', 256);
    mf_tokenizer_free(t);
    mf_gguf_free(g);
    made_free(&m);
}

static void test_out_of_memory_on_create(void **state)
{
    (void)state;
    made_vocab v = sound();
    made_token(&v, "ca", MF_TOKEN_NORMAL);
    made_merge(&v, "c a"); /* not in the order of the tokens: takes the look-up by joined text */
    made_token(&v, "bc", MF_TOKEN_NORMAL);
    made_token(&v, "abc", MF_TOKEN_CONTROL);
    made_merge(&v, "b c");
    made m = {0};
    mf_gguf *g = parse_vocab(&m, &v);
    long n;
    for (n = 1;; n++) {
        mf_tokenizer *t = NULL;
        minfer_error err;
        mf_mem_fail_at(n);
        minfer_status st = mf_tokenizer_create(g, &t, &err);
        mf_mem_fail_at(0);
        mf_tokenizer_free(t);
        if (st == MINFER_OK) break;
        assert_int_equal(st, MINFER_ERR_NOMEM);
        assert_null(t);
    }
    assert_true(n > 8);
    mf_gguf_free(g);
    made_free(&m);
}

/* Every path that allocates: marks out of order, broken bytes, long pieces, special tokens, whole pieces. */
static void test_out_of_memory_on_encode(void **state)
{
    (void)state;
    static const char *const pres[] = {"qwen2", "llama-bpe"};
    char text[600] = "e\xCC\x81 <s> \xFF ab ab ab <e>a";
    size_t n = strlen(text);
    for (; n < 300; n += 4) memcpy(text + n, n % 8 ? "\xCC\xA3\xCC\x81" : "\xCC\x81\xCC\xA3", 5);
    for (; n < 500; n++) text[n] = 'a' + n % 2;
    for (size_t p = 0; p < 2; p++) {
        ends e;
        mf_tokens out = {0};
        long k = 1;
        make_ends(&e, pres[p], 1, 1);
        assert_true(mf_tokens_push(&out, 42));
        for (;; k++) {
            minfer_error err;
            mf_mem_fail_at(k);
            minfer_status st = mf_tokenizer_encode(e.t, text, n, MF_ENCODE_BOS | MF_ENCODE_SPECIAL, &out,
                                                   &err);
            mf_mem_fail_at(0);
            if (st == MINFER_OK) break;
            assert_int_equal(st, MINFER_ERR_NOMEM);
            assert_int_equal(out.n, 1);
            /* What grew before the failure stays grown: begin small again. */
            mf_tokens_free(&out);
            assert_true(mf_tokens_push(&out, 42));
        }
        assert_true(k > 8);
        assert_true(out.n > 100);
        mf_tokens_free(&out);
        free_ends(&e);
    }
}

static void test_text_too_long(void **state)
{
    (void)state;
    ends e;
    minfer_error err;
    mf_tokens out = {0};
    make_ends(&e, "qwen2", -1, -1);
    assert_fails(mf_tokenizer_encode(e.t, "", (size_t)MF_MAX_TEXT + 1, 0, &out, &err), MINFER_ERR_LIMIT, &err,
                 "2147483648 bytes");
    free_ends(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_and_names),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_bos_and_eos),
        cmocka_unit_test(test_bos_by_default),
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_end_tokens),
        cmocka_unit_test(test_without_types),
        cmocka_unit_test(test_out_of_memory_on_create),
        cmocka_unit_test(test_out_of_memory_on_encode),
        cmocka_unit_test(test_text_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
