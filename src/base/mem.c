/* Allocation, arena, byte buffer. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_long fail_at;  /* as mf_mem_fail_at was told */
static atomic_long n_allocs; /* since the last mf_mem_fail_at */

long mf_mem_fail_at(long n)
{
    atomic_store(&fail_at, n);
    return atomic_exchange(&n_allocs, 0);
}

static bool injected(void)
{
    long n = atomic_fetch_add_explicit(&n_allocs, 1, memory_order_relaxed) + 1;
    long at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return at > 0 ? n >= at : at < 0 && n == -at;
}

void *mf_malloc(size_t n)
{
    return injected() ? NULL : malloc(n ? n : 1);
}

void *mf_calloc(size_t count, size_t size)
{
    size_t n;
    if (!mf_mul_ok(count, size, &n) || injected()) return NULL;
    return n ? calloc(count, size) : calloc(1, 1);
}

void *mf_realloc(void *p, size_t count, size_t size)
{
    size_t n;
    if (!mf_mul_ok(count, size, &n) || injected()) return NULL;
    return realloc(p, n ? n : 1);
}

void mf_free(void *p)
{
    free(p);
}

char *mf_strndup(const char *s, size_t n)
{
    size_t total;
    char *p = mf_add_ok(n, 1, &total) ? mf_malloc(total) : NULL;
    if (!p) return NULL;
    if (n) memcpy(p, s, n);
    p[n] = 0;
    return p;
}

void *mf_malloc_aligned(size_t n)
{
    size_t total;
    void *p = NULL;
    if (!mf_add_ok(n, 64, &total) || injected()) return NULL;
    return posix_memalign(&p, 64, total) ? NULL : p;
}

void mf_free_aligned(void *p)
{
    free(p);
}

struct mf_arena_block {
    struct mf_arena_block *next;
    size_t used, size;
    max_align_t data[];
};

void *mf_arena_alloc(mf_arena *a, size_t n)
{
    size_t total, need;
    if (!mf_add_ok(n, 15, &need)) return NULL;
    need &= ~(size_t)15;
    if (!mf_add_ok(a->used, need, &total) || (a->limit && total > a->limit)) return NULL;
    struct mf_arena_block *b = a->head;
    if (!b || b->size - b->used < need) {
        size_t grow = b ? b->size * 2 : 1024;
        if (grow > (size_t)1 << 20) grow = (size_t)1 << 20;
        size_t size = need > grow ? need : grow;
        if (!mf_add_ok(size, sizeof *b, &total)) return NULL;
        b = mf_malloc(total);
        if (!b) return NULL;
        *b = (struct mf_arena_block){.next = a->head, .size = size};
        a->head = b;
    }
    void *p = (char *)b->data + b->used;
    b->used += need;
    a->used += need;
    return memset(p, 0, need);
}

void *mf_arena_array(mf_arena *a, size_t count, size_t size)
{
    size_t n;
    return mf_mul_ok(count, size, &n) ? mf_arena_alloc(a, n) : NULL;
}

char *mf_arena_strndup(mf_arena *a, const char *s, size_t n)
{
    size_t total;
    char *p = mf_add_ok(n, 1, &total) ? mf_arena_alloc(a, total) : NULL;
    if (p && n) memcpy(p, s, n);
    return p;
}

void mf_arena_free(mf_arena *a)
{
    for (struct mf_arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        mf_free(b);
    }
    a->head = NULL;
    a->used = 0;
}

static bool buf_reserve(mf_buf *b, size_t more)
{
    size_t need;
    if (!mf_add_ok(b->len, more, &need) || (b->limit && need > b->limit) || !mf_add_ok(need, 1, &need))
        return false;
    return mf_grow((void **)&b->data, &b->cap, need, 1);
}

bool mf_buf_append(mf_buf *b, const void *data, size_t n)
{
    if (!buf_reserve(b, n)) return false;
    if (n) memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = 0;
    return true;
}

bool mf_buf_str(mf_buf *b, const char *s)
{
    return mf_buf_append(b, s, strlen(s));
}
bool mf_buf_char(mf_buf *b, char c)
{
    return mf_buf_append(b, &c, 1);
}

bool mf_buf_printf(mf_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !buf_reserve(b, (size_t)n)) return false;
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return true;
}

void mf_buf_free(mf_buf *b)
{
    mf_free(b->data);
    b->data = NULL;
    b->len = b->cap = 0;
}

bool mf_grow(void **data, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) return true;
    size_t n = *cap ? *cap : 16;
    while (n < need)
        if (!mf_mul_ok(n, 2, &n)) return false;
    void *p = mf_realloc(*data, n, size);
    if (!p) return false;
    *data = p;
    *cap = n;
    return true;
}
