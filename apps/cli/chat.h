/* What the parts of `minfer chat` share: the conversation, its commands, its file. */
#ifndef APP_CLI_CHAT_H
#define APP_CLI_CHAT_H

#include "cli/draft.h"
#include "cli/lines.h"
#include "common/options.h"

typedef struct cli_dialog {
    const app_options *o;
    minfer_model *model;
    minfer_engine *engine;
    minfer_conversation *talk;
    minfer_sampler *sampler;
    minfer_grammar *grammar;
    cli_draft draft;
    cli_lines *lines;
    mf_buf message; /* what was typed last */
    mf_buf history; /* of --session, as it was read before the model; freed once it is taken over */
    bool resumed;   /* there was one */
    bool leave;
    bool failed;  /* something was refused that came through a pipe */
    bool unsaved; /* the file of --session is behind */
    minfer_error *err;
} cli_dialog;

/* One answer, printed while it is made: to text, or, with text NULL, once more to the last message. What is
 * refused is told and the conversation goes on; an error is returned only when nothing can be printed. */
minfer_status cli_dialog_answer(cli_dialog *c, const char *text, size_t n);

/* Carries out the command that line (terminated, it begins with '/') holds. */
minfer_status cli_dialog_command(cli_dialog *c, const char *line);

/* --session. Reading refuses, before a model is loaded, a file that is no conversation or could not be
 * written; a file that is not there is an empty conversation. */
minfer_status cli_dialog_read(cli_dialog *c, minfer_error *err);
/* Takes the read history over, with the keys and values beside it if they fit. */
minfer_status cli_dialog_resume(cli_dialog *c);
/* Writes the history to path, whole or not at all. */
minfer_status cli_dialog_write(const cli_dialog *c, const char *path, minfer_error *err);
/* Keeps the history after a change; what goes wrong is told. */
void cli_dialog_keep(cli_dialog *c);
/* At the end: keys and values, too. */
minfer_status cli_dialog_close(cli_dialog *c);

#endif
