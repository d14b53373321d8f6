/* Tensor types as GGUF numbers them, and the memory layout of their blocks. Facts: the GGUF specification and
 * ggml's block formats. A row of a quantized type is k / block_values blocks one after the other; blocks are
 * 2-byte aligned. */
#ifndef MF_GGUF_TYPES_H
#define MF_GGUF_TYPES_H

#include "base/status.h"

/* Every id that has a known memory layout has a name here, so that files which hold such tensors can be
 * opened and listed. Computing with them is another matter: mf_type_info.weight says which. */
typedef enum mf_type {
    MF_TYPE_F32 = 0,
    MF_TYPE_F16 = 1,
    MF_TYPE_Q4_0 = 2,
    MF_TYPE_Q4_1 = 3,
    MF_TYPE_Q5_0 = 6,
    MF_TYPE_Q5_1 = 7,
    MF_TYPE_Q8_0 = 8,
    MF_TYPE_Q8_1 = 9,
    MF_TYPE_Q2_K = 10,
    MF_TYPE_Q3_K = 11,
    MF_TYPE_Q4_K = 12,
    MF_TYPE_Q5_K = 13,
    MF_TYPE_Q6_K = 14,
    MF_TYPE_Q8_K = 15,
    MF_TYPE_IQ2_XXS = 16,
    MF_TYPE_IQ2_XS = 17,
    MF_TYPE_IQ3_XXS = 18,
    MF_TYPE_IQ1_S = 19,
    MF_TYPE_IQ4_NL = 20,
    MF_TYPE_IQ3_S = 21,
    MF_TYPE_IQ2_S = 22,
    MF_TYPE_IQ4_XS = 23,
    MF_TYPE_I8 = 24,
    MF_TYPE_I16 = 25,
    MF_TYPE_I32 = 26,
    MF_TYPE_I64 = 27,
    MF_TYPE_F64 = 28,
    MF_TYPE_IQ1_M = 29,
    MF_TYPE_BF16 = 30,
    MF_TYPE_TQ1_0 = 34,
    MF_TYPE_TQ2_0 = 35,
    MF_TYPE_MXFP4 = 39,
    MF_TYPE_NVFP4 = 40,
    MF_TYPE_Q1_0 = 41,
    MF_TYPE_Q2_0 = 42,
    MF_TYPE_COUNT, /* ids below this may index tables; some are holes */
} mf_type;

/* Three kinds of entries: name NULL, an id nobody has given a meaning; block_values 0, a format that GGUF
 * once had and that has been taken out of it (its layout is not known here); all others have a layout. */
typedef struct mf_type_info {
    const char *name;      /* "Q4_K" */
    uint16_t block_values; /* values per block, 1 for plain types */
    uint16_t block_bytes;
    bool weight;    /* minfer computes with it: matmul, GetRows, mf_dequantize_row */
    bool quantized; /* such a weight meets activations quantized to Q8_0 blocks of 32 */
} mf_type_info;

/* Never NULL; any number may be asked for. */
const mf_type_info *mf_type_get(uint32_t type);
static inline const char *mf_type_name(mf_type t)
{
    const char *n = mf_type_get((uint32_t)t)->name;
    return n ? n : "?";
}

/* Bytes of a row of n values; false when n is no multiple of block_values, the size does not fit, or the type
 * has no known layout. */
bool mf_type_row_bytes(mf_type type, uint64_t n, size_t *bytes);

/* Bytes of a whole tensor, rows of dims[0] values; false as above, or when the product of all four dims or
 * the size does not fit. */
bool mf_type_tensor_bytes(mf_type type, const uint64_t dims[4], size_t *bytes);

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
 * Each value is one product, and one subtraction or addition where there is a minimum, rounded to float as
 * docs/numerics.md says. src may be unaligned. type is a weight type; any other leaves dst as it was. */
void mf_dequantize_row(mf_type type, const void *src, float *dst, size_t n);

#endif
