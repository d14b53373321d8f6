/* Hash map from byte strings to 32-bit numbers. Keys are not copied: they live as long as the map. */
#ifndef MF_BASE_STRMAP_H
#define MF_BASE_STRMAP_H

#include "base/status.h"

typedef struct mf_strmap_slot {
    const char *key;
    uint32_t len, value;
    uint32_t hash, used;
} mf_strmap_slot;

typedef struct mf_strmap { /* zero-initialise */
    mf_strmap_slot *slots;
    size_t cap, count; /* cap is a power of two, 0 while empty */
} mf_strmap;

#define MF_STRMAP_NONE 0xFFFFFFFFu

/* Makes room for n keys at once. */
bool mf_strmap_reserve(mf_strmap *m, size_t n);
/* The value of key, or MF_STRMAP_NONE. */
uint32_t mf_strmap_get(const mf_strmap *m, const char *key, size_t len);
/* Adds key unless it is there; *existing receives the value that was there, or MF_STRMAP_NONE. false: out of
 * memory. */
bool mf_strmap_add(mf_strmap *m, const char *key, size_t len, uint32_t value, uint32_t *existing);
void mf_strmap_free(mf_strmap *m);

/* 64-bit hash of bytes, the same everywhere; also used for uids and checks. */
uint64_t mf_hash_bytes(const void *data, size_t n, uint64_t seed);

#endif
