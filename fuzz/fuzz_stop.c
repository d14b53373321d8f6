/* Stop strings against a plain implementation that looks at the whole stream after every byte. The input: a
 * byte of flags, up to three strings (length, bytes), the size of pushes, and the stream. */
#include "sampling/stop.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_STRINGS = 3, MAX_LENGTH = 12, MAX_STREAM = 300 };

typedef struct input {
    char strings[MAX_STRINGS][MAX_LENGTH], stream[MAX_STREAM];
    size_t lens[MAX_STRINGS], n, stream_n, step;
} input;

typedef struct reader {
    const uint8_t *data;
    size_t left;
    bool few; /* only four different bytes, so that there is something to match */
} reader;

static uint8_t next(reader *r)
{
    if (r->left == 0) return 0;
    r->left--;
    return *r->data++;
}

static char next_text(reader *r)
{
    uint8_t b = next(r);
    return (char)(r->few ? 'a' + b % 4 : b);
}

static void read_input(reader *r, input *in)
{
    uint8_t flags = next(r);
    r->few = flags & 4;
    in->n = flags % (MAX_STRINGS + 1);
    for (size_t i = 0; i < in->n; i++) {
        in->lens[i] = 1 + next(r) % MAX_LENGTH;
        for (size_t j = 0; j < in->lens[i]; j++) in->strings[i][j] = next_text(r);
    }
    in->step = 1 + next(r) % 8;
    in->stream_n = r->left < MAX_STREAM ? r->left : MAX_STREAM;
    for (size_t i = 0; i < in->stream_n; i++) in->stream[i] = next_text(r);
}

/* What may be shown of the first n bytes, and whether the stream ends there. */
typedef struct state {
    size_t shown;
    bool matched, found; /* found: a match is complete, perhaps not yet the earliest */
    size_t first;
} state;

static state plain_state(const input *in, size_t n)
{
    state s = {n, false, false, n};
    size_t alive = n;
    for (size_t start = n; start-- > 0;)
        for (size_t i = 0; i < in->n; i++) {
            size_t len = in->lens[i], there = n - start;
            if (memcmp(in->stream + start, in->strings[i], there < len ? there : len) != 0) continue;
            if (there < len) {
                alive = start;
            } else {
                s.found = true;
                s.first = start;
            }
        }
    s.matched = s.found && s.first <= alive;
    s.shown = s.matched ? s.first : alive;
    return s;
}

static void check(bool ok)
{
    if (!ok) abort();
}

static void check_output(const input *in, const mf_buf *out, size_t shown)
{
    check(out->len == shown && (shown == 0 || memcmp(out->data, in->stream, shown) == 0));
}

static void run(const input *in)
{
    const char *strings[MAX_STRINGS];
    mf_stop s;
    mf_buf out = {0};
    bool matched = false;
    for (size_t i = 0; i < in->n; i++) strings[i] = in->strings[i];
    if (mf_stop_init(&s, strings, in->lens, in->n, NULL) != MINFER_OK) abort();
    state want = plain_state(in, 0);
    for (size_t i = 0; i < in->stream_n; i += in->step) {
        size_t n = in->stream_n - i < in->step ? in->stream_n - i : in->step;
        check(mf_stop_push(&s, in->stream + i, n, &out, &matched));
        for (size_t j = i; j < i + n && !want.matched; j++) want = plain_state(in, j + 1);
        check(matched == want.matched);
        check_output(in, &out, want.shown);
    }
    check(mf_stop_finish(&s, &out, &matched));
    check(matched == want.found);
    check_output(in, &out, want.found ? want.first : in->stream_n);
    mf_stop_free(&s);
    mf_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static input in;
    reader r = {data, size, false};
    read_input(&r, &in);
    run(&in);
    return 0;
}
