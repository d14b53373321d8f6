/* Errors as values: how every function of the library reports what went wrong. Owns no state. */
#ifndef MF_BASE_STATUS_H
#define MF_BASE_STATUS_H

#include "minfer.h"

#include <stdarg.h>

/* Fills err (may be NULL) with code and a formatted line, and returns code, so that callers write
 * `return mf_fail(err, MINFER_ERR_FORMAT, "...", ...);`. Control characters are replaced by '?', invalid
 * UTF-8 stays. */
minfer_status mf_fail(minfer_error *err, minfer_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
minfer_status mf_vfail(minfer_error *err, minfer_status code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* Puts "prefix: " in front of the message already in err; keeps the code. Used to add a file or a node to a
 * cause. */
minfer_status mf_fail_prefix(minfer_error *err, minfer_status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Short lower-case name of a status: "out of memory", "bad format", ... */
const char *mf_status_name(minfer_status code);

#define MF_TRY(expr)                                            \
    do {                                                        \
        minfer_status mf_try_status_ = (expr);                  \
        if (mf_try_status_ != MINFER_OK) return mf_try_status_; \
    } while (0)

/* The same with one cleanup at `done:`; the variable `st` holds the status. */
#define MF_TRY_GOTO(expr)               \
    do {                                \
        st = (expr);                    \
        if (st != MINFER_OK) goto done; \
    } while (0)

#endif
