#include "ops/check.h"

#include <math.h>

static bool wrong(char why[OP_WHY], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(char why[OP_WHY], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, OP_WHY, fmt, ap);
    va_end(ap);
    return false;
}

static float float_at(const void *p, size_t i)
{
    float f;
    memcpy(&f, (const uint8_t *)p + 4 * i, sizeof f);
    return f;
}

static bool holds_all(const op_case *c, const char *what, const op_num *y, size_t n, const op_result *r,
                      char why[OP_WHY])
{
    for (size_t i = 0; i < n; i++) {
        float got = float_at(r->out, i);
        size_t width = n / (size_t)c->nt;
        if (!op_num_holds(y[i], got))
            return wrong(why, "element %zu of %zu (%zu of token %zu) is %.9g, %s gives %.12g within %.3g", i,
                         n, width ? i % width : 0, width ? i / width : 0, (double)got, what, y[i].v, y[i].e);
    }
    return true;
}

bool op_check_formula(const op_case *c, const op_want *w, const op_result *r, char why[OP_WHY])
{
    if (w->raw) {
        if (r->bytes != w->raw_bytes) return wrong(why, "%zu bytes, not %zu", r->bytes, w->raw_bytes);
        for (size_t i = 0; i < r->bytes; i++)
            if (((const uint8_t *)r->out)[i] != ((const uint8_t *)w->raw)[i])
                return wrong(why, "byte %zu of %zu is %02x, must be %02x", i, r->bytes,
                             ((const uint8_t *)r->out)[i], ((const uint8_t *)w->raw)[i]);
        return true;
    }
    if (!w->y) return true;
    if (r->bytes != w->n * sizeof(float))
        return wrong(why, "%zu elements, not %zu", r->bytes / sizeof(float), w->n);
    return holds_all(c, "the formula", w->y, w->n, r, why) &&
           (!w->loose || holds_all(c, "the product without quantization", w->loose, w->n, r, why));
}

/* ---- cache ---- */

static int32_t token_of(const op_case *c, const op_data *d, int32_t cell)
{
    if (c->op != MF_OP_ATTN && c->op != MF_OP_KVCACHE_LOAD && !op_stores(c->op)) return -1;
    for (int32_t t = 0; t < c->nt; t++)
        if (d->cells[t] == cell) return t;
    return -1;
}

static bool check_row(const op_case *c, const op_data *d, const op_want *w, int is_v, int32_t head,
                      int32_t cell, const uint8_t *got, char why[OP_WHY])
{
    size_t at = ((size_t)head * (size_t)c->n_ctx + (size_t)cell) * d->row_bytes, dim = (size_t)c->head_dim;
    int32_t t = token_of(c, d, cell);
    if (t < 0) {
        if (memcmp(got + at, d->cache[is_v] + at, d->row_bytes) == 0) return true;
        return wrong(why, "%c of head %d: cell %d, which is nobody's, was written", is_v ? 'V' : 'K', head,
                     cell);
    }
    if (!w->stored[is_v]) return true;
    const op_num *row = w->stored[is_v] + ((size_t)t * (size_t)c->n_kv + (size_t)head) * dim;
    for (size_t i = 0; i < dim; i++) {
        double v = op_stored_value(c->cache, got + at, i);
        if (!op_num_holds(row[i], (float)v))
            return wrong(why,
                         "%c of head %d, cell %d (token %d), value %zu is %.9g, must be %.9g within %.3g",
                         is_v ? 'V' : 'K', head, cell, t, i, v, row[i].v, row[i].e);
    }
    return true;
}

bool op_check_cache(const op_case *c, const op_data *d, const op_want *w, const op_result *r,
                    char why[OP_WHY])
{
    for (int i = 0; i < 2 && r->cache[i]; i++)
        for (int32_t h = 0; h < c->n_kv; h++)
            for (int32_t cell = 0; cell < c->n_ctx; cell++)
                if (!check_row(c, d, w, i, h, cell, r->cache[i], why)) return false;
    return true;
}

/* ---- bits ---- */

/* Signs and payloads of NaN are not promised. */
static bool same_word(const op_case *c, const uint8_t *a, const uint8_t *b)
{
    bool nan = isnan((double)float_at(a, 0)) && isnan((double)float_at(b, 0));
    return memcmp(a, b, 4) == 0 || (c->style == STYLE_NOT_FINITE && nan);
}

bool op_check_bits(const op_case *c, const op_data *d, const op_result *want, const op_result *r,
                   char why[OP_WHY])
{
    const uint8_t *a = want->out, *b = r->out;
    if (want->bytes != r->bytes) return wrong(why, "%zu bytes, scalar C has %zu", r->bytes, want->bytes);
    for (size_t i = 0; i + 4 <= r->bytes; i += 4)
        if (!same_word(c, a + i, b + i))
            return wrong(why, "element %zu of %zu is %.9g (%a), scalar C has %.9g (%a)", i / 4, r->bytes / 4,
                         (double)float_at(b, i / 4), (double)float_at(b, i / 4), (double)float_at(a, i / 4),
                         (double)float_at(a, i / 4));
    if (r->bytes % 4 && memcmp(a + r->bytes / 4 * 4, b + r->bytes / 4 * 4, r->bytes % 4) != 0)
        return wrong(why, "the last bytes are not scalar C's");
    for (int s = 0; s < 2 && r->cache[s] && c->style != STYLE_NOT_FINITE; s++)
        for (size_t i = 0; i < d->cache_bytes; i++)
            if (r->cache[s][i] != want->cache[s][i])
                return wrong(why, "%c cache: byte %zu of row %zu is %02x, scalar C has %02x", s ? 'V' : 'K',
                             i % d->row_bytes, i / d->row_bytes, r->cache[s][i], want->cache[s][i]);
    return true;
}

bool op_declared(const mf_caps *caps, mf_op op, mf_type type, mf_window window, mf_type cache)
{
    bool here = type < 32 && (caps->types[op] & (uint32_t)1 << type) != 0;
    if (op == MF_OP_ATTN && window != MF_WINDOW_CAUSAL) here = here && caps->explicit_windows;
    if (op_stores(op) && op != MF_OP_KVCACHE_STORE)
        here = here && cache < 32 && (caps->types[MF_OP_KVCACHE_STORE] & (uint32_t)1 << cache) != 0;
    return here;
}
