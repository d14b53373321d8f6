/* The state of one rendering: memory, limits, output, errors. Owns the arena every value lives in; knows
 * nothing of the language. */
#ifndef MF_TEMPLATE_RENDER_H
#define MF_TEMPLATE_RENDER_H

#include "base/mem.h"

typedef struct mf_trender mf_trender;

/* Classes of errors, named as Jinja and Python name them. */
typedef enum mf_texc {
    MF_TE_RAISED, /* raise_exception: the message stands alone */
    MF_TE_UNDEFINED,
    MF_TE_RUNTIME, /* Jinja's TemplateRuntimeError */
    MF_TE_STATE,   /* Python's RuntimeError */
    MF_TE_SECURITY,
    MF_TE_FILTER,
    MF_TE_TYPE,
    MF_TE_VALUE,
    MF_TE_INDEX,
    MF_TE_KEY,
    MF_TE_ATTRIBUTE,
    MF_TE_ZERO,
    MF_TE_OVERFLOW,
    MF_TE_ASSERT,
    MF_TE_COUNT,
} mf_texc;

/* A text that grows in the arena; zero-initialise. What it outgrows stays behind until the rendering ends. */
typedef struct mf_tsb {
    char *p;
    size_t n, cap; /* bytes */
} mf_tsb;

struct mf_trender {
    mf_arena arena;
    size_t steps, max_steps;
    size_t depth, max_depth;
    size_t written, max_output; /* bytes appended to out */
    mf_buf *out;
    mf_tsb *capture; /* where output goes instead, inside macros and capturing blocks; NULL: to out */
    struct mf_tdict *vars;
    int64_t now;  /* seconds since 1970 */
    bool located; /* the error already names a line */
    minfer_error *err;
};

/* Zeroed memory of the rendering; NULL with r->err set when memory or its limit is exhausted. */
void *mf_trender_alloc(mf_trender *r, size_t count, size_t size);
#define MF_RENDER_NEW(r, type) ((type *)mf_trender_alloc((r), 1, sizeof(type)))
/* The status mf_trender_alloc left in r->err. */
static inline minfer_status mf_trender_failed(const mf_trender *r)
{
    return r->err->code;
}

/* Counts work against the limit: one step, or the time to look at so many bytes. */
minfer_status mf_trender_step(mf_trender *r);
minfer_status mf_trender_charge(mf_trender *r, size_t bytes);

/* Around everything that nests; _leave also after an error. */
minfer_status mf_trender_enter(mf_trender *r);
static inline void mf_trender_leave(mf_trender *r)
{
    r->depth--;
}

minfer_status mf_trender_raise(mf_trender *r, mf_texc exc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts the place in front of the message, once. */
minfer_status mf_trender_locate(mf_trender *r, minfer_status st, uint32_t line, uint32_t column);

/* Appends to the output, or to the text being captured. */
minfer_status mf_trender_write(mf_trender *r, const char *p, size_t n);

minfer_status mf_tsb_put(mf_trender *r, mf_tsb *b, const char *p, size_t n);
minfer_status mf_tsb_char(mf_trender *r, mf_tsb *b, char c);
minfer_status mf_tsb_text(mf_trender *r, mf_tsb *b, const char *text);
minfer_status mf_tsb_fill(mf_trender *r, mf_tsb *b, const char *p, size_t n, size_t times);
minfer_status mf_tsb_printf(mf_trender *r, mf_tsb *b, const char *fmt, ...) /* at most 120 bytes */
    __attribute__((format(printf, 3, 4)));
minfer_status mf_tsb_codepoint(mf_trender *r, mf_tsb *b, uint32_t cp);

#endif
