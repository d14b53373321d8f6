/* Mapping and reading of files. */
#include "base/filemap.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    if (S_ISFIFO(mode)) return "a pipe";
    return "not a regular file";
}

static minfer_status open_regular(const char *path, int *fd, size_t *size, minfer_error *err)
{
    struct stat sb;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) return mf_fail(err, MINFER_ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(*fd, &sb) != 0) return mf_fail(err, MINFER_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(sb.st_mode))
        return mf_fail(err, MINFER_ERR_IO, "%s: is %s, not a file", path, kind_of(sb.st_mode));
    *size = (size_t)sb.st_size;
    return MINFER_OK;
}

minfer_status mf_filemap_open(const char *path, mf_filemap *out, minfer_error *err)
{
    int fd = -1;
    size_t size = 0;
    *out = (mf_filemap){0};
    minfer_status st = open_regular(path, &fd, &size, err);
    if (st == MINFER_OK && size > 0) {
        void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            st = mf_fail(err, MINFER_ERR_IO, "%s: cannot map %zu bytes: %s", path, size, strerror(errno));
        else {
            *out = (mf_filemap){p, size};
#ifdef MADV_HUGEPAGE /* what is still to be read comes in large pages, where there are any */
            (void)madvise(p, size, MADV_HUGEPAGE);
#endif
            (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
        }
    }
    if (fd >= 0) close(fd);
    return st;
}

void mf_filemap_close(mf_filemap *m)
{
    if (m->data) munmap((void *)(uintptr_t)m->data, m->size);
    *m = (mf_filemap){0};
}

minfer_status mf_file_read(const char *path, size_t limit, char **data, size_t *size, minfer_error *err)
{
    bool std = strcmp(path, "-") == 0;
    const char *name = std ? "stdin" : path;
    mf_buf b = {0};
    minfer_status st = MINFER_OK;
    size_t unused;
    int fd = STDIN_FILENO;
    if (!std) st = open_regular(path, &fd, &unused, err);
    while (st == MINFER_OK) {
        char chunk[65536];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) st = mf_fail(err, MINFER_ERR_IO, "%s: %s", name, strerror(errno));
        if (n <= 0) break;
        if (b.len + (size_t)n > limit)
            st = mf_fail(err, MINFER_ERR_LIMIT, "%s: larger than %zu bytes", name, limit);
        else if (!mf_buf_append(&b, chunk, (size_t)n))
            st = MF_NOMEM(err);
    }
    if (!std && fd >= 0) close(fd);
    if (st == MINFER_OK && !mf_buf_append(&b, "", 0)) st = MF_NOMEM(err);
    if (st != MINFER_OK) {
        mf_buf_free(&b);
        return st;
    }
    *data = b.data;
    *size = b.len;
    return MINFER_OK;
}
