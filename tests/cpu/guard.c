#include "cpu/guard.h"

#include "base/half.h"

#include <sys/mman.h>
#include <unistd.h>

enum { FILL = 0xA5 };

guard guard_new(size_t n, size_t shift)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = mf_align_up(n + shift + 256, page);
    guard g = {.mapped = room + page, .n = n, .shift = shift};
    g.map = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(g.map, MAP_FAILED);
    memset(g.map, FILL, room);
    assert_int_equal(mprotect(g.map + room, page, PROT_NONE), 0);
    g.p = g.map + room - shift - n;
    return g;
}

static void assert_untouched(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++) assert_int_equal(*from, FILL);
}

void guard_free(guard *g)
{
    unsigned char *p = g->p, *end = p + g->n;
    assert_untouched(g->map, p);
    assert_untouched(end, end + g->shift);
    munmap(g->map, g->mapped);
}

bool rows_tier(cpu_tier t, cpu_kernels *k)
{
    if (!cpu_tier_usable(t)) return false;
    cpu_kernels_select(k, t);
    return true;
}

struct CMUnitTest tier_test(const char *name, CMUnitTestFunction f, cpu_tier t)
{
    static cpu_tier tiers[CPU_TIER_COUNT];
    static char names[64][64];
    static size_t used;
    assert_true(used < COUNT(names));
    snprintf(names[used], sizeof names[used], "%s %s", name, cpu_tier_name(t));
    tiers[t] = t;
    return (struct CMUnitTest){names[used++], f, NULL, NULL, (void *)(uintptr_t)&tiers[t]};
}

void assert_same_bits(const char *what, const float *want, const float *got, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mf_f32_bits(want[i]) != mf_f32_bits(got[i])) {
            print_error("%s: value %zu of %zu is %a, should be %a\n", what, i, n, (double)got[i],
                        (double)want[i]);
            fail();
        }
}

float random_unit(mf_rng *r)
{
    return (float)(2 * mf_rng_f64(r) - 1);
}

float random_wild(mf_rng *r, float big)
{
    uint64_t u = mf_rng_u64(r);
    float sign = u & 1 ? -1.f : 1.f;
    if ((u >> 1) % 16 == 0) return sign * 0.f;
    if ((u >> 1) % 16 == 1) return mf_bits_f32((uint32_t)(u >> 32) & 0x7fffff) * sign;
    float x = ldexpf(1.f + (float)mf_rng_f64(r), (int)(mf_rng_u64(r) % 250) - 125);
    return sign * (x <= big ? x : big * (float)mf_rng_f64(r));
}
