/* Memory of quantized activations: how much, and where its parts are. Quantizing is ref/quantize.c and the
 * tiers. */
#include "backends/cpu/act.h"

#include "base/mem.h"

/* Every part starts on a cache line. */
static size_t part(size_t bytes)
{
    return mf_align_up(bytes, 64);
}

int32_t cpu_act_tokens(int32_t nt, int32_t few)
{
    if (nt > few) return CPU_TILE;
    int32_t tiles = (nt + CPU_TILE_SMALL - 1) / CPU_TILE_SMALL;
    return tiles > 1 ? (nt + tiles - 1) / tiles : CPU_TILE_SMALL;
}

size_t cpu_act_bytes(int32_t k, int32_t nt)
{
    size_t n = (size_t)k * (size_t)nt, blocks = n / 32;
    return part(n) + 2 * part(blocks * 4) + part(blocks * 4 * ACT_DWORDS);
}

void cpu_act_bind(cpu_act *a, void *mem, int32_t k, int32_t nt, int32_t few)
{
    size_t n = (size_t)k * (size_t)nt, dwords = part(n / 32 * 4);
    uint8_t *p = mem;
    *a = (cpu_act){.k = k, .nt = nt, .tok = cpu_act_tokens(nt, few), .few = nt <= few};
    a->q = (int8_t *)p;
    p += part(n);
    a->d = (float *)(void *)p;
    a->ds = (float *)(void *)(p + dwords);
    a->tiles = (int32_t *)(void *)(p + 2 * dwords);
}
