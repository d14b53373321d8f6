/* The terminal and signals: notes on stderr, the progress bar, dimmed text, and leaving a terminal as it was.
 * Owns the only state a signal handler sees. */
#ifndef APP_COMMON_TERM_H
#define APP_COMMON_TERM_H

#include "common/options.h"

/* Standard descriptors that are closed become ones that fail when used, so that no file takes their place;
 * SIGPIPE becomes an error of write; SIGINT and SIGTERM undo dimming, remove an unfinished file, and end the
 * program with 130 or 143. */
void app_term_start(void);

/* The unfinished file a signal removes; NULL: none. path lives until the next call. */
void app_term_guard(const char *path);

/* "minfer: ..." and a line end, on stderr. */
void app_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool app_is_terminal(int fd);

/* May stdout be dimmed? */
bool app_wants_color(app_color when);

/* A progress bar on stderr, where that is a terminal: a minfer_progress_fn. A share of 1 wipes it away. */
void app_progress(void *user, double share);

/* Text for stdout in which the parts from <think> to </think> are dimmed. Zero-initialise. */
typedef struct app_dimmer {
    bool on;          /* false: text passes as it is */
    bool thinking;    /* may be set at the start: the prompt has opened the part */
    bool dimmed;      /* the terminal is */
    size_t n_matched; /* bytes of the tag that is awaited; those of <think> are held back */
} app_dimmer;
bool app_dim(app_dimmer *d, const char *text, size_t n, mf_buf *out);
bool app_dim_end(app_dimmer *d, mf_buf *out); /* what was held back, and the end of dimming */

#endif
