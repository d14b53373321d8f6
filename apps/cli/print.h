/* Printing an answer while it is made. */
#ifndef APP_CLI_PRINT_H
#define APP_CLI_PRINT_H

#include "common/options.h"
#include "common/term.h"

/* [1,2,3] and a line end, appended to out. */
bool cli_ids(const int32_t *ids, size_t n, mf_buf *out);

typedef struct cli_printer {
    app_dimmer dimmer;
    bool ids_only;
    bool end_line;   /* a line end that the text lacks is added */
    bool ended_line; /* nothing was printed, or a line end came last */
    app_ints ids;
    mf_buf piece;
    minfer_status st; /* the first failure */
    minfer_error *err;
} cli_printer;

void cli_printer_init(cli_printer *p, const app_options *o, minfer_error *err);

/* For minfer_generate_options.on_text, with a cli_printer as user: each piece is written at once. */
bool cli_printer_take(void *user, int32_t id, const char *text, size_t n);

/* Completes the output: ids, the end of dimming, and on a terminal (or where end_line was set) a line end.
 * st: how the generation ended; returns that or a failure of printing. Frees. */
minfer_status cli_printer_end(cli_printer *p, minfer_status st);

/* Tokens, speeds, why it ended, and what else there is to say, on stderr. */
void cli_closing_line(const minfer_generate_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
