/* A whole file mapped read-only. */
#ifndef MF_BASE_FILEMAP_H
#define MF_BASE_FILEMAP_H

#include "base/status.h"

typedef struct mf_filemap {
    const uint8_t *data; /* NULL for an empty file */
    size_t size;         /* bytes */
} mf_filemap;

/* Refuses what is not a regular file, naming what it is. Read-ahead is asked for. */
minfer_status mf_filemap_open(const char *path, mf_filemap *out, minfer_error *err);
void mf_filemap_close(mf_filemap *m);

/* Reads a whole file, or stdin for "-", into memory from mf_malloc; *data is terminated by a NUL that *size
 * does not count. Refuses more than limit bytes. */
minfer_status mf_file_read(const char *path, size_t limit, char **data, size_t *size, minfer_error *err);

#endif
