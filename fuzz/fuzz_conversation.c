/* Histories as JSON: what is taken can be edited, written and read again, and is the same then. */
#include "runtime/history.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const mf_history *h)
{
    minfer_error err = {0};
    mf_history again;
    mf_buf text = {0}, second = {0};
    if (mf_history_init(&again, &err) != MINFER_OK || mf_history_write(h, &text, &err) != MINFER_OK) abort();
    if (mf_history_read(&again, text.data, text.len, &err) != MINFER_OK) abort();
    if (mf_history_write(&again, &second, &err) != MINFER_OK) abort();
    if (text.len != second.len || memcmp(text.data, second.data, text.len) != 0) abort();
    mf_history_free(&again);
    mf_buf_free(&text);
    mf_buf_free(&second);
}

static void edit(mf_history *h, const char *bytes, size_t n)
{
    minfer_error err = {0};
    size_t exchanges = mf_history_exchanges(h);
    minfer_status st = mf_history_add(h, "user", bytes, n, &err);
    if (st != MINFER_OK && (st != MINFER_ERR_ARG || !err.message[0])) abort();
    if (mf_history_exchanges(h) != exchanges + (st == MINFER_OK)) abort();
    check_same(h);
    char *seen = mf_history_visible(h, h->dropped);
    if (!seen) abort();
    free(seen);
    mf_history_truncate(h, mf_history_start(h, exchanges / 2));
    if (mf_history_exchanges(h) != exchanges / 2) abort();
    if (h->dropped && h->dropped >= exchanges / 2) abort();
    mf_history_set_system(h, exchanges % 2 ? "s" : NULL, exchanges % 2, &err);
    if (!mf_history_system(h) != !(exchanges % 2)) abort();
    check_same(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    minfer_error err = {0};
    mf_history h;
    if (mf_history_init(&h, &err) != MINFER_OK) abort();
    if (mf_history_read(&h, (const char *)data, size, &err) == MINFER_OK)
        edit(&h, (const char *)data, size < 40 ? size : 40);
    else if (err.code != MINFER_ERR_FORMAT || !err.message[0] || json_array_size(h.messages))
        abort();
    mf_history_free(&h);
    return 0;
}
