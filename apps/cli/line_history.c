/* The lines that were typed. */
#include "cli/line_history.h"

#include "common/env.h"
#include "common/output.h"
#include "common/term.h"

#include "base/filemap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 26 };

void cli_line_history_free(cli_line_history *h)
{
    mf_free(h->path);
    h->path = NULL;
}

static void give_up(cli_line_history *h, const char *why)
{
    app_note("lines are not kept for the next time: %s", why);
    cli_line_history_free(h);
}

static char *find_path(void)
{
    mf_buf b = {0};
    const char *state = app_env_state(), *home = app_env_home();
    bool ok = state  ? mf_buf_printf(&b, "%s/minfer/history", state)
              : home ? mf_buf_printf(&b, "%s/.local/state/minfer/history", home)
                     : false;
    if (ok) return b.data;
    mf_buf_free(&b);
    return NULL;
}

/* Makes the folders that path lies in, for their owner alone. What fails shows when the file is opened. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
}

/* text holds lines; returns where the last `keep` of them begin. */
static size_t tail(const char *text, size_t n, size_t keep)
{
    size_t at = n;
    while (at > 0) {
        if (at < n && text[at - 1] == '\n' && keep-- == 1) return at;
        at--;
    }
    return 0;
}

static size_t count(const char *text, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    return lines;
}

static void shorten(cli_line_history *h, const char *text, size_t n)
{
    app_file f;
    minfer_error err = {0};
    minfer_status st = app_file_create(&f, h->path, &err);
    if (st == MINFER_OK) st = app_file_write(&f, text, n, &err);
    minfer_status closed = app_file_close(&f, st == MINFER_OK, &err);
    if (st != MINFER_OK || closed != MINFER_OK) give_up(h, err.message);
}

/* text is changed. */
static void tell_lines(char *text, size_t n, void (*fn)(void *user, const char *line), void *user)
{
    for (size_t i = 0, k; i < n; i += k + 1) {
        const char *end = memchr(text + i, '\n', n - i);
        k = end ? (size_t)(end - text) - i : n - i;
        text[i + k] = 0; /* the text is terminated, so there is a place for the last line's */
        if (k) fn(user, text + i);
    }
}

void cli_line_history_open(cli_line_history *h, void (*fn)(void *user, const char *line), void *user)
{
    minfer_error err = {0};
    char *text;
    size_t n;
    h->path = find_path();
    if (!h->path) {
        app_note("lines are not kept for the next time: neither XDG_STATE_HOME nor HOME is set");
        return;
    }
    make_folders(h->path);
    if (access(h->path, F_OK) != 0 && errno == ENOENT) return;
    if (mf_file_read(h->path, MAX_FILE, &text, &n, &err) != MINFER_OK) {
        give_up(h, err.message);
        return;
    }
    size_t from = tail(text, n, CLI_LINE_HISTORY);
    if (count(text, n) > 2 * CLI_LINE_HISTORY) shorten(h, text + from, n - from);
    tell_lines(text + from, n - from, fn, user);
    mf_free(text);
}

void cli_line_history_add(cli_line_history *h, const char *line, size_t n)
{
    mf_buf b = {0};
    if (!h->path || n == 0) return;
    int fd = open(h->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && mf_buf_append(&b, line, n) && mf_buf_char(&b, '\n') &&
              write(fd, b.data, b.len) == (ssize_t)b.len; /* at once: others may append, too */
    int why = errno;
    if (fd >= 0) close(fd);
    mf_buf_free(&b);
    if (ok) return;
    minfer_error err = {0};
    mf_fail(&err, MINFER_ERR_IO, "%s: %s", h->path, strerror(why));
    give_up(h, err.message);
}
