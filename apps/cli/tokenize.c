/* `minfer tokenize`: a text's tokens, as a table or as ids. */
#include "cli/commands.h"

#include "cli/print.h"

#include "common/json.h"
#include "common/model.h"
#include "common/output.h"
#include "common/prompt.h"

#include "base/filemap.h"

static minfer_status check(const app_options *o, minfer_error *err)
{
    if (o->file && o->words.n)
        return mf_fail(err, MINFER_ERR_ARG, "the text is given twice: by -f and by words");
    return MINFER_OK;
}

/* The words, or all bytes of a file or of stdin. */
static minfer_status read_text(const app_options *o, mf_buf *out, minfer_error *err)
{
    char *data;
    size_t n;
    if (o->words.n) return app_words(o, out) ? MINFER_OK : MF_NOMEM(err);
    MF_TRY(mf_file_read(o->file ? o->file : "-", APP_MAX_TEXT, &data, &n, err));
    bool ok = mf_buf_append(out, data, n);
    mf_free(data);
    return ok ? MINFER_OK : MF_NOMEM(err);
}

/* One line for each token: its id, and its bytes in quotes. */
static minfer_status table(const minfer_model *m, const int32_t *ids, size_t n, mf_buf *out,
                           minfer_error *err)
{
    bool ok = mf_buf_append(out, "", 0);
    for (size_t i = 0; i < n && ok; i++) {
        char *bytes;
        size_t k;
        MF_TRY(minfer_token_bytes(m, ids[i], true, &bytes, &k, err));
        ok = mf_buf_printf(out, "%8d  \"", ids[i]) && app_escape(bytes, k, true, out) &&
             mf_buf_str(out, "\"\n");
        minfer_free(bytes);
    }
    return ok ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status print(const app_options *o, const minfer_model *m, const mf_buf *text, mf_buf *out,
                           minfer_error *err)
{
    int32_t *ids;
    size_t n;
    unsigned flags = MINFER_TOKENIZE_BOS | (o->special ? MINFER_TOKENIZE_SPECIAL : 0u);
    MF_TRY(minfer_tokenize(m, text->data, text->len, flags, &ids, &n, err));
    minfer_status st = MINFER_OK;
    if (!o->ids)
        st = table(m, ids, n, out, err);
    else if (!cli_ids(ids, n, out))
        st = MF_NOMEM(err);
    minfer_free(ids);
    return st == MINFER_OK ? app_out(out->data, out->len, err) : st;
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    mf_buf text = {0}, out = {0};
    minfer_model *m = NULL;
    minfer_status st = app_model_open(o, minfer_model_open_vocab, &m, err);
    if (st == MINFER_OK) st = read_text(o, &text, err);
    if (st == MINFER_OK) st = print(o, m, &text, &out, err);
    minfer_model_free(m);
    mf_buf_free(&text);
    mf_buf_free(&out);
    return st;
}

const app_program cli_tokenize = {check, run};
