/* sampling: values that a model's file recommends. */
#include "support/support.h"

#include "sampling/recommended.h"
#include "sampling/sampler.h"

#include <math.h>

/* A GGUF file of metadata only, written value by value. */
typedef struct file {
    mf_buf bytes;
    uint64_t n;
} file;

static void put(mf_buf *b, const void *data, size_t n)
{
    assert_true(mf_buf_append(b, data, n));
}

static void put_value(file *f, const char *key, mf_gguf_type type, const void *value, size_t size)
{
    uint64_t len = strlen(key);
    uint32_t t = (uint32_t)type;
    put(&f->bytes, &len, 8);
    put(&f->bytes, key, len);
    put(&f->bytes, &t, 4);
    put(&f->bytes, value, size);
    f->n++;
}

static void put_i32(file *f, const char *key, int32_t v)
{
    put_value(f, key, MF_GGUF_I32, &v, sizeof v);
}

static void put_f32(file *f, const char *key, float v)
{
    put_value(f, key, MF_GGUF_F32, &v, sizeof v);
}

/* Applies the file to *p and frees it. */
static minfer_status apply(file *f, unsigned given, minfer_sampling *p, minfer_error *err)
{
    mf_buf whole = {0};
    mf_gguf *g = NULL;
    const uint32_t version = 3;
    const uint64_t n_tensors = 0;
    put(&whole, "GGUF", 4);
    put(&whole, &version, 4);
    put(&whole, &n_tensors, 8);
    put(&whole, &f->n, 8);
    put(&whole, f->bytes.data, f->bytes.len);
    assert_ok(mf_gguf_parse(whole.data, whole.len, "toy.gguf", &g, err), err);
    minfer_status st = mf_sampling_recommended(g, given, p, err);
    mf_gguf_free(g);
    mf_buf_free(&whole);
    mf_buf_free(&f->bytes);
    return st;
}

static void put_all(file *f)
{
    put_f32(f, "general.sampling.temp", 0.25f);
    put_i32(f, "general.sampling.top_k", 7);
    put_f32(f, "general.sampling.top_p", 0.5f);
    put_f32(f, "general.sampling.min_p", 0.125f);
    put_f32(f, "general.sampling.penalty_repeat", 1.5f);
    put_i32(f, "general.sampling.penalty_last_n", -1);
    put_f32(f, "general.sampling.xtc_probability", 0.75f);
    put_f32(f, "general.sampling.xtc_threshold", 0.375f);
    put_i32(f, "general.sampling.mirostat", 2);
    put_f32(f, "general.sampling.mirostat_tau", 3);
    put_f32(f, "general.sampling.mirostat_eta", 0.0625f);
    put_f32(f, "general.sampling.dry_multiplier", 9); /* no such key */
}

/* Which of the eleven fields have the file's value, as MINFER_SAMPLING_ bits. */
static unsigned taken(const minfer_sampling *p)
{
    const bool has[] = {p->temperature == 0.25f,
                        p->top_k == 7,
                        p->top_p == 0.5f,
                        p->min_p == 0.125f,
                        p->repeat_penalty == 1.5f,
                        p->repeat_last_n == -1,
                        p->xtc_probability == 0.75f,
                        p->xtc_threshold == 0.375f,
                        p->mirostat == 2,
                        p->mirostat_tau == 3,
                        p->mirostat_eta == 0.0625f};
    unsigned bits = 0;
    for (unsigned i = 0; i < sizeof has / sizeof *has; i++) bits |= (unsigned)has[i] << i;
    return bits;
}

static void test_fields_not_given(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 13; i++) {
        file f = {0};
        minfer_error err;
        minfer_sampling p;
        unsigned given = i < 11 ? 1u << i : i == 11 ? 0 : 2047;
        minfer_sampling_init(&p);
        put_all(&f);
        assert_ok(apply(&f, given, &p, &err), &err);
        assert_int_equal(taken(&p), 2047 & ~given);
        assert_true(p.dry_multiplier == 0);
    }
}

static void test_absent_keys(void **state)
{
    (void)state;
    file f = {0};
    minfer_error err;
    minfer_sampling p, q;
    minfer_sampling_init(&p);
    minfer_sampling_init(&q);
    put_i32(&f, "general.quantization_version", 2);
    assert_ok(apply(&f, 0, &p, &err), &err);
    assert_int_equal(p.top_k, q.top_k);
    assert_int_equal(taken(&p), 0);
}

static void test_number_types(void **state)
{
    (void)state;
    file f = {0};
    minfer_error err;
    minfer_sampling p;
    const double temp = 0.25;
    const uint8_t one = 1, seven = 7;
    const int64_t last_n = -1;
    minfer_sampling_init(&p);
    put_value(&f, "general.sampling.temp", MF_GGUF_F64, &temp, 8);
    put_value(&f, "general.sampling.top_p", MF_GGUF_U8, &one, 1);
    put_value(&f, "general.sampling.top_k", MF_GGUF_U8, &seven, 1);
    put_value(&f, "general.sampling.penalty_last_n", MF_GGUF_I64, &last_n, 8);
    assert_ok(apply(&f, 0, &p, &err), &err);
    assert_true(p.temperature == 0.25f && p.top_p == 1 && p.top_k == 7 && p.repeat_last_n == -1);
}

static void refuse(file *f, const char *words)
{
    minfer_error err;
    minfer_sampling p, q;
    memset(&p, 0, sizeof p); /* invalid itself: only the file is to blame */
    q = p;
    assert_fails(apply(f, 0, &p, &err), MINFER_ERR_FORMAT, &err, words);
    assert_memory_equal(&p, &q, sizeof p);
}

static void test_refused_values(void **state)
{
    (void)state;
    const uint64_t huge = (uint64_t)1 << 40;
    const int64_t low = -((int64_t)1 << 40);
    const uint8_t yes = 1;
    file f[7] = {0};
    for (int i = 0; i < 7; i++) put_f32(&f[i], "general.sampling.min_p", 0.5f);
    put_f32(&f[0], "general.sampling.temp", -1);
    refuse(&f[0], "toy.gguf: key 'general.sampling.temp': temperature is -1, expected");
    put_f32(&f[1], "general.sampling.top_p", NAN);
    refuse(&f[1], "general.sampling.top_p");
    put_f32(&f[2], "general.sampling.top_k", 40);
    refuse(&f[2], "key 'general.sampling.top_k': is of type f32, expected an integer");
    put_value(&f[3], "general.sampling.temp", MF_GGUF_BOOL, &yes, 1);
    refuse(&f[3], "is of type bool, expected a number");
    put_value(&f[4], "general.sampling.top_k", MF_GGUF_U64, &huge, 8);
    refuse(&f[4], "key 'general.sampling.top_k': is 1099511627776");
    put_value(&f[5], "general.sampling.penalty_last_n", MF_GGUF_I64, &low, 8);
    refuse(&f[5], "is -1099511627776");
    put_i32(&f[6], "general.sampling.mirostat", 3);
    refuse(&f[6], "mirostat is 3");
}

static void test_refused_array(void **state)
{
    (void)state;
    file f = {0};
    struct {
        uint32_t elem;
        uint32_t count[2];
        float v;
    } one = {MF_GGUF_F32, {1, 0}, 0.5f};
    put_value(&f, "general.sampling.temp", MF_GGUF_ARRAY, &one, sizeof one);
    refuse(&f, "is of type array, expected a number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_not_given), cmocka_unit_test(test_absent_keys),
        cmocka_unit_test(test_number_types),     cmocka_unit_test(test_refused_values),
        cmocka_unit_test(test_refused_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
