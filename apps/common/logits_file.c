/* Reading and writing files of stored logits. */
#include "common/logits_file.h"

#include "base/bytes.h"

#include <string.h>

static const char magic[8] = "MINFERLG";
enum { VERSION = 1, HEAD = 36, N_FIELDS = 7 };

size_t app_windows_tokens(const app_windows *w)
{
    return (size_t)(w->n - 1) * (size_t)w->stride + (size_t)w->n_ctx;
}

static minfer_status check_range(const char *name, int32_t v, int32_t lo, int32_t hi, minfer_error *err)
{
    if (v >= lo && v <= hi) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_FORMAT, "%s is %u, not in %d..%d", name, (uint32_t)v, lo, hi);
}

static minfer_status check_head(const app_logits *l, minfer_error *err)
{
    const app_windows *w = &l->windows;
    MF_TRY(check_range("n_vocab", l->n_vocab, 1, INT32_MAX, err));
    MF_TRY(check_range("n_ctx", w->n_ctx, 2, INT32_MAX, err));
    MF_TRY(check_range("stride", w->stride, 1, w->n_ctx, err));
    MF_TRY(check_range("n_counted", w->counted, 1, w->n_ctx - 1, err));
    MF_TRY(check_range("n_windows", w->n, 1, INT32_MAX, err));
    if (w->bos < -1 || w->bos >= l->n_vocab)
        return mf_fail(err, MINFER_ERR_FORMAT, "bos is %d, not in -1..%d", w->bos, l->n_vocab - 1);
    return MINFER_OK;
}

/* Bytes of a file with this head; false: more than a size can be. */
static bool file_size(const app_logits *l, size_t *out)
{
    const app_windows *w = &l->windows;
    size_t row, rows, ids;
    return mf_mul_ok((size_t)w->n, (size_t)w->counted, &rows) &&
           mf_mul_ok((size_t)l->n_vocab, sizeof(float), &row) && mf_mul_ok(rows, row, &rows) &&
           mf_mul_ok(app_windows_tokens(w), sizeof(int32_t), &ids) && mf_add_ok(rows, ids, &rows) &&
           mf_add_ok(rows, HEAD, out);
}

static minfer_status check_ids(const app_logits *l, minfer_error *err)
{
    for (size_t i = 0, n = app_windows_tokens(&l->windows); i < n; i++)
        if (l->ids[i] < 0 || l->ids[i] >= l->n_vocab)
            return mf_fail(err, MINFER_ERR_FORMAT, "token %zu is %d, not in 0..%d", i, l->ids[i],
                           l->n_vocab - 1);
    return MINFER_OK;
}

minfer_status app_logits_parse(const uint8_t *data, size_t n, app_logits *out, minfer_error *err)
{
    size_t want;
    if (n < HEAD || memcmp(data, magic, sizeof magic) != 0)
        return mf_fail(err, MINFER_ERR_FORMAT, "is no file of stored logits (perplexity --save-logits)");
    if (mf_load_u32(data + 8) != VERSION)
        return mf_fail(err, MINFER_ERR_FORMAT, "has version %u, this program reads %d", mf_load_u32(data + 8),
                       VERSION);
    int32_t v[N_FIELDS - 1];
    for (size_t i = 0; i < N_FIELDS - 1; i++) v[i] = (int32_t)mf_load_u32(data + 12 + 4 * i);
    *out = (app_logits){.windows = {.n_ctx = v[1], .stride = v[2], .counted = v[3], .n = v[4], .bos = v[5]},
                        .n_vocab = v[0],
                        .ids = (const int32_t *)(const void *)(data + HEAD)};
    MF_TRY(check_head(out, err));
    if (!file_size(out, &want) || want != n)
        return mf_fail(err, MINFER_ERR_FORMAT, "%zu bytes do not hold %d windows of %d rows of %d logits", n,
                       v[4], v[3], v[0]);
    out->rows = (const float *)(const void *)(out->ids + app_windows_tokens(&out->windows));
    return check_ids(out, err);
}

minfer_status app_logits_begin(app_file *f, const app_logits *l, minfer_error *err)
{
    const app_windows *w = &l->windows;
    uint8_t head[HEAD];
    const int32_t v[N_FIELDS] = {VERSION, l->n_vocab, w->n_ctx, w->stride, w->counted, w->n, w->bos};
    memcpy(head, magic, sizeof magic);
    memcpy(head + sizeof magic, v, sizeof v);
    MF_TRY(app_file_write(f, head, sizeof head, err));
    return app_file_write(f, l->ids, app_windows_tokens(w) * sizeof *l->ids, err);
}
