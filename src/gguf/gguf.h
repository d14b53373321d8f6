/* GGUF files: header, metadata, tensor directory, split parts. Owns the mappings; everything handed out
 * points into them and lives as long as the mf_gguf. All sizes, counts, offsets and alignments are checked
 * against the bytes that are there before they are used. Reads versions 2 and 3, little-endian. */
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

typedef struct mf_gguf_kv {
    mf_str key;
    mf_gguf_type type;
    mf_gguf_type elem; /* of an array (never ARRAY: nested arrays are refused) */
    uint64_t count;    /* elements of an array; 1 otherwise */
    const uint8_t
        *data; /* the value's bytes, unaligned; of a string or string array: its first length field */
    const mf_str *strs; /* of a string (1) or a string array (count), already split; NULL otherwise */
} mf_gguf_kv;

typedef struct mf_gguf_tensor {
    mf_str name;
    const char *cname; /* the same, terminated */
    uint32_t n_dims;   /* 1..4 */
    uint64_t dims[4];  /* dims[0] is the row length (fastest); missing ones are 1; none is 0 */
    mf_type type;
    const uint8_t
        *data;     /* the whole tensor is inside the mapping; aligned to general.alignment within its part */
    size_t size;   /* bytes */
    uint32_t part; /* which file of a split model */
} mf_gguf_tensor;

/* Opens path and, when it is part of a split model (split.count, name-00001-of-00003.gguf), all other parts
 * beside it. Any part may be named; metadata comes from the first. Errors name the file, and the key or
 * tensor, the offset and the values. */
minfer_status mf_gguf_open(const char *path, mf_gguf **out, minfer_error *err);

/* Parses one file that is already in memory; data must outlive the result. name is used in messages. */
minfer_status mf_gguf_parse(const void *data, size_t size, const char *name, mf_gguf **out,
                            minfer_error *err);
void mf_gguf_free(mf_gguf *g);

uint32_t mf_gguf_version(const mf_gguf *g);
const char *mf_gguf_path(const mf_gguf *g);
size_t mf_gguf_file_bytes(const mf_gguf *g); /* of all parts */
uint32_t mf_gguf_n_parts(const mf_gguf *g);

size_t mf_gguf_n_kv(const mf_gguf *g);
const mf_gguf_kv *mf_gguf_kv_at(const mf_gguf *g, size_t i);
const mf_gguf_kv *mf_gguf_find(const mf_gguf *g, const char *key); /* NULL when absent */

/* Typed access. A key of another type is an error that names both types; an integer of any width is accepted
 * where its value fits. *found tells whether the key is there; when it is not, *out keeps its value (the
 * default). found may be NULL: then a missing key is an error. */
minfer_status mf_gguf_get_u32(const mf_gguf *g, const char *key, uint32_t *out, bool *found,
                              minfer_error *err);
minfer_status mf_gguf_get_f32(const mf_gguf *g, const char *key, float *out, bool *found, minfer_error *err);
minfer_status mf_gguf_get_bool(const mf_gguf *g, const char *key, bool *out, bool *found, minfer_error *err);
minfer_status mf_gguf_get_str(const mf_gguf *g, const char *key, mf_str *out, bool *found, minfer_error *err);
/* The whole array, its element type checked (any integer type satisfies MF_GGUF_I32; read elements with
 * mf_gguf_array_i64). */
minfer_status mf_gguf_get_array(const mf_gguf *g, const char *key, mf_gguf_type elem, const mf_gguf_kv **out,
                                bool *found, minfer_error *err);
int64_t mf_gguf_array_i64(const mf_gguf_kv *kv, uint64_t i);
float mf_gguf_array_f32(const mf_gguf_kv *kv, uint64_t i);

size_t mf_gguf_n_tensors(const mf_gguf *g);
const mf_gguf_tensor *mf_gguf_tensor_at(const mf_gguf *g, size_t i);
const mf_gguf_tensor *mf_gguf_find_tensor(const mf_gguf *g, const char *name); /* NULL when absent */

const char *mf_gguf_type_name(mf_gguf_type t);

#endif
