/* Memory, limits, output and errors of a rendering. */
#include "template/render.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum { STEP_BYTES = 32, MESSAGE_BYTES = 900, PRINTF_BYTES = 120 };

static const char *const exc_names[MF_TE_COUNT] = {
    [MF_TE_UNDEFINED] = "UndefinedError",
    [MF_TE_RUNTIME] = "TemplateRuntimeError",
    [MF_TE_STATE] = "RuntimeError",
    [MF_TE_SECURITY] = "SecurityError",
    [MF_TE_FILTER] = "FilterArgumentError",
    [MF_TE_TYPE] = "TypeError",
    [MF_TE_VALUE] = "ValueError",
    [MF_TE_INDEX] = "IndexError",
    [MF_TE_KEY] = "KeyError",
    [MF_TE_ATTRIBUTE] = "AttributeError",
    [MF_TE_ZERO] = "ZeroDivisionError",
    [MF_TE_OVERFLOW] = "OverflowError",
    [MF_TE_ASSERT] = "AssertionError",
};

/* The same sum as the arena makes, to tell its limit from exhausted memory. */
static bool over_limit(const mf_arena *a, size_t n)
{
    size_t need, total;
    return !mf_add_ok(n, 15, &need) || !mf_add_ok(a->used, need & ~(size_t)15, &total) ||
           (a->limit && total > a->limit);
}

void *mf_trender_alloc(mf_trender *r, size_t count, size_t size)
{
    size_t n;
    void *p = NULL;
    if (!mf_mul_ok(count, size, &n) || over_limit(&r->arena, n))
        mf_fail(r->err, MINFER_ERR_LIMIT, "the template makes more than %zu bytes of values", r->arena.limit);
    else if (!(p = mf_arena_alloc(&r->arena, n)))
        MF_NOMEM(r->err);
    return p;
}

minfer_status mf_trender_step(mf_trender *r)
{
    if (r->steps < r->max_steps) {
        r->steps++;
        return MINFER_OK;
    }
    return mf_fail(r->err, MINFER_ERR_LIMIT, "the template takes more than %zu steps", r->max_steps);
}

minfer_status mf_trender_charge(mf_trender *r, size_t bytes)
{
    size_t n = bytes / STEP_BYTES;
    if (n >= r->max_steps - r->steps)
        r->steps = r->max_steps;
    else
        r->steps += n;
    return mf_trender_step(r);
}

minfer_status mf_trender_enter(mf_trender *r)
{
    if (r->depth++ < r->max_depth) return MINFER_OK;
    return mf_fail(r->err, MINFER_ERR_LIMIT, "the template nests deeper than %zu levels", r->max_depth);
}

/* Cuts a message that would not fit, between two characters. */
static void cut(char *s, size_t n)
{
    if (strlen(s) <= n) return;
    s[n] = 0;
    s[n - mf_utf8_incomplete_tail(s, n)] = 0;
}

minfer_status mf_trender_raise(mf_trender *r, mf_texc exc, const char *fmt, ...)
{
    char text[sizeof r->err->message];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cut(text, MESSAGE_BYTES);
    if (exc == MF_TE_RAISED) {
        r->located = true;
        return mf_fail(r->err, MINFER_ERR_ARG, "%s", text);
    }
    return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: %s", exc_names[exc], text);
}

minfer_status mf_trender_locate(mf_trender *r, minfer_status st, uint32_t line, uint32_t column)
{
    if (st == MINFER_OK || r->located) return st;
    r->located = true;
    return mf_fail_prefix(r->err, st, "line %u, column %u", line, column);
}

minfer_status mf_trender_write(mf_trender *r, const char *p, size_t n)
{
    if (r->capture) return mf_tsb_put(r, r->capture, p, n);
    if (n > r->max_output - r->written)
        return mf_fail(r->err, MINFER_ERR_LIMIT, "the template writes more than %zu bytes", r->max_output);
    if (!mf_buf_append(r->out, p, n)) return MF_NOMEM(r->err);
    r->written += n;
    return MINFER_OK;
}

static minfer_status reserve(mf_trender *r, mf_tsb *b, size_t more)
{
    size_t need, cap = b->cap ? b->cap : 64;
    if (!mf_add_ok(b->n, more, &need)) need = SIZE_MAX;
    if (need <= b->cap) return MINFER_OK;
    while (cap < need)
        if (!mf_mul_ok(cap, 2, &cap)) cap = SIZE_MAX;
    char *p = mf_trender_alloc(r, cap, 1);
    if (!p) return mf_trender_failed(r);
    if (b->n) memcpy(p, b->p, b->n);
    b->p = p;
    b->cap = cap;
    return MINFER_OK;
}

minfer_status mf_tsb_put(mf_trender *r, mf_tsb *b, const char *p, size_t n)
{
    MF_TRY(mf_trender_charge(r, n));
    MF_TRY(reserve(r, b, n));
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
    return MINFER_OK;
}

minfer_status mf_tsb_char(mf_trender *r, mf_tsb *b, char c)
{
    MF_TRY(reserve(r, b, 1));
    b->p[b->n++] = c;
    return MINFER_OK;
}

minfer_status mf_tsb_text(mf_trender *r, mf_tsb *b, const char *text)
{
    return mf_tsb_put(r, b, text, strlen(text));
}

minfer_status mf_tsb_fill(mf_trender *r, mf_tsb *b, const char *p, size_t n, size_t times)
{
    size_t total;
    if (!mf_mul_ok(n, times, &total)) total = SIZE_MAX;
    MF_TRY(mf_trender_charge(r, total));
    MF_TRY(reserve(r, b, total));
    for (; n && times > 0; times--, b->n += n) memcpy(b->p + b->n, p, n);
    return MINFER_OK;
}

minfer_status mf_tsb_printf(mf_trender *r, mf_tsb *b, const char *fmt, ...)
{
    char text[PRINTF_BYTES + 1];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return mf_tsb_put(r, b, text, n < 0 ? 0 : n > PRINTF_BYTES ? PRINTF_BYTES : (size_t)n);
}

minfer_status mf_tsb_codepoint(mf_trender *r, mf_tsb *b, uint32_t cp)
{
    char c[4];
    return mf_tsb_put(r, b, c, mf_utf8_encode(cp, c));
}
