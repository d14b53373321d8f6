/* GGUF files: header, metadata, tensor directory, split parts. Owns the mappings; everything handed out
 * points into them and lives as long as the mf_gguf. All sizes, counts, offsets and alignments are checked
 * against the bytes that are there before they are used, and memory grows with what has been read, never with
 * what a count claims. Reads versions 2 and 3, little-endian. What the keys mean is for others to know. */
#ifndef MF_GGUF_GGUF_H
#define MF_GGUF_GGUF_H

#include "gguf/types.h"

typedef struct mf_gguf mf_gguf;

typedef struct mf_str {
    const char *s; /* not terminated */
    size_t n;      /* bytes */
} mf_str;

typedef enum mf_gguf_type { /* value types of metadata, as in the file */
                            MF_GGUF_U8,
                            MF_GGUF_I8,
                            MF_GGUF_U16,
                            MF_GGUF_I16,
                            MF_GGUF_U32,
                            MF_GGUF_I32,
                            MF_GGUF_F32,
                            MF_GGUF_BOOL,
                            MF_GGUF_STRING,
                            MF_GGUF_ARRAY,
                            MF_GGUF_U64,
                            MF_GGUF_I64,
                            MF_GGUF_F64,
                            MF_GGUF_TYPE_COUNT,
} mf_gguf_type;

/* Limits of what is accepted; beyond them a file is refused, nothing is ever cut. */
enum {
    MF_GGUF_MAX_KEY = 65535,         /* bytes of a key */
    MF_GGUF_MAX_TENSOR_NAME = 255,   /* bytes of a tensor's name */
    MF_GGUF_MAX_ENTRIES = 1 << 17,   /* keys, and tensors, of one file */
    MF_GGUF_MIN_ALIGNMENT = 8,       /* general.alignment is a power of two from here ... */
    MF_GGUF_MAX_ALIGNMENT = 1 << 20, /* ... to here */
    MF_GGUF_DEFAULT_ALIGNMENT = 32,  /* where the key is absent */
};

typedef struct mf_gguf_kv {
    mf_str key; /* UTF-8, no NUL, not empty, unique in its file */
    mf_gguf_type type;
    mf_gguf_type elem;   /* of an array's elements (never ARRAY: nested arrays are refused); else as type */
    uint64_t count;      /* elements of an array; 1 otherwise */
    const uint8_t *data; /* the value's bytes, unaligned; of strings: the first length field */
    size_t size;         /* bytes at data: the value as the file spells it, without type and count */
    const mf_str *strs;  /* of a string (1) or a string array (count), already split; NULL otherwise; these
                            may be any bytes, UTF-8 is not checked */
} mf_gguf_kv;

typedef struct mf_gguf_tensor {
    mf_str name;         /* UTF-8, no NUL, not empty, unique in the model */
    const char *cname;   /* the same, terminated */
    uint32_t n_dims;     /* 1..4 */
    uint64_t dims[4];    /* dims[0] is the row length (fastest); missing ones are 1; none is 0 */
    mf_type type;        /* has a known layout; whether minfer computes with it: mf_type_info.weight */
    const uint8_t *data; /* the whole tensor is inside the file and overlaps no other */
    size_t size;         /* bytes: mf_type_tensor_bytes of type and dims */
    uint64_t offset;     /* of data in its file, a multiple of general.alignment */
    uint32_t part;       /* which file of a split model, from 0 */
} mf_gguf_tensor;

/* Opens path and, when its metadata says that it is a part of a split model (split.count > 1), all other
 * parts beside it, which are found by name: name-00001-of-00003.gguf. Any part may be named; metadata comes
 * from the first. No byte of tensor data is read. Errors name the file, and the key or tensor, the offset and
 * the values. */
minfer_status mf_gguf_open(const char *path, mf_gguf **out, minfer_error *err);

/* Parses one file that is already in memory; data must outlive the result and be aligned to 8 bytes. name is
 * used in messages. Of a split model it gives this one part. */
minfer_status mf_gguf_parse(const void *data, size_t size, const char *name, mf_gguf **out,
                            minfer_error *err);
void mf_gguf_free(mf_gguf *g);

uint32_t mf_gguf_version(const mf_gguf *g);
const char *mf_gguf_path(const mf_gguf *g);   /* of the first part */
size_t mf_gguf_file_bytes(const mf_gguf *g);  /* of all parts */
uint32_t mf_gguf_alignment(const mf_gguf *g); /* of tensor data, as the first part says */
uint32_t mf_gguf_n_parts(const mf_gguf *g);
const char *mf_gguf_part_path(const mf_gguf *g, uint32_t part); /* part < n_parts */

size_t mf_gguf_n_kv(const mf_gguf *g);
const mf_gguf_kv *mf_gguf_kv_at(const mf_gguf *g, size_t i);       /* in file order; i < n_kv */
const mf_gguf_kv *mf_gguf_find(const mf_gguf *g, const char *key); /* NULL when absent */

/* Typed access. A key of another type is an error that names both types; an integer of any width is accepted
 * where its value fits, and F64 where F32 is asked for. *found tells whether the key is there; when it is
 * not, *out keeps its value (the default). found may be NULL: then a missing key is an error. After an error
 * *out is as it was. */
minfer_status mf_gguf_get_u32(const mf_gguf *g, const char *key, uint32_t *out, bool *found,
                              minfer_error *err);
minfer_status mf_gguf_get_f32(const mf_gguf *g, const char *key, float *out, bool *found, minfer_error *err);
minfer_status mf_gguf_get_bool(const mf_gguf *g, const char *key, bool *out, bool *found, minfer_error *err);
minfer_status mf_gguf_get_str(const mf_gguf *g, const char *key, mf_str *out, bool *found, minfer_error *err);
/* The whole array, its element type checked (any integer type satisfies MF_GGUF_I32, F64 satisfies
 * MF_GGUF_F32; read elements with mf_gguf_array_i64 and mf_gguf_array_f32). */
minfer_status mf_gguf_get_array(const mf_gguf *g, const char *key, mf_gguf_type elem, const mf_gguf_kv **out,
                                bool *found, minfer_error *err);

/* Element i < count of an array of numbers or bools, or a single one (i = 0). As i64: U64 beyond INT64_MAX
 * gives INT64_MAX, floats are cut towards zero and to the range, NaN gives 0. Strings give 0. */
int64_t mf_gguf_array_i64(const mf_gguf_kv *kv, uint64_t i);
double mf_gguf_array_f64(const mf_gguf_kv *kv, uint64_t i);
float mf_gguf_array_f32(const mf_gguf_kv *kv, uint64_t i);

size_t mf_gguf_n_tensors(const mf_gguf *g);                          /* of all parts */
const mf_gguf_tensor *mf_gguf_tensor_at(const mf_gguf *g, size_t i); /* in file order, part by part */
const mf_gguf_tensor *mf_gguf_find_tensor(const mf_gguf *g, const char *name); /* NULL when absent */

const char *mf_gguf_type_name(mf_gguf_type t); /* "u32", "string"; "?" for what is none */

#endif
