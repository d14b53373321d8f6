/* The commands under short memory: at every allocation an error with a message, never a crash, and nothing is
 * lost (the sanitizers look). */
#include "support/support.h"

#include "cli/commands.h"
#include "common/term.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* stdout goes to /dev/null for the time of a call; stderr, too, for its notes. */
typedef struct silence {
    int out, err;
} silence;

static silence hush(void)
{
    int null = open("/dev/null", O_WRONLY);
    silence s = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    assert_true(null >= 0 && s.out >= 0 && s.err >= 0);
    fflush(stdout);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);
    return s;
}

static void speak(silence s)
{
    dup2(s.out, STDOUT_FILENO);
    dup2(s.err, STDERR_FILENO);
    close(s.out);
    close(s.err);
}

static minfer_status run_line(int argc, char **argv, const app_program *c, long fail_at, minfer_error *err)
{
    app_options o;
    assert_ok(app_options_parse(&o, argc, argv, err), err);
    silence s = hush();
    mf_mem_fail_at(fail_at);
    minfer_status st = c->check ? c->check(&o, err) : MINFER_OK;
    if (st == MINFER_OK) st = c->run(&o, err);
    mf_mem_fail_at(0);
    speak(s);
    app_options_free(&o);
    return st;
}

/* Up to some hundred allocations each one fails, beyond that a sample. */
static void starve(const app_program *c, int argc, char **argv)
{
    minfer_error err = {0};
    mf_mem_fail_at(0);
    assert_ok(run_line(argc, argv, c, 0, &err), &err);
    long n = 1;
    for (;; n += n < 300 ? 1 : n / 100) {
        err = (minfer_error){0};
        minfer_status st = run_line(argc, argv, c, n, &err);
        if (st == MINFER_OK) break;
        if (st != MINFER_ERR_NOMEM) print_error("%s, allocation %ld: %s\n", argv[1], n, err.message);
        assert_int_equal(st, MINFER_ERR_NOMEM);
        assert_true(err.message[0]);
    }
    assert_true(n > 5);
}

#define STARVE(command, ...)                                  \
    do {                                                      \
        char *argv[] = {"minfer", __VA_ARGS__};               \
        starve(&(command), sizeof argv / sizeof *argv, argv); \
    } while (0)

static char *tiny(void)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s", data_path("tiny/tiny-llama-Q4_0.gguf"));
    return path;
}

static void test_describing(void **state)
{
    (void)state;
    STARVE(cli_info, "info", tiny(), "--tensors");
    STARVE(cli_info, "info", tiny(), "--tensors", "--json");
    STARVE(cli_tokenize, "tokenize", tiny(), "the", "cat");
    STARVE(cli_tokenize, "tokenize", tiny(), "the", "cat", "--ids");
    STARVE(cli_env, "env");
}

static void test_template(void **state)
{
    (void)state;
    char path[] = "/tmp/minfer-commands-XXXXXX";
    static const char json[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"tools\":[1],\"kwargs\":{}}";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, json, sizeof json - 1), sizeof json - 1);
    close(fd);
    STARVE(cli_template, "template", tiny(), "--messages", path);
    unlink(path);
}

static void test_running(void **state)
{
    (void)state;
    STARVE(cli_run, "run", tiny(), "<|im_end|>", "-n", "2", "--stop", "xyz", "--color", "on", "--system", "s",
           "-t", "1");
    STARVE(cli_run, "run", tiny(), "hello", "-n", "2", "--ids", "-t", "1");
    STARVE(cli_run, "run", tiny(), "a b a b", "-n", "3", "--lookup", "--spec-draft-n", "2", "-v", "-t", "1");
    STARVE(cli_run, "run", tiny(), "a b", "-n", "3", "--spec-draft", tiny(), "-t", "1");
    char schema[] = "/tmp/minfer-schema-XXXXXX";
    int fd = mkstemp(schema);
    assert_int_equal(write(fd, "{\"type\":\"integer\"}", 18), 18);
    close(fd);
    STARVE(cli_run, "run", tiny(), "hello", "-n", "2", "--json-schema", schema, "-t", "1");
    unlink(schema);
    STARVE(cli_run, "run", tiny(), "--dump-graph", "/dev/null", "--dump-graph-json", "/dev/null", "-t", "1");
}

static void test_measuring(void **state)
{
    (void)state;
    char path[] = "/tmp/minfer-logits-XXXXXX", text[] = "/tmp/minfer-text-XXXXXX";
    int fd = mkstemp(text);
    close(mkstemp(path));
    assert_int_equal(write(fd, "one two three four", 18), 18);
    close(fd);
    STARVE(cli_logits, "logits", tiny(), "--text", "the cat", "-o", path, "-t", "1");
    STARVE(cli_perplexity, "perplexity", tiny(), text, "--n-ctx", "8", "--save-logits", path, "-t", "1");
    STARVE(cli_perplexity, "perplexity", tiny(), text, "--kl", path, "-o", "json", "-t", "1");
    STARVE(cli_specverify, "specverify", tiny(), "-n", "2", "-r", "1", "-o", "json", "-t", "1");
    STARVE(cli_bench, "bench", tiny(), "-p", "2", "-n", "1", "-r", "1", "-o", "json", "-t", "1");
    unlink(path);
    unlink(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describing),
        cmocka_unit_test(test_template),
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_measuring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
