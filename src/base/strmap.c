/* Open addressing with linear probing, at most two thirds full. */
#include "base/strmap.h"
#include "base/bytes.h"
#include "base/mem.h"

uint64_t mf_hash_bytes(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ (n * 0x9e3779b97f4a7c15u);
    for (; n >= 8; n -= 8, p += 8) {
        h = (h ^ mf_load_u64(p)) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < n; i++) tail |= (uint64_t)p[i] << 8 * i;
    h = (h ^ tail) * 0xc4ceb9fe1a85ec53u;
    h ^= h >> 29;
    return h * 0x94d049bb133111ebu ^ h >> 31;
}

static uint32_t hash_of(const char *key, size_t len)
{
    return (uint32_t)(mf_hash_bytes(key, len, 0) >> 20);
}

static mf_strmap_slot *find_slot(const mf_strmap *m, const char *key, size_t len, uint32_t hash)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        mf_strmap_slot *s = &m->slots[i];
        if (!s->used || (s->hash == hash && s->len == len && memcmp(s->key, key, len) == 0)) return s;
    }
}

bool mf_strmap_reserve(mf_strmap *m, size_t n)
{
    size_t cap = m->cap ? m->cap : 16, need;
    if (!mf_mul_ok(n, 3, &need)) return false;
    while (cap < need / 2 + 1)
        if (!mf_mul_ok(cap, 2, &cap)) return false;
    if (cap == m->cap) return true;
    mf_strmap bigger = {mf_calloc(cap, sizeof *m->slots), cap, m->count};
    if (!bigger.slots) return false;
    for (size_t i = 0; i < m->cap; i++) {
        const mf_strmap_slot *s = &m->slots[i];
        if (s->used) *find_slot(&bigger, s->key, s->len, s->hash) = *s;
    }
    mf_free(m->slots);
    *m = bigger;
    return true;
}

uint32_t mf_strmap_get(const mf_strmap *m, const char *key, size_t len)
{
    if (m->cap == 0) return MF_STRMAP_NONE;
    const mf_strmap_slot *s = find_slot(m, key, len, hash_of(key, len));
    return s->used ? s->value : MF_STRMAP_NONE;
}

bool mf_strmap_add(mf_strmap *m, const char *key, size_t len, uint32_t value, uint32_t *existing)
{
    if (len > UINT32_MAX || !mf_strmap_reserve(m, m->count + 1)) return false;
    uint32_t hash = hash_of(key, len);
    mf_strmap_slot *s = find_slot(m, key, len, hash);
    if (existing) *existing = s->used ? s->value : MF_STRMAP_NONE;
    if (s->used) return true;
    *s = (mf_strmap_slot){key, (uint32_t)len, value, hash, 1};
    m->count++;
    return true;
}

void mf_strmap_free(mf_strmap *m)
{
    mf_free(m->slots);
    *m = (mf_strmap){0};
}
