/* Products of bytes on 64-bit ARM. This file is built with dotprod and i8mm, and asks before it uses them. */
#include "common/limits.h"

#include "base/cpuarm.h"

#include <arm_neon.h>
#include <string.h>

enum { CHAINS = 12, ROUNDS = 1000000 };

#define MULTIPLY(instruction)                                                                     \
    int8x16_t w = vdupq_n_s8(3), q = vdupq_n_s8(1);                                               \
    int32x4_t s[CHAINS];                                                                          \
    for (int i = 0; i < CHAINS; i++) s[i] = vdupq_n_s32(0);                                       \
    for (int r = 0; r < ROUNDS; r++) {                                                            \
        __asm__ volatile("" : "+w"(w), "+w"(q));                                                  \
        _Pragma("GCC unroll 16") for (int i = 0; i < CHAINS; i++) s[i] = instruction(s[i], w, q); \
    }                                                                                             \
    for (int i = 1; i < CHAINS; i++) s[0] = veorq_s32(s[0], s[i]);                                \
    __asm__ volatile("" ::"w"(s[0]))

static uint64_t dot_products(void)
{
    MULTIPLY(vdotq_s32);
    return (uint64_t)ROUNDS * CHAINS * 16;
}

static uint64_t matrix_products(void)
{
    MULTIPLY(vmmlaq_s32);
    return (uint64_t)ROUNDS * CHAINS * 32;
}

uint64_t app_limit_products(const char *tier)
{
    if (strcmp(tier, "neon") != 0 || !mf_cpu_has_dotprod()) return 0;
    return mf_cpu_has_i8mm() ? matrix_products() : dot_products();
}
