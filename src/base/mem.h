/* Memory: checked sizes, allocation with injectable failure, an arena, a growing byte buffer. */
#ifndef MF_BASE_MEM_H
#define MF_BASE_MEM_H

#include "base/status.h"

/* Overflow-safe arithmetic: false when the result does not fit. */
static inline bool mf_add_ok(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool mf_mul_ok(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* Rounds n up to a multiple of align (a power of two). The caller knows that n + align does not wrap. */
static inline size_t mf_align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

/* All return NULL when memory is short, the product overflows, or a failure is injected. n = 0 gives a valid
 * pointer. mf_calloc zeroes. mf_realloc keeps p valid on failure. mf_free accepts NULL. */
void *mf_malloc(size_t n);
void *mf_calloc(size_t count, size_t size);
void *mf_realloc(void *p, size_t count, size_t size);
void mf_free(void *p);
char *mf_strndup(const char *s, size_t n);

/* 64-byte aligned memory for kernels and activations; given back with mf_free_aligned. Not zeroed. Pages are
 * touched late. */
void *mf_malloc_aligned(size_t n);
void mf_free_aligned(void *p);

/* Tests only: the n-th allocation from now (1 = the next) and all after it fail; -n: the n-th alone; 0
 * switches injection off. Returns how many allocations were made since the last call. */
long mf_mem_fail_at(long n);

#define MF_NOMEM(err) mf_fail(err, MINFER_ERR_NOMEM, "out of memory in %s", __func__)

/* Arena: many small objects that die together. Zero-initialise; blocks grow with use. */
typedef struct mf_arena {
    struct mf_arena_block *head;
    size_t used, limit; /* bytes handed out; limit 0 = none */
} mf_arena;

void *mf_arena_alloc(mf_arena *a,
                     size_t n); /* zeroed, 16-byte aligned; NULL when memory or the limit is exhausted */
void *mf_arena_array(mf_arena *a, size_t count, size_t size);
char *mf_arena_strndup(mf_arena *a, const char *s, size_t n); /* terminated */
void mf_arena_free(mf_arena *a);

/* Growing byte buffer. Zero-initialise. data is always terminated by a NUL that len does not count (NULL
 * while empty). */
typedef struct mf_buf {
    char *data;
    size_t len, cap, limit; /* limit 0 = none */
} mf_buf;

/* false when memory or the limit is exhausted; what was there stays. */
bool mf_buf_append(mf_buf *b, const void *data, size_t n);
bool mf_buf_str(mf_buf *b, const char *s);
bool mf_buf_char(mf_buf *b, char c);
bool mf_buf_printf(mf_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mf_buf_free(mf_buf *b);

/* Room for at least one more element of *cap in a typed array: grows by doubling. false when memory is
 * exhausted. Use: `if (!mf_grow((void **)&v, &cap, len + 1, sizeof *v)) return MF_NOMEM(err);` */
bool mf_grow(void **data, size_t *cap, size_t need, size_t size);

#endif
