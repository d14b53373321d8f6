#include "support/support.h"

#include "base/filemap.h"

#include <stdlib.h>
#include <unistd.h>

static const char *ring(const char *dir, const char *fmt, va_list ap)
{
    static char paths[8][1024];
    static int next;
    char *p = paths[next++ % 8];
    int n = snprintf(p, sizeof paths[0], "%s/", dir);
    vsnprintf(p + n, sizeof paths[0] - (size_t)n, fmt, ap);
    return p;
}

const char *data_path(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *p = ring(MF_TEST_DATA, fmt, ap);
    va_end(ap);
    return p;
}

const char *fixture_path(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *p = ring(MF_TEST_FIXTURES, fmt, ap);
    va_end(ap);
    return p;
}

bool file_exists(const char *path)
{
    return access(path, R_OK) == 0;
}

const char *real_model(const char *file)
{
    static char path[1024];
    const char *dir = getenv("MINFER_MODEL_DIR"), *home = getenv("HOME");
    if (dir && *dir)
        snprintf(path, sizeof path, "%s/%s", dir, file);
    else
        snprintf(path, sizeof path, "%s/.cache/minfer/models/%s", home ? home : ".", file);
    return file_exists(path) ? path : NULL;
}

char *read_all(const char *path, size_t *size)
{
    char *data = NULL;
    minfer_error err = {0};
    size_t n = 0;
    assert_ok(mf_file_read(path, (size_t)1 << 32, &data, &n, &err), &err);
    if (size) *size = n;
    return data;
}

void assert_ok_at(minfer_status st, const minfer_error *err, const char *file, int line)
{
    if (st == MINFER_OK) return;
    print_error("%s: %s\n", mf_status_name(st), err ? err->message : "");
    _fail(file, line);
}

void assert_fails_at(minfer_status st, minfer_status code, const minfer_error *err, const char *word,
                     const char *file, int line)
{
    if (st == code && (!word || strstr(err->message, word))) return;
    print_error("expected '%s' with \"%s\", got '%s': %s\n", mf_status_name(code), word ? word : "",
                mf_status_name(st), st == MINFER_OK ? "" : err->message);
    _fail(file, line);
}
