#include "limits.h"

uint64_t limit_read(const void *p, size_t n)
{
    const uint64_t *v = p;
    uint64_t s[8] = {0};
    for (size_t i = 0; i < n / 8; i += 8)
        for (size_t j = 0; j < 8; j++) s[j] ^= v[i + j];
    for (size_t j = 1; j < 8; j++) s[0] ^= s[j];
    return s[0];
}
