/* The terminal and signals: notes on stderr, the progress bar, dimmed text, and leaving a terminal as it was.
 * Owns the only state a signal handler sees. */
#ifndef APP_COMMON_TERM_H
#define APP_COMMON_TERM_H

#include "common/options.h"

/* Standard descriptors that are closed become ones that fail when used, so that no file takes their place;
 * SIGPIPE and SIGXFSZ become errors of write; SIGINT and SIGTERM undo dimming, remove an unfinished file, and
 * end the program with 130 or 143. */
void app_term_start(void);

/* The unfinished file a signal removes; NULL: none. path lives until the next call. */
void app_term_guard(const char *path);

/* While on, SIGINT ends nothing: it only makes app_term_interrupted true, until app_term_resume. */
void app_term_catch(bool on);
bool app_term_interrupted(void);
void app_term_resume(void);

/* A line editor is about to change the modes of the terminal: a signal that ends the program puts them back
 * as they are now. From then on app_term_changed tells, once each time, that the program was stopped and
 * continued or that the terminal has another size. */
void app_term_edit(void);
bool app_term_changed(void);

/* Makes characters beyond ASCII printable for the C library. false: there is no locale for that. */
bool app_term_utf8(void);

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
