/* Lines that somebody types or that a pipe brings. */
#ifndef APP_CLI_LINES_H
#define APP_CLI_LINES_H

#include "base/mem.h"

typedef enum cli_line {
    CLI_LINE_TEXT,
    CLI_LINE_END,   /* of the input: Ctrl-D, the end of a pipe */
    CLI_LINE_BREAK, /* Ctrl-C */
} cli_line;

typedef struct cli_lines cli_lines;

minfer_status cli_lines_open(cli_lines **out, minfer_error *err);
void cli_lines_free(cli_lines *l);

/* Does somebody sit at a terminal? */
bool cli_lines_typed(const cli_lines *l);
/* Does Ctrl-C come as CLI_LINE_BREAK? If not, it is a signal. */
bool cli_lines_edited(const cli_lines *l);

/* The next line, without its end, replaces what is in *line, which is empty unless *what is CLI_LINE_TEXT.
 * The prompt is shown on stderr, and only at a terminal. */
minfer_status cli_lines_read(cli_lines *l, const char *prompt, mf_buf *line, cli_line *what,
                             minfer_error *err);

#endif
