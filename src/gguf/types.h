/* Tensor types as GGUF numbers them, and the memory layout of their blocks. Facts: the GGUF specification and
 * ggml's block formats. A row of a quantized type is k / block_values blocks one after the other; blocks are
 * 2-byte aligned. */
#ifndef MF_GGUF_TYPES_H
#define MF_GGUF_TYPES_H

#include "base/status.h"

typedef enum mf_type {
    MF_TYPE_F32 = 0,
    MF_TYPE_F16 = 1,
    MF_TYPE_Q4_0 = 2,
    MF_TYPE_Q4_1 = 3,
    MF_TYPE_Q5_0 = 6,
    MF_TYPE_Q5_1 = 7,
    MF_TYPE_Q8_0 = 8,
    MF_TYPE_Q4_K = 12,
    MF_TYPE_Q5_K = 13,
    MF_TYPE_Q6_K = 14,
    MF_TYPE_I32 = 26,
    MF_TYPE_BF16 = 30,
    MF_TYPE_COUNT = 31, /* ids below this may index tables; most are holes */
} mf_type;

typedef struct mf_type_info {
    const char *name;      /* "Q4_K"; NULL: unknown to minfer */
    uint16_t block_values; /* values per block, 1 for plain types */
    uint16_t block_bytes;
    bool weight;    /* may be the weight of a matmul and of GetRows */
    bool quantized; /* meets activations quantized to Q8_0 blocks of 32 */
} mf_type_info;

/* Never NULL; an unknown id gives an entry whose name is NULL. */
const mf_type_info *mf_type_get(uint32_t type);
static inline const char *mf_type_name(mf_type t)
{
    const char *n = mf_type_get((uint32_t)t)->name;
    return n ? n : "?";
}

/* Bytes of a row of n values (n a multiple of block_values); false when it does not fit or n is not. */
bool mf_type_row_bytes(mf_type type, uint64_t n, size_t *bytes);

/* Block layouts, little-endian. d, m, dmin are half floats.
 * Q4_0: d, qs[16]            w = d * (q - 8);   q: low nibbles are values 0..15, high nibbles 16..31
 * Q4_1: d, m, qs[16]         w = d * q + m
 * Q5_0: d, qh[4], qs[16]     w = d * (q - 16);  bit i of qh is bit 4 of value i
 * Q5_1: d, m, qh[4], qs[16]  w = d * q + m
 * Q8_0: d, qs[32] int8       w = d * q
 * Q4_K: d, dmin, scales[12], qs[128]          w = d * sc_j * q - dmin * m_j over eight sub-blocks of 32
 * Q5_K: d, dmin, scales[12], qh[32], qs[128]  likewise; bit j of qh[l] is bit 4 of value l of sub-block j
 * Q6_K: ql[128], qh[64], scales[16] int8, d   w = d * sc_j * (q - 32) over sixteen sub-blocks of 16 */
enum {
    MF_QK32 = 32,
    MF_QK256 = 256,
    MF_BYTES_Q4_0 = 18,
    MF_BYTES_Q4_1 = 20,
    MF_BYTES_Q5_0 = 22,
    MF_BYTES_Q5_1 = 24,
    MF_BYTES_Q8_0 = 34,
    MF_BYTES_Q4_K = 144,
    MF_BYTES_Q5_K = 176,
    MF_BYTES_Q6_K = 210,
};

/* Sub-scale and minimum j (0..7) out of the 12 bytes of a Q4_K or Q5_K block: 6 bits each. */
static inline void mf_k4_scale_min(const uint8_t *s, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        *min = s[j + 4] >> 4 | (s[j] >> 6) << 4;
    }
}

/* Expands one row of n values to floats: the definition of what a weight is. n is a multiple of block_values.
 * Each value is one product, and one fma or subtraction where there is a minimum, rounded to float as
 * docs/numerics.md says. type must be a weight type. */
void mf_dequantize_row(mf_type type, const void *src, float *dst, size_t n);

#endif
