/* Formatting of error values. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static void one_line(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 32 || *s == 127) *s = '?';
}

minfer_status mf_vfail(minfer_error *err, minfer_status code, const char *fmt, va_list ap)
{
    if (!err) return code;
    err->code = code;
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    one_line(err->message);
    return code;
}

minfer_status mf_fail(minfer_error *err, minfer_status code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    mf_vfail(err, code, fmt, ap);
    va_end(ap);
    return code;
}

minfer_status mf_fail_prefix(minfer_error *err, minfer_status code, const char *fmt, ...)
{
    if (!err) return code;
    char cause[sizeof err->message];
    memcpy(cause, err->message, sizeof cause);
    va_list ap;
    va_start(ap, fmt);
    mf_vfail(err, code, fmt, ap);
    va_end(ap);
    size_t n = strlen(err->message);
    snprintf(err->message + n, sizeof err->message - n, ": %s", cause);
    return code;
}

const char *mf_status_name(minfer_status code)
{
    switch (code) {
    case MINFER_OK: return "ok";
    case MINFER_ERR_NOMEM: return "out of memory";
    case MINFER_ERR_IO: return "input/output";
    case MINFER_ERR_FORMAT: return "bad format";
    case MINFER_ERR_ARG: return "bad argument";
    case MINFER_ERR_UNSUPPORTED: return "not supported";
    case MINFER_ERR_LIMIT: return "limit reached";
    case MINFER_ERR_STATE: return "internal rule broken";
    }
    return "unknown status";
}
