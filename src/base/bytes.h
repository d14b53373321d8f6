/* Unaligned little-endian loads and stores. Hosts are little-endian, which gguf/ checks once. */
#ifndef MF_BASE_BYTES_H
#define MF_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t mf_load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t mf_load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t mf_load_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline float mf_load_f32(const void *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif
