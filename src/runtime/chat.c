/* Chat prompts: messages through the model's template, as text and as tokens. */
#include "runtime/mark.h"
#include "runtime/model.h"

#include "base/json.h"

#include <string.h>
#include <time.h>

/* What a model without a template gets. */
static const char chatml[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

minfer_status minfer_template_render(const char *source, size_t source_n, const minfer_chat *chat,
                                     char **text, size_t *n, minfer_error *err)
{
    mf_template *t;
    mf_buf out = {0};
    *text = NULL;
    *n = 0;
    MF_TRY(mf_template_parse(source, source_n, &t, err));
    mf_template_input in = {.messages = chat->messages,
                            .tools = chat->tools,
                            .kwargs = chat->kwargs,
                            .special_tokens = chat->special_tokens,
                            .add_generation_prompt = chat->add_generation_prompt};
    minfer_status st = mf_template_render(t, &in, NULL, &out, err);
    if (st == MINFER_OK && !mf_buf_append(&out, "", 0)) st = MF_NOMEM(err);
    mf_template_free(t);
    if (st != MINFER_OK) {
        mf_buf_free(&out);
        return st;
    }
    *text = out.data;
    *n = out.len;
    return MINFER_OK;
}

/* The state of one chat prompt. */
typedef struct chat {
    const minfer_model *m;
    const mf_template *t;
    mf_template *own; /* ChatML, when the model has no template */
    mf_template_input in;
    json_t *messages, *tools, *kwargs; /* NULL: absent */
    mf_buf text;                       /* the rendering */
    mf_mark mark;
    mf_places places; /* bytes of text where no special token begins */
    minfer_error *err;
} chat;

minfer_status mf_chat_check(const minfer_model *m, minfer_error *err)
{
    if (!m->tok)
        return mf_fail(err, MINFER_ERR_STATE, "%s: was opened without its vocabulary", mf_gguf_path(m->gguf));
    if (m->tmpl_error.code == MINFER_OK) return MINFER_OK;
    return mf_fail(err, m->tmpl_error.code, "the model's chat template: %s", m->tmpl_error.message);
}

static minfer_status open_chat(chat *c, const minfer_model *m, const minfer_chat *o, minfer_error *err)
{
    *c = (chat){.m = m, .t = m->tmpl, .err = err};
    c->in = (mf_template_input){.messages = o->messages,
                                .tools = o->tools,
                                .kwargs = o->kwargs,
                                .special_tokens = o->special_tokens ? o->special_tokens : m->special_tokens,
                                .add_generation_prompt = o->add_generation_prompt,
                                .now = (int64_t)time(NULL)};
    MF_TRY(mf_chat_check(m, err));
    if (!c->t) MF_TRY(mf_template_parse(chatml, strlen(chatml), &c->own, err));
    if (!c->t) c->t = c->own;
    MF_TRY(mf_template_render(c->t, &c->in, NULL, &c->text, err));
    return mf_buf_append(&c->text, "", 0) ? MINFER_OK : MF_NOMEM(err);
}

static void close_chat(chat *c)
{
    mf_template_free(c->own);
    json_decref(c->messages);
    json_decref(c->tools);
    json_decref(c->kwargs);
    mf_buf_free(&c->text);
    mf_free(c->places.at);
}

minfer_status minfer_chat_render(const minfer_model *m, const minfer_chat *o, char **text, size_t *n,
                                 minfer_error *err)
{
    chat c;
    *text = NULL;
    *n = 0;
    minfer_status st = open_chat(&c, m, o, err);
    if (st == MINFER_OK) {
        *text = c.text.data;
        *n = c.text.len;
        c.text = (mf_buf){0};
    }
    close_chat(&c);
    return st;
}

/* The rendering has shown that these texts are JSON. */
static minfer_status parse(chat *c, const char *text, json_t **out)
{
    mf_json_error e;
    *out = text ? mf_json_read(text, strlen(text), MF_JSON_ANY, &e) : NULL;
    if (text && !*out) return mf_json_fail(&e, c->err);
    return *out ? mf_mark_scan(&c->mark, *out, c->err) : MINFER_OK;
}

static char *dump(json_t *j)
{
    char *text = mf_json_text(j, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(j);
    return text;
}

static bool is_assistant(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && strcmp(role, "assistant") == 0;
}

/* The messages with stand-ins. */
static json_t *copy_messages(chat *c, minfer_error *err)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(c->messages); i++) {
        const json_t *message = json_array_get(c->messages, i);
        json_t *copy = mf_mark_copy(&c->mark, message, is_assistant(message), err);
        if (copy && json_array_append_new(list, copy) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

/* A copy of the input with stand-ins. */
static minfer_status mark_input(chat *c, mf_template_input *in, char *texts[3])
{
    minfer_error why = {MINFER_ERR_NOMEM, "out of memory"};
    texts[0] = dump(copy_messages(c, &why));
    texts[1] = c->tools ? dump(mf_mark_copy(&c->mark, c->tools, false, &why)) : NULL;
    texts[2] = c->kwargs ? dump(mf_mark_copy(&c->mark, c->kwargs, false, &why)) : NULL;
    *in = c->in;
    in->messages = texts[0];
    in->tools = texts[1];
    in->kwargs = texts[2];
    if (texts[0] && !c->tools == !texts[1] && !c->kwargs == !texts[2]) return MINFER_OK;
    return mf_fail(c->err, why.code, "%s", why.message);
}

/* marked -> places, and whether it is the rendering without stand-ins. */
static minfer_status restore(chat *c, const mf_buf *marked, bool *same)
{
    mf_buf plain = {0};
    c->places.n = 0;
    bool ok = mf_mark_restore(&c->mark, marked->data, marked->len, &plain, &c->places);
    *same = ok && plain.len == c->text.len && memcmp(plain.data, c->text.data, plain.len) == 0;
    mf_buf_free(&plain);
    return ok ? MINFER_OK : MF_NOMEM(c->err);
}

/* Renders with stand-ins and turns them back. *same: the text is the same as without them. */
static minfer_status try_marks(chat *c, bool *same)
{
    mf_template_input in;
    mf_buf marked = {0};
    char *texts[3];
    minfer_error why = {0};
    *same = false;
    minfer_status st = mark_input(c, &in, texts);
    if (st == MINFER_OK) {
        mf_template_render(c->t, &in, NULL, &marked, &why); /* what it refuses is not the same */
        if (why.code == MINFER_OK)
            st = restore(c, &marked, same);
        else if (why.code == MINFER_ERR_NOMEM)
            st = mf_fail(c->err, why.code, "%s", why.message);
    }
    for (int i = 0; i < 3; i++) mf_free(texts[i]);
    mf_buf_free(&marked);
    return st;
}

/* Finds the special tokens that the template itself looks for inside messages (as <think> often is): those
 * cannot be told from its own. */
static minfer_status limit_scopes(chat *c)
{
    mf_mark *m = &c->mark;
    for (size_t i = 0; i < m->n_ids; i++) {
        bool same = false;
        m->only = m->ids[i];
        while (m->scopes[i] < MF_MARK_NEVER) {
            MF_TRY(try_marks(c, &same));
            if (same) break;
            m->scopes[i]++;
        }
        mf_str name = mf_tokenizer_text(m->tok, m->only);
        if (!same && mf_tokenizer_type(m->tok, m->only) == MF_TOKEN_CONTROL)
            return mf_fail(c->err, MINFER_ERR_UNSUPPORTED,
                           "the chat template treats '%.*s' inside messages as its own",
                           (int)(name.n > 80 ? 80 : name.n), name.s);
    }
    m->only = -1;
    return MINFER_OK;
}

/* Finds the bytes of the rendering where no special token begins. */
static minfer_status find_places(chat *c)
{
    bool same;
    mf_mark_init(&c->mark, c->m->tok);
    MF_TRY(parse(c, c->in.messages, &c->messages));
    MF_TRY(parse(c, c->in.tools, &c->tools));
    MF_TRY(parse(c, c->in.kwargs, &c->kwargs));
    mf_mark_scan_text(&c->mark, c->text.data, c->text.len);
    if (!c->mark.any) return MINFER_OK;
    MF_TRY(try_marks(c, &same));
    if (same) return MINFER_OK;
    MF_TRY(limit_scopes(c));
    MF_TRY(try_marks(c, &same));
    return same ? MINFER_OK
                : mf_fail(c->err, MINFER_ERR_UNSUPPORTED,
                          "the chat template treats special tokens inside messages as its own");
}

minfer_status minfer_chat_tokenize(const minfer_model *m, const minfer_chat *o, int32_t **ids, size_t *n_ids,
                                   minfer_error *err)
{
    chat c;
    mf_tokens t = {0};
    *ids = NULL;
    *n_ids = 0;
    minfer_status st = open_chat(&c, m, o, err);
    if (st == MINFER_OK) st = find_places(&c);
    if (st == MINFER_OK)
        st = mf_tokenizer_encode_inert(m->tok, c.text.data, c.text.len, MF_ENCODE_SPECIAL | MF_ENCODE_BOS,
                                       c.places.at, c.places.n, &t, err);
    close_chat(&c);
    if (st != MINFER_OK) {
        mf_tokens_free(&t);
        return st;
    }
    *ids = t.ids;
    *n_ids = t.n;
    return MINFER_OK;
}
