/* Lookup against a search through the whole text: the longest match, the latest among equal ones, after any
 * lengthening and cutting back; and how long it takes. */
#include "support/support.h"

#include "base/clock.h"
#include "runtime/draft.h"

enum { MAX_TEXT = 3000, MIN_MATCH = 2, ENOUGH = 32, MOST = 256 };

static minfer_draft *lookup_new(void)
{
    minfer_error err = {0};
    minfer_draft_options o = {.n_max = 8};
    minfer_draft *d;
    assert_ok(minfer_draft_create_lookup(&o, &d, &err), &err);
    return d;
}

/* Length and end of the best match, searched plainly; 0 when it is too short. What is searched ends after
 * MOST places where the last tokens stand. */
static int32_t naive(const int32_t *text, size_t n, size_t *end)
{
    int32_t best = 0;
    int seen = 0;
    for (size_t e = n - 1; e-- > 0 && best < ENOUGH && seen < MOST;) {
        int32_t len = 0;
        while (len < ENOUGH && (size_t)len <= e && text[e - (size_t)len] == text[n - 1 - (size_t)len]) len++;
        seen += len >= MIN_MATCH;
        if (len < MIN_MATCH || len <= best) continue;
        best = len;
        *end = e;
    }
    return best;
}

static int32_t kind_of(int32_t len)
{
    return len < MIN_MATCH ? -1 : len < 4 ? 0 : len < 8 ? 1 : len < 16 ? 2 : 3;
}

static void check(minfer_draft *d, const int32_t *text, size_t n)
{
    minfer_error err = {0};
    mf_draft_text t = {text, n};
    int32_t kind, got = 0, out[8];
    size_t end = 0;
    int32_t len = naive(text, n, &end);
    assert_ok(d->ops->look(d, t, &kind, &err), &err);
    assert_int_equal(kind, kind_of(len));
    if (kind < 0) return;
    assert_ok(d->ops->propose(d, t, 8, out, &got, &err), &err);
    assert_int_equal(got, 8);
    for (size_t i = 0; i < 8; i++) {
        size_t from = end + 1 + i, period = n - end - 1;
        while (from >= n) from -= period;
        assert_int_equal(out[i], text[from]);
    }
}

/* Texts over a few letters, so that matches of all lengths occur; they grow, are cut, and are changed inside.
 */
static void random_texts(void **state)
{
    (void)state;
    static const uint64_t letters[] = {1, 2, 3, 8, 40, 1000};
    for (size_t i = 0; i < 6; i++) {
        static int32_t text[MAX_TEXT];
        minfer_draft *d = lookup_new();
        mf_rng rng;
        size_t n = 1;
        mf_rng_seed(&rng, i);
        for (int step = 0; step < 1500; step++) {
            uint64_t what = mf_rng_u64(&rng) % 20;
            size_t copy = 1 + mf_rng_u64(&rng) % 40;
            if (what == 0)
                n = 1 + mf_rng_u64(&rng) % n;
            else if (what == 1)
                text[mf_rng_u64(&rng) % n] = (int32_t)(mf_rng_u64(&rng) % letters[i]);
            else if (what < 4 && n > 100 && n + copy < MAX_TEXT) {
                size_t from = mf_rng_u64(&rng) % (n - 50);
                memmove(text + n, text + from, copy * sizeof *text);
                n += copy;
            } else if (n < MAX_TEXT)
                text[n++] = (int32_t)(mf_rng_u64(&rng) % letters[i]);
            check(d, text, n);
        }
        minfer_draft_free(d);
    }
}

/* Printed and not judged. */
static void time_of_a_lookup(void **state)
{
    (void)state;
    enum { N = 32768 };
    static const uint64_t letters[] = {1, 20, 50000};
    static int32_t text[N];
    for (size_t i = 0; i < 3; i++) {
        minfer_draft *d = lookup_new();
        minfer_error err = {0};
        mf_rng rng;
        int32_t kind, got = 0, out[8];
        mf_rng_seed(&rng, i);
        for (size_t k = 0; k < N; k++) text[k] = (int32_t)(mf_rng_u64(&rng) % letters[i]);
        assert_ok(d->ops->look(d, (mf_draft_text){text, N / 2}, &kind, &err), &err);
        int64_t start = mf_clock_ns();
        for (size_t n = N / 2; n < N; n++) {
            assert_ok(d->ops->look(d, (mf_draft_text){text, n}, &kind, &err), &err);
            if (kind >= 0) assert_ok(d->ops->propose(d, (mf_draft_text){text, n}, 8, out, &got, &err), &err);
        }
        print_message("  %llu different tokens, text of 16384 to 32768: %.2f us\n",
                      (unsigned long long)letters[i], (double)(mf_clock_ns() - start) / (N / 2) * 1e-3);
        minfer_draft_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_texts), cmocka_unit_test(time_of_a_lookup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
