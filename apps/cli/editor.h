/* Editing of lines on a terminal, with a history that is kept in a file: libedit, where the build has it. */
#ifndef APP_CLI_EDITOR_H
#define APP_CLI_EDITOR_H

#include "cli/lines.h"

typedef struct cli_editor cli_editor;

/* NULL: there is none here (no libedit, a terminal that cannot move its cursor, no locale for UTF-8, no
 * memory). A history that cannot be kept is told in one line, and editing goes on without. */
cli_editor *cli_editor_open(void);
void cli_editor_free(cli_editor *ed);

/* As cli_lines_read. Bytes that are no UTF-8 are kept as they were typed. */
minfer_status cli_editor_read(cli_editor *ed, const char *prompt, mf_buf *line, cli_line *what,
                              minfer_error *err);

#endif
