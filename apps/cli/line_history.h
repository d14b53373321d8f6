/* The lines that were typed, from one conversation to the next: a text file with one line each, in
 * $XDG_STATE_HOME/minfer or ~/.local/state/minfer. Nothing that goes wrong with it stops anybody from typing:
 * it is told in one line, once, and lines are not kept any more. */
#ifndef APP_CLI_LINE_HISTORY_H
#define APP_CLI_LINE_HISTORY_H

#include "base/mem.h"

typedef struct cli_line_history { /* zero-initialise */
    char *path;                   /* NULL: lines are not kept */
} cli_line_history;

/* Tells the lines of the file to fn, at most the newest CLI_LINE_HISTORY of them, oldest first. A file with
 * more than twice as many is cut to those. */
enum { CLI_LINE_HISTORY = 1000 };
void cli_line_history_open(cli_line_history *h, void (*fn)(void *user, const char *line), void *user);
void cli_line_history_add(cli_line_history *h, const char *line, size_t n);
void cli_line_history_free(cli_line_history *h);

#endif
