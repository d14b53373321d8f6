/* Memory whose surroundings are watched: behind it lies a page that traps, before it (and, with a shift,
 * behind it) a pattern that guard_free checks. And the kernel tables of the tiers. */
#ifndef MF_TESTS_CPU_GUARD_H
#define MF_TESTS_CPU_GUARD_H

#include "backends/cpu/kernels.h"
#include "support/support.h"

typedef struct guard {
    unsigned char *map;
    size_t mapped, n, shift;
    void *p; /* n bytes, `shift` bytes before the trapping page */
} guard;

/* shift moves the memory off the page's end, so that all alignments can be had. The bytes are 0xA5. */
guard guard_new(size_t n, size_t shift);
/* Fails the test when something wrote around the memory. */
void guard_free(guard *g);

/* Scalar C with the rows entries of a tier on top of it; false when the tier does not run here. */
bool rows_tier(cpu_tier t, cpu_kernels *k);

/* A test whose state is a tier: declares the tables of scalar C and of the tier, and skips where it cannot
 * run. */
#define TIER_OR_SKIP(state, ref, k)   \
    cpu_kernels ref, k;               \
    rows_tier(CPU_TIER_SCALAR, &ref); \
    if (!rows_tier(*(const cpu_tier *)*(state), &k)) { SKIP_BECAUSE("this processor cannot run it"); }

struct CMUnitTest tier_test(const char *name, CMUnitTestFunction f, cpu_tier t);
#define ON_FAST_TIERS(t) \
    tier_test(#t, t, CPU_TIER_AVX2), tier_test(#t, t, CPU_TIER_AVX512), tier_test(#t, t, CPU_TIER_NEON)
#define ON_ALL_TIERS(t) tier_test(#t, t, CPU_TIER_SCALAR), ON_FAST_TIERS(t)

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Fails with name and values at the first float whose bits differ. */
void assert_same_bits(const char *what, const float *want, const float *got, size_t n);

/* Uniform in [-1, 1). */
float random_unit(mf_rng *r);
/* Signs, exponents and zeros of all sorts, at most `big` in magnitude; every eighth or so denormal or zero.
 */
float random_wild(mf_rng *r, float big);

#endif
