/* The table of options against itself, against the library, and against short memory; the dimmer at every
 * cut. */
#include "support/support.h"

#include "common/env.h"
#include "common/options.h"
#include "common/output.h"
#include "common/term.h"

#include <math.h>
#include <stdlib.h>

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < app_option_count; i++) {
        const app_option *a = &app_option_table[i];
        assert_true(a->name || a->env);
        assert_true(!a->name == !a->commands);
        assert_non_null(a->help);
        assert_true(!a->name || !a->value == (a->kind == APP_FLAG));
        assert_true(a->field < sizeof(app_options));
        for (size_t k = 0; k < i; k++) {
            const app_option *b = &app_option_table[k];
            assert_true(!a->env || !b->env || strcmp(a->env, b->env) != 0);
            if (!(a->commands & b->commands)) continue;
            assert_string_not_equal(a->name, b->name);
            assert_true(!a->letter || a->letter != b->letter);
        }
    }
}

/* The variables of the specification, and no others. */
static void test_variables(void **state)
{
    (void)state;
    static const char *const names[] = {
        "MINFER_BACKENDS",    "MINFER_DISABLE_CUDA", "MINFER_DISABLE_METAL", "MINFER_GPU_LAYERS",
        "MINFER_GPU_MEM",     "MINFER_CACHE_TYPE",   "MINFER_BATCH",         "MINFER_N_BATCH",
        "MINFER_NO_FUSE_QKV", "MINFER_NO_FUSE_FFN",  "MINFER_NO_CUDA_GRAPH", "MINFER_NO_PREFIX_REUSE",
        "MINFER_GRAPH_TRACE", "MINFER_TRACE",        "MINFER_OP_TIMING",     "MINFER_CPU_TIER",
        "MINFER_MODEL_DIR",   "MINFER_DRAIN_MS",
    };
    size_t n = 0;
    for (size_t i = 0; i < app_option_count; i++) n += app_option_table[i].env != NULL;
    assert_int_equal(n, sizeof names / sizeof *names);
    for (size_t k = 0; k < n; k++) {
        size_t i = 0;
        while (i < app_option_count &&
               (!app_option_table[i].env || strcmp(app_option_table[i].env, names[k])))
            i++;
        if (i == app_option_count) print_error("%s is not in the table\n", names[k]);
        assert_true(i < app_option_count);
    }
}

static bool library_takes(const minfer_sampling *p)
{
    return minfer_sampling_check(p, 100, NULL) == MINFER_OK;
}

/* value as an option, then the library's word on it. */
static void check_value(const app_option *row, double value)
{
    app_options o;
    minfer_error err = {0};
    char text[40];
    app_options_init(&o);
    snprintf(text, sizeof text, row->kind == APP_INT ? "%.0f" : "%.9g", value);
    bool taken = app_value_set(row, row->name, text, &o, &err) == MINFER_OK;
    if (taken) {
        bool library = library_takes(&o.sampling);
        if (!library) print_error("--%s takes %s, the library does not\n", row->name, text);
        assert_true(library);
        return;
    }
    assert_non_null(strstr(err.message, row->name));
    assert_non_null(strstr(err.message, text));
    if (row->kind == APP_INT) {
        *(int32_t *)(void *)((char *)&o + row->field) = (int32_t)value;
    } else
        *(float *)(void *)((char *)&o + row->field) = (float)value;
    if (library_takes(&o.sampling)) print_error("--%s refuses %s, the library does not\n", row->name, text);
    assert_false(library_takes(&o.sampling));
}

/* At the ends of every range, and beyond them, table and library agree. */
static void test_sampling_ranges(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < app_option_count; i++) {
        const app_option *row = &app_option_table[i];
        size_t first = offsetof(app_options, sampling);
        if (row->field < first || row->field >= first + sizeof(minfer_sampling)) continue;
        double step = row->kind == APP_INT ? 1 : 0.01;
        n++;
        if (row->lo > INT32_MIN) {
            check_value(row, row->lo);
            check_value(row, row->lo - step);
            check_value(row, row->lo + step);
        } else
            check_value(row, -5);
        if (row->hi < INT32_MAX) {
            check_value(row, row->hi);
            check_value(row, row->hi + step);
        } else
            check_value(row, 1e6);
    }
    assert_int_equal(n, 17);
}

static minfer_status parse(app_options *o, const char *line, minfer_error *err)
{
    static char copy[512];
    char *argv[32] = {"minfer"};
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    return app_options_parse(o, argc, argv, err);
}

static void test_defaults(void **state)
{
    (void)state;
    app_options o;
    minfer_sampling s;
    minfer_error err = {0};
    assert_ok(parse(&o, "run", &err), &err);
    minfer_sampling_init(&s);
    assert_memory_equal(&o.sampling, &s, sizeof s);
    assert_int_equal(o.sampling_given, 0);
    assert_int_equal(o.n_predict, 512);
    assert_int_equal(o.engine.n_batch, 2048);
    assert_int_equal(o.engine.gpu_layers, -1);
    assert_int_equal(o.repetitions, 3);
    assert_null(o.model);
    app_options_free(&o);
}

static void test_values(void **state)
{
    (void)state;
    app_options o;
    minfer_error err = {0};
    assert_ok(
        parse(&o,
              "run M --temp=0.5 --top-k -3 -n-1 -t=2 --stop a --stop --=b --logit-bias 7=-1.5 --logit-bias "
              "8=-inf --tokens 1,2,3 --seed 18446744073709551615 --gpu-layers 3 --cache-type q8_0 -- -x",
              &err),
        &err);
    assert_true(o.sampling.temperature == 0.5f && o.sampling.top_k == -3 && o.n_predict == -1);
    assert_int_equal(o.sampling_given, MINFER_SAMPLING_TEMPERATURE | MINFER_SAMPLING_TOP_K);
    assert_int_equal(o.engine.n_threads, 2);
    assert_int_equal(o.engine.gpu_layers, 3);
    assert_int_equal(o.engine.cache_type, MINFER_CACHE_Q8_0);
    assert_int_equal(o.stop.n, 2);
    assert_string_equal(o.stop.v[1], "--=b");
    assert_int_equal(o.bias.n, 2);
    assert_true(o.bias.v[0].id == 7 && o.bias.v[0].bias == -1.5f && o.bias.v[1].bias == -INFINITY);
    assert_int_equal(o.tokens.n, 3);
    assert_true(o.seed.fixed && o.seed.value == UINT64_MAX);
    assert_string_equal(o.model, "M");
    assert_int_equal(o.words.n, 1);
    assert_string_equal(o.words.v[0], "-x");
    app_options_free(&o);
    assert_ok(parse(&o, "run M --seed 5 --seed -1", &err), &err);
    assert_false(o.seed.fixed);
    app_options_free(&o);
}

static void test_environment(void **state)
{
    (void)state;
    app_options o;
    minfer_error err = {0};
    setenv("MINFER_N_BATCH", "77", 1);
    setenv("MINFER_GPU_LAYERS", "auto", 1);
    setenv("MINFER_NO_FUSE_QKV", "1", 1);
    setenv("MINFER_NO_FUSE_FFN", "0", 1);
    setenv("MINFER_GPU_MEM", "", 1);
    assert_ok(parse(&o, "run M", &err), &err);
    assert_int_equal(o.engine.n_batch, 77);
    assert_true(o.engine.no_fuse_qkv && !o.engine.no_fuse_ffn);
    app_options_free(&o);
    assert_ok(parse(&o, "run M --n-batch 5", &err), &err);
    assert_int_equal(o.engine.n_batch, 5);
    app_options_free(&o);
    setenv("MINFER_NO_FUSE_QKV", "2", 1);
    assert_fails(parse(&o, "run M", &err), MINFER_ERR_ARG, &err, "MINFER_NO_FUSE_QKV: '2' is not 0 or 1");
    app_options_free(&o);
    assert_ok(parse(&o, "env", &err), &err);
    app_options_free(&o);
    unsetenv("MINFER_N_BATCH");
    unsetenv("MINFER_GPU_LAYERS");
    unsetenv("MINFER_NO_FUSE_QKV");
    unsetenv("MINFER_NO_FUSE_FFN");
    unsetenv("MINFER_GPU_MEM");
}

/* Every allocation fails once: an error, and nothing is lost (the sanitizers look). */
static void test_short_memory(void **state)
{
    (void)state;
    app_options o;
    minfer_error err;
    for (long at = 1;; at++) {
        mf_mem_fail_at(at);
        minfer_status st = parse(&o, "run M a --stop s --tokens 1,2,3,4,5 --logit-bias 1=2 b", &err);
        mf_mem_fail_at(0);
        app_options_free(&o);
        if (st == MINFER_OK) break;
        assert_int_equal(st, MINFER_ERR_NOMEM);
    }
    for (long at = 1;; at++) {
        mf_mem_fail_at(at);
        minfer_status st = parse(&o, "run --n-prompt", &err);
        mf_mem_fail_at(0);
        app_options_free(&o);
        if (st == MINFER_ERR_ARG) break;
        assert_int_equal(st, MINFER_ERR_NOMEM);
    }
    for (app_command c = 0; c < APP_N_COMMANDS; c++)
        for (long at = 1;; at++) {
            mf_buf b = {0};
            mf_mem_fail_at(at);
            bool ok = app_help_command(c, &b);
            mf_mem_fail_at(0);
            mf_buf_free(&b);
            if (ok) break;
        }
}

static void test_nearest(void **state)
{
    (void)state;
    assert_string_equal(app_nearest_command("bnech"), "bench");
    assert_string_equal(app_nearest_command("info "), "info");
    assert_string_equal(app_nearest_command("tok"), "tokenize");
    assert_string_equal(app_nearest_command("templates"), "template");
    assert_null(app_nearest_command("zzzzzz"));
    assert_null(app_nearest_command(""));
    assert_null(app_nearest_command("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

/* text cut into pieces of `size` bytes through a dimmer. */
static void dim_pieces(const char *text, size_t size, bool on, bool thinking, mf_buf *out)
{
    app_dimmer d = {.on = on, .thinking = thinking};
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i += size) assert_true(app_dim(&d, text + i, n - i < size ? n - i : size, out));
    assert_true(app_dim_end(&d, out));
    assert_true(mf_buf_append(out, "", 0));
}

static void test_dimmer(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
        bool thinking;
    } cases[] = {
        {"plain", "plain", false},
        {"a<think>b</think>c", "a\033[2m<think>b</think>\033[0mc", false},
        {"a<think>b", "a\033[2m<think>b\033[0m", false},
        {"b</think>c", "\033[2mb</think>\033[0mc", true},
        {"</think>c", "\033[2m</think>\033[0mc", true},
        {"", "", true},
        {"<<think></</think>>", "<\033[2m<think></</think>\033[0m>", false},
        {"<thin", "<thin", false},
        {"<thin<think>x", "<thin\033[2m<think>x\033[0m", false},
        {"a < b, <b>", "a < b, <b>", false},
        {"<think>1</think><think>2</think>", "\033[2m<think>1</think>\033[0m\033[2m<think>2</think>\033[0m",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t size = 1; size <= 40; size++) {
            mf_buf out = {0};
            dim_pieces(cases[i].text, size, true, cases[i].thinking, &out);
            assert_string_equal(out.data, cases[i].want);
            mf_buf_free(&out);
            dim_pieces(cases[i].text, size, false, false, &out);
            assert_string_equal(out.data, cases[i].text);
            mf_buf_free(&out);
        }
}

static void test_escape(void **state)
{
    (void)state;
    static const char text[] = "a\"\\\n\033\0\x7f\xc2\x9b\xe2\x80\xae\xff\xc3\xa9";
    mf_buf out = {0};
    assert_true(app_escape(text, sizeof text - 1, true, &out));
    assert_string_equal(out.data, "a\\\"\\\\\\n\\x1B\\x00\\x7F\\xC2\\x9B\\xE2\\x80\\xAE\\xFF\xc3\xa9");
    out.len = 0;
    assert_true(app_escape("\"\\\n", 3, false, &out));
    assert_string_equal(out.data, "\"\\\\n");
    mf_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_sampling_ranges),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_dimmer),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
