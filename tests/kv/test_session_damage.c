/* Session files under damage: every changed byte and every length but the right one is refused, with the
 * engine and its sessions untouched; and what a wrong value is called when the checksum does not give it
 * away. */
#include "kv/rig.h"

#include "kv/session_file.h"

enum { CTX = 64, FED = 3, HEADER = 48 };

typedef struct {
    minfer_model *m;
    minfer_engine *e;
    minfer_session *s;
    mf_session_cache cache;
    uint8_t *bytes;
    size_t size;
    int32_t refs[CTX];
    float logits[RIG_MAX_VOCAB];
} world;

static world w;

static int open_world(void **state)
{
    rig_options o = {.cache = MINFER_CACHE_Q8_0, .n_ctx = CTX, .n_batch = 16, .threads = 1};
    const int32_t tokens[FED + 2] = {5, 6, 9, 7, 8};
    minfer_error err = {0};
    if (rig_folder_make(state) != 0) return -1;
    w.m = rig_model(rig_models[0]);
    w.e = rig_engine(w.m, &o);
    w.s = rig_session(w.e);
    rig_feed(w.s, tokens, FED + 2, NULL, 0);
    assert_ok(minfer_session_remove(w.s, 1, 3, &err), &err);
    rig_save(w.s, rig_path("a.kv"), "{\"a\": 1}");
    w.bytes = (uint8_t *)read_all(rig_path("a.kv"), &w.size);
    w.cache = (mf_session_cache){&w.e->graphs.alloc, 0, (int32_t)rig_n_vocab(w.e), 1 << 20};
    memcpy(&w.cache.model, w.bytes + 36, sizeof w.cache.model);
    memcpy(w.refs, w.e->kv.refs, sizeof w.refs);
    return 0;
}

static int close_world(void **state)
{
    mf_free(w.bytes);
    minfer_session_free(w.s);
    minfer_engine_free(w.e);
    minfer_model_free(w.m);
    return rig_folder_drop(state);
}

static void put_file(const uint8_t *bytes, size_t n)
{
    remove(rig_path("b.kv")); /* file systems bring a file that is emptied to the disk at once */
    FILE *f = fopen(rig_path("b.kv"), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void assert_refused(const uint8_t *bytes, size_t n)
{
    minfer_error err = {0};
    minfer_session *s = w.s;
    char *host = (char *)w.bytes;
    size_t n_host = 1;
    put_file(bytes, n);
    minfer_status st = minfer_session_restore(w.e, rig_path("b.kv"), &s, &host, &n_host, &err);
    if (st != MINFER_ERR_FORMAT && st != MINFER_ERR_UNSUPPORTED)
        fail_msg("%zu bytes: %s: %s", n, mf_status_name(st), err.message);
    assert_non_null(strstr(err.message, "b.kv: "));
    assert_null(s);
    assert_null(host);
    assert_int_equal(n_host, 0);
    assert_int_equal(w.e->kv.n_seqs, 1);
    assert_memory_equal(w.refs, w.e->kv.refs, sizeof w.refs);
}

/* What the untouched session says is what it said before. */
static void assert_untouched(void)
{
    minfer_error err = {0};
    float logits[RIG_MAX_VOCAB];
    static bool known;
    const int32_t token = 11;
    rig_feed(w.s, &token, 1, logits, 1);
    assert_ok(minfer_session_rollback(w.s, FED, &err), &err);
    if (known) assert_memory_equal(logits, w.logits, rig_n_vocab(w.e) * sizeof *logits);
    memcpy(w.logits, logits, sizeof logits);
    known = true;
    memcpy(w.refs, w.e->kv.refs, sizeof w.refs);
}

static void every_changed_byte_is_refused(void **state)
{
    (void)state;
    minfer_error err = {0};
    mf_session_view v;
    assert_untouched();
    for (size_t i = 0; i < w.size; i++) {
        uint8_t was = w.bytes[i];
        w.bytes[i] = was ^ (uint8_t)(1u << i % 8);
        assert_refused(w.bytes, w.size);
        for (int x = 1; x < 256; x++) {
            w.bytes[i] = was ^ (uint8_t)x;
            if (mf_session_file_parse(w.bytes, w.size, "file", &v, &err) == MINFER_OK)
                fail_msg("byte %zu as %d is accepted", i, w.bytes[i]);
        }
        w.bytes[i] = was;
    }
    assert_untouched();
    minfer_session_free(rig_restore(w.e, rig_path("a.kv"), "{\"a\": 1}"));
}

static void every_other_length_is_refused(void **state)
{
    (void)state;
    uint8_t *longer = mf_calloc(w.size + 9, 1);
    assert_non_null(longer);
    assert_untouched();
    memcpy(longer, w.bytes, w.size);
    for (size_t n = 0; n < w.size + 9; n++)
        if (n != w.size) assert_refused(longer, n);
    mf_free(longer);
    assert_untouched();
}

/* ---- values that are wrong under a right checksum ---- */

typedef struct {
    size_t at;
    uint32_t value;
    const char *says;
} wrong;

/* The parts behind the layers begin at. */
static size_t runs_at(void)
{
    mf_session_view v;
    minfer_error err = {0};
    assert_ok(mf_session_file_parse(w.bytes, w.size, "file", &v, &err), &err);
    assert_int_equal(v.n_runs, 2);
    return (size_t)(v.runs - w.bytes);
}

static void assert_wrong(const wrong *c)
{
    minfer_error err = {0};
    mf_session_view v;
    int32_t tokens[FED], positions[FED];
    uint8_t *x = mf_malloc(w.size); /* its own exact block, so that a sanitizer sees a read too far */
    assert_non_null(x);
    memcpy(x, w.bytes, w.size);
    memcpy(x + c->at, &c->value, sizeof c->value);
    uint64_t sum = mf_session_checksum(x, w.size - 8);
    memcpy(x + w.size - 8, &sum, sizeof sum);
    minfer_status st = mf_session_file_parse(x, w.size, "file", &v, &err);
    if (st == MINFER_OK) st = mf_session_file_match(&v, &w.cache, "file", &err);
    if (st == MINFER_OK) st = mf_session_file_tokens(&v, &w.cache, "file", tokens, positions, &err);
    if (st == MINFER_OK || !strstr(err.message, c->says))
        fail_msg("%u at %zu: expected \"%s\", got: %s", c->value, c->at, c->says,
                 st == MINFER_OK ? "nothing" : err.message);
    mf_free(x);
}

static void a_wrong_value_is_named(void **state)
{
    (void)state;
    size_t r = runs_at(), t = r + 2 * 8;
    const wrong cases[] = {
        {0, 0x464e494e, "not a session file"},
        {8, 2, "session file of version 2, 1 is read here"},
        {12, 3, "flags 0x3 say no cache format"},
        {12, 4, "flags 0x4 say no cache format"},
        {12, 2, "rows of"},
        {16, 1, "the last layer is not of backend 1"},
        {20, 0, "0 layers"},
        {20, UINT32_MAX, "cut short"},
        {24, FED - 1, "3 tokens in a context of 2"},
        {24, CTX + 1, "a context of 65, here it is 64"},
        {24, UINT32_MAX, "context of 4294967295"},
        {28, 31, "values"},
        {28, 0, "for 0 values"},
        {32, UINT32_MAX, "cut short"},
        {36, 1, "another model"},
        {44, UINT32_MAX, "tokens in a context of 64"},
        {44, CTX, "cut short"},
        {HEADER, 2, "layer 0 was computed by backend 2 (cuda), here cpu"},
        {HEADER, 77, "backend 77 (unknown)"},
        {r - 4, UINT32_MAX, "cut short"},
        {r, 4, "run 1: 2 tokens from position 3"},
        {r, UINT32_MAX, "run 0: 1 tokens from position 4294967295"},
        {r + 4, 0, "run 0: 0 tokens"},
        {r + 4, 2, "runs of 4 tokens, 3 are there"},
        {r + 8, 1, "run 1: 2 tokens from position 1"},
        {r + 8, 1 << 21, "position 2097152 at place 1 is not in 0..1048575"},
        {r + 12, UINT32_MAX, "run 1: 4294967295 tokens"},
        {t, UINT32_MAX, "token -1 at place 0 is not in"},
        {t + 8, (uint32_t)w.cache.n_vocab, "at place 2 is not in"},
        {t + 12, 9, "cut short"},
        {t + 12, 7, "1 bytes follow the end"},
        {t + 12, UINT32_MAX, "cut short"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_wrong(&cases[i]);
}

/* As the formula in docs/session-file.md has it, computed elsewhere. */
static void the_checksum_is_the_documented_one(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t sum;
    } cases[] = {{"", 0xcbf29ce484222325u},
                 {"a", 0xd8932f58fca0422cu},
                 {"MINFERKV", 0xf0314fb567bb5afdu},
                 {"every good boy deserves fudge", 0x4f01fa5c1bc9f8eeu}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(mf_session_checksum(cases[i].text, strlen(cases[i].text)) == cases[i].sum);
    uint64_t stored;
    memcpy(&stored, w.bytes + w.size - 8, 8);
    assert_true(stored == mf_session_checksum(w.bytes, w.size - 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_changed_byte_is_refused),
        cmocka_unit_test(every_other_length_is_refused),
        cmocka_unit_test(a_wrong_value_is_named),
        cmocka_unit_test(the_checksum_is_the_documented_one),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
