/* Random numbers that are the same everywhere: xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64.
 */
#ifndef MF_BASE_RNG_H
#define MF_BASE_RNG_H

#include <stdint.h>

typedef struct mf_rng {
    uint64_t s[4];
} mf_rng;

static inline uint64_t mf_splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline void mf_rng_seed(mf_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) r->s[i] = mf_splitmix64(&seed);
}

static inline uint64_t mf_rng_u64(mf_rng *r)
{
    uint64_t *s = r->s, x = s[1] * 5, t = s[1] << 17;
    x = (x << 7 | x >> 57) * 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return x;
}

/* Uniform in [0, 1): 53 bits. */
static inline double mf_rng_f64(mf_rng *r)
{
    return (double)(mf_rng_u64(r) >> 11) * 0x1p-53;
}

#endif
