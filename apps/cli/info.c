/* `minfer info`: what a model file says of itself, also of one that cannot be run. */
#include "cli/commands.h"

#include "cli/types.h"
#include "common/json.h"
#include "common/model.h"
#include "common/output.h"

#include "base/utf8.h"

#include <string.h>

/* What both forms print, in one table: a text or a number. */
typedef struct fact {
    const char *label, *key, *text;
    uint64_t number; /* when text is NULL; 0: not known */
} fact;
enum { N_FACTS = 16 };

static void collect(const minfer_model_info *i, fact facts[N_FACTS])
{
    const fact all[N_FACTS] = {
        {"file", "path", i->path, 0},
        {"size", "bytes", NULL, i->file_bytes},
        {"GGUF version", "gguf_version", NULL, i->gguf_version},
        {"parts", "parts", NULL, i->n_parts},
        {"architecture", "architecture", i->architecture, 0},
        {"name", "name", i->name, 0},
        {"parameters", "parameters", NULL, i->n_params},
        {"vocabulary", "n_vocab", NULL, (uint64_t)i->n_vocab},
        {"context", "n_ctx", NULL, (uint64_t)i->n_ctx},
        {"layers", "n_layer", NULL, (uint64_t)i->n_layer},
        {"width", "n_embd", NULL, (uint64_t)i->n_embd},
        {"feed-forward", "n_ff", NULL, (uint64_t)i->n_ff},
        {"heads", "n_head", NULL, (uint64_t)i->n_head},
        {"key heads", "n_head_kv", NULL, (uint64_t)i->n_head_kv},
        {"head size", "head_dim", NULL, (uint64_t)i->head_dim},
        {"chat template", "chat_template", i->has_template ? "yes" : "no", 0},
    };
    memcpy(facts, all, sizeof all);
}

static bool print_facts(const minfer_model_info *info, mf_buf *out)
{
    fact facts[N_FACTS];
    bool ok = true;
    collect(info, facts);
    for (size_t i = 0; i < N_FACTS && ok; i++) {
        const fact *f = &facts[i];
        if (f->text ? !*f->text : !f->number) continue;
        ok = mf_buf_printf(out, "%-15s ", f->label);
        if (f->text)
            ok = ok && app_escape(f->text, strlen(f->text), false, out);
        else
            ok = ok && mf_buf_printf(out, "%llu", (unsigned long long)f->number);
        if (strcmp(f->key, "bytes") == 0)
            ok = ok && mf_buf_str(out, " (") && app_bytes(f->number, out) && mf_buf_char(out, ')');
        ok = ok && mf_buf_char(out, '\n');
    }
    return ok;
}

enum { SHOWN = 100 }; /* bytes of a value without -v */

static minfer_status print_metadata(const minfer_model *m, size_t n, bool whole, mf_buf *out,
                                    minfer_error *err)
{
    bool ok = mf_buf_printf(out, "\nmetadata (%zu)\n", n);
    for (size_t i = 0; i < n && ok; i++) {
        char *key, *value;
        MF_TRY(minfer_model_metadata(m, i, &key, &value, err));
        size_t size = strlen(value), shown = whole || size <= SHOWN ? size : SHOWN;
        if (shown < size) shown -= mf_utf8_incomplete_tail(value, shown);
        ok = mf_buf_str(out, "  ") && app_escape(key, strlen(key), false, out) && mf_buf_str(out, " = ") &&
             app_escape(value, shown, false, out);
        if (shown < size) ok = ok && mf_buf_printf(out, "... (%zu bytes)", size);
        ok = ok && mf_buf_char(out, '\n');
        minfer_free(key);
        minfer_free(value);
    }
    return ok ? MINFER_OK : MF_NOMEM(err);
}

static bool print_types(const minfer_model *m, size_t n_tensors, mf_buf *out)
{
    cli_type types[CLI_MAX_TYPES];
    size_t n = cli_types(m, n_tensors, types);
    bool ok = mf_buf_printf(out, "\ntensors (%zu)\n", n_tensors);
    for (size_t i = 0; i < n && ok; i++)
        ok = mf_buf_printf(out, "  %-8s %6zu  ", types[i].name, types[i].n) &&
             app_bytes(types[i].bytes, out) && mf_buf_char(out, '\n');
    return ok;
}

static bool print_tensors(const minfer_model *m, size_t n, mf_buf *out)
{
    bool ok = mf_buf_char(out, '\n');
    for (size_t i = 0; i < n && ok; i++) {
        minfer_tensor_info t;
        minfer_model_tensor(m, i, &t);
        ok = mf_buf_printf(out, "  %-8s %12llu  ", t.type, (unsigned long long)t.bytes) &&
             app_escape(t.name, strlen(t.name), false, out) && mf_buf_str(out, " [");
        for (uint32_t d = 0; d < t.n_dims && ok; d++)
            ok = mf_buf_printf(out, "%s%llu", d ? ", " : "", (unsigned long long)t.dims[d]);
        ok = ok && mf_buf_str(out, "]\n");
    }
    return ok;
}

static minfer_status as_text(const app_options *o, const minfer_model *m, const minfer_model_info *info,
                             mf_buf *out, minfer_error *err)
{
    if (!print_facts(info, out)) return MF_NOMEM(err);
    MF_TRY(print_metadata(m, info->n_metadata, o->verbose, out, err));
    bool ok = print_types(m, info->n_tensors, out) && (!o->tensors || print_tensors(m, info->n_tensors, out));
    return ok ? MINFER_OK : MF_NOMEM(err);
}

/* Long arrays, such as the vocabulary, are shown by their length, unless all is asked for. */
static json_t *json_value(const char *text, bool whole)
{
    enum { LONG = 16 };
    mf_json_error e;
    json_t *j = mf_json_read(text, strlen(text), MF_JSON_ANY, &e);
    if (whole || json_array_size(j) <= LONG) return j;
    json_t *brief = json_pack("{s:I}", "array_length", (json_int_t)json_array_size(j));
    json_decref(j);
    return brief;
}

static minfer_status json_metadata(const minfer_model *m, size_t n, bool whole, json_t *into,
                                   minfer_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char *key, *value;
        MF_TRY(minfer_model_metadata_json(m, i, &key, &value, err));
        json_t *name = app_json_text(key, strlen(key));
        bool ok = name && json_object_set_new(into, json_string_value(name), json_value(value, whole)) == 0;
        json_decref(name);
        minfer_free(key);
        minfer_free(value);
        if (!ok) return MF_NOMEM(err);
    }
    return MINFER_OK;
}

static json_t *json_tensor(const minfer_model *m, size_t i)
{
    minfer_tensor_info t;
    minfer_model_tensor(m, i, &t);
    json_t *dims = json_array();
    for (uint32_t d = 0; d < t.n_dims; d++) json_array_append_new(dims, json_integer((json_int_t)t.dims[d]));
    return json_pack("{s:o, s:s, s:o, s:I}", "name", app_json_text(t.name, strlen(t.name)), "type", t.type,
                     "shape", dims, "bytes", (json_int_t)t.bytes);
}

static bool json_tensors(const minfer_model *m, size_t n, json_t *root)
{
    json_t *list = json_array();
    bool ok = json_object_set_new(root, "tensors", list) == 0;
    for (size_t i = 0; i < n && ok; i++) ok = json_array_append_new(list, json_tensor(m, i)) == 0;
    return ok;
}

static bool json_facts(const minfer_model *m, const minfer_model_info *info, json_t *root)
{
    fact facts[N_FACTS];
    cli_type types[CLI_MAX_TYPES];
    bool ok = true;
    collect(info, facts);
    for (size_t i = 0; i < N_FACTS && ok; i++) {
        const fact *f = &facts[i];
        json_t *v = f->text ? app_json_text(f->text, strlen(f->text)) : json_integer((json_int_t)f->number);
        ok = json_object_set_new(root, f->key, v) == 0;
    }
    json_object_set_new(root, "chat_template", json_boolean(info->has_template));
    json_t *by_type = json_object();
    size_t n = cli_types(m, info->n_tensors, types);
    for (size_t i = 0; i < n && ok; i++)
        ok = json_object_set_new(by_type, types[i].name,
                                 json_pack("{s:I, s:I}", "tensors", (json_int_t)types[i].n, "bytes",
                                           (json_int_t)types[i].bytes)) == 0;
    return json_object_set_new(root, "types", by_type) == 0 && ok;
}

static minfer_status as_json(const app_options *o, const minfer_model *m, const minfer_model_info *info,
                             mf_buf *out, minfer_error *err)
{
    json_t *root = json_object(), *metadata = json_object();
    bool ok = root && json_facts(m, info, root);
    ok = json_object_set(root, "metadata", metadata) == 0 && ok;
    minfer_status st = ok ? json_metadata(m, info->n_metadata, o->verbose, metadata, err) : MF_NOMEM(err);
    if (st == MINFER_OK && o->tensors && !json_tensors(m, info->n_tensors, root)) st = MF_NOMEM(err);
    json_decref(metadata);
    if (st != MINFER_OK) {
        json_decref(root);
        return st;
    }
    return app_json_take(root, 2, out) && mf_buf_char(out, '\n') ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    minfer_model *m;
    minfer_model_info info;
    mf_buf out = {0};
    MF_TRY(app_model_open(o, minfer_model_open_info, &m, err));
    minfer_model_get_info(m, &info);
    minfer_status st = o->json ? as_json(o, m, &info, &out, err) : as_text(o, m, &info, &out, err);
    minfer_model_free(m);
    if (st == MINFER_OK) return app_out_buf(&out, true, err);
    mf_buf_free(&out);
    return st;
}

const app_program cli_info = {NULL, run};
