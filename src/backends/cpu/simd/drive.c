/* Walks a quantized matmul over rows, blocks and tokens with a format's kernels. Few tokens: each panel of
 * rows is read in place, once for every tile of tokens. More: units of UNIT_ROWS rows are unpacked into the
 * scratch memory, which stays in the second-level cache, and multiplied with all tokens. Rows left over
 * belong to a panel that starts earlier and writes only its own lanes. No kernel starts here: no arithmetic.
 */
#include "backends/cpu/act.h"
#include "backends/cpu/ref/ref.h"
#include "backends/cpu/simd/simd.h"

enum { UNIT_ROWS = 64, UNIT_PANELS = UNIT_ROWS / 4 };

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static size_t row_bytes(const simd_format *f, const cpu_matmul *m)
{
    return (size_t)(m->k / f->block_values) * (size_t)f->block_bytes;
}

/* What to prefetch while reading the panel at w that ends before row `end`: what comes SIMD_AHEAD bytes after
 * it, up to m->next. Without that nothing new: a prefetch from pages that do not exist costs as much as a
 * miss. */
static const uint8_t *ahead_of(const simd_format *f, const cpu_matmul *m, size_t stride, const uint8_t *w,
                               int32_t end, int32_t r1)
{
    size_t panel = (size_t)f->lanes * stride, left = (size_t)(r1 - end) * stride;
    if (left == 0 && m->next) return m->next + SIMD_AHEAD;
    if (left < panel + SIMD_AHEAD && !m->next) return w;
    return w + panel + SIMD_AHEAD;
}

/* The panel that writes rows [r, min(r + lanes, r1)). It reads other rows too where it must: rows >= lanes.
 */
static simd_panel panel_at(const simd_format *f, const cpu_matmul *m, size_t stride, int32_t r, int32_t r1)
{
    int32_t end = min32(r + f->lanes, r1), start = end > f->lanes ? end - f->lanes : 0;
    simd_panel p = {.w = m->w + (size_t)start * stride, .stride = stride, .y = m->y + start, .ldy = m->ldy};
    p.lanes = ((1u << (end - start)) - 1) & ~((1u << (r - start)) - 1);
    p.next = ahead_of(f, m, stride, p.w, end, r1);
    return p;
}

/* Tile i as an activation of its own, as far as kernels for few tokens read one. */
static cpu_act tile_alone(const cpu_act *a, int32_t i)
{
    cpu_act t = {.k = a->k, .few = true};
    t.tiles = cpu_act_tile(a, i, 0, &t.nt);
    t.tok = t.nt;
    t.q = a->q + (size_t)i * (size_t)a->tok * (size_t)a->k;
    return t;
}

static void few_tokens(const simd_format *f, const cpu_matmul *m, int32_t r0, int32_t r1)
{
    size_t stride = row_bytes(f, m);
    for (int32_t r = r0; r < r1; r += f->lanes) {
        simd_panel p = panel_at(f, m, stride, r, r1);
        if (r + f->lanes >= r1 && m->next) simd_prefetch(m->next, SIMD_AHEAD);
        for (int32_t i = 0; i * m->act->tok < m->nt; i++, p.y += (size_t)m->act->tok * m->ldy) {
            cpu_act t = tile_alone(m->act, i);
            f->small[t.nt - 1](&p, &t, m->scratch);
        }
    }
}

/* Rows [r0, r1) and blocks [b0, b0 + blocks) of a larger product. */
typedef struct unit {
    const simd_format *f;
    const cpu_matmul *m;
    int32_t r0, r1, b0, blocks;
    int panels;
    simd_panel panel[UNIT_PANELS];
    const uint8_t *next; /* the next unit, fetched while this one is multiplied, or NULL; */
    size_t piece;        /* so many bytes of it for each kernel */
} unit;

static size_t unpacked_bytes(const unit *u)
{
    return (size_t)u->blocks * (size_t)u->f->panel_bytes;
}

static void unpack_unit(unit *u)
{
    size_t before = (size_t)u->b0 * (size_t)u->f->block_bytes, stride = row_bytes(u->f, u->m);
    u->panels = 0;
    for (int32_t r = u->r0; r < u->r1; r += u->f->lanes) {
        simd_panel *p = &u->panel[u->panels];
        *p = panel_at(u->f, u->m, stride, r, u->r1);
        p->w += before;
        p->next += before * (size_t)u->f->lanes;
        u->f->unpack(p, (size_t)u->blocks, (uint8_t *)u->m->scratch + (size_t)u->panels * unpacked_bytes(u));
        u->panels++;
    }
}

/* One tile of tokens with all panels, two at a time where the format can. */
static void multiply_tile(unit *u, int32_t i)
{
    int32_t width;
    const int32_t *tile = cpu_act_tile(u->m->act, i, u->b0 * (u->f->block_values / 32), &width);
    bool pairs = u->f->product[1][0] != NULL;
    simd_product p = {.ldy = u->m->ldy, .tile = tile, .blocks = (size_t)u->blocks, .first = u->b0 == 0};
    size_t y0 = (size_t)i * (size_t)u->m->act->tok * u->m->ldy;
    for (int a = 0, n; a < u->panels; a += n) {
        n = pairs && a + 1 < u->panels ? 2 : 1;
        for (int j = 0; j < n; j++) {
            p.panel[j] = (const uint8_t *)u->m->scratch + (size_t)(a + j) * unpacked_bytes(u);
            p.y[j] = u->panel[a + j].y + y0;
            p.lanes[j] = u->panel[a + j].lanes;
        }
        if (u->next) {
            simd_prefetch(u->next, u->piece);
            u->next += u->piece;
        }
        u->f->product[n - 1][width - 1](&p);
    }
}

static void plan_prefetch(unit *u, int32_t rows, int32_t r1, int32_t tiles)
{
    size_t stride = row_bytes(u->f, u->m);
    int32_t follow = min32(rows, r1 - u->r1); /* rows of the next unit */
    u->next = follow ? u->m->w + (size_t)u->r1 * stride : u->m->next;
    u->piece = (size_t)(follow ? follow : rows) * stride / (size_t)(u->panels * tiles) + 64;
}

static void many_tokens(const simd_format *f, const cpu_matmul *m, int32_t r0, int32_t r1)
{
    int32_t all = m->k / f->block_values, blocks = all, tiles = (m->nt + m->act->tok - 1) / m->act->tok;
    while ((size_t)blocks * (size_t)f->panel_bytes > CPU_SCRATCH)
        blocks = (blocks + 1) / 2; /* very long rows */
    int32_t fit = f->unit_bytes / (blocks * f->panel_bytes),
            rows = min32(UNIT_ROWS, (fit ? fit : 1) * f->lanes);
    for (int32_t r = r0; r < r1; r += rows)
        for (int32_t b = 0; b < all; b += blocks) {
            unit u = {.f = f,
                      .m = m,
                      .r0 = r,
                      .r1 = min32(r + rows, r1),
                      .b0 = b,
                      .blocks = min32(blocks, all - b)};
            unpack_unit(&u);
            if (blocks == all) plan_prefetch(&u, rows, r1, tiles);
            for (int32_t i = 0; i < tiles; i++) multiply_tile(&u, i);
        }
}

void cpu_matmul_simd(const simd_format *f, const cpu_matmul *m, int32_t r0, int32_t r1)
{
    if (m->rows < f->lanes || m->k == 0 || m->nt <= 0)
        cpu_matmul_ref(m, r0, r1);
    else if (m->act->few)
        few_tokens(f, m, r0, r1);
    else
        many_tokens(f, m, r0, r1);
}
