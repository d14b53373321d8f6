/* Standard output and output files. */
#ifndef APP_COMMON_OUTPUT_H
#define APP_COMMON_OUTPUT_H

#include "base/mem.h"

/* Writes all n bytes to stdout. When nobody reads any more (a closed pipe), the error has an empty message:
 * there is nothing to report, and the program ends with 0. */
minfer_status app_out(const void *data, size_t n, minfer_error *err);

/* The same for a buffer that may have run out of memory (ok false), which is freed. */
minfer_status app_out_buf(mf_buf *b, bool ok, minfer_error *err);

/* A file that appears whole or not at all: written beside its place and renamed. What is no regular file (a
 * device, a pipe, "-" for stdout) is written to directly. */
typedef struct app_file {
    int fd;
    char *path, *temp; /* temp NULL: written directly */
} app_file;

/* Refuses a directory and places that cannot be written. f then goes to app_file_close, once. */
minfer_status app_file_create(app_file *f, const char *path, minfer_error *err);
minfer_status app_file_write(app_file *f, const void *data, size_t n, minfer_error *err);
/* keep: the file takes its place; otherwise what was written is removed. */
minfer_status app_file_close(app_file *f, bool keep, minfer_error *err);

/* Appends text with what a terminal would act upon written out: \n, \t, \r, and \xNN for other control
 * characters and for bytes that are not UTF-8; `quoted`: also \" and \\, to stand between quotes. */
bool app_escape(const char *text, size_t n, bool quoted, mf_buf *out);

/* Appends a number of bytes for people: "93.8 MiB". */
bool app_bytes(uint64_t n, mf_buf *out);

#endif
