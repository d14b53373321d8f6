/* Temporary file, lock, fsync, rename. */
#include "base/savefile.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

static minfer_status fail(const mf_savefile *f, const char *what, minfer_error *err)
{
    return mf_fail(err, MINFER_ERR_IO, "%s: %s: %s", f->path, what, strerror(errno));
}

static minfer_status check_target(const mf_savefile *f, minfer_error *err)
{
    struct stat sb;
    if (stat(f->path, &sb) != 0) return errno == ENOENT ? MINFER_OK : fail(f, "cannot be saved", err);
    if (S_ISREG(sb.st_mode)) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_IO, "%s: cannot be saved: is %s, not a file", f->path,
                   S_ISDIR(sb.st_mode) ? "a directory" : "something else");
}

/* Whether the file behind f->fd still stands under its name: while we waited for the lock, its saver may have
 * renamed or removed it. */
static bool still_named(const mf_savefile *f)
{
    struct stat ours, there;
    return fstat(f->fd, &ours) == 0 && stat(f->tmp, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

static minfer_status lock(const mf_savefile *f, minfer_error *err)
{
    while (flock(f->fd, LOCK_EX) != 0)
        if (errno != EINTR) return fail(f, "cannot lock the temporary file", err);
    return MINFER_OK;
}

static minfer_status open_tmp(mf_savefile *f, minfer_error *err)
{
    for (;;) {
        f->fd = open(f->tmp, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (f->fd < 0) return fail(f, "cannot make a temporary file", err);
        MF_TRY(lock(f, err));
        if (still_named(f)) break;
        close(f->fd);
    }
    return ftruncate(f->fd, 0) == 0 ? MINFER_OK : fail(f, "cannot empty the temporary file", err);
}

static void forget(mf_savefile *f)
{
    if (f->fd >= 0) close(f->fd);
    if (f->dir >= 0) close(f->dir);
    mf_free(f->path);
    mf_free(f->tmp);
    mf_free(f->buf);
    *f = (mf_savefile){.fd = -1, .dir = -1};
}

/* The folder path is in, for its fsync; -1 when it may not be read. */
static int open_folder(mf_savefile *f)
{
    char *name = f->tmp, *slash = strrchr(f->path, '/');
    size_t n = slash ? (size_t)(slash - f->path) : 0;
    memcpy(name, slash ? f->path : ".", n ? n : 1);
    name[n ? n : 1] = 0;
    return open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

minfer_status mf_savefile_open(const char *path, mf_savefile *f, minfer_error *err)
{
    size_t n = strlen(path);
    *f = (mf_savefile){.fd = -1, .dir = -1, .path = mf_strndup(path, n), .tmp = mf_malloc(n + 5)};
    f->buf = mf_malloc(BUFFER);
    minfer_status st = f->path && f->tmp && f->buf ? MINFER_OK : MF_NOMEM(err);
    if (st == MINFER_OK) {
        f->dir = open_folder(f);
        memcpy(f->tmp, path, n);
        memcpy(f->tmp + n, ".tmp", 5);
        st = check_target(f, err);
    }
    if (st == MINFER_OK) st = open_tmp(f, err);
    if (st != MINFER_OK) forget(f);
    return st;
}

static minfer_status write_out(const mf_savefile *f, const uint8_t *p, size_t n, minfer_error *err)
{
    while (n > 0) {
        ssize_t w = write(f->fd, p, n);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return fail(f, "cannot be written", err);
        p += w;
        n -= (size_t)w;
    }
    return MINFER_OK;
}

static minfer_status flush(mf_savefile *f, minfer_error *err)
{
    MF_TRY(write_out(f, f->buf, f->n, err));
    f->n = 0;
    return MINFER_OK;
}

minfer_status mf_savefile_write(mf_savefile *f, const void *data, size_t n, minfer_error *err)
{
    if (n > BUFFER - f->n) MF_TRY(flush(f, err));
    if (n > BUFFER) return write_out(f, data, n, err);
    if (n) memcpy(f->buf + f->n, data, n);
    f->n += n;
    return MINFER_OK;
}

/* So that the new name outlives a loss of power, too. Some file systems cannot sync a folder, and need not.
 */
static minfer_status sync_folder(const mf_savefile *f, minfer_error *err)
{
    if (f->dir < 0 || fsync(f->dir) == 0 || errno == EINVAL || errno == ENOTSUP) return MINFER_OK;
    return fail(f, "its folder cannot be brought to the disk", err);
}

static minfer_status finish(mf_savefile *f, minfer_error *err)
{
    MF_TRY(flush(f, err));
    while (fsync(f->fd) != 0)
        if (errno != EINTR) return fail(f, "cannot be brought to the disk", err);
    return rename(f->tmp, f->path) == 0 ? MINFER_OK : fail(f, "cannot take its place", err);
}

minfer_status mf_savefile_close(mf_savefile *f, minfer_status st, minfer_error *err)
{
    if (st == MINFER_OK) st = finish(f, err);
    if (st == MINFER_OK)
        st = sync_folder(f, err);
    else
        unlink(f->tmp); /* the lock still held */
    forget(f);
    return st;
}
