/* What all tests share: cmocka with its needed headers, fixture paths, skipping with a reason. */
#ifndef MF_TESTS_SUPPORT_H
#define MF_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

/* Skips the running test and prints why; a skipped test is never counted as passed. */
#define SKIP_BECAUSE(...)                     \
    do {                                      \
        print_message("SKIP %s: ", __func__); \
        print_message(__VA_ARGS__);           \
        print_message("\n");                  \
        skip();                               \
    } while (0)

/* Paths into tests/data, the large fixtures (see MINFER_FIXTURES in CMake), and the model cache. The result
 * is in a static ring of 8. */
const char *data_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *fixture_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool file_exists(const char *path);

/* The path of a real model in the cache ($MINFER_MODEL_DIR or ~/.cache/minfer/models), or NULL when it is
 * absent. */
const char *real_model(const char *file);

/* Reads a whole file; fails the test when it cannot. The caller frees with mf_free. */
char *read_all(const char *path, size_t *size);

/* Asserts that st is MINFER_OK and prints err's message when not. */
void assert_ok_at(minfer_status st, const minfer_error *err, const char *file, int line);
#define assert_ok(st, err) assert_ok_at((st), (err), __FILE__, __LINE__)

/* Asserts that st is `code` and that the message contains every one of the `n` words. */
void assert_fails_at(minfer_status st, minfer_status code, const minfer_error *err, const char *word,
                     const char *file, int line);
#define assert_fails(st, code, err, word) assert_fails_at((st), (code), (err), (word), __FILE__, __LINE__)

#endif
