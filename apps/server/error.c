/* Refusals as values: statuses, types and codes of OpenAI's error object. */
#include "server/request.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

static const char *type_of(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 501: return "not_supported_error";
    case 503: return "unavailable_error";
    }
    return status < 500 ? "invalid_request_error" : "server_error";
}

/* Cuts what did not fit between characters. */
static void end_whole(char *s, size_t size)
{
    size_t n = strlen(s);
    if (n == size - 1) s[n - mf_utf8_incomplete_tail(s, n)] = 0;
}

bool srv_refuse(srv_error *e, int status, const char *code, const char *param, const char *fmt, ...)
{
    va_list ap;
    if (!e) return false;
    *e = (srv_error){.status = status, .type = type_of(status), .code = code};
    if (param) snprintf(e->param, sizeof e->param, "%s", param);
    va_start(ap, fmt);
    vsnprintf(e->message, sizeof e->message, fmt, ap);
    va_end(ap);
    end_whole(e->param, sizeof e->param);
    end_whole(e->message, sizeof e->message);
    return false;
}

bool srv_refuse_status(srv_error *e, const char *param, minfer_status st, const minfer_error *err)
{
    bool theirs = st == MINFER_ERR_ARG || st == MINFER_ERR_FORMAT || st == MINFER_ERR_UNSUPPORTED ||
                  st == MINFER_ERR_LIMIT;
    return srv_refuse(e, theirs ? 400 : 500, NULL, theirs ? param : NULL, "%s%s%s",
                      theirs && param ? param : "", theirs && param ? ": " : "", err->message);
}

bool srv_refuse_context(srv_error *e, srv_endpoint endpoint, size_t n_prompt, size_t n_ctx)
{
    const char *param = endpoint == SRV_CHAT ? "messages" : endpoint == SRV_EMBEDDINGS ? "input" : "prompt";
    return srv_refuse(
        e, 400, "context_length_exceeded", param,
        "%s: the prompt has %zu tokens, and the context of %zu tokens must hold it and at least one more",
        param, n_prompt, n_ctx);
}
