/* A build without libedit: lines are taken as the terminal hands them over. */
#include "cli/editor.h"

cli_editor *cli_editor_open(void)
{
    return NULL;
}

void cli_editor_free(cli_editor *ed)
{
    (void)ed;
}

minfer_status cli_editor_read(cli_editor *ed, const char *prompt, mf_buf *line, cli_line *what,
                              minfer_error *err)
{
    (void)ed;
    (void)prompt;
    line->len = 0;
    *what = CLI_LINE_END;
    return mf_fail(err, MINFER_ERR_UNSUPPORTED, "this build has no line editor");
}
