/* The commands: each has a check, which refuses before anything is loaded, and a run. */
#ifndef APP_CLI_COMMANDS_H
#define APP_CLI_COMMANDS_H

#include "common/options.h"

typedef struct cli_command {
    minfer_status (*check)(const app_options *o, minfer_error *err); /* NULL: nothing to refuse */
    minfer_status (*run)(const app_options *o, minfer_error *err);
} cli_command;

extern const cli_command cli_run, cli_chat, cli_info, cli_list, cli_tokenize, cli_logits, cli_template,
    cli_bench, cli_perplexity, cli_specverify, cli_env;

#endif
