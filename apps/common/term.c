/* The terminal and signals. */
#include "common/term.h"

#include "common/env.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define DIM   "\033[2m"
#define RESET "\033[0m"

/* What a signal has to put right. */
static volatile sig_atomic_t stdout_dimmed, bar_shown, editing;
static struct termios before_editing;
static const char *volatile unfinished;

/* What a signal tells. */
static volatile sig_atomic_t catching, interrupted, changed;

static void write_all(int fd, const char *s, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, s, n);
        if (k <= 0) return;
        s += k;
        n -= (size_t)k;
    }
}

/* Calls only what POSIX allows in a handler. */
static void on_signal(int sig)
{
    if (sig == SIGINT && catching) {
        interrupted = 1;
        return;
    }
    if (editing) tcsetattr(STDIN_FILENO, TCSANOW, &before_editing);
    if (stdout_dimmed) write_all(STDOUT_FILENO, RESET, sizeof RESET - 1);
    if (bar_shown) write_all(STDERR_FILENO, "\r\033[K", 4);
    if (unfinished) unlink(unfinished);
    if (isatty(STDERR_FILENO)) write_all(STDERR_FILENO, "\n", 1);
    _exit(128 + sig);
}

/* mode is the one in which the descriptor does not work. */
static void hold_descriptor(int fd, int mode)
{
    if (fcntl(fd, F_GETFD) >= 0) return;
    int other = open("/dev/null", mode | O_CLOEXEC);
    if (other < 0 || other == fd) return;
    dup2(other, fd);
    close(other);
}

void app_term_start(void)
{
    struct sigaction end = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    hold_descriptor(STDIN_FILENO, O_WRONLY);
    hold_descriptor(STDOUT_FILENO, O_RDONLY);
    hold_descriptor(STDERR_FILENO, O_RDONLY);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
}

void app_term_catch(bool on)
{
    catching = on;
}
bool app_term_interrupted(void)
{
    return interrupted;
}
void app_term_resume(void)
{
    interrupted = 0;
}

static void on_change(int sig)
{
    (void)sig;
    changed = 1;
}

void app_term_edit(void)
{
    struct sigaction change = {.sa_handler = on_change};
    editing = tcgetattr(STDIN_FILENO, &before_editing) == 0;
    sigaction(SIGCONT, &change, NULL);
    sigaction(SIGWINCH, &change, NULL);
}

bool app_term_changed(void)
{
    bool was = changed;
    changed = 0;
    return was;
}

bool app_term_utf8(void)
{
    const char *tried[] = {"", "C.UTF-8", "en_US.UTF-8"};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (setlocale(LC_CTYPE, tried[i]) && strcmp(nl_langinfo(CODESET), "UTF-8") == 0) return true;
    setlocale(LC_CTYPE, "C");
    return false;
}

void app_term_guard(const char *path)
{
    unfinished = path;
}

void app_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("minfer: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

bool app_is_terminal(int fd)
{
    return isatty(fd) == 1;
}

bool app_wants_color(app_color when)
{
    return when == APP_COLOR_ON ||
           (when == APP_COLOR_AUTO && app_is_terminal(STDOUT_FILENO) && !app_env_plain());
}

void app_progress(void *user, double share)
{
    enum { CELLS = 30 };
    char cells[CELLS + 1];
    (void)user;
    if (!app_is_terminal(STDERR_FILENO) || app_env_plain()) return;
    int full = share < 0 ? 0 : share > 1 ? CELLS : (int)(share * CELLS);
    for (int i = 0; i < CELLS; i++) cells[i] = i < full ? '#' : '-';
    cells[CELLS] = 0;
    fprintf(stderr, "\rloading [%s] %3.0f %%", cells, share * 100);
    bar_shown = share < 1;
    if (!bar_shown) fputs("\r\033[K", stderr);
    fflush(stderr);
}

static bool set_dimmed(app_dimmer *d, bool dimmed, mf_buf *out)
{
    if (d->dimmed == dimmed) return true;
    d->dimmed = dimmed;
    stdout_dimmed = dimmed; /* before the text that dims is written; undimming twice does no harm */
    return mf_buf_str(out, dimmed ? DIM : RESET);
}

static const char opening[] = "<think>", closing[] = "</think>";

/* One byte outside of thoughts: the beginning of a tag is held back until it is one or is none. */
static bool dim_outside(app_dimmer *d, char c, mf_buf *out)
{
    if (c == opening[d->n_matched]) {
        if (++d->n_matched < sizeof opening - 1) return true;
        d->n_matched = 0;
        d->thinking = true;
        return set_dimmed(d, true, out) && mf_buf_str(out, opening);
    }
    size_t held = d->n_matched;
    d->n_matched = c == opening[0]; /* '<' stands in the tag only once */
    return mf_buf_append(out, opening, held) && (d->n_matched || mf_buf_char(out, c));
}

static bool dim_inside(app_dimmer *d, char c, mf_buf *out)
{
    bool ok = set_dimmed(d, true, out) && mf_buf_char(out, c);
    d->n_matched = c == closing[d->n_matched] ? d->n_matched + 1 : c == closing[0];
    if (d->n_matched < sizeof closing - 1) return ok;
    d->n_matched = 0;
    d->thinking = false;
    return ok && set_dimmed(d, false, out);
}

bool app_dim(app_dimmer *d, const char *text, size_t n, mf_buf *out)
{
    if (!d->on) return mf_buf_append(out, text, n);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++)
        ok = d->thinking ? dim_inside(d, text[i], out) : dim_outside(d, text[i], out);
    return ok;
}

bool app_dim_end(app_dimmer *d, mf_buf *out)
{
    bool ok = d->thinking || mf_buf_append(out, opening, d->n_matched);
    d->n_matched = 0;
    return ok && set_dimmed(d, false, out);
}
