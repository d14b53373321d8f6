/* The table of tensor types and the sizes that follow from it. Owns no memory; the meaning of the bits in a
 * block is in dequant.c. */
#include "gguf/types.h"

#define FLOATS(name, bytes)         \
    {                               \
        name, 1, bytes, true, false \
    }
#define QUANT(name, values, bytes)      \
    {                                   \
        name, values, bytes, true, true \
    }
#define NO_WEIGHT(name, values, bytes)    \
    {                                     \
        name, values, bytes, false, false \
    }
#define REMOVED(name)            \
    {                            \
        name, 0, 0, false, false \
    }

static const mf_type_info types[MF_TYPE_COUNT] = {
    [MF_TYPE_F32] = FLOATS("F32", 4),
    [MF_TYPE_F16] = FLOATS("F16", 2),
    [MF_TYPE_BF16] = FLOATS("BF16", 2),
    [MF_TYPE_Q4_0] = QUANT("Q4_0", MF_QK32, MF_BYTES_Q4_0),
    [MF_TYPE_Q4_1] = QUANT("Q4_1", MF_QK32, MF_BYTES_Q4_1),
    [MF_TYPE_Q5_0] = QUANT("Q5_0", MF_QK32, MF_BYTES_Q5_0),
    [MF_TYPE_Q5_1] = QUANT("Q5_1", MF_QK32, MF_BYTES_Q5_1),
    [MF_TYPE_Q8_0] = QUANT("Q8_0", MF_QK32, MF_BYTES_Q8_0),
    [MF_TYPE_Q4_K] = QUANT("Q4_K", MF_QK256, MF_BYTES_Q4_K),
    [MF_TYPE_Q5_K] = QUANT("Q5_K", MF_QK256, MF_BYTES_Q5_K),
    [MF_TYPE_Q6_K] = QUANT("Q6_K", MF_QK256, MF_BYTES_Q6_K),
    [MF_TYPE_Q8_1] = NO_WEIGHT("Q8_1", 32, 36),
    [MF_TYPE_Q2_K] = NO_WEIGHT("Q2_K", 256, 84),
    [MF_TYPE_Q3_K] = NO_WEIGHT("Q3_K", 256, 110),
    [MF_TYPE_Q8_K] = NO_WEIGHT("Q8_K", 256, 292),
    [MF_TYPE_IQ2_XXS] = NO_WEIGHT("IQ2_XXS", 256, 66),
    [MF_TYPE_IQ2_XS] = NO_WEIGHT("IQ2_XS", 256, 74),
    [MF_TYPE_IQ3_XXS] = NO_WEIGHT("IQ3_XXS", 256, 98),
    [MF_TYPE_IQ1_S] = NO_WEIGHT("IQ1_S", 256, 50),
    [MF_TYPE_IQ4_NL] = NO_WEIGHT("IQ4_NL", 32, 18),
    [MF_TYPE_IQ3_S] = NO_WEIGHT("IQ3_S", 256, 110),
    [MF_TYPE_IQ2_S] = NO_WEIGHT("IQ2_S", 256, 82),
    [MF_TYPE_IQ4_XS] = NO_WEIGHT("IQ4_XS", 256, 136),
    [MF_TYPE_I8] = NO_WEIGHT("I8", 1, 1),
    [MF_TYPE_I16] = NO_WEIGHT("I16", 1, 2),
    [MF_TYPE_I32] = NO_WEIGHT("I32", 1, 4),
    [MF_TYPE_I64] = NO_WEIGHT("I64", 1, 8),
    [MF_TYPE_F64] = NO_WEIGHT("F64", 1, 8),
    [MF_TYPE_IQ1_M] = NO_WEIGHT("IQ1_M", 256, 56),
    [MF_TYPE_TQ1_0] = NO_WEIGHT("TQ1_0", 256, 54),
    [MF_TYPE_TQ2_0] = NO_WEIGHT("TQ2_0", 256, 66),
    [MF_TYPE_MXFP4] = NO_WEIGHT("MXFP4", 32, 17),
    [MF_TYPE_NVFP4] = NO_WEIGHT("NVFP4", 64, 36),
    [MF_TYPE_Q1_0] = NO_WEIGHT("Q1_0", 128, 18),
    [MF_TYPE_Q2_0] = NO_WEIGHT("Q2_0", 64, 18),
    [4] = REMOVED("Q4_2"),
    [5] = REMOVED("Q4_3"),
    [31] = REMOVED("Q4_0_4_4"),
    [32] = REMOVED("Q4_0_4_8"),
    [33] = REMOVED("Q4_0_8_8"),
    [36] = REMOVED("IQ4_NL_4_4"),
    [37] = REMOVED("IQ4_NL_4_8"),
    [38] = REMOVED("IQ4_NL_8_8"),
};

const mf_type_info *mf_type_get(uint32_t type)
{
    static const mf_type_info unknown = {0};
    return type < MF_TYPE_COUNT ? &types[type] : &unknown;
}

bool mf_type_row_bytes(mf_type type, uint64_t n, size_t *bytes)
{
    const mf_type_info *t = mf_type_get((uint32_t)type);
    if (t->block_values == 0 || n % t->block_values != 0) return false;
    return !__builtin_mul_overflow(n / t->block_values, (uint64_t)t->block_bytes, bytes);
}

bool mf_type_tensor_bytes(mf_type type, const uint64_t dims[4], size_t *bytes)
{
    uint64_t rows, rows_of_3, values;
    size_t row;
    if (!mf_type_row_bytes(type, dims[0], &row)) return false;
    if (__builtin_mul_overflow(dims[1], dims[2], &rows_of_3)) return false;
    if (__builtin_mul_overflow(rows_of_3, dims[3], &rows)) return false;
    if (__builtin_mul_overflow(rows, dims[0], &values) || values > INT64_MAX) return false;
    return !__builtin_mul_overflow(rows, (uint64_t)row, bytes);
}
