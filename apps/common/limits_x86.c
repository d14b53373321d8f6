/* Products of bytes on x86-64. */
#include "common/limits.h"

#include <immintrin.h>
#include <string.h>

enum { CHAINS = 10, ROUNDS = 1000000 };

/* maddubs with sums kept in 16 bits: as much as AVX2 can do for weights of 4 bits. */
__attribute__((target("avx2"))) static uint64_t products_avx2(void)
{
    __m256i w = _mm256_set1_epi8(3), q = _mm256_set1_epi8(1), s[CHAINS];
    for (int i = 0; i < CHAINS; i++) s[i] = _mm256_setzero_si256();
    for (int r = 0; r < ROUNDS; r++) {
        __asm__ volatile("" : "+x"(w), "+x"(q));
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) {
            __m256i x = q;
            __asm__("" : "+x"(x)); /* ten products, not one */
            s[i] = _mm256_add_epi16(s[i], _mm256_maddubs_epi16(w, x));
        }
    }
    for (int i = 1; i < CHAINS; i++) s[0] = _mm256_xor_si256(s[0], s[i]);
    __asm__ volatile("" ::"x"(s[0]));
    return (uint64_t)ROUNDS * CHAINS * 32;
}

__attribute__((target("avx512f,avx512vnni"))) static uint64_t products_avx512(void)
{
    __m512i w = _mm512_set1_epi8(3), q = _mm512_set1_epi8(1), s[CHAINS];
    for (int i = 0; i < CHAINS; i++) s[i] = _mm512_setzero_si512();
    for (int r = 0; r < ROUNDS; r++) {
        __asm__ volatile("" : "+v"(w), "+v"(q));
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++) s[i] = _mm512_dpbusd_epi32(s[i], w, q);
    }
    for (int i = 1; i < CHAINS; i++) s[0] = _mm512_xor_si512(s[0], s[i]);
    __asm__ volatile("" ::"v"(s[0]));
    return (uint64_t)ROUNDS * CHAINS * 64;
}

uint64_t app_limit_products(const char *tier)
{
    if (!strcmp(tier, "avx2") && __builtin_cpu_supports("avx2")) return products_avx2();
    if (!strcmp(tier, "avx512") && __builtin_cpu_supports("avx512vnni")) return products_avx512();
    return 0;
}
