/* What writer and verifier of session files agree on; docs/session-file.md has the whole layout. */
#ifndef MF_KV_SESSION_FORMAT_H
#define MF_KV_SESSION_FORMAT_H

#include "kv/session_file.h"

#define MF_SESSION_MAGIC "MINFERKV"

enum {
    MF_SESSION_VERSION = 1,
    MF_SESSION_Q8_0 = 1, /* flags */
    MF_SESSION_F16 = 2,
    MF_SESSION_HEADER = 48, /* bytes before the first layer */
};

/* The values of a header that a file of this cache has, without its tokens. */
void mf_session_cache_describe(const mf_session_cache *c, mf_session_view *v);

/* A checksum that grows with its bytes; begins as mf_session_sum_new. */
typedef struct mf_session_sum {
    uint64_t h, part;
    int n_part; /* bytes of the word that is not full yet */
} mf_session_sum;

mf_session_sum mf_session_sum_new(void);
void mf_session_sum_add(mf_session_sum *s, const void *data, size_t n);
uint64_t mf_session_sum_end(mf_session_sum *s);

#endif
