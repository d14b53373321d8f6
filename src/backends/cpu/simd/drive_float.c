/* Walks a float matmul over rows and tokens. Weights meet up to `tokens` tokens where they lie; for more, F16
 * and BF16 rows are converted into the scratch memory first, as many as it holds. No arithmetic starts here.
 */
#include "backends/cpu/ref/ref.h"
#include "backends/cpu/simd/simd.h"

/* Bytes of weights that stay in the second-level cache while all tokens meet them. */
enum { UNIT_BYTES = CPU_SCRATCH / 4 };

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Rows [0, n) of w, which give outputs y0 and on, against all tokens. left: bytes that this call reads after
 * them in order, which are prefetched while the first tokens are multiplied. */
static void all_tokens(const simd_float_format *f, const cpu_matmul *m, const uint8_t *w, float *y0,
                       int32_t n, size_t left)
{
    simd_float_product p = {
        .stride = (size_t)m->k * f->value_bytes, .ldx = m->ldx, .ldy = m->ldy, .k = (size_t)m->k};
    const uint8_t *end = w + (size_t)n * p.stride + left;
    for (int32_t t = 0; t < m->nt; t += f->tokens) {
        int32_t tokens = min32(f->tokens, m->nt - t);
        p.x = m->x + (size_t)t * m->ldx;
        for (int32_t r = 0, rows; r < n; r += rows) {
            rows = n - r >= f->rows ? f->rows : 1;
            p.w = w + (size_t)r * p.stride;
            p.y = y0 + (size_t)t * m->ldy + (size_t)r;
            p.next = t == 0 && (size_t)(end - p.w) >= (size_t)rows * p.stride + SIMD_AHEAD ? p.w + SIMD_AHEAD
                                                                                           : NULL;
            (rows == 1 ? f->one : f->full)[tokens - 1](&p);
        }
    }
}

/* Rows that are multiplied together: a multiple of f->rows where that fits. */
static int32_t unit_rows(const simd_float_format *f, const cpu_matmul *m, bool convert)
{
    size_t row = (size_t)m->k * sizeof(float), fit = UNIT_BYTES / row / (size_t)f->rows * (size_t)f->rows;
    if (fit == 0) fit = (size_t)f->rows;
    return (int32_t)(convert && fit * row > CPU_SCRATCH ? CPU_SCRATCH / row : fit);
}

void cpu_matmul_simd_float(const simd_float_format *f, const cpu_matmul *m, int32_t r0, int32_t r1)
{
    if (m->k == 0 || m->nt <= 0) {
        cpu_matmul_ref(m, r0, r1);
        return;
    }
    size_t row = (size_t)m->k * f->value_bytes;
    bool convert = f->convert && m->nt > f->tokens && (size_t)m->k * sizeof(float) <= CPU_SCRATCH;
    int32_t unit = unit_rows(f, m, convert);
    for (int32_t r = r0; r < r1; r += unit) {
        int32_t n = min32(unit, r1 - r);
        const uint8_t *w = m->w + (size_t)r * row;
        if (r1 - r <= unit && m->next) simd_prefetch(m->next, SIMD_AHEAD);
        if (convert) {
            f->convert(m->scratch, w, (size_t)n * (size_t)m->k);
            all_tokens(f->f32, m, m->scratch, m->y + r, n, 0);
        } else
            all_tokens(f, m, w, m->y + r, n, (size_t)(r1 - r - n) * row);
    }
}
