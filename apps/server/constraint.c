/* Grammars of answers: what response_format, grammar and tools ask for, put together as one text of GBNF
 * whose parts keep their rules apart by prefixes. */
#include "server/json_out.h"
#include "server/request.h"

#include <stdio.h>
#include <string.h>

static const char any_object[] = "{\"type\":\"object\"}";

typedef struct build {
    const srv_request *r;
    srv_error *e;
    mf_buf text;
    bool failed; /* out of memory */
} build;

static void put(build *b, const char *s)
{
    b->failed = b->failed || !mf_buf_str(&b->text, s);
}

#define PUT(b, ...) ((b)->failed = (b)->failed || !mf_buf_printf(&(b)->text, __VA_ARGS__))

/* ---- a grammar's text under a prefix */

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* The length of what has no names in it and begins at s: a literal, a class, a count, a comment; else 1. */
static size_t opaque(const char *s, size_t n)
{
    char close = *s == '"' ? '"' : *s == '[' ? ']' : *s == '{' ? '}' : *s == '#' ? '\n' : 0;
    size_t i = 1;
    if (!close) return 1;
    for (; i < n && s[i] != close; i++)
        if (s[i] == '\\' && close != '\n') i++;
    return i < n ? i + 1 : n;
}

/* Appends grammar rules with the prefix before each name. */
static void put_prefixed(build *b, const char *prefix, const char *s, size_t n)
{
    for (size_t i = 0, k; i < n && !b->failed; i += k) {
        for (k = 0; i + k < n && is_name(s[i + k]);) k++;
        if (k)
            put(b, prefix);
        else
            k = opaque(s + i, n - i);
        b->failed = b->failed || !mf_buf_append(&b->text, s + i, k);
    }
    put(b, "\n");
}

/* The rules of a schema under a prefix. */
static minfer_status put_schema(build *b, const char *prefix, const char *schema, size_t n, minfer_error *err)
{
    char *gbnf;
    size_t n_gbnf;
    MF_TRY(minfer_schema_to_gbnf(schema, n, &gbnf, &n_gbnf, err));
    put_prefixed(b, prefix, gbnf, n_gbnf);
    minfer_free(gbnf);
    return MINFER_OK;
}

/* ---- text up to a tag */

/* Rules that read any text up to the first occurrence of tag, and then `after` (NULL: nothing). Rule k of
 * them has read k bytes of the tag. A tag's first byte stands nowhere else in it. `may_end`: the text may end
 * everywhere before the tag, too. */
static void put_until(build *b, const char *name, const char *tag, bool may_end, const char *after)
{
    size_t n = strlen(tag);
    for (size_t k = 0; k < n; k++) {
        PUT(b, "%s%zu ::= %s\"%c\" ", name, k, may_end ? "| " : "", tag[k]);
        if (k + 1 < n)
            PUT(b, "%s%zu", name, k + 1);
        else
            put(b, after ? after : "");
        if (k)
            PUT(b, " | \"%c\" %s1 | [^%c%c] %s0", tag[0], name, tag[0], tag[k], name);
        else
            PUT(b, " | [^%c] %s0", tag[0], name);
        put(b, "\n");
    }
}

/* ---- calls */

/* `"text"` as a literal of the grammar, text being JSON already. */
static void put_literal(build *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"' || s[i] == '\\') put(b, "\\");
        b->failed = b->failed || !mf_buf_append(&b->text, s + i, 1);
    }
}

/* The rules of one tool's arguments. Where they must hold, what cannot be translated is refused; else any
 * object will do. */
static bool put_arguments(build *b, size_t i, bool must)
{
    const srv_tool *tool = &b->r->tools[i];
    char prefix[32], param[64];
    minfer_error err;
    snprintf(prefix, sizeof prefix, "tool%zu-", i);
    snprintf(param, sizeof param, "tools[%zu].function.parameters", tool->index);
    minfer_status st = put_schema(b, prefix, tool->parameters, strlen(tool->parameters), &err);
    if (st != MINFER_OK && st != MINFER_ERR_NOMEM && !must)
        st = put_schema(b, prefix, any_object, strlen(any_object), &err);
    return st == MINFER_OK || srv_refuse_status(b->e, param, st, &err);
}

/* "call" is one call of any of the tools, behind its tag; "calls" one or more with their tags. */
static bool put_calls(build *b)
{
    bool forced = b->r->tool_choice == SRV_TOOLS_FORCED;
    put(b, "calls ::= \"<tool_call>\" call");
    put(b, b->r->parallel_tool_calls ? " (\"\\n<tool_call>\" call)*\n" : "\n");
    for (size_t i = 0; i < b->r->n_tools; i++) {
        mf_buf name = {0};
        put(b, i ? " | " : "call ::= ");
        put(b, "\"\\n{\\\"name\\\": ");
        b->failed = b->failed || !srv_put_string(&name, b->r->tools[i].name);
        if (!b->failed) put_literal(b, name.data, name.len);
        PUT(b, ", \\\"arguments\\\": \" tool%zu-root \"}\\n</tool_call>\"", i);
        mf_buf_free(&name);
    }
    put(b, "\n");
    for (size_t i = 0; i < b->r->n_tools; i++)
        if (!put_arguments(b, i, forced || b->r->tools[i].strict)) return false;
    return true;
}

static bool any_strict(const srv_request *r)
{
    for (size_t i = 0; i < r->n_tools; i++)
        if (r->tools[i].strict) return true;
    return false;
}

/* ---- the whole */

static const char *constraint_field(const srv_request *r)
{
    return r->constraint == SRV_GBNF ? "grammar" : "response_format.json_schema.schema";
}

/* The constraint alone: for refusals whose places are those of the client's text. */
static bool make_alone(const srv_request *r, minfer_grammar **out, srv_error *e)
{
    minfer_error err;
    minfer_status st = r->constraint == SRV_GBNF
                           ? minfer_grammar_create(r->grammar, r->n_grammar, out, &err)
                           : minfer_grammar_create_schema(r->grammar, r->n_grammar, out, &err);
    return st == MINFER_OK || srv_refuse_status(e, constraint_field(r), st, &err);
}

static bool put_answer(build *b)
{
    const srv_request *r = b->r;
    minfer_error err;
    minfer_status st = MINFER_OK;
    if (r->constraint == SRV_GBNF)
        put_prefixed(b, "answer-", r->grammar, r->n_grammar);
    else if (r->constraint == SRV_SCHEMA)
        st = put_schema(b, "answer-", r->grammar, r->n_grammar, &err);
    return st == MINFER_OK || srv_refuse_status(b->e, constraint_field(r), st, &err);
}

/* Thoughts first, where there may be any; then the answer, calls, or either. */
static bool put_all(build *b, srv_thinking thinking)
{
    const srv_request *r = b->r;
    bool calls = r->tool_choice != SRV_TOOLS_NONE, free = r->constraint == SRV_FREE;
    const char *what = !calls ? "answer-root" : !free ? "(answer-root | calls)" : "calls";
    if (free && r->tool_choice == SRV_TOOLS_AUTO) what = "text0";
    put(b, "root ::= ");
    if (thinking == SRV_THINKING_OPEN) put(b, "thoughts0 ");
    if (thinking == SRV_THINKING_POSSIBLE) put(b, "(\"<think>\" thoughts0)? ");
    put(b, what);
    put(b, "\n");
    if (thinking != SRV_THINKING_NEVER) put_until(b, "thoughts", "</think>", false, "\"\\n\"{0,2}");
    if (strcmp(what, "text0") == 0)
        put_until(b, "text", "<tool_call>", true, r->parallel_tool_calls ? "call text0" : "call");
    return (!calls || put_calls(b)) && put_answer(b);
}

bool srv_request_gbnf(const srv_request *r, srv_thinking thinking, mf_buf *text, srv_error *e)
{
    *e = (srv_error){0};
    bool strict = r->tool_choice == SRV_TOOLS_AUTO && any_strict(r);
    if (r->constraint == SRV_FREE && r->tool_choice != SRV_TOOLS_FORCED && !strict) return true;
    build b = {.r = r, .e = e};
    bool ok = put_all(&b, thinking);
    if (ok && b.failed) ok = srv_refuse(e, 500, NULL, NULL, "out of memory");
    if (!ok) mf_buf_free(&b.text);
    *text = b.text;
    return ok;
}

bool srv_request_grammar(const srv_request *r, srv_thinking thinking, minfer_grammar **out, srv_error *e)
{
    mf_buf text = {0};
    minfer_error err;
    bool free = r->constraint == SRV_FREE;
    *out = NULL;
    if (!free && !make_alone(r, out, e)) return false;
    if (!free && thinking == SRV_THINKING_NEVER && r->tool_choice == SRV_TOOLS_NONE) return true;
    minfer_grammar_free(*out);
    *out = NULL;
    if (!srv_request_gbnf(r, thinking, &text, e)) return false;
    minfer_status st = text.len ? minfer_grammar_create(text.data, text.len, out, &err) : MINFER_OK;
    mf_buf_free(&text);
    return st == MINFER_OK || srv_refuse_status(e, free ? "tools" : constraint_field(r), st, &err);
}

/* ---- may an answer begin with thoughts? */

enum { TAIL = 8 }; /* tokens that a tag and the blanks after it may take */

static bool ends_in(const char *s, size_t n, const char *tag)
{
    while (n && strchr(" \n", s[n - 1])) n--;
    return n >= strlen(tag) && memcmp(s + n - strlen(tag), tag, strlen(tag)) == 0;
}

/* What the prompt ends in, as text. */
static minfer_status tail_of(const minfer_model *m, const int32_t *ids, size_t n, mf_buf *tail,
                             minfer_error *err)
{
    if (!mf_buf_str(tail, "")) return MF_NOMEM(err);
    for (size_t i = n > TAIL ? n - TAIL : 0; i < n; i++) {
        char *bytes;
        size_t k;
        MF_TRY(minfer_token_bytes(m, ids[i], true, &bytes, &k, err));
        bool ok = mf_buf_append(tail, bytes, k);
        minfer_free(bytes);
        if (!ok) return MF_NOMEM(err);
    }
    return MINFER_OK;
}

bool srv_prompt_thinking(const minfer_model *m, const int32_t *ids, size_t n, srv_thinking *thinking,
                         srv_error *e)
{
    minfer_error err;
    mf_buf tail = {0};
    int32_t *tag = NULL;
    size_t n_tag = 0;
    minfer_status st = tail_of(m, ids, n, &tail, &err);
    if (st == MINFER_OK) st = minfer_tokenize(m, "<think>", 7, MINFER_TOKENIZE_SPECIAL, &tag, &n_tag, &err);
    *thinking = SRV_THINKING_NEVER;
    if (st == MINFER_OK && ends_in(tail.data, tail.len, "<think>"))
        *thinking = SRV_THINKING_OPEN;
    else if (st == MINFER_OK && n_tag == 1 && !ends_in(tail.data, tail.len, "</think>"))
        *thinking = SRV_THINKING_POSSIBLE;
    mf_buf_free(&tail);
    minfer_free(tag);
    return st == MINFER_OK || srv_refuse_status(e, NULL, st, &err);
}
