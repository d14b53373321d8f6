/* Stand-ins for characters of messages that would begin special tokens. */
#include "runtime/mark.h"

#include "base/utf8.h"

#include <string.h>

void mf_mark_init(mf_mark *m, const mf_tokenizer *tok)
{
    *m = (mf_mark){.tok = tok, .only = -1};
}

void mf_mark_scan_text(mf_mark *m, const char *text, size_t n)
{
    uint32_t cp;
    for (size_t i = 0; i < n; i += mf_utf8_decode(text + i, n - i, &cp)) {
        mf_utf8_decode(text + i, n - i, &cp);
        if (cp - MF_STANDIN_FIRST < MF_STANDIN_COUNT) m->used[cp - MF_STANDIN_FIRST] = true;
    }
}

static size_t find_id(const mf_mark *m, int32_t id)
{
    size_t i = 0;
    while (i < m->n_ids && m->ids[i] != id) i++;
    return i;
}

/* The special token that s begins with, or -1; *cut: s is the beginning of one that what follows could
 * complete. Mere letters do not count as that: "role" and "content" end in the beginnings of many words, and
 * no template completes a word. */
static int32_t special_at(const mf_mark *m, const char *s, size_t n, bool *cut)
{
    int32_t id = mf_tokenizer_special(m->tok, s, n, cut);
    size_t word = 0;
    while (*cut && word < n && ((s[word] >= 'a' && s[word] <= 'z') || (s[word] >= 'A' && s[word] <= 'Z')))
        word++;
    *cut = *cut && word < n;
    return id;
}

static minfer_status scan_string(mf_mark *m, const char *s, size_t n, minfer_error *err)
{
    mf_mark_scan_text(m, s, n);
    for (size_t i = 0; i < n; i++) {
        bool cut;
        int32_t id = special_at(m, s + i, n - i, &cut);
        m->any |= cut || id >= 0;
        if (id < 0 || find_id(m, id) < m->n_ids) continue;
        if (m->n_ids == MF_MARK_TOKENS)
            return mf_fail(err, MINFER_ERR_LIMIT, "more than %d different special tokens inside messages",
                           MF_MARK_TOKENS);
        m->ids[m->n_ids++] = id;
    }
    return MINFER_OK;
}

minfer_status mf_mark_scan(mf_mark *m, const json_t *j, minfer_error *err)
{
    if (json_is_string(j)) return scan_string(m, json_string_value(j), json_string_length(j), err);
    for (size_t i = 0; i < json_array_size(j); i++) MF_TRY(mf_mark_scan(m, json_array_get(j, i), err));
    json_t *o = (json_t *)(uintptr_t)j;
    for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
        const char *key = json_object_iter_key(it);
        MF_TRY(scan_string(m, key, strlen(key), err));
        MF_TRY(mf_mark_scan(m, json_object_iter_value(it), err));
    }
    return MINFER_OK;
}

/* Does a character begin something here that is to be marked? */
static bool is_marked(const mf_mark *m, const char *s, size_t n, bool assistant)
{
    bool cut;
    int32_t id = special_at(m, s, n, &cut);
    if (id < 0) return cut && m->only < 0;
    if (m->only >= 0 && id != m->only) return false;
    size_t i = find_id(m, id);
    mf_mark_scope scope = i < m->n_ids ? m->scopes[i] : MF_MARK_ALWAYS;
    return scope == MF_MARK_ALWAYS || (scope == MF_MARK_OTHERS && !assistant);
}

/* The stand-in of cp; 0 when there is none left. */
static uint32_t standin_of(mf_mark *m, uint32_t cp)
{
    for (size_t i = 0; i < m->n_chars; i++)
        if (m->chars[i] == cp) return m->standins[i];
    for (uint32_t i = 0; i < MF_STANDIN_COUNT && m->n_chars < MF_MARK_CHARS; i++) {
        if (m->used[i]) continue;
        m->used[i] = true;
        m->chars[m->n_chars] = cp;
        return m->standins[m->n_chars++] = MF_STANDIN_FIRST + i;
    }
    return 0;
}

static minfer_status mark_string(mf_mark *m, const char *s, size_t n, bool assistant, mf_buf *out,
                                 minfer_error *err)
{
    bool ok = mf_buf_append(out, "", 0);
    for (size_t i = 0, k; ok && i < n; i += k) {
        uint32_t cp, standin;
        char bytes[4];
        k = mf_utf8_decode(s + i, n - i, &cp);
        if (!is_marked(m, s + i, n - i, assistant)) {
            ok = mf_buf_append(out, s + i, k);
            continue;
        }
        standin = standin_of(m, cp);
        if (!standin)
            return mf_fail(err, MINFER_ERR_LIMIT, "no symbol is left to stand in for U+%04X in messages", cp);
        ok = mf_buf_append(out, bytes, mf_utf8_encode(standin, bytes));
    }
    return ok ? MINFER_OK : MF_NOMEM(err);
}

static json_t *copy_string(mf_mark *m, const json_t *j, bool assistant, minfer_error *err)
{
    mf_buf b = {0};
    json_t *copy = NULL;
    if (mark_string(m, json_string_value(j), json_string_length(j), assistant, &b, err) == MINFER_OK) {
        copy = json_stringn(b.data, b.len);
        if (!copy) MF_NOMEM(err);
    }
    mf_buf_free(&b);
    return copy;
}

static bool copy_elements(mf_mark *m, const json_t *from, json_t *to, bool assistant, minfer_error *err)
{
    for (size_t i = 0; i < json_array_size(from); i++) {
        json_t *v = mf_mark_copy(m, json_array_get(from, i), assistant, err);
        if (!v) return false;
        if (json_array_append_new(to, v) != 0) return MF_NOMEM(err) == MINFER_OK;
    }
    return true;
}

static bool copy_members(mf_mark *m, json_t *from, json_t *to, bool assistant, minfer_error *err)
{
    for (void *it = json_object_iter(from); it; it = json_object_iter_next(from, it)) {
        const char *key = json_object_iter_key(it);
        mf_buf marked = {0};
        json_t *v = mf_mark_copy(m, json_object_iter_value(it), assistant, err);
        bool ok = v && mark_string(m, key, strlen(key), assistant, &marked, err) == MINFER_OK;
        if (ok && json_object_set(to, marked.data, v) != 0) ok = MF_NOMEM(err) == MINFER_OK;
        mf_buf_free(&marked);
        json_decref(v);
        if (!ok) return false;
    }
    return true;
}

json_t *mf_mark_copy(mf_mark *m, const json_t *j, bool assistant, minfer_error *err)
{
    json_t *from = (json_t *)(uintptr_t)j; /* jansson iterates without const */
    if (json_is_string(j)) return copy_string(m, j, assistant, err);
    if (!json_is_array(j) && !json_is_object(j)) return json_incref(from);
    json_t *to = json_is_array(j) ? json_array() : json_object();
    bool ok = to ? json_is_array(j) ? copy_elements(m, j, to, assistant, err)
                                    : copy_members(m, from, to, assistant, err)
                 : MF_NOMEM(err) == MINFER_OK;
    if (ok) return to;
    json_decref(to);
    return NULL;
}

static size_t find_standin(const mf_mark *m, uint32_t cp)
{
    size_t i = 0;
    while (i < m->n_chars && m->standins[i] != cp) i++;
    return i;
}

bool mf_mark_restore(const mf_mark *m, const char *text, size_t n, mf_buf *out, mf_places *places)
{
    bool ok = mf_buf_append(out, "", 0);
    for (size_t i = 0, k; ok && i < n; i += k) {
        uint32_t cp;
        char bytes[4];
        k = mf_utf8_decode(text + i, n - i, &cp);
        size_t c = find_standin(m, cp);
        if (c == m->n_chars) {
            ok = mf_buf_append(out, text + i, k);
            continue;
        }
        ok = mf_grow((void **)&places->at, &places->cap, places->n + 1, sizeof *places->at);
        if (!ok) break;
        places->at[places->n++] = out->len;
        ok = mf_buf_append(out, bytes, mf_utf8_encode(m->chars[c], bytes));
    }
    return ok;
}
