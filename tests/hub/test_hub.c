/* hub: listing a cache and resolving names in it, on folders made for the test. */
#include "support/support.h"

#include "hub/hub.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64]; /* everything of one test is below it; the working folder */

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/minfer-hub-XXXXXX");
    return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *f)
{
    (void)sb;
    (void)type;
    (void)f;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return chdir("/") == 0 ? nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS) : -1;
}

/* A file of n bytes below root, with the folders on its way. */
static void put(const char *path, int n)
{
    char folder[512];
    for (const char *p = path; (p = strchr(p, '/')); p++) {
        snprintf(folder, sizeof folder, "%.*s", (int)(p - path), path);
        mkdir(folder, 0700);
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < n; i++) fputc('x', f);
    fclose(f);
}

typedef struct listing {
    char text[4096];
    int left; /* calls until the listing is stopped */
} listing;

static bool add_line(void *user, const char *name, const char *path, uint64_t bytes)
{
    listing *l = user;
    size_t n = strlen(l->text);
    assert_true(file_exists(path));
    snprintf(l->text + n, sizeof l->text - n, "%s %s %llu\n", name, path, (unsigned long long)bytes);
    return --l->left != 0;
}

static void expect_list(const char *dir, const char *want)
{
    listing l = {{0}, -1};
    minfer_error err;
    assert_ok(minfer_hub_list(dir, add_line, &l, &err), &err);
    assert_string_equal(l.text, want);
}

static void expect_path(const char *name, const char *want)
{
    char *path = NULL;
    minfer_error err;
    assert_ok(minfer_hub_resolve("c", name, &path, &err), &err);
    assert_string_equal(path, want);
    mf_free(path);
}

static void expect_refusal(const char *name, minfer_status code, const char *words)
{
    char *path = NULL;
    minfer_error err;
    assert_fails(minfer_hub_resolve("c", name, &path, &err), code, &err, words);
    assert_null(path);
}

static void test_list(void **state)
{
    (void)state;
    put("c/b.gguf", 3);
    put("c/A.Q4_0.GGUF", 2);
    put("c/.hidden.gguf", 2);
    put("c/b.gguf.part", 2);
    put("c/b.tmp", 2);
    put("c/empty.gguf", 0);
    put("c/.gguf", 1);
    put("c/other/x.gguf", 1); /* not a place for models */
    put("c/hf/stray.gguf", 1);
    put("c/hf/own/rep/m-Q8_0.gguf", 5);
    put("c/hf/own/rep/Q4_K_M/m.gguf", 6);
    put("c/hf/own/rep/a/b/deep.gguf", 7);
    put("c/hf/own/rep/a/b/c/too-deep.gguf", 7);
    put("c/hf/own/.cache/x.gguf", 7);
    put("c/hf/gpt2/g.gguf", 1);
    put("c/ollama/llama3.2/1b.gguf", 4);
    mkdir("c/folder.gguf", 0700);
    expect_list("c", "A.Q4_0 c/A.Q4_0.GGUF 2\n"
                     "b c/b.gguf 3\n"
                     "hf:gpt2:g c/hf/gpt2/g.gguf 1\n"
                     "hf:own/rep:Q4_K_M/m c/hf/own/rep/Q4_K_M/m.gguf 6\n"
                     "hf:own/rep:a/b/deep c/hf/own/rep/a/b/deep.gguf 7\n"
                     "hf:own/rep:m-Q8_0 c/hf/own/rep/m-Q8_0.gguf 5\n"
                     "ollama:llama3.2:1b c/ollama/llama3.2/1b.gguf 4\n");
    listing l = {{0}, 2};
    assert_int_equal(minfer_hub_list("c", add_line, &l, NULL), MINFER_OK);
    assert_string_equal(l.text, "A.Q4_0 c/A.Q4_0.GGUF 2\nb c/b.gguf 3\n");
}

static void test_list_split_models(void **state)
{
    (void)state;
    put("c/big-00002-of-00003.gguf", 20);
    put("c/big-00001-of-00003.gguf", 10);
    put("c/big-00003-of-00003.gguf", 30);
    put("c/tail-00002-of-00002.gguf", 5); /* its first part is missing: opening it will say so */
    put("c/odd-00004-of-00003.gguf", 1);  /* not a part number */
    put("c/odd-0001-of-0003.gguf", 1);
    put("c/-00001-of-00002.gguf", 1);
    put("c/two.gguf", 7);
    put("c/two-00001-of-00001.gguf", 8);
    put("c/hf/o/r/big-00001-of-00003.gguf", 1);
    expect_list("c", "-00001-of-00002 c/-00001-of-00002.gguf 1\n"
                     "big c/big-00001-of-00003.gguf 60\n"
                     "hf:o/r:big c/hf/o/r/big-00001-of-00003.gguf 1\n"
                     "odd-00004-of-00003 c/odd-00004-of-00003.gguf 1\n"
                     "odd-0001-of-0003 c/odd-0001-of-0003.gguf 1\n"
                     "tail c/tail-00002-of-00002.gguf 5\n"
                     "two c/two.gguf 7\n"
                     "two c/two-00001-of-00001.gguf 8\n");
    expect_path("BIG", "c/big-00001-of-00003.gguf");
    expect_path("big-00002-of-00003.gguf", "c/big-00001-of-00003.gguf");
    expect_path("hf:o/r:big", "c/hf/o/r/big-00001-of-00003.gguf");
}

static void test_list_without_cache(void **state)
{
    (void)state;
    minfer_error err;
    listing l = {{0}, -1};
    expect_list("nowhere", "");
    put("file", 1);
    assert_fails(minfer_hub_list("file", add_line, &l, &err), MINFER_ERR_IO, &err, "cache folder file");
    assert_fails(minfer_hub_list(NULL, add_line, &l, &err), MINFER_ERR_ARG, &err, "no cache folder");
    assert_fails(minfer_hub_list("", add_line, &l, &err), MINFER_ERR_ARG, &err, "no cache folder");
}

static void test_list_follows_links(void **state)
{
    (void)state;
    put("elsewhere/m.gguf", 9);
    put("c/x.gguf", 1);
    put("c/hf/o/r/y.gguf", 1);
    assert_int_equal(symlink("../elsewhere/m.gguf", "c/linked.gguf"), 0);
    assert_int_equal(symlink("nowhere", "c/broken.gguf"), 0);
    assert_int_equal(symlink("..", "c/hf/o/loop"), 0); /* ends at the limit of depth */
    listing l = {{0}, -1};
    minfer_error err;
    assert_ok(minfer_hub_list("c", add_line, &l, &err), &err);
    assert_non_null(strstr(l.text, "linked c/linked.gguf 9\n"));
    assert_null(strstr(l.text, "broken"));
    assert_non_null(strstr(l.text, "hf:o/r:y c/hf/o/r/y.gguf 1\n"));
}

static void test_paths_win(void **state)
{
    (void)state;
    put("c/m.gguf", 1);
    put("m", 1);
    put("sub/n.gguf", 1);
    put("void.gguf", 0);
    expect_path("m", "m");
    expect_path("./m", "./m");
    expect_path("sub/n.gguf", "sub/n.gguf");
    expect_path("c/m.gguf", "c/m.gguf");
    expect_path("void.gguf", "void.gguf"); /* what is in a file is for the reader */
    expect_refusal("sub", MINFER_ERR_IO, "sub: is a directory");
    expect_refusal("./sub/", MINFER_ERR_IO, "is a directory");
    expect_refusal("sub/m", MINFER_ERR_IO, "sub/m: no such file");
    expect_refusal("m/x.gguf", MINFER_ERR_IO, "no such file"); /* m is no folder */
    expect_path("m.gguf", "c/m.gguf");
    expect_refusal("z.gguf", MINFER_ERR_IO, "'z.gguf': no such file");
}

static void test_names(void **state)
{
    (void)state;
    put("c/Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf", 1);
    put("c/SmolLM2-135M-Instruct.Q4_1.gguf", 1);
    put("c/Llama-3.2-1B-Instruct-UD-IQ2_XXS.gguf", 1);
    put("c/tiny_f16.gguf", 1);
    put("c/plain.gguf", 1);
    const char *coder = "c/Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf";
    const char *smol = "c/SmolLM2-135M-Instruct.Q4_1.gguf";
    expect_path("Qwen2.5-Coder-1.5B-Instruct.Q4_K_M", coder);
    expect_path("qwen2.5-coder-1.5b-instruct.q4_k_m.gguf", coder);
    expect_path("qwen2.5-coder-1.5b-instruct", coder);
    expect_path("qwen2.5-coder", coder);
    expect_path("QWEN2.5", coder);
    expect_path("smollm2", smol);
    expect_path("SmolLM2-135M-Instruct", smol);
    expect_path(NULL, smol);
    expect_path("", smol);
    expect_path("llama-3.2-1b-instruct", "c/Llama-3.2-1B-Instruct-UD-IQ2_XXS.gguf");
    expect_path("tiny", "c/tiny_f16.gguf");
    expect_path("plain", "c/plain.gguf");
    expect_refusal("qwen2", MINFER_ERR_IO, "no cached model");   /* 2 is not 2.5 */
    expect_refusal("llama-3", MINFER_ERR_IO, "no cached model"); /* 3 is not 3.2 */
    expect_refusal("smol", MINFER_ERR_IO, "no cached model");
    expect_refusal("plai", MINFER_ERR_IO, "no cached model");
    expect_refusal("plain-", MINFER_ERR_IO, "no cached model");
    expect_refusal("-", MINFER_ERR_IO, "no cached model");
    expect_refusal(".gguf", MINFER_ERR_IO, "no cached model");
    expect_refusal("q4_1", MINFER_ERR_IO, "no cached model");
}

static void test_several_matches(void **state)
{
    (void)state;
    put("c/m-7b-Q4_0.gguf", 1);
    put("c/m-7b-Q8_0.gguf", 1);
    put("c/m-7b-chat-Q8_0.gguf", 1);
    put("c/n-Q8_0.gguf", 1);
    put("c/n-Q4_0-chat.gguf", 1);
    put("c/k.gguf", 1);
    put("c/k-Q8_0.gguf", 1);
    expect_refusal("m-7b", MINFER_ERR_ARG, "'m-7b' fits 2 cached models: m-7b-Q4_0, m-7b-Q8_0");
    expect_refusal("m", MINFER_ERR_ARG, "'m' fits 3 cached models: m-7b-Q4_0, m-7b-Q8_0, m-7b-chat-Q8_0");
    expect_path("m-7b-q8_0", "c/m-7b-Q8_0.gguf");
    expect_path("m-7b-chat", "c/m-7b-chat-Q8_0.gguf");
    expect_path("n", "c/n-Q8_0.gguf"); /* without its quantization before by its beginning */
    expect_path("k", "c/k.gguf");      /* the whole name before without its quantization */
    for (int i = 10; i < 30; i++) {
        char path[64];
        snprintf(path, sizeof path, "c/many-%d.gguf", i);
        put(path, 1);
    }
    expect_refusal("many", MINFER_ERR_ARG,
                   "many-10, many-11, many-12, many-13, many-14, many-15, many-16, "
                   "many-17 and 12 more");
}

static void test_sources(void **state)
{
    (void)state;
    put("c/m-Q4_0.gguf", 1);
    put("c/hf/Own/Rep-GGUF/m-Q4_0.gguf", 1);
    put("c/hf/Own/Rep-GGUF/m-Q8_0.gguf", 1);
    put("c/hf/Own/Rep-GGUF/BF16/m-BF16-00001-of-00002.gguf", 1);
    put("c/hf/Own/Rep-GGUF-2/only.gguf", 1);
    put("c/ollama/llama3.2/1b.gguf", 1);
    put("c/ollama/llama3.2/3b.gguf", 1);
    put("c/ollama/user/model/latest.gguf", 1);
    expect_path("hf:own/rep-gguf:m-q4_0", "c/hf/Own/Rep-GGUF/m-Q4_0.gguf");
    expect_path("hf:Own/Rep-GGUF:m-Q4_0.gguf", "c/hf/Own/Rep-GGUF/m-Q4_0.gguf");
    expect_path("HF:Own/Rep-GGUF:Q8_0", "c/hf/Own/Rep-GGUF/m-Q8_0.gguf");
    expect_path("hf:Own/Rep-GGUF:bf16", "c/hf/Own/Rep-GGUF/BF16/m-BF16-00001-of-00002.gguf");
    expect_path("hf:Own/Rep-GGUF:BF16/m-BF16", "c/hf/Own/Rep-GGUF/BF16/m-BF16-00001-of-00002.gguf");
    expect_path("hf:Own/Rep-GGUF-2", "c/hf/Own/Rep-GGUF-2/only.gguf");
    expect_path("only", "c/hf/Own/Rep-GGUF-2/only.gguf");
    expect_path("m-q8_0", "c/hf/Own/Rep-GGUF/m-Q8_0.gguf");
    expect_path("m-Q4_0", "c/m-Q4_0.gguf"); /* what is shown under this very name */
    expect_path("ollama:llama3.2:3B", "c/ollama/llama3.2/3b.gguf");
    expect_path("ollama:user/model", "c/ollama/user/model/latest.gguf");
    expect_refusal("hf:Own/Rep-GGUF", MINFER_ERR_ARG, "fits 3 cached models");
    expect_refusal("ollama:llama3.2", MINFER_ERR_ARG, "fits 2 cached models");
    expect_refusal("hf:Own/Rep", MINFER_ERR_IO, "no cached model");
    expect_refusal("hf:Own/Rep-GGUF:Q2_K", MINFER_ERR_IO, "no cached model");
    expect_refusal("hf:Own/Rep-GGUF:", MINFER_ERR_IO, "no cached model");
    expect_refusal("hf:", MINFER_ERR_IO, "no cached model");
    expect_refusal("Own/Rep-GGUF", MINFER_ERR_IO, "no such file");
}

static void test_names_stay_inside(void **state)
{
    (void)state;
    put("c/hf/o/r/in.gguf", 1);
    put("outside.gguf", 1);
    put("o/r/out.gguf", 1);
    expect_refusal("hf:../../outside", MINFER_ERR_IO, "no cached model");
    expect_refusal("hf:../..:outside.gguf", MINFER_ERR_IO, "no cached model");
    expect_refusal("hf:o/r:../../../outside", MINFER_ERR_IO, "no cached model");
    expect_refusal("hf:o/../o/r:in", MINFER_ERR_IO, "no cached model");
    expect_refusal("ollama:../hf/o/r", MINFER_ERR_IO, "no cached model");
    char name[400]; /* longer than the name of a file can be */
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    expect_refusal(name, MINFER_ERR_IO, "no such file, and no cached model");
}

static void test_nothing_found_says_where(void **state)
{
    (void)state;
    expect_refusal("foo", MINFER_ERR_IO,
                   "'foo': no such file, and no cached model of that name; the cache c is empty");
    expect_refusal(NULL, MINFER_ERR_IO, "`make demo` gets SmolLM2-135M-Instruct");
    put("c/a.gguf", 1);
    put("c/b.gguf", 1);
    expect_refusal("foo", MINFER_ERR_IO, "the cache c has a, b; `make demo`");
    char *path;
    minfer_error err;
    assert_fails(minfer_hub_resolve(NULL, "foo", &path, &err), MINFER_ERR_ARG, &err, "no cache folder");
    put("foo", 1);
    assert_ok(minfer_hub_resolve(NULL, "foo", &path, &err), &err); /* a path needs no cache */
    mf_free(path);
}

static void test_quantizations(void **state)
{
    (void)state;
    static const struct {
        const char *name, *without;
    } cases[] = {
        {"m-Q4_K_M", "m"},    {"m.q8_0", "m"},      {"m-IQ4_XS", "m"},
        {"m-TQ1_0", "m"},     {"m-BF16", "m"},      {"m_f32", "m"},
        {"m-fp16", "m"},      {"m-MXFP4", "m"},     {"m-UD-Q6_K_XL", "m"},
        {"m.i1-Q4_K_S", "m"}, {"m-Q4", "m"},        {"m-7B-Q5_1", "m-7B"},
        {"m", "m"},           {"m-Qwen", "m-Qwen"}, {"m-Q4_K_M-v2", "m-Q4_K_M-v2"},
        {"Q4_0", "Q4_0"},     {"m-Q", "m-Q"},       {"m-", "m-"},
        {"f16", "f16"},       {"m-I4_0", "m-I4_0"}, {"m-Q4.0", "m-Q4.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(mf_hub_unquantized(cases[i].name, strlen(cases[i].name)), strlen(cases[i].without));
}

static void test_allocation_failures(void **state)
{
    (void)state;
    put("c/m-Q4_0.gguf", 1);
    put("c/hf/o/r/a/m-Q8_0.gguf", 1);
    static const char *const names[] = {"m-Q4_0", "m", "nothing", "./c/m-Q4_0.gguf"};
    for (size_t i = 0; i < 4; i++) {
        minfer_error err;
        char *path = NULL;
        minfer_status st = MINFER_ERR_NOMEM;
        for (int n = 1; st == MINFER_ERR_NOMEM; n++) {
            mf_mem_fail_at(n);
            st = minfer_hub_resolve("c", names[i], &path, &err);
            mf_mem_fail_at(0);
        }
        assert_int_equal(st, i == 1 ? MINFER_ERR_ARG : i == 2 ? MINFER_ERR_IO : MINFER_OK);
        mf_free(path);
    }
}

#define HUB_TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HUB_TEST(test_list),
        HUB_TEST(test_list_split_models),
        HUB_TEST(test_list_without_cache),
        HUB_TEST(test_list_follows_links),
        HUB_TEST(test_paths_win),
        HUB_TEST(test_names),
        HUB_TEST(test_several_matches),
        HUB_TEST(test_sources),
        HUB_TEST(test_names_stay_inside),
        HUB_TEST(test_nothing_found_says_where),
        cmocka_unit_test(test_quantizations),
        HUB_TEST(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
