/* Four floats beside the vectors of vec8.h and vec16.h: what is left when a vector's groups of four lanes are
 * added, and the corners of a transposition. After their intrinsics. */
#ifndef MF_BACKENDS_CPU_X86_QUAD_H
#define MF_BACKENDS_CPU_X86_QUAD_H

typedef __m128 quad;

#define quad_load(p)     _mm_loadu_ps(p)
#define quad_store(p, v) _mm_storeu_ps(p, v)
#define quad_add(a, b)   _mm_add_ps(a, b)

VEC_INLINE void quad_transpose(quad r[4])
{
    _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
}

/* A half float to all lanes. */
VEC_INLINE vec v_set_f16(uint16_t h)
{
    return v_set(_mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h))));
}

#endif
