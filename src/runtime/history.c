/* The messages of a conversation. */
#include "runtime/history.h"

#include "base/utf8.h"

#include <string.h>

static const char format[] = "minfer-conversation";

minfer_status mf_history_init(mf_history *h, minfer_error *err)
{
    *h = (mf_history){.messages = json_array()};
    return h->messages ? MINFER_OK : MF_NOMEM(err);
}

void mf_history_free(mf_history *h)
{
    json_decref(h->messages);
    *h = (mf_history){0};
}

minfer_status mf_history_copy(const mf_history *h, mf_history *out, minfer_error *err)
{
    *out = (mf_history){.messages = mf_json_copy(h->messages), .dropped = h->dropped};
    return out->messages ? MINFER_OK : MF_NOMEM(err);
}

static const char *role_at(const json_t *messages, size_t i)
{
    return json_string_value(json_object_get(json_array_get(messages, i), "role"));
}

static bool is_system(const char *role)
{
    return role && (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0);
}

static bool is_user(const char *role)
{
    return role && strcmp(role, "user") == 0;
}

/* ---- exchanges ---- */

const json_t *mf_history_system(const mf_history *h)
{
    return is_system(role_at(h->messages, 0)) ? json_array_get(h->messages, 0) : NULL;
}

size_t mf_history_exchanges(const mf_history *h)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(h->messages); i++) n += is_user(role_at(h->messages, i));
    return n;
}

size_t mf_history_start(const mf_history *h, size_t k)
{
    size_t n = json_array_size(h->messages);
    for (size_t i = 0; i < n; i++)
        if (is_user(role_at(h->messages, i)) && k-- == 0) return i;
    return n;
}

/* The last exchange is never out of sight. */
static void limit_dropped(mf_history *h)
{
    size_t n = mf_history_exchanges(h);
    if (h->dropped >= n) h->dropped = n ? n - 1 : 0;
}

void mf_history_truncate(mf_history *h, size_t n)
{
    while (json_array_size(h->messages) > n) json_array_remove(h->messages, json_array_size(h->messages) - 1);
    limit_dropped(h);
}

/* ---- adding ---- */

static minfer_status check_text(const char *text, size_t n, minfer_error *err)
{
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t cp;
        k = mf_utf8_decode(text + i, n - i, &cp);
        if (cp == MF_UTF8_BAD)
            return mf_fail(err, MINFER_ERR_ARG, "the text is not UTF-8: byte %zu is 0x%02x", i + 1,
                           (unsigned char)text[i]);
    }
    return MINFER_OK;
}

static json_t *message_new(const char *role, const char *text, size_t n)
{
    json_t *m = json_object();
    bool ok = m && json_object_set_new(m, "role", json_string(role)) == 0 &&
              json_object_set_new(m, "content", json_stringn_nocheck(text, n)) == 0;
    if (ok) return m;
    json_decref(m);
    return NULL;
}

minfer_status mf_history_add(mf_history *h, const char *role, const char *text, size_t n, minfer_error *err)
{
    MF_TRY(check_text(text, n, err));
    return json_array_append_new(h->messages, message_new(role, text, n)) == 0 ? MINFER_OK : MF_NOMEM(err);
}

minfer_status mf_history_set_system(mf_history *h, const char *text, size_t n, minfer_error *err)
{
    json_t *m = NULL;
    if (text) {
        MF_TRY(check_text(text, n, err));
        m = message_new("system", text, n);
        if (!m) return MF_NOMEM(err);
    }
    bool there = mf_history_system(h) != NULL;
    int failed = 0;
    if (m)
        failed = there ? json_array_set_new(h->messages, 0, m) : json_array_insert_new(h->messages, 0, m);
    else if (there)
        json_array_remove(h->messages, 0);
    return failed ? MF_NOMEM(err) : MINFER_OK;
}

/* ---- JSON ---- */

static minfer_status check_message(const json_t *messages, size_t i, bool *begun, minfer_error *err)
{
    const json_t *m = json_array_get(messages, i);
    const char *role = role_at(messages, i);
    if (!json_is_object(m)) return mf_fail(err, MINFER_ERR_FORMAT, "messages[%zu] is not an object", i);
    if (!role) return mf_fail(err, MINFER_ERR_FORMAT, "messages[%zu].role is not a string", i);
    if (!json_is_string(json_object_get(m, "content")))
        return mf_fail(err, MINFER_ERR_FORMAT, "messages[%zu].content is not a string", i);
    if (is_system(role) && i == 0) return MINFER_OK;
    if (is_system(role))
        return mf_fail(err, MINFER_ERR_FORMAT, "messages[%zu]: a %s message that is not the first", i, role);
    if (is_user(role)) *begun = true;
    if (*begun) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_FORMAT, "messages[%zu]: role '%.40s' before the first of 'user'", i, role);
}

static minfer_status check_messages(const json_t *messages, minfer_error *err)
{
    bool begun = false;
    if (!json_is_array(messages)) return mf_fail(err, MINFER_ERR_FORMAT, "messages are not an array");
    for (size_t i = 0; i < json_array_size(messages); i++) MF_TRY(check_message(messages, i, &begun, err));
    return MINFER_OK;
}

static minfer_status check_document(const json_t *j, minfer_error *err)
{
    const char *name = json_string_value(json_object_get(j, "format"));
    const json_t *version = json_object_get(j, "version"), *dropped = json_object_get(j, "dropped");
    if (!json_is_object(j))
        return mf_fail(err, MINFER_ERR_FORMAT, "neither a conversation nor an array of messages");
    if (name && strcmp(name, format) != 0)
        return mf_fail(err, MINFER_ERR_FORMAT, "format is '%.40s', must be '%s'", name, format);
    if (version && (!json_is_integer(version) || json_integer_value(version) != 1))
        return mf_fail(err, MINFER_ERR_FORMAT, "version must be 1");
    if (dropped && (!json_is_integer(dropped) || json_integer_value(dropped) < 0))
        return mf_fail(err, MINFER_ERR_FORMAT, "dropped is not a number of exchanges");
    return check_messages(json_object_get(j, "messages"), err);
}

/* Takes j. */
static minfer_status take_document(mf_history *h, json_t *j, minfer_error *err)
{
    json_t *messages = json_is_array(j) ? j : json_object_get(j, "messages");
    minfer_status st = json_is_array(j) ? check_messages(j, err) : check_document(j, err);
    if (st == MINFER_OK) {
        json_int_t dropped = json_integer_value(json_object_get(j, "dropped"));
        json_incref(messages);
        json_decref(h->messages);
        *h = (mf_history){.messages = messages, .dropped = (size_t)dropped};
        limit_dropped(h);
    }
    json_decref(j);
    return st;
}

minfer_status mf_history_read(mf_history *h, const char *json, size_t n, minfer_error *err)
{
    mf_json_error e;
    json_t *j = mf_json_read(json, n, 0, &e);
    return j ? take_document(h, j, err) : mf_json_fail(&e, err);
}

minfer_status mf_history_write(const mf_history *h, mf_buf *out, minfer_error *err)
{
    json_t *j = json_object();
    bool ok = j && json_object_set_new(j, "format", json_string(format)) == 0 &&
              json_object_set_new(j, "version", json_integer(1)) == 0 &&
              json_object_set_new(j, "dropped", json_integer((json_int_t)h->dropped)) == 0 &&
              json_object_set(j, "messages", h->messages) == 0;
    char *text = ok ? mf_json_text(j, JSON_INDENT(1)) : NULL;
    ok = text && mf_buf_str(out, text) && mf_buf_char(out, '\n');
    mf_free(text);
    json_decref(j);
    return ok ? MINFER_OK : MF_NOMEM(err);
}

char *mf_history_visible(const mf_history *h, size_t dropped)
{
    json_t *seen = json_array();
    bool ok = seen != NULL;
    if (ok && mf_history_system(h)) ok = json_array_append(seen, json_array_get(h->messages, 0)) == 0;
    for (size_t i = mf_history_start(h, dropped); i < json_array_size(h->messages) && ok; i++)
        ok = json_array_append(seen, json_array_get(h->messages, i)) == 0;
    char *text = ok ? mf_json_text(seen, JSON_COMPACT) : NULL;
    json_decref(seen);
    return text;
}
