/* `minfer run`: one answer to one prompt. */
#include "cli/commands.h"

#include "cli/draft.h"
#include "cli/print.h"
#include "cli/sampler.h"
#include "common/grammar.h"
#include "common/model.h"
#include "common/output.h"
#include "common/prompt.h"
#include "common/term.h"
#include "common/times.h"

#include <string.h>
#include <unistd.h>

static bool has_text(const app_options *o)
{
    return o->prompt || o->words.n;
}

static bool dumps(const app_options *o)
{
    return o->dump_graph || o->dump_graph_json;
}

static minfer_status check(const app_options *o, minfer_error *err)
{
    const char *twice = NULL;
    if (o->prompt && o->words.n) twice = "by -p and by words";
    if (has_text(o) && o->tokens.n) twice = "as text and by --tokens";
    if (twice) return mf_fail(err, MINFER_ERR_ARG, "the prompt is given twice: %s", twice);
    if (o->system && (o->no_template || o->tokens.n))
        return mf_fail(err, MINFER_ERR_ARG, "--system has no place without the chat template (%s)",
                       o->no_template ? "--no-template" : "--tokens");
    if ((o->prompt && !*o->prompt && !o->words.n) || (o->words.n == 1 && !*o->words.v[0]))
        return mf_fail(err, MINFER_ERR_ARG, "the prompt is empty");
    MF_TRY(app_grammar_check(o, err));
    MF_TRY(cli_draft_check(o, err));
    return app_engine_check(o, err);
}

/* Everything one run holds. */
typedef struct job {
    const app_options *o;
    mf_buf text; /* the prompt */
    minfer_model *model;
    int32_t *ids; /* the prompt's tokens; minfer_free */
    size_t n;
    minfer_engine *engine;
    minfer_session *session;
    minfer_sampler *sampler;
    minfer_grammar *grammar;
    cli_draft draft;
    uint64_t seed;
    minfer_error *err;
} job;

static void free_job(job *j)
{
    cli_draft_close(&j->draft);
    minfer_sampler_free(j->sampler);
    minfer_grammar_free(j->grammar);
    minfer_session_free(j->session);
    app_engine_free(j->engine);
    minfer_free(j->ids);
    minfer_model_free(j->model);
    mf_buf_free(&j->text);
}

/* A graph can be shown without a prompt. */
static bool wants_text(const app_options *o)
{
    return !o->tokens.n && (has_text(o) || !dumps(o));
}

static minfer_status load(job *j)
{
    const app_options *o = j->o;
    char *path;
    MF_TRY(app_grammar_load(o, &j->grammar, j->err));
    MF_TRY(app_model_path(o, &path, j->err)); /* before anything is asked of the terminal */
    minfer_status st = wants_text(o) ? app_prompt_text(o, &j->text, j->err) : MINFER_OK;
    if (st == MINFER_OK) st = app_model_load(path, &j->model, j->err);
    mf_free(path);
    if (st != MINFER_OK || !wants_text(o)) return st;
    return app_prompt_ids(o, j->model, &j->text, &j->ids, &j->n, j->err);
}

/* With prompt and answer, as far as that is known. */
static size_t whole(const job *j)
{
    return j->n + (j->o->n_predict < 0 ? INT32_MAX : j->o->n_predict ? (size_t)j->o->n_predict : 1);
}

static minfer_status dump(job *j, const char *path, minfer_graph_format format, int32_t n_tokens)
{
    app_file f;
    char *text = NULL;
    size_t n = 0;
    if (!path) return MINFER_OK;
    minfer_status st = app_file_create(&f, path, j->err);
    if (st == MINFER_OK) st = minfer_engine_graph(j->engine, n_tokens, format, &text, &n, j->err);
    if (st == MINFER_OK) st = app_file_write(&f, text, n, j->err);
    minfer_status closed = app_file_close(&f, st == MINFER_OK, j->err);
    minfer_free(text);
    return st == MINFER_OK ? closed : st;
}

/* The graph of the prompt's first batch, or of decoding. */
static minfer_status dump_graphs(job *j)
{
    minfer_engine_info info;
    minfer_engine_get_info(j->engine, &info);
    size_t most = (size_t)(j->o->engine.n_batch < info.n_ctx ? j->o->engine.n_batch : info.n_ctx);
    int32_t n = (int32_t)(j->n == 0 ? 1 : j->n < most ? j->n : most);
    MF_TRY(dump(j, j->o->dump_graph, MINFER_GRAPH_DOT, n));
    return dump(j, j->o->dump_graph_json, MINFER_GRAPH_JSON, n);
}

static minfer_status generate(job *j)
{
    const app_options *o = j->o;
    const int32_t *ids = j->ids ? j->ids : o->tokens.v;
    minfer_generate_result result;
    cli_printer out;
    cli_printer_init(&out, o, j->err);
    out.dimmer.thinking = out.dimmer.on && minfer_prompt_opens_thinking(j->model, ids, j->n);
    minfer_generate_options g = {.max_tokens = o->n_predict,
                                 .stop = o->stop.v,
                                 .n_stop = o->stop.n,
                                 .ignore_end = o->ignore_eos,
                                 .on_text = cli_printer_take,
                                 .user = &out,
                                 .draft = j->draft.draft};
    minfer_status st = minfer_generate(j->session, j->sampler, ids, j->n, &g, &result, j->err);
    st = cli_printer_end(&out, st);
    if (st != MINFER_OK || !(o->verbose || app_is_terminal(STDERR_FILENO))) return st;
    cli_closing_line(&result, "seed %llu", (unsigned long long)j->seed);
    if (j->draft.draft) cli_draft_line(&result);
    return st;
}

static minfer_status run_job(job *j)
{
    MF_TRY(load(j));
    if (j->o->tokens.n) j->n = j->o->tokens.n;
    MF_TRY(app_engine_create(j->o, j->model, j->n + 1, whole(j), &j->engine, j->err));
    if (dumps(j->o)) return dump_graphs(j);
    MF_TRY(cli_draft_open(&j->draft, j->o, j->model, j->n + 1, whole(j), j->err));
    MF_TRY(minfer_session_create(j->engine, &j->session, j->err));
    MF_TRY(cli_sampler_create(j->o, j->model, j->grammar, &j->sampler, &j->seed, j->err));
    return generate(j);
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    job j = {.o = o, .err = err};
    minfer_status st = run_job(&j);
    free_job(&j);
    return st;
}

const app_program cli_run = {check, run};
