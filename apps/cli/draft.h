/* The source of drafts that the options ask for. */
#ifndef APP_CLI_DRAFT_H
#define APP_CLI_DRAFT_H

#include "common/options.h"

typedef struct cli_draft { /* zero-initialise */
    minfer_model *model;   /* NULL: looked up in the text, or none */
    minfer_engine *engine;
    minfer_draft *draft; /* NULL: none */
} cli_draft;

/* Refuses options that do not go together. */
minfer_status cli_draft_check(const app_options *o, minfer_error *err);

/* Opens what is asked for, for generations of `target`; engine and least, wanted as with app_engine_create.
 * With -v tells on stderr what it is. Goes to cli_draft_close also after an error. */
minfer_status cli_draft_open(cli_draft *d, const app_options *o, const minfer_model *target, size_t least,
                             size_t wanted, minfer_error *err);
void cli_draft_close(cli_draft *d);

/* How the drafts fared, on stderr. */
void cli_draft_line(const minfer_generate_result *r);

#endif
