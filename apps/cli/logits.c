/* `minfer logits`: rows of little-endian float32, one for each position. */
#include "cli/commands.h"

#include "common/model.h"
#include "common/output.h"
#include "common/prompt.h"
#include "common/term.h"
#include "common/times.h"

#include <string.h>
#include <unistd.h>

static minfer_status check(const app_options *o, minfer_error *err)
{
    int n = (o->tokens.n > 0) + (o->text != NULL) + (o->file != NULL);
    if (n != 1)
        return mf_fail(err, MINFER_ERR_ARG, "logits needs one of --tokens, --text and -f; %s given",
                       n ? "more are" : "none is");
    if (!o->output) return mf_fail(err, MINFER_ERR_ARG, "logits needs -o FILE (-: stdout)");
    if (o->tokens.n && o->special)
        return mf_fail(err, MINFER_ERR_ARG, "--special is about text, not about --tokens");
    if (strcmp(o->output, "-") == 0 && app_is_terminal(STDOUT_FILENO))
        return mf_fail(err, MINFER_ERR_ARG, "-o -: stdout is a terminal, and logits are binary");
    return app_engine_check(o, err);
}

enum { ROW_BYTES = 1 << 26 }; /* of logits in memory at once */

/* Feeds as many tokens at once as have rows in memory: how the text is cut changes no bit. */
static minfer_status write_rows(minfer_session *s, const int32_t *ids, size_t n, size_t n_vocab, bool last,
                                app_file *f, minfer_error *err)
{
    size_t row = n_vocab * sizeof(float), chunk = ROW_BYTES / row ? ROW_BYTES / row : 1;
    if (last) chunk = n;
    if (chunk > n) chunk = n;
    float *rows = mf_malloc((last ? 1 : chunk) * row);
    if (!rows) return MF_NOMEM(err);
    minfer_status st = MINFER_OK;
    for (size_t done = 0, take; done < n && st == MINFER_OK; done += take) {
        take = n - done < chunk ? n - done : chunk;
        size_t n_rows = last ? 1 : take;
        st = minfer_session_feed(s, ids + done, take, rows, n_rows, err);
        if (st == MINFER_OK) st = app_file_write(f, rows, n_rows * row, err);
    }
    mf_free(rows);
    return st;
}

static minfer_status evaluate(const app_options *o, const minfer_model *m, const int32_t *ids, size_t n,
                              app_file *f, minfer_error *err)
{
    minfer_engine *e = NULL;
    minfer_session *s = NULL;
    minfer_engine_info info;
    minfer_status st = app_engine_create(o, m, n, n, &e, err);
    if (st == MINFER_OK) st = minfer_session_create(e, &s, err);
    if (st == MINFER_OK) {
        minfer_engine_get_info(e, &info);
        st = n > (size_t)info.n_ctx
                 ? mf_fail(err, MINFER_ERR_LIMIT, "%zu tokens are more than the context of the model, %d", n,
                           info.n_ctx)
                 : write_rows(s, ids, n, (size_t)info.n_vocab, o->last, f, err);
    }
    minfer_session_free(s);
    app_engine_free(e);
    return st;
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    app_file f;
    minfer_model *m = NULL;
    int32_t *ids = NULL;
    size_t n = o->tokens.n;
    minfer_status st = app_file_create(&f, o->output, err);
    if (st == MINFER_OK) st = app_model_open(o, app_model_load, &m, err);
    if (st == MINFER_OK && !n) st = app_text_ids(o, m, o->text, o->file, &ids, &n, err);
    if (st == MINFER_OK) st = evaluate(o, m, ids ? ids : o->tokens.v, n, &f, err);
    minfer_status closed = app_file_close(&f, st == MINFER_OK, err);
    minfer_free(ids);
    minfer_model_free(m);
    return st == MINFER_OK ? closed : st;
}

const app_program cli_logits = {check, run};
