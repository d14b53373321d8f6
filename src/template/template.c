/* The interface: parsing a template, and rendering it with JSON values. */
#include "template/template.h"
#include "base/utf8.h"
#include "template/eval.h"
#include "template/fromjson.h"
#include "template/lexer.h"
#include "template/parser.h"
#include "template/scope.h"

#include <string.h>
#include <time.h>

enum {
    MAX_SOURCE = 1 << 20,
    PARSE_MEMORY = 1 << 28,
    PARSE_STEPS = 100000000,
    PARSE_DEPTH = 200,
    DEFAULT_STEPS = 10000000,
    DEFAULT_DEPTH = 1000,
    DEFAULT_OUTPUT = 64 << 20,
    DEFAULT_MEMORY = 256 << 20,
};

static minfer_status check_source(const char *src, size_t n, minfer_error *err)
{
    if (n > MAX_SOURCE)
        return mf_fail(err, MINFER_ERR_LIMIT, "a template of %zu bytes; at most %d", n, MAX_SOURCE);
    return mf_utf8_valid(src, n) ? MINFER_OK
                                 : mf_fail(err, MINFER_ERR_FORMAT, "a template that is not valid UTF-8");
}

static minfer_status parse(mf_trender *r, const char *src, size_t n, mf_template *t)
{
    mf_ttokens tokens = {0};
    mf_tnode *root;
    MF_TRY(mf_tlex_all(r, src, n, &tokens));
    MF_TRY(mf_tparse_all(r, tokens.v, &root));
    MF_TRY(mf_tresolve_scopes(r, root, &t->scope));
    t->root = root;
    return MINFER_OK;
}

minfer_status mf_template_parse(const char *src, size_t n, mf_template **out, minfer_error *err)
{
    minfer_error own;
    if (!err) err = &own;
    *out = NULL;
    MF_TRY(check_source(src, n, err));
    mf_template *t = mf_calloc(1, sizeof *t);
    if (!t) return MF_NOMEM(err);
    mf_trender r = {
        .arena = {.limit = PARSE_MEMORY}, .max_steps = PARSE_STEPS, .max_depth = PARSE_DEPTH, .err = err};
    minfer_status st = parse(&r, src, n, t);
    t->arena = r.arena;
    if (st == MINFER_OK)
        *out = t;
    else
        mf_template_free(t);
    return st;
}

void mf_template_free(mf_template *t)
{
    if (!t) return;
    mf_arena_free(&t->arena);
    mf_free(t);
}

/* -- values -- */

/* A JSON text under its name; MISSING when there is none. */
static minfer_status read_json(mf_trender *r, const char *name, const char *json, mf_tval *out)
{
    const char *why = NULL;
    *out = mf_tmissing();
    if (!json) return MINFER_OK;
    minfer_status st = mf_tval_from_json(r, json, strlen(json), out, &why);
    if (why) return mf_fail(r->err, MINFER_ERR_ARG, "%s: %s", name, why);
    return st == MINFER_OK ? st : mf_fail_prefix(r->err, st, "%s", name);
}

static minfer_status set_var(mf_trender *r, const char *name, mf_tval v)
{
    mf_tval key;
    MF_TRY(mf_tstr_lit(r, name, &key));
    return mf_tdict_set(r, r->vars, key, v);
}

static minfer_status add_object(mf_trender *r, const char *name, const char *json)
{
    mf_tval v;
    MF_TRY(read_json(r, name, json, &v));
    if (mf_tis(v, MF_T_MISSING) || mf_tis(v, MF_T_NONE)) return MINFER_OK;
    if (!mf_tis(v, MF_T_DICT))
        return mf_fail(r->err, MINFER_ERR_ARG, "%s: expected an object, got %s", name, mf_tval_type_name(v));
    return mf_tdict_update(r, r->vars, v.dict);
}

static minfer_status add_array(mf_trender *r, const char *name, const char *json, bool required)
{
    mf_tval v;
    MF_TRY(read_json(r, name, json, &v));
    if (mf_tis(v, MF_T_MISSING)) v = mf_tnone();
    if (!mf_tis(v, MF_T_LIST) && (required || !mf_tis(v, MF_T_NONE)))
        return mf_fail(r->err, MINFER_ERR_ARG, "%s: expected an array, got %s", name, mf_tval_type_name(v));
    return set_var(r, name, v);
}

/* transformers sets tools and documents even when there are none, and lets kwargs hide special tokens. */
static minfer_status make_vars(mf_trender *r, const mf_template_input *in)
{
    MF_TRY(mf_tdict_new(r, &r->vars));
    MF_TRY(set_var(r, "documents", mf_tnone()));
    MF_TRY(add_object(r, "special_tokens", in->special_tokens));
    MF_TRY(add_object(r, "kwargs", in->kwargs));
    MF_TRY(add_array(r, "messages", in->messages, true));
    MF_TRY(add_array(r, "tools", in->tools, false));
    return set_var(r, "add_generation_prompt", mf_tbool(in->add_generation_prompt));
}

static minfer_status run(mf_trender *r, const mf_template *t, const mf_template_input *in)
{
    mf_tframe *f;
    mf_tflow flow = MF_FLOW_NEXT;
    MF_TRY(make_vars(r, in));
    MF_TRY(mf_tframe_new(r, NULL, &t->scope, &f));
    return mf_texec(r, f, t->root, &flow);
}

static size_t limit(size_t given, size_t otherwise)
{
    return given ? given : otherwise;
}

minfer_status mf_template_render(const mf_template *t, const mf_template_input *in,
                                 const mf_template_limits *limits, mf_buf *out, minfer_error *err)
{
    static const mf_template_limits defaults = {0};
    minfer_error own;
    const mf_template_limits *l = limits ? limits : &defaults;
    size_t before = out->len;
    mf_trender r = {
        .arena = {.limit = limit(l->memory_bytes, DEFAULT_MEMORY)},
        .max_steps = limit(l->steps, DEFAULT_STEPS),
        .max_depth = limit(l->depth, DEFAULT_DEPTH),
        .max_output = limit(l->output_bytes, DEFAULT_OUTPUT),
        .out = out,
        .now = in->now ? in->now : (int64_t)time(NULL),
        .err = err ? err : &own,
    };
    minfer_status st = run(&r, t, in);
    mf_arena_free(&r.arena);
    if (st == MINFER_OK) return st;
    out->len = before;
    if (out->data) out->data[before] = 0;
    return st;
}
