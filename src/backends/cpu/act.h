/* The layout of quantized activations in tiles, for act.c and the kernels that write or read tiles. Owns no
 * arithmetic but the few numbers derived from a block's sums. */
#ifndef MF_BACKENDS_CPU_ACT_H
#define MF_BACKENDS_CPU_ACT_H

#include "backends/cpu/kernels.h"

#include <string.h>

/* A tile is one block of 32 values of n tokens (n = a->tok, less in the last tile): ACT_DWORDS entries of n
 * dwords each, entry e of token t at e * n + t, so that a kernel made for n tokens broadcasts everything from
 * constant offsets. bs0 and bs1 are the sums of q over the two halves of 16.
 *
 * A tier's tiles are read by its own kernels alone. In the NEON tier the entries of q lie in pairs: 2i and
 * 2i + 1 of token t at (ACT_Q + 2i) * n + 2t and behind it, as its instructions want them. */
enum {
    ACT_Z = 0,  /* -8 * (bs0 + bs1): the offset of Q4_0; doubled Q5_0's, 16 times Q8_0's as unsigned bytes */
    ACT_D = 1,  /* float */
    ACT_DS = 2, /* float, d * (bs0 + bs1) */
    ACT_PAIR = 3, /* int16 -16 * bs0, int16 -16 * bs1: half the offset of Q6_K */
    ACT_Z16 = 4,  /* -32 * bs0; -32 * bs1 in entry 5: the offset of Q6_K */
    ACT_Q = 6,    /* eight entries of four int8 each */
    ACT_DWORDS = 14,
};

/* Tile i of blocks from b on. */
static inline int32_t *cpu_act_tile(const cpu_act *a, int32_t i, int32_t b, int32_t *n)
{
    int32_t left = a->nt - i * a->tok;
    *n = left < a->tok ? left : a->tok;
    size_t blocks = (size_t)a->k / 32, before = (size_t)i * (size_t)a->tok * blocks;
    return a->tiles + (before + (size_t)b * (size_t)*n) * ACT_DWORDS;
}

/* Block b of token t, everything but q. bs0, bs1: sums of q over the halves. */
static inline void cpu_act_put_sums(const cpu_act *a, int32_t t, int32_t b, float d, int32_t bs0, int32_t bs1)
{
    size_t g = (size_t)t * ((size_t)a->k / 32) + (size_t)b;
    a->d[g] = d;
    a->ds[g] = d * (float)(bs0 + bs1);

    int32_t width;
    int32_t *tile = cpu_act_tile(a, t / a->tok, b, &width) + t % a->tok;
    size_t n = (size_t)width;
    int16_t pair[2] = {(int16_t)(-16 * bs0), (int16_t)(-16 * bs1)};
    tile[ACT_Z * n] = -8 * (bs0 + bs1);
    memcpy(tile + ACT_D * n, a->d + g, 4);
    memcpy(tile + ACT_DS * n, a->ds + g, 4);
    memcpy(tile + ACT_PAIR * n, pair, 4);
    tile[ACT_Z16 * n] = -32 * bs0;
    tile[(ACT_Z16 + 1) * n] = -32 * bs1;
}

/* Block b of token t, whose q are in a->q. */
static inline void cpu_act_put(const cpu_act *a, int32_t t, int32_t b, float d, int32_t bs0, int32_t bs1)
{
    int32_t width;
    int32_t *tile = cpu_act_tile(a, t / a->tok, b, &width) + t % a->tok;
    const int8_t *q = a->q + (size_t)t * (size_t)a->k + (size_t)b * 32;
    cpu_act_put_sums(a, t, b, d, bs0, bs1);
    for (size_t i = 0; i < 8; i++) memcpy(tile + (ACT_Q + i) * (size_t)width, q + i * 4, 4);
}

#endif
