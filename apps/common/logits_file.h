/* Files of stored logits, with which `perplexity` compares. Little-endian:
 *
 *      0  "MINFERLG"
 *      8  u32 version, 1
 *     12  u32 n_vocab      numbers in a row
 *     16  u32 n_ctx        tokens of a window
 *     20  u32 stride       tokens from the start of a window to that of the next
 *     24  u32 n_counted    how many predictions count, the last ones of each window
 *     28  u32 n_windows
 *     32  i32 bos          the token that takes the place of each window's first; -1: none does
 *     36  i32 ids[(n_windows - 1) * stride + n_ctx]
 *         f32 rows[n_windows][n_counted][n_vocab]
 *
 * Rows are the logits as the engine gave them: float32, 4 bytes for each number. Half floats of
 * log-probabilities would halve the file, but they round likely tokens by up to 1e-3, which shows where two
 * models differ as little as an exact cache and a rounded one do; so a model compared with itself has a
 * divergence of exactly 0. Knows no model. */
#ifndef APP_COMMON_LOGITS_FILE_H
#define APP_COMMON_LOGITS_FILE_H

#include "common/output.h"

/* How a text is cut into windows. */
typedef struct app_windows {
    int32_t n_ctx;   /* tokens of each, at least 2 */
    int32_t stride;  /* 1..n_ctx */
    int32_t counted; /* 1..n_ctx - 1 */
    int32_t n;       /* at least 1 */
    int32_t bos;     /* -1: none */
} app_windows;

/* Tokens of the text that the windows take. */
size_t app_windows_tokens(const app_windows *w);

typedef struct app_logits {
    app_windows windows;
    int32_t n_vocab;
    const int32_t *ids; /* [app_windows_tokens] in 0..n_vocab - 1 */
    const float *rows;  /* [windows.n][windows.counted][n_vocab], any numbers */
} app_logits;

/* Checks the n bytes of a file whole, but for the values of the rows; out points into data, which is aligned
 * to 4 bytes. */
minfer_status app_logits_parse(const uint8_t *data, size_t n, app_logits *out, minfer_error *err);

/* Writes everything in front of the rows. */
minfer_status app_logits_begin(app_file *f, const app_logits *l, minfer_error *err);

#endif
