/* gguf: what comes out of good files: header, values of every type, typed access, tensors, split models, and
 * how the reader treats memory. */
#include "support/support.h"

#include "base/bytes.h"
#include "gguf/gguf.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- a writer of good files ---- */

static void put(mf_buf *b, const void *p, size_t n)
{
    assert_true(mf_buf_append(b, p, n));
}

static void put_u32(mf_buf *b, uint32_t v)
{
    put(b, &v, 4);
}

static void put_u64(mf_buf *b, uint64_t v)
{
    put(b, &v, 8);
}

static void put_str(mf_buf *b, const char *s)
{
    put_u64(b, strlen(s));
    put(b, s, strlen(s));
}

static void put_header(mf_buf *b, uint64_t n_tensors, uint64_t n_kv)
{
    put(b, "GGUF", 4);
    put_u32(b, 3);
    put_u64(b, n_tensors);
    put_u64(b, n_kv);
}

static void put_key(mf_buf *b, const char *key, mf_gguf_type type)
{
    put_str(b, key);
    put_u32(b, type);
}

#define PUT_KV(b, key, type, ctype, value)      \
    do {                                        \
        put_key(b, key, type);                  \
        put(b, &(ctype){value}, sizeof(ctype)); \
    } while (0)

#define PUT_ARRAY(b, key, elem, ctype, ...)         \
    do {                                            \
        const ctype items_[] = {__VA_ARGS__};       \
        put_key(b, key, MF_GGUF_ARRAY);             \
        put_u32(b, elem);                           \
        put_u64(b, sizeof items_ / sizeof *items_); \
        put(b, items_, sizeof items_);              \
    } while (0)

static void put_strings(mf_buf *b, const char *key, const char *const *s, size_t n)
{
    put_key(b, key, MF_GGUF_ARRAY);
    put_u32(b, MF_GGUF_STRING);
    put_u64(b, n);
    for (size_t i = 0; i < n; i++) put_str(b, s[i]);
}

static void put_tensor(mf_buf *b, const char *name, uint32_t n_dims, const uint64_t *dims, mf_type type,
                       uint64_t at)
{
    put_str(b, name);
    put_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) put_u64(b, dims[i]);
    put_u32(b, type);
    put_u64(b, at);
}

static void pad_to(mf_buf *b, size_t alignment)
{
    while (b->len % alignment) put(b, "", 1);
}

enum { N_KV = 25, N_TENSORS = 3 };

/* All value types, single and as arrays, and three tensors. */
static void put_everything(mf_buf *b)
{
    static const char *const words[] = {"", "two words", "\xC4\xA0x"};
    put_header(b, N_TENSORS, N_KV);
    PUT_KV(b, "n.u8", MF_GGUF_U8, uint8_t, 200);
    PUT_KV(b, "n.i8", MF_GGUF_I8, int8_t, -100);
    PUT_KV(b, "n.u16", MF_GGUF_U16, uint16_t, 60000);
    PUT_KV(b, "n.i16", MF_GGUF_I16, int16_t, -30000);
    PUT_KV(b, "n.u32", MF_GGUF_U32, uint32_t, 4000000000u);
    PUT_KV(b, "n.i32", MF_GGUF_I32, int32_t, 77);
    PUT_KV(b, "n.u64", MF_GGUF_U64, uint64_t, UINT32_MAX);
    PUT_KV(b, "n.u64.big", MF_GGUF_U64, uint64_t, UINT64_MAX);
    PUT_KV(b, "n.i64", MF_GGUF_I64, int64_t, INT64_MIN);
    PUT_KV(b, "n.i64.big", MF_GGUF_I64, int64_t, (int64_t)UINT32_MAX + 1);
    PUT_KV(b, "n.f32", MF_GGUF_F32, float, 0.1f);
    PUT_KV(b, "n.f64", MF_GGUF_F64, double, 1e-6);
    PUT_KV(b, "b.no", MF_GGUF_BOOL, uint8_t, 0);
    PUT_KV(b, "b.yes", MF_GGUF_BOOL, uint8_t, 1);
    put_key(b, "s", MF_GGUF_STRING);
    put_str(b, "hello");
    put_key(b, "s.empty", MF_GGUF_STRING);
    put_str(b, "");
    put_strings(b, "a.strings", words, 3);
    put_strings(b, "a.none", words, 0);
    PUT_ARRAY(b, "a.u8", MF_GGUF_U8, uint8_t, 0, 255);
    PUT_ARRAY(b, "a.i16", MF_GGUF_I16, int16_t, -2, 3);
    PUT_ARRAY(b, "a.i32", MF_GGUF_I32, int32_t, 1, -1, INT32_MIN);
    PUT_ARRAY(b, "a.u64", MF_GGUF_U64, uint64_t, 5, UINT64_MAX);
    PUT_ARRAY(b, "a.f32", MF_GGUF_F32, float, 1.5f, -3e9f, 1e30f);
    PUT_ARRAY(b, "a.f64", MF_GGUF_F64, double, 0.25, -1e300, NAN);
    PUT_ARRAY(b, "a.bool", MF_GGUF_BOOL, uint8_t, 1, 0);
    put_tensor(b, "q", 2, (uint64_t[]){64, 3}, MF_TYPE_Q8_0, 64);
    put_tensor(b, "v", 1, (uint64_t[]){5}, MF_TYPE_F32, 0);
    put_tensor(b, "four", 4, (uint64_t[]){2, 1, 2, 3}, MF_TYPE_F16, 288);
    pad_to(b, 32);
    for (int i = 0; i < 288 + 24; i++) put(b, &(uint8_t){(uint8_t)i}, 1);
}

static mf_gguf *parse_everything(mf_buf *b)
{
    mf_gguf *g = NULL;
    minfer_error err;
    put_everything(b);
    assert_ok(mf_gguf_parse(b->data, b->len, "memory", &g, &err), &err);
    return g;
}

/* ---- values ---- */

static void test_directory(void **state)
{
    (void)state;
    mf_buf b = {0};
    mf_gguf *g = parse_everything(&b);
    assert_int_equal(mf_gguf_version(g), 3);
    assert_string_equal(mf_gguf_path(g), "memory");
    assert_string_equal(mf_gguf_part_path(g, 0), "memory");
    assert_int_equal(mf_gguf_file_bytes(g), b.len);
    assert_int_equal(mf_gguf_alignment(g), 32);
    assert_int_equal(mf_gguf_n_parts(g), 1);
    assert_int_equal(mf_gguf_n_kv(g), N_KV);
    assert_int_equal(mf_gguf_n_tensors(g), N_TENSORS);
    const mf_gguf_tensor *q = mf_gguf_find_tensor(g, "q"), *v = mf_gguf_find_tensor(g, "v");
    const mf_gguf_tensor *four = mf_gguf_tensor_at(g, 2);
    assert_ptr_equal(mf_gguf_tensor_at(g, 0), q);
    assert_string_equal(four->cname, "four");
    assert_int_equal(four->name.n, 4);
    assert_memory_equal(four->name.s, "four", 4);
    assert_int_equal(q->n_dims, 2);
    assert_memory_equal(q->dims, ((uint64_t[]){64, 3, 1, 1}), 32);
    assert_memory_equal(four->dims, ((uint64_t[]){2, 1, 2, 3}), 32);
    assert_int_equal(q->type, MF_TYPE_Q8_0);
    assert_int_equal(q->size, 204);
    assert_int_equal(v->size, 20);
    assert_int_equal(four->size, 24);
    assert_int_equal(q->data[0], 64);
    assert_int_equal(v->data[0], 0);
    assert_ptr_equal(b.data + four->offset, four->data);
    assert_int_equal(q->offset, v->offset + 64);
    assert_null(mf_gguf_find_tensor(g, "fou"));
    assert_null(mf_gguf_find_tensor(g, ""));
    mf_gguf_free(g);
    mf_buf_free(&b);
    mf_gguf_free(NULL);
}

static void test_raw_values(void **state)
{
    (void)state;
    mf_buf b = {0};
    mf_gguf *g = parse_everything(&b);
    const mf_gguf_kv *kv = mf_gguf_kv_at(g, 0);
    assert_memory_equal(kv->key.s, "n.u8", 4);
    assert_int_equal(kv->type, MF_GGUF_U8);
    assert_int_equal(kv->elem, MF_GGUF_U8);
    assert_int_equal(kv->count, 1);
    assert_int_equal(kv->size, 1);
    assert_null(kv->strs);
    kv = mf_gguf_find(g, "a.strings");
    assert_int_equal(kv->count, 3);
    assert_int_equal(kv->size, 3 * 8 + 9 + 3);
    assert_int_equal(kv->strs[0].n, 0);
    assert_memory_equal(kv->strs[1].s, "two words", 9);
    assert_int_equal(kv->strs[2].n, 3);
    kv = mf_gguf_find(g, "s.empty");
    assert_int_equal(kv->strs[0].n, 0);
    assert_int_equal(mf_gguf_find(g, "a.none")->count, 0);
    assert_null(mf_gguf_find(g, "n.u"));
    assert_null(mf_gguf_find(g, ""));
    mf_gguf_free(g);
    mf_buf_free(&b);
}

static void test_get_u32(void **state)
{
    (void)state;
    mf_buf b = {0};
    mf_gguf *g = parse_everything(&b);
    minfer_error err;
    uint32_t v = 9;
    bool found;
    static const struct {
        const char *key;
        uint32_t value;
    } good[] = {
        {"n.u8", 200}, {"n.u16", 60000}, {"n.u32", 4000000000u}, {"n.i32", 77}, {"n.u64", UINT32_MAX}};
    for (size_t i = 0; i < 5; i++) {
        found = false;
        assert_ok(mf_gguf_get_u32(g, good[i].key, &v, &found, &err), &err);
        assert_true(found && v == good[i].value);
    }
    v = 9;
    assert_ok(mf_gguf_get_u32(g, "none", &v, &found, &err), &err);
    assert_true(!found && v == 9);
    assert_fails(mf_gguf_get_u32(g, "none", &v, NULL, &err), MINFER_ERR_FORMAT, &err,
                 "memory: key 'none' is missing");
    assert_fails(mf_gguf_get_u32(g, "n.i8", &v, &found, &err), MINFER_ERR_FORMAT, &err, "'n.i8' is -100");
    assert_fails(mf_gguf_get_u32(g, "n.i64", &v, &found, &err), MINFER_ERR_FORMAT, &err,
                 "is -9223372036854775808");
    assert_fails(mf_gguf_get_u32(g, "n.i64.big", &v, &found, &err), MINFER_ERR_FORMAT, &err,
                 "is 4294967296,");
    assert_fails(mf_gguf_get_u32(g, "n.u64.big", &v, &found, &err), MINFER_ERR_FORMAT, &err,
                 "18446744073709551615");
    assert_fails(mf_gguf_get_u32(g, "s", &v, &found, &err), MINFER_ERR_FORMAT, &err,
                 "type string, expected an integer");
    assert_fails(mf_gguf_get_u32(g, "b.yes", &v, &found, &err), MINFER_ERR_FORMAT, &err, "type bool");
    assert_fails(mf_gguf_get_u32(g, "n.f32", &v, &found, &err), MINFER_ERR_FORMAT, &err, "type f32");
    assert_fails(mf_gguf_get_u32(g, "a.u8", &v, &found, &err), MINFER_ERR_FORMAT, &err, "array of u8");
    assert_int_equal(v, 9);
    mf_gguf_free(g);
    mf_buf_free(&b);
}

static void test_get_others(void **state)
{
    (void)state;
    mf_buf b = {0};
    mf_gguf *g = parse_everything(&b);
    minfer_error err;
    bool found, flag = true;
    float f = 2;
    mf_str s = {0};
    assert_ok(mf_gguf_get_f32(g, "n.f32", &f, NULL, &err), &err);
    assert_true(f == 0.1f);
    assert_ok(mf_gguf_get_f32(g, "n.f64", &f, &found, &err), &err);
    assert_true(found && f == 1e-6f);
    assert_fails(mf_gguf_get_f32(g, "n.u32", &f, &found, &err), MINFER_ERR_FORMAT, &err,
                 "type u32, expected f32");
    assert_ok(mf_gguf_get_f32(g, "none", &f, &found, &err), &err);
    assert_true(!found && f == 1e-6f);
    assert_ok(mf_gguf_get_bool(g, "b.no", &flag, NULL, &err), &err);
    assert_false(flag);
    assert_ok(mf_gguf_get_bool(g, "b.yes", &flag, &found, &err), &err);
    assert_true(flag && found);
    assert_fails(mf_gguf_get_bool(g, "n.u8", &flag, NULL, &err), MINFER_ERR_FORMAT, &err, "expected bool");
    assert_ok(mf_gguf_get_bool(g, "none", &flag, &found, &err), &err);
    assert_true(flag && !found);
    assert_ok(mf_gguf_get_str(g, "s", &s, &found, &err), &err);
    assert_int_equal(s.n, 5);
    assert_memory_equal(s.s, "hello", 5);
    assert_fails(mf_gguf_get_str(g, "a.strings", &s, &found, &err), MINFER_ERR_FORMAT, &err,
                 "array of string, expected string");
    assert_fails(mf_gguf_get_str(g, "none", &s, NULL, &err), MINFER_ERR_FORMAT, &err, "missing");
    assert_int_equal(s.n, 5);
    assert_int_equal(mf_gguf_get_bool(g, "n.u8", &flag, NULL, NULL), MINFER_ERR_FORMAT);
    mf_gguf_free(g);
    mf_buf_free(&b);
}

static void test_get_array(void **state)
{
    (void)state;
    mf_buf b = {0};
    mf_gguf *g = parse_everything(&b);
    minfer_error err;
    const mf_gguf_kv *kv = NULL;
    bool found;
    static const char *const integers[] = {"a.u8", "a.i16", "a.i32", "a.u64"};
    for (size_t i = 0; i < 4; i++)
        assert_ok(mf_gguf_get_array(g, integers[i], MF_GGUF_I32, &kv, &found, &err), &err);
    assert_int_equal(kv->count, 2);
    assert_true(mf_gguf_array_i64(kv, 0) == 5 && mf_gguf_array_i64(kv, 1) == INT64_MAX);
    assert_true(mf_gguf_array_f64(kv, 1) == 0x1p64);
    kv = mf_gguf_find(g, "a.i32");
    assert_true(mf_gguf_array_i64(kv, 1) == -1 && mf_gguf_array_i64(kv, 2) == INT32_MIN);
    assert_true(mf_gguf_array_f32(kv, 2) == -0x1p31f);
    kv = mf_gguf_find(g, "a.i16");
    assert_true(mf_gguf_array_i64(kv, 0) == -2);
    assert_true(mf_gguf_array_i64(mf_gguf_find(g, "a.u8"), 1) == 255);
    assert_ok(mf_gguf_get_array(g, "a.f32", MF_GGUF_F32, &kv, NULL, &err), &err);
    assert_true(mf_gguf_array_f32(kv, 0) == 1.5f && mf_gguf_array_i64(kv, 1) == -3000000000);
    assert_true(mf_gguf_array_i64(kv, 2) == INT64_MAX);
    assert_ok(mf_gguf_get_array(g, "a.f64", MF_GGUF_F32, &kv, NULL, &err), &err);
    assert_true(mf_gguf_array_f64(kv, 0) == 0.25 && mf_gguf_array_i64(kv, 1) == INT64_MIN);
    assert_true(mf_gguf_array_i64(kv, 2) == 0);
    assert_ok(mf_gguf_get_array(g, "a.bool", MF_GGUF_BOOL, &kv, NULL, &err), &err);
    assert_true(mf_gguf_array_i64(kv, 0) == 1 && mf_gguf_array_i64(kv, 1) == 0);
    assert_ok(mf_gguf_get_array(g, "a.strings", MF_GGUF_STRING, &kv, NULL, &err), &err);
    assert_int_equal(mf_gguf_array_i64(kv, 1), 0);
    assert_fails(mf_gguf_get_array(g, "a.f32", MF_GGUF_I32, &kv, NULL, &err), MINFER_ERR_FORMAT, &err,
                 "array of f32, expected array of an integer");
    assert_fails(mf_gguf_get_array(g, "s", MF_GGUF_STRING, &kv, NULL, &err), MINFER_ERR_FORMAT, &err,
                 "type string, expected array of string");
    kv = NULL;
    assert_ok(mf_gguf_get_array(g, "none", MF_GGUF_STRING, &kv, &found, &err), &err);
    assert_true(!found && !kv);
    assert_true(mf_gguf_array_i64(mf_gguf_find(g, "n.i8"), 0) == -100);
    assert_true(mf_gguf_array_i64(mf_gguf_find(g, "n.i64"), 0) == INT64_MIN);
    mf_gguf_free(g);
    mf_buf_free(&b);
}

static void test_type_names(void **state)
{
    (void)state;
    static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
    for (int i = 0; i < MF_GGUF_TYPE_COUNT; i++)
        assert_string_equal(mf_gguf_type_name((mf_gguf_type)i), names[i]);
    assert_string_equal(mf_gguf_type_name((mf_gguf_type)13), "?");
}

/* ---- memory ---- */

static void test_allocation_failures(void **state)
{
    (void)state;
    mf_buf b = {0};
    put_everything(&b);
    for (long n = 1;; n++) {
        mf_gguf *g = NULL;
        minfer_error err = {0};
        mf_mem_fail_at(n);
        minfer_status st = mf_gguf_parse(b.data, b.len, "memory", &g, &err);
        mf_mem_fail_at(0);
        if (st == MINFER_OK) {
            assert_true(n > 12);
            mf_gguf_free(g);
            break;
        }
        assert_fails(st, MINFER_ERR_NOMEM, &err, "out of memory");
        assert_null(g);
    }
    mf_buf_free(&b);
}

static void test_allocation_failures_split(void **state)
{
    (void)state;
    const char *path = MF_HOSTILE "/split_good_2/m-00002-of-00003.gguf";
    if (!file_exists(path)) SKIP_BECAUSE("%s was not written (python3?)", path);
    for (long n = 1;; n++) {
        mf_gguf *g = NULL;
        minfer_error err = {0};
        mf_mem_fail_at(n);
        minfer_status st = mf_gguf_open(path, &g, &err);
        mf_mem_fail_at(0);
        if (st == MINFER_OK) {
            assert_true(n > 20);
            mf_gguf_free(g);
            break;
        }
        assert_fails(st, MINFER_ERR_NOMEM, &err, "out of memory");
        assert_null(g);
    }
}

/* The data section lies in pages that may not even be read. */
static void test_tensor_data_is_not_touched(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 64;
    uint8_t *mem = mmap(NULL, page * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mf_buf b = {0};
    put_header(&b, 2, 1);
    PUT_KV(&b, "general.alignment", MF_GGUF_U32, uint32_t, (uint32_t)page);
    put_tensor(&b, "a", 1, (uint64_t[]){page * 30}, MF_TYPE_BF16, 0);
    put_tensor(&b, "b", 2, (uint64_t[]){256, 1}, MF_TYPE_Q6_K, page * 62);
    assert_true(b.len < page);
    memcpy(mem, b.data, b.len);
    mprotect(mem + page, page * (pages - 1), PROT_NONE);
    mf_gguf *g = NULL;
    minfer_error err;
    assert_ok(mf_gguf_parse(mem, page * pages, "memory", &g, &err), &err);
    assert_ptr_equal(mf_gguf_find_tensor(g, "b")->data, mem + 63 * page);
    mf_gguf_free(g);
    munmap(mem, page * pages);
    mf_buf_free(&b);
}

/* ---- files ---- */

static void test_split(void **state)
{
    (void)state;
    static const char *const order[] = {"a", "b", "c", "d"};
    if (!file_exists(MF_HOSTILE "/manifest.tsv")) SKIP_BECAUSE("%s was not written (python3?)", MF_HOSTILE);
    for (int named = 1; named <= 3; named++) {
        char path[1024];
        mf_gguf *g = NULL;
        minfer_error err;
        snprintf(path, sizeof path, MF_HOSTILE "/split_good_%d/m-0000%d-of-00003.gguf", named, named);
        assert_ok(mf_gguf_open(path, &g, &err), &err);
        assert_int_equal(mf_gguf_n_parts(g), 3);
        assert_int_equal(mf_gguf_n_tensors(g), 4);
        assert_non_null(strstr(mf_gguf_path(g), "m-00001-of-00003.gguf"));
        assert_non_null(strstr(mf_gguf_part_path(g, 2), "m-00003-of-00003.gguf"));
        assert_non_null(mf_gguf_find(g, "general.architecture"));
        for (size_t i = 0; i < 4; i++) {
            const mf_gguf_tensor *t = mf_gguf_tensor_at(g, i);
            assert_string_equal(t->cname, order[i]);
            assert_ptr_equal(mf_gguf_find_tensor(g, order[i]), t);
            assert_int_equal(t->part, i < 2 ? 0 : i - 1);
            assert_int_equal(t->data[63], 0);
        }
        mf_gguf_free(g);
    }
}

static void test_types_that_are_only_listed(void **state)
{
    (void)state;
    mf_gguf *g = NULL;
    minfer_error err;
    if (!file_exists(MF_HOSTILE "/manifest.tsv")) SKIP_BECAUSE("%s was not written (python3?)", MF_HOSTILE);
    assert_ok(mf_gguf_open(MF_HOSTILE "/good_types_not_computed.gguf", &g, &err), &err);
    const mf_gguf_tensor *t = mf_gguf_find_tensor(g, "b");
    assert_string_equal(mf_type_name(t->type), "IQ4_XS");
    assert_int_equal(t->size, 136);
    assert_false(mf_type_get(t->type)->weight);
    mf_gguf_free(g);
    assert_ok(mf_gguf_open(MF_HOSTILE "/good_names.gguf", &g, &err), &err);
    assert_int_equal(mf_gguf_tensor_at(g, 1)->name.n, 255);
    assert_int_equal(mf_gguf_tensor_at(g, 1)->cname[254], 'b');
    mf_gguf_free(g);
}

static void test_no_such_file(void **state)
{
    (void)state;
    mf_gguf *g = NULL;
    minfer_error err;
    assert_fails(mf_gguf_open(data_path("gguf/none.gguf"), &g, &err), MINFER_ERR_IO, &err,
                 "gguf/none.gguf: No such");
    assert_null(g);
    assert_fails(mf_gguf_open(data_path("gguf"), &g, &err), MINFER_ERR_IO, &err, "directory");
    char path[2000];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = 0;
    assert_fails(mf_gguf_parse("GGUF", 4, path, &g, &err), MINFER_ERR_FORMAT, &err, "ends at byte 4");
    assert_fails(mf_gguf_parse(NULL, 0, "nothing", &g, &err), MINFER_ERR_FORMAT, &err, "nothing: not a GGUF");
}

static void test_real_model(void **state)
{
    (void)state;
    const char *path = real_model("SmolLM2-135M-Instruct.Q4_1.gguf");
    if (!path) SKIP_BECAUSE("SmolLM2-135M-Instruct.Q4_1.gguf is not in the model cache");
    mf_gguf *g = NULL;
    minfer_error err;
    const mf_gguf_kv *tokens;
    uint32_t layers = 0;
    float eps = 0;
    assert_ok(mf_gguf_open(path, &g, &err), &err);
    assert_int_equal(mf_gguf_file_bytes(g), 98362432);
    assert_int_equal(mf_gguf_n_kv(g), 33);
    assert_int_equal(mf_gguf_n_tensors(g), 272);
    assert_ok(mf_gguf_get_u32(g, "llama.block_count", &layers, NULL, &err), &err);
    assert_int_equal(layers, 30);
    assert_ok(mf_gguf_get_f32(g, "llama.attention.layer_norm_rms_epsilon", &eps, NULL, &err), &err);
    assert_true(eps == 1e-5f);
    assert_ok(mf_gguf_get_array(g, "tokenizer.ggml.tokens", MF_GGUF_STRING, &tokens, NULL, &err), &err);
    assert_int_equal(tokens->count, 49152);
    assert_memory_equal(tokens->strs[1].s, "<|im_start|>", 12);
    const mf_gguf_tensor *t = mf_gguf_find_tensor(g, "token_embd.weight");
    assert_int_equal(t->type, MF_TYPE_Q8_0);
    assert_int_equal(t->offset, 1785664);
    assert_int_equal(t->dims[1], 49152);
    t = mf_gguf_find_tensor(g, "blk.1.ffn_down.weight");
    assert_int_equal(t->offset, 34085440);
    assert_int_equal(t->type, MF_TYPE_Q4_1);
    mf_gguf_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directory),
        cmocka_unit_test(test_raw_values),
        cmocka_unit_test(test_get_u32),
        cmocka_unit_test(test_get_others),
        cmocka_unit_test(test_get_array),
        cmocka_unit_test(test_type_names),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_allocation_failures_split),
        cmocka_unit_test(test_tensor_data_is_not_touched),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_types_that_are_only_listed),
        cmocka_unit_test(test_no_such_file),
        cmocka_unit_test(test_real_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
