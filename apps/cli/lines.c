/* Lines that somebody types or that a pipe brings. */
#include "cli/lines.h"

#include "cli/editor.h"
#include "common/term.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli_lines {
    bool typed;
    cli_editor *editor; /* NULL: lines are taken as they come */
    char *line;         /* getline's */
    size_t cap;
};

minfer_status cli_lines_open(cli_lines **out, minfer_error *err)
{
    cli_lines *l = *out = mf_calloc(1, sizeof *l);
    if (!l) return MF_NOMEM(err);
    l->typed = app_is_terminal(STDIN_FILENO);
    if (l->typed && app_is_terminal(STDERR_FILENO)) l->editor = cli_editor_open();
    return MINFER_OK;
}

void cli_lines_free(cli_lines *l)
{
    if (!l) return;
    cli_editor_free(l->editor);
    free(l->line);
    mf_free(l);
}

bool cli_lines_typed(const cli_lines *l)
{
    return l->typed;
}
bool cli_lines_edited(const cli_lines *l)
{
    return l->editor != NULL;
}

minfer_status cli_lines_read(cli_lines *l, const char *prompt, mf_buf *line, cli_line *what,
                             minfer_error *err)
{
    line->len = 0;
    if (l->editor) return cli_editor_read(l->editor, prompt, line, what, err);
    if (l->typed) fputs(prompt, stderr);
    errno = 0;
    ssize_t n = getline(&l->line, &l->cap, stdin);
    *what = n < 0 ? CLI_LINE_END : CLI_LINE_TEXT;
    if (n < 0 && ferror(stdin)) return mf_fail(err, MINFER_ERR_IO, "stdin: %s", strerror(errno));
    if (n < 0 && !feof(stdin)) return MF_NOMEM(err);
    if (n > 0 && l->line[n - 1] == '\n') n--;
    if (n > 0 && l->line[n - 1] == '\r') n--;
    return n <= 0 || mf_buf_append(line, l->line, (size_t)n) ? MINFER_OK : MF_NOMEM(err);
}
