/* Editing of lines by libedit. It reads through a function of ours, so that bytes which are no UTF-8 are seen
 * and Ctrl-C, a new size of the terminal and a stop are handled without its signal handlers, which send what
 * they catch to the whole process group. */
#include "cli/editor.h"

#include "cli/line_history.h"
#include "common/env.h"
#include "common/term.h"

#include "base/utf8.h"

#include <errno.h>
#include <histedit.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Bytes that are no UTF-8 pass through libedit as characters of a private area and come back as they were. */
enum { RAW = 0x10FF00, CTRL_C = 3 };

struct cli_editor {
    EditLine *el;
    History *history;
    cli_line_history kept;
    char held[4]; /* bytes of a character that is not whole yet */
    size_t n_held;
    const char *prompt;
    bool broken; /* Ctrl-C ended the line */
};

static cli_editor *editor_of(EditLine *el)
{
    void *ed = NULL;
    el_get(el, EL_CLIENTDATA, &ed);
    return ed;
}

static char *show_prompt(EditLine *el)
{
    return (char *)(uintptr_t)editor_of(el)->prompt;
}

static void take_held(cli_editor *ed, size_t n)
{
    ed->n_held -= n;
    memmove(ed->held, ed->held + n, ed->n_held);
}

/* The character that the held bytes are; false: more are needed. */
static bool held_char(cli_editor *ed, bool end, wchar_t *out)
{
    uint32_t cp;
    if (ed->n_held == 0) return false;
    size_t k = mf_utf8_decode(ed->held, ed->n_held, &cp);
    if (cp == MF_UTF8_BAD) {
        if (!end && mf_utf8_incomplete_tail(ed->held, ed->n_held) == ed->n_held) return false;
        k = 1;
        cp = RAW + (unsigned char)ed->held[0];
    }
    *out = (wchar_t)cp;
    take_held(ed, k);
    return true;
}

/* The terminal may have been changed by whoever ran while we were stopped. */
static void take_terminal_back(EditLine *el)
{
    el_set(el, EL_PREP_TERM, 0);
    el_set(el, EL_PREP_TERM, 1);
    el_resize(el);
    el_set(el, EL_REFRESH);
}

/* libedit's way to read: 1 with a character, 0 at the end, -1 with errno. */
static int read_char(EditLine *el, wchar_t *out)
{
    cli_editor *ed = editor_of(el);
    while (!held_char(ed, false, out)) {
        ssize_t n = read(STDIN_FILENO, ed->held + ed->n_held, 1);
        if (n > 0)
            ed->n_held++;
        else if (n == 0)
            return held_char(ed, true, out);
        else if (errno != EINTR)
            return -1;
        else if (app_term_interrupted()) {
            *out = CTRL_C;
            return 1;
        } else if (app_term_changed())
            take_terminal_back(el);
    }
    return 1;
}

static unsigned char break_line(EditLine *el, int c)
{
    (void)c;
    editor_of(el)->broken = true;
    return CC_EOF;
}

static void add_kept(void *user, const char *line)
{
    cli_editor *ed = user;
    HistEvent ev;
    if (mf_utf8_valid(line, strlen(line))) history(ed->history, &ev, H_ENTER, line);
}

/* In the mode of editing no key makes a signal for Ctrl-C: it is bound to a function instead. */
static bool set_up(cli_editor *ed)
{
    HistEvent ev;
    EditLine *el = ed->el;
    return el_set(el, EL_CLIENTDATA, ed) == 0 && el_set(el, EL_PROMPT, show_prompt) == 0 &&
           el_set(el, EL_EDITOR, "emacs") == 0 && el_set(el, EL_SIGNAL, 0) == 0 &&
           history(ed->history, &ev, H_SETSIZE, CLI_LINE_HISTORY) >= 0 &&
           history(ed->history, &ev, H_SETUNIQUE, 1) >= 0 && el_set(el, EL_HIST, history, ed->history) == 0 &&
           el_set(el, EL_GETCFN, read_char) == 0 &&
           el_wset(el, EL_ADDFN, L"break-line", L"Leave the line", break_line) == 0 &&
           el_set(el, EL_BIND, "^C", "break-line", NULL) == 0 &&
           el_set(el, EL_BIND, "^R", "em-inc-search-prev", NULL) == 0 &&
           el_set(el, EL_SETTY, "-d", "intr=", NULL) == 0;
}

cli_editor *cli_editor_open(void)
{
    if (app_env_dumb() || !app_term_utf8()) return NULL;
    cli_editor *ed = mf_calloc(1, sizeof *ed);
    if (!ed) return NULL;
    app_term_edit();
    ed->prompt = "";
    ed->history = history_init();
    ed->el = ed->history ? el_init("minfer", stdin, stderr, stderr) : NULL;
    if (!ed->el || !set_up(ed)) {
        cli_editor_free(ed);
        return NULL;
    }
    el_source(ed->el, NULL); /* the user's own bindings */
    cli_line_history_open(&ed->kept, add_kept, ed);
    return ed;
}

void cli_editor_free(cli_editor *ed)
{
    if (!ed) return;
    if (ed->el) el_end(ed->el);
    if (ed->history) history_end(ed->history);
    cli_line_history_free(&ed->kept);
    mf_free(ed);
}

/* Appends the line, with the bytes that were no UTF-8 as they came. */
static bool append(const char *s, size_t n, mf_buf *line)
{
    bool ok = true;
    for (size_t i = 0, k; i < n && ok; i += k) {
        uint32_t cp;
        k = mf_utf8_decode(s + i, n - i, &cp);
        ok = cp >= RAW && cp <= RAW + 255 ? mf_buf_char(line, (char)(cp - RAW))
                                          : mf_buf_append(line, s + i, k);
    }
    return ok;
}

minfer_status cli_editor_read(cli_editor *ed, const char *prompt, mf_buf *line, cli_line *what,
                              minfer_error *err)
{
    int n = 0;
    ed->prompt = prompt;
    ed->broken = false;
    app_term_resume();
    (void)app_term_changed();
    el_resize(ed->el); /* it may have happened during an answer */
    const char *s = el_gets(ed->el, &n);
    *what = ed->broken ? CLI_LINE_BREAK : s && n > 0 ? CLI_LINE_TEXT : CLI_LINE_END;
    if (*what != CLI_LINE_TEXT) {
        ed->n_held = 0;
        fputc('\n', stderr);
        return MINFER_OK;
    }
    if (n > 0 && s[n - 1] == '\n') n--;
    if (!append(s, (size_t)n, line)) return MF_NOMEM(err);
    if (n > 0 && mf_utf8_valid(line->data, line->len)) {
        HistEvent ev;
        history(ed->history, &ev, H_ENTER, s);
        cli_line_history_add(&ed->kept, line->data, line->len);
    }
    return MINFER_OK;
}
