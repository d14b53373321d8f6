/* Files of stored logits: what is taken is all there, and within its bounds. */
#include "common/logits_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    minfer_error err = {0};
    app_logits l;
    if (app_logits_parse(data, size, &l, &err) != MINFER_OK) {
        if (err.code != MINFER_ERR_FORMAT || !err.message[0]) abort();
        return 0;
    }
    const app_windows *w = &l.windows;
    size_t n_ids = app_windows_tokens(w), n = (size_t)w->n * (size_t)w->counted * (size_t)l.n_vocab;
    for (size_t i = 0; i < n_ids; i++)
        if (l.ids[i] < 0 || l.ids[i] >= l.n_vocab) abort();
    if ((const uint8_t *)(l.rows + n) != data + size) abort();
    volatile float last = 0;
    for (size_t i = 0; i < n; i++) last = l.rows[i];
    (void)last;
    return 0;
}
