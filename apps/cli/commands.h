/* The commands. */
#ifndef APP_CLI_COMMANDS_H
#define APP_CLI_COMMANDS_H

#include "common/program.h"

extern const app_program cli_run, cli_chat, cli_info, cli_list, cli_tokenize, cli_logits, cli_template,
    cli_bench, cli_perplexity, cli_specverify, cli_env;

#endif
