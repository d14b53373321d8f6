/* `minfer chat`: a conversation with somebody at a terminal, or with a pipe. */
#include "cli/chat.h"

#include "cli/commands.h"
#include "cli/print.h"
#include "cli/sampler.h"
#include "common/grammar.h"
#include "common/model.h"
#include "common/term.h"
#include "common/times.h"

#include <string.h>
#include <unistd.h>

static minfer_status check(const app_options *o, minfer_error *err)
{
    if (o->n_predict == 0) return mf_fail(err, MINFER_ERR_ARG, "--n-predict 0 leaves no room for answers");
    MF_TRY(app_grammar_check(o, err));
    MF_TRY(cli_draft_check(o, err));
    return app_engine_check(o, err);
}

/* ---- one answer ---- */

typedef struct output {
    cli_printer printer;
    bool told; /* what there is to say about the prompt */
    bool verbose;
} output;

static bool take_prompt(void *user, const minfer_turn_prompt *p)
{
    output *out = user;
    if (!out->told && p->n_dropped == 1)
        app_note("the context is full: the oldest exchange is not seen any more");
    else if (!out->told && p->n_dropped)
        app_note("the context is full: the oldest %zu exchanges are not seen any more", p->n_dropped);
    if (!out->told && out->verbose)
        app_note("prompt of %zu tokens, %zu of them known", p->n_tokens, p->n_reused);
    out->told = true;
    out->printer.dimmer.thinking = out->printer.dimmer.on && p->thinking;
    return !app_term_interrupted();
}

static bool take_text(void *user, int32_t id, const char *text, size_t n)
{
    output *out = user;
    return cli_printer_take(&out->printer, id, text, n) && !app_term_interrupted();
}

static void tell_end(const cli_dialog *c, const minfer_turn_result *r)
{
    minfer_engine_info info;
    minfer_engine_get_info(c->engine, &info);
    size_t used = r->prompt.n_tokens + r->generate.n_generated;
    if (r->taken_back)
        app_note("stopped before there was an answer; nothing has changed");
    else if (r->generate.finish == MINFER_FINISH_LENGTH && used >= (size_t)info.n_ctx)
        app_note("the answer ends here because the context is full");
    if (r->taken_back || !(c->o->verbose || app_is_terminal(STDERR_FILENO))) return;
    cli_closing_line(&r->generate, "context %zu of %d", used, info.n_ctx);
    if (c->draft.draft) cli_draft_line(&r->generate);
}

minfer_status cli_dialog_answer(cli_dialog *c, const char *text, size_t n)
{
    minfer_error why = {0};
    minfer_turn_result r;
    output out = {.verbose = c->o->verbose};
    cli_printer_init(&out.printer, c->o, c->err);
    out.printer.end_line = true;
    minfer_turn_options o = {.generate = {.max_tokens = c->o->n_predict,
                                          .stop = c->o->stop.v,
                                          .n_stop = c->o->stop.n,
                                          .on_text = take_text,
                                          .user = &out,
                                          .draft = c->draft.draft},
                             .on_prompt = take_prompt};
    app_term_resume();
    minfer_status st = text ? minfer_conversation_send(c->talk, c->sampler, text, n, &o, &r, &why)
                            : minfer_conversation_regenerate(c->talk, c->sampler, &o, &r, &why);
    minfer_status printed = cli_printer_end(&out.printer, MINFER_OK);
    if (st == MINFER_OK && !r.taken_back) cli_dialog_keep(c);
    MF_TRY(printed);
    if (st == MINFER_OK) {
        tell_end(c, &r);
        return MINFER_OK;
    }
    app_note("%s", why.message);
    c->failed = true;
    return MINFER_OK;
}

/* ---- messages ---- */

static const char block[] = "\"\"\"";
enum { BLOCK = sizeof block - 1 };

static bool begins_block(const mf_buf *m)
{
    return m->len >= BLOCK && memcmp(m->data, block, BLOCK) == 0;
}

/* From position `from` on; the mark is taken away. */
static bool ends_block(mf_buf *m, size_t from)
{
    if (m->len < from + BLOCK || memcmp(m->data + m->len - BLOCK, block, BLOCK) != 0) return false;
    m->len -= BLOCK;
    m->data[m->len] = 0;
    return true;
}

/* Appends the next line to the message, after a line end. */
static minfer_status read_more(cli_dialog *c, mf_buf *m, cli_line *what)
{
    mf_buf line = {0};
    minfer_status st = cli_lines_read(c->lines, ". ", &line, what, c->err);
    if (st == MINFER_OK && *what == CLI_LINE_TEXT &&
        !(mf_buf_char(m, '\n') && mf_buf_append(m, line.data, line.len)))
        st = MF_NOMEM(c->err);
    mf_buf_free(&line);
    return st;
}

/* The lines between two """; m holds the first line. */
static minfer_status read_block(cli_dialog *c, mf_buf *m, cli_line *what)
{
    size_t from = BLOCK;
    while (!ends_block(m, from)) {
        from = m->len + 1;
        MF_TRY(read_more(c, m, what));
        if (*what == CLI_LINE_END) {
            app_note("the input ended before a closing \"\"\"; the message is not sent");
            c->failed = true;
        }
        if (*what != CLI_LINE_TEXT) return MINFER_OK;
    }
    size_t skip = BLOCK +
                  (size_t)(m->len > BLOCK && m->data[BLOCK] == '\n'); /* nothing stood behind the mark */
    m->len -= skip;
    memmove(m->data, m->data + skip, m->len + 1);
    if (m->len && m->data[m->len - 1] == '\n') m->data[--m->len] = 0; /* nor before the closing one */
    return MINFER_OK;
}

/* A message of one line, of lines that end in a backslash, or of a block. *typed_block: it is no command. */
static minfer_status read_message(cli_dialog *c, cli_line *what, bool *typed_block)
{
    mf_buf *m = &c->message;
    *typed_block = false;
    MF_TRY(cli_lines_read(c->lines, "> ", m, what, c->err));
    if (*what != CLI_LINE_TEXT) return MINFER_OK;
    *typed_block = begins_block(m);
    if (*typed_block) return read_block(c, m, what);
    while (*what == CLI_LINE_TEXT && m->len && m->data[m->len - 1] == '\\') {
        m->data[--m->len] = 0;
        MF_TRY(read_more(c, m, what));
    }
    if (*what == CLI_LINE_END) *what = CLI_LINE_TEXT; /* a pipe that ends in a backslash */
    return MINFER_OK;
}

static bool is_blank(const mf_buf *m)
{
    for (size_t i = 0; i < m->len; i++)
        if (!strchr(" \t\r\n", m->data[i]) || !m->data[i]) return false;
    return true;
}

static minfer_status talk(cli_dialog *c)
{
    bool broken = false, typed_block;
    while (!c->leave) {
        cli_line what;
        MF_TRY(read_message(c, &what, &typed_block));
        if (what == CLI_LINE_END || (what == CLI_LINE_BREAK && broken)) return MINFER_OK;
        broken = what == CLI_LINE_BREAK;
        if (broken)
            app_note("Ctrl-C once more or Ctrl-D leaves");
        else if (is_blank(&c->message))
            continue;
        else if (c->message.data[0] == '/' && !typed_block)
            MF_TRY(cli_dialog_command(c, c->message.data));
        else
            MF_TRY(cli_dialog_answer(c, c->message.data, c->message.len));
    }
    return MINFER_OK;
}

/* ---- the whole ---- */

static minfer_status load(cli_dialog *c)
{
    char *path;
    minfer_model_info info;
    MF_TRY(app_model_path(c->o, &path, c->err));
    minfer_status st = app_model_load(path, &c->model, c->err);
    mf_free(path);
    MF_TRY(st);
    minfer_model_get_info(c->model, &info);
    if (!info.has_template) app_note("the model has no chat template; ChatML is used");
    MF_TRY(app_engine_create(c->o, c->model, 1, 1, &c->engine, c->err));
    return cli_draft_open(&c->draft, c->o, c->model, 1, 1, c->err);
}

static minfer_status begin(cli_dialog *c)
{
    const char *system = c->o->system;
    uint64_t seed;
    MF_TRY(minfer_conversation_create(c->engine, NULL, &c->talk, c->err));
    MF_TRY(cli_sampler_create(c->o, c->model, c->grammar, &c->sampler, &seed, c->err));
    if (c->o->verbose) app_note("seed %llu", (unsigned long long)seed);
    MF_TRY(cli_dialog_resume(c));
    if (system) {
        minfer_status st = minfer_conversation_set_system(c->talk, system, strlen(system), c->err);
        if (st != MINFER_OK) return mf_fail_prefix(c->err, st, "--system");
    }
    MF_TRY(cli_lines_open(&c->lines, c->err));
    app_term_catch(cli_lines_edited(c->lines));
    if (cli_lines_typed(c->lines)) app_note("/help lists the commands, Ctrl-D leaves");
    return MINFER_OK;
}

/* Keeps what there is to keep also when the conversation ended with an error. */
static minfer_status close_talk(cli_dialog *c, minfer_status st)
{
    minfer_error why = *c->err;
    minfer_status kept = cli_dialog_close(c);
    if (st != MINFER_OK) *c->err = why;
    return st != MINFER_OK ? st : kept;
}

static minfer_status run_chat(cli_dialog *c)
{
    MF_TRY(cli_dialog_read(c, c->err));
    MF_TRY(app_grammar_load(c->o, &c->grammar, c->err));
    MF_TRY(load(c));
    MF_TRY(begin(c));
    MF_TRY(close_talk(c, talk(c)));
    if (!c->failed || cli_lines_typed(c->lines)) return MINFER_OK;
    return mf_fail(c->err, MINFER_ERR_ARG, "not everything that came through the pipe could be done");
}

static void free_chat(cli_dialog *c)
{
    cli_lines_free(c->lines);
    cli_draft_close(&c->draft);
    minfer_sampler_free(c->sampler);
    minfer_grammar_free(c->grammar);
    minfer_conversation_free(c->talk);
    app_engine_free(c->engine);
    minfer_model_free(c->model);
    mf_buf_free(&c->message);
    mf_buf_free(&c->history);
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    cli_dialog c = {.o = o, .err = err};
    minfer_status st = run_chat(&c);
    free_chat(&c);
    return st;
}

const app_program cli_chat = {check, run};
