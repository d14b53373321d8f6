/* Which tiers this processor and its system can run, and the table of kernels for one. Detection only: the
 * kernels are ref/, x86/ and arm/. */
#include "backends/cpu/kernels.h"

#include "base/cpuarm.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Bits of CPUID leaf 1 (ECX), leaf 7 (EBX, ECX) and of XCR0, from the manuals of Intel and AMD. */
enum {
    LEAF1_FMA = 1 << 12,
    LEAF1_OSXSAVE = 1 << 27,
    LEAF1_AVX = 1 << 28,
    LEAF1_F16C = 1 << 29,
    LEAF7_AVX2 = 1 << 5,
    LEAF7_AVX512F = 1 << 16,
    LEAF7_AVX512DQ = 1 << 17,
    LEAF7_AVX512BW = 1 << 30,
    LEAF7_AVX512VNNI = 1 << 11, /* ECX */
    XCR0_YMM = 0x06,
    XCR0_ZMM = 0xe6,
};
#define LEAF7_AVX512VL (1u << 31)

static bool has(uint32_t value, uint32_t bits)
{
    return (value & bits) == bits;
}

/* The register states that the system saves; 0 where it does not say. */
static uint32_t saved_states(void)
{
    uint32_t eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !has(ecx, LEAF1_OSXSAVE)) return 0;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    return eax;
}

static bool has_avx2(void)
{
    uint32_t eax, ebx, ecx, edx;
    if (!has(saved_states(), XCR0_YMM)) return false;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !has(ecx, LEAF1_FMA | LEAF1_AVX | LEAF1_F16C))
        return false;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && has(ebx, LEAF7_AVX2);
}

static bool has_avx512(void)
{
#ifdef MINFER_EMULATE_AVX512
    return has_avx2();
#else
    uint32_t eax, ebx, ecx, edx;
    if (!has_avx2() || !has(saved_states(), XCR0_ZMM)) return false;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !has(ecx, LEAF7_AVX512VNNI)) return false;
    return has(ebx, LEAF7_AVX512F | LEAF7_AVX512DQ | LEAF7_AVX512BW | LEAF7_AVX512VL);
#endif
}

#endif

static bool always(void)
{
    return true;
}

/* usable: NULL where the tier is not compiled in. init: what it writes over the table of the tier below. */
static const struct {
    const char *name;
    bool (*usable)(void);
    void (*init[2])(cpu_kernels *k);
} tiers[CPU_TIER_COUNT] = {
    [CPU_TIER_SCALAR] = {"scalar", always, {cpu_matmul_init_ref, cpu_rows_init_ref}},
#if defined(__x86_64__)
    [CPU_TIER_AVX2] = {"avx2", has_avx2, {cpu_matmul_init_avx2, cpu_rows_init_avx2}},
    [CPU_TIER_AVX512] = {"avx512", has_avx512, {cpu_matmul_init_avx512, cpu_rows_init_avx512}},
#else
    [CPU_TIER_AVX2] = {"avx2", NULL, {NULL}},
    [CPU_TIER_AVX512] = {"avx512", NULL, {NULL}},
#endif
#if defined(__AARCH64EL__)
    [CPU_TIER_NEON] = {"neon", mf_cpu_has_dotprod, {cpu_matmul_init_neon, cpu_rows_init_neon}},
#else
    [CPU_TIER_NEON] = {"neon", NULL, {NULL}},
#endif
};

const char *cpu_tier_name(cpu_tier t)
{
    return tiers[t].name;
}

bool cpu_tier_built(cpu_tier t)
{
    return tiers[t].usable != NULL;
}

bool cpu_tier_usable(cpu_tier t)
{
    return tiers[t].usable && tiers[t].usable();
}

void cpu_kernels_select(cpu_kernels *k, cpu_tier cap)
{
    memset(k, 0, sizeof *k);
    for (int t = CPU_TIER_SCALAR; t <= (int)cap; t++) {
        if (!cpu_tier_usable((cpu_tier)t)) continue;
        for (int i = 0; i < 2; i++)
            if (tiers[t].init[i]) tiers[t].init[i](k);
        k->tier = tiers[t].name;
    }
}
