/* Printing an answer while it is made. */
#include "cli/print.h"

#include "common/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

bool cli_ids(const int32_t *ids, size_t n, mf_buf *out)
{
    bool ok = mf_buf_char(out, '[');
    for (size_t i = 0; i < n && ok; i++) ok = mf_buf_printf(out, "%s%d", i ? "," : "", ids[i]);
    return ok && mf_buf_str(out, "]\n");
}

void cli_printer_init(cli_printer *p, const app_options *o, minfer_error *err)
{
    *p = (cli_printer){.dimmer = {.on = app_wants_color(o->color)},
                       .ids_only = o->ids,
                       .end_line = app_is_terminal(STDOUT_FILENO),
                       .ended_line = true,
                       .err = err};
}

static minfer_status take_id(cli_printer *p, int32_t id)
{
    if (id < 0) return MINFER_OK;
    if (!mf_grow((void **)&p->ids.v, &p->ids.cap, p->ids.n + 1, sizeof *p->ids.v)) return MF_NOMEM(p->err);
    p->ids.v[p->ids.n++] = id;
    return MINFER_OK;
}

static minfer_status take_text(cli_printer *p, const char *text, size_t n)
{
    p->piece.len = 0;
    if (!app_dim(&p->dimmer, text, n, &p->piece)) return MF_NOMEM(p->err);
    if (n) p->ended_line = text[n - 1] == '\n';
    return p->piece.len ? app_out(p->piece.data, p->piece.len, p->err) : MINFER_OK;
}

bool cli_printer_take(void *user, int32_t id, const char *text, size_t n)
{
    cli_printer *p = user;
    p->st = p->ids_only ? take_id(p, id) : take_text(p, text, n);
    return p->st == MINFER_OK;
}

static minfer_status finish(cli_printer *p)
{
    p->piece.len = 0;
    bool ok = p->ids_only ? cli_ids(p->ids.v, p->ids.n, &p->piece) : app_dim_end(&p->dimmer, &p->piece);
    if (p->end_line && !p->ids_only && !p->ended_line) ok = ok && mf_buf_char(&p->piece, '\n');
    if (!ok) return MF_NOMEM(p->err);
    return p->piece.len ? app_out(p->piece.data, p->piece.len, p->err) : MINFER_OK;
}

minfer_status cli_printer_end(cli_printer *p, minfer_status st)
{
    minfer_error ignored;
    if (st == MINFER_OK) st = p->st;
    if (st != MINFER_OK) { /* the reason stands in err */
        p->err = &ignored;
        if (!p->ids_only) finish(p);
    } else
        st = finish(p);
    mf_buf_free(&p->piece);
    mf_free(p->ids.v);
    return st;
}

static double per_second(size_t n, int64_t ns)
{
    return ns > 0 ? (double)n * 1e9 / (double)ns : 0;
}

void cli_closing_line(const minfer_generate_result *r, const char *fmt, ...)
{
    static const char *const ends[] = {[MINFER_FINISH_STOP] = "stopped",
                                       [MINFER_FINISH_LENGTH] = "length",
                                       [MINFER_FINISH_CANCELLED] = "cancelled"};
    va_list ap;
    fprintf(stderr, "[prompt %zu tokens, %.1f tokens/s; answer %zu tokens", r->n_prompt,
            per_second(r->n_prompt, r->prompt_ns), r->n_generated);
    /* the first token came with the prompt */
    if (r->n_generated > 1) fprintf(stderr, ", %.1f tokens/s", per_second(r->n_generated - 1, r->decode_ns));
    fprintf(stderr, "; %s; ", ends[r->finish]);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("]\n", stderr);
}
