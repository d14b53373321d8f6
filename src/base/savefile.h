/* A file that is replaced whole or not at all: bytes go to PATH.tmp beside it, which takes its place at the
 * end. Whatever happens on the way, under PATH is what was there before or all that was written. */
#ifndef MF_BASE_SAVEFILE_H
#define MF_BASE_SAVEFILE_H

#include "base/status.h"

typedef struct mf_savefile {
    char *path, *tmp;
    uint8_t *buf;
    size_t n; /* bytes waiting in buf */
    int fd, dir;
} mf_savefile;

/* Refuses a path that names something other than a regular file. Two savers of one path take turns: the
 * second waits here until the first is done. What a killed process left under PATH.tmp is written over. The
 * file can be read and written by its owner only. */
minfer_status mf_savefile_open(const char *path, mf_savefile *f, minfer_error *err);
minfer_status mf_savefile_write(mf_savefile *f, const void *data, size_t n, minfer_error *err);

/* Ends the saving. When st is MINFER_OK the bytes are brought to the disk and take their place; otherwise,
 * and when that fails, PATH.tmp is removed and PATH stays. Returns st or what failed here. */
minfer_status mf_savefile_close(mf_savefile *f, minfer_status st, minfer_error *err);

#endif
