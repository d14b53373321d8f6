/* Standard output and output files. */
#include "common/output.h"

#include "common/term.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static minfer_status write_all(int fd, const char *name, const char *p, size_t n, minfer_error *err)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0 && errno == EPIPE) return mf_fail(err, MINFER_ERR_IO, "%s", "");
        if (k < 0) return mf_fail(err, MINFER_ERR_IO, "%s: %s", name, strerror(errno));
        p += k;
        n -= (size_t)k;
    }
    return MINFER_OK;
}

minfer_status app_out(const void *data, size_t n, minfer_error *err)
{
    return write_all(STDOUT_FILENO, "stdout", data, n, err);
}

minfer_status app_out_buf(mf_buf *b, bool ok, minfer_error *err)
{
    minfer_status st = ok ? app_out(b->data, b->len, err) : MF_NOMEM(err);
    mf_buf_free(b);
    return st;
}

/* Opens a temporary file beside f->path, with the permissions a new file would have. */
static minfer_status open_temp(app_file *f, minfer_error *err)
{
    size_t n = strlen(f->path);
    f->temp = mf_malloc(n + 8);
    if (!f->temp) return MF_NOMEM(err);
    memcpy(f->temp, f->path, n);
    memcpy(f->temp + n, ".XXXXXX", 8);
    f->fd = mkostemp(f->temp, O_CLOEXEC);
    if (f->fd < 0) {
        mf_free(f->temp);
        f->temp = NULL;
        return mf_fail(err, MINFER_ERR_IO, "%s: %s", f->path, strerror(errno));
    }
    app_term_guard(f->temp);
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(f->fd, 0666 & ~mask) == 0) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_IO, "%s: %s", f->temp, strerror(errno));
}

/* A link is followed, so that the file it names is replaced and not the link. */
static minfer_status open_path(app_file *f, const char *path, minfer_error *err)
{
    struct stat sb;
    bool exists = stat(path, &sb) == 0;
    char *real = exists ? realpath(path, NULL) : NULL;
    f->path = mf_strndup(real ? real : path, strlen(real ? real : path));
    free(real);
    if (!f->path) return MF_NOMEM(err);
    if (exists && S_ISDIR(sb.st_mode)) return mf_fail(err, MINFER_ERR_IO, "%s: is a directory", path);
    if (!exists || S_ISREG(sb.st_mode)) return open_temp(f, err);
    f->fd = open(path, O_WRONLY | O_CLOEXEC);
    return f->fd >= 0 ? MINFER_OK : mf_fail(err, MINFER_ERR_IO, "%s: %s", path, strerror(errno));
}

minfer_status app_file_create(app_file *f, const char *path, minfer_error *err)
{
    *f = (app_file){.fd = -1};
    if (strcmp(path, "-") == 0) {
        f->fd = STDOUT_FILENO;
        return MINFER_OK;
    }
    return open_path(f, path, err);
}

minfer_status app_file_write(app_file *f, const void *data, size_t n, minfer_error *err)
{
    return write_all(f->fd, f->path ? f->path : "stdout", data, n, err);
}

/* On disk, then under its name. */
static minfer_status keep_file(app_file *f, minfer_error *err)
{
    bool ok = !f->temp || fsync(f->fd) == 0;
    if (f->fd >= 0 && f->fd != STDOUT_FILENO && close(f->fd) != 0) ok = false;
    f->fd = -1;
    if (ok && f->temp) ok = rename(f->temp, f->path) == 0;
    return ok ? MINFER_OK : mf_fail(err, MINFER_ERR_IO, "%s: %s", f->path, strerror(errno));
}

minfer_status app_file_close(app_file *f, bool keep, minfer_error *err)
{
    minfer_status st = keep ? keep_file(f, err) : MINFER_OK;
    if (f->fd >= 0 && f->fd != STDOUT_FILENO) close(f->fd);
    if (f->temp && (!keep || st != MINFER_OK)) unlink(f->temp);
    app_term_guard(NULL);
    mf_free(f->temp);
    mf_free(f->path);
    *f = (app_file){.fd = -1};
    return st;
}

static bool escape_bytes(const char *s, size_t n, mf_buf *out)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) ok = mf_buf_printf(out, "\\x%02X", (unsigned char)s[i]);
    return ok;
}

/* Controls: C0 and DEL, C1, and the marks that turn the direction of writing. */
static bool is_control(uint32_t cp)
{
    return cp < 32 || (cp >= 127 && cp < 160) || (cp >= 0x202A && cp <= 0x202E) ||
           (cp >= 0x2066 && cp <= 0x2069);
}

bool app_escape(const char *text, size_t n, bool quoted, mf_buf *out)
{
    bool ok = mf_buf_append(out, "", 0);
    for (size_t i = 0, k; i < n && ok; i += k) {
        static const char plain[] = "\n\t\r\"\\", names[] = "ntr\"\\";
        uint32_t cp;
        k = mf_utf8_decode(text + i, n - i, &cp);
        const char *short_form = cp && cp < 128 ? strchr(plain, (int)cp) : NULL;
        if (short_form && (quoted || cp < 32))
            ok = mf_buf_char(out, '\\') && mf_buf_char(out, names[short_form - plain]);
        else if (cp == MF_UTF8_BAD || is_control(cp))
            ok = escape_bytes(text + i, k, out);
        else
            ok = mf_buf_append(out, text + i, k);
    }
    return ok;
}

bool app_bytes(uint64_t n, mf_buf *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    double v = (double)n;
    for (; v >= 1024 && u + 1 < sizeof units / sizeof *units; u++) v /= 1024;
    return mf_buf_printf(out, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}
