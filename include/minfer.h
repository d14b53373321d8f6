/* minfer: large language models on the machine in front of you. The public interface.
 *
 * Conventions: every call that can fail returns a minfer_status and fills the caller's minfer_error, when one
 * is given, with one line that names the thing and the values. The library never exits, prints, or reads the
 * environment. Strings are UTF-8 with an explicit length unless said otherwise. Opaque objects belong to the
 * caller of the function that made them and are given back to the matching _free, which accepts NULL. */
#ifndef MINFER_H
#define MINFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MINFER_API __attribute__((visibility("default")))

typedef enum minfer_status {
    MINFER_OK = 0,
    MINFER_ERR_NOMEM,       /* an allocation failed, or a budget would be exceeded */
    MINFER_ERR_IO,          /* a file could not be opened, read or written */
    MINFER_ERR_FORMAT,      /* bytes that are not what they claim to be */
    MINFER_ERR_ARG,         /* the caller gave a value that cannot be used */
    MINFER_ERR_UNSUPPORTED, /* well-formed, but nothing here can do it */
    MINFER_ERR_LIMIT,       /* a limit (context, depth, output, steps) was reached */
    MINFER_ERR_STATE,       /* an internal rule was broken: a defect, reported instead of an abort */
} minfer_status;

typedef struct minfer_error {
    minfer_status code;
    char message[1024]; /* one line, always terminated */
} minfer_error;

#ifdef __cplusplus
}
#endif
#endif
