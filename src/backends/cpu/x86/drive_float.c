/* Walks a float matmul over rows and tokens. Weights meet up to `tokens` tokens where they lie; for more, F16
 * and BF16 rows are converted into the scratch memory first, as many as it holds. No arithmetic starts here.
 */
#include "backends/cpu/x86/x86.h"

/* Bytes of weights that stay in the second-level cache while all tokens meet them. */
enum { UNIT_BYTES = CPU_SCRATCH / 4 };

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Rows [0, n) of w, which give outputs y0 and on, against all tokens. next: as in x86_float_product. */
static void all_tokens(const x86_float_format *f, const cpu_matmul *m, const uint8_t *w, float *y0, int32_t n,
                       const uint8_t *next)
{
    x86_float_product p = {
        .stride = (size_t)m->k * f->value_bytes, .ldx = m->ldx, .ldy = m->ldy, .k = (size_t)m->k};
    for (int32_t t = 0; t < m->nt; t += f->tokens) {
        int32_t tokens = min32(f->tokens, m->nt - t);
        p.x = m->x + (size_t)t * m->ldx;
        for (int32_t r = 0, rows; r < n; r += rows) {
            rows = n - r >= f->rows ? f->rows : 1;
            p.w = w + (size_t)r * p.stride;
            p.y = y0 + (size_t)t * m->ldy + (size_t)r;
            p.next = next && t == 0 ? next + (size_t)r * p.stride : NULL;
            (rows == 1 ? f->one : f->full)[tokens - 1](&p);
        }
    }
}

void cpu_matmul_x86_float(const x86_float_format *f, const cpu_matmul *m, int32_t r0, int32_t r1)
{
    size_t row = (size_t)m->k * f->value_bytes, row_f32 = (size_t)m->k * sizeof(float);
    bool convert = f->convert && m->nt > f->tokens && row_f32 <= CPU_SCRATCH;
    size_t fits = row ? UNIT_BYTES / row_f32 : 1;
    int32_t unit = fits >= (size_t)f->rows ? (int32_t)fits / f->rows * f->rows : f->rows;
    while (convert && (size_t)unit * row_f32 > CPU_SCRATCH) unit--;
    for (int32_t r = r0; r < r1; r += unit) {
        int32_t n = min32(unit, r1 - r);
        const uint8_t *w = m->w + (size_t)r * row;
        float *y = m->y + r;
        if (convert) {
            f->convert(m->scratch, w, (size_t)n * (size_t)m->k);
            all_tokens(f->f32, m, m->scratch, y, n, NULL);
        } else
            all_tokens(f, m, w, y, n, w + X86_AHEAD);
    }
}
