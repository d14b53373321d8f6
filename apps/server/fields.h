/* Fields of JSON objects with types and ranges; refusals name the path of the field. Knows no request. */
#ifndef APP_SERVER_FIELDS_H
#define APP_SERVER_FIELDS_H

#include "server/request.h"

#include "base/json.h"

/* Text to a JSON object, no deeper than SRV_MAX_DEPTH, of valid UTF-8; strict: no key twice. NULL with *e
 * filled. */
json_t *srv_json_read(const char *text, size_t n, bool strict, srv_error *e);

/* An object being read. Strings that are kept go to mem. */
typedef struct srv_object {
    const json_t *j;
    const char *path; /* "" for the body itself */
    mf_arena *mem;
    srv_error *e;
} srv_object;

/* The value, or NULL when it is absent or null. */
json_t *srv_field(const srv_object *o, const char *name);
/* "path.name", cut to fit. Returns out. */
typedef char srv_path[sizeof((srv_error *)0)->param];
const char *srv_path_of(const srv_object *o, const char *name, srv_path out);
const char *srv_path_item(const char *path, size_t i, srv_path out); /* "path[i]" */

/* Refusals: false always. */
bool srv_field_refuse(const srv_object *o, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool srv_type_refuse(srv_error *e, const char *path, const char *expected, const json_t *j);
bool srv_nomem_refuse(srv_error *e);

/* Leave *v as it is where the field is absent. */
bool srv_field_bool(const srv_object *o, const char *name, bool *v);
bool srv_field_int(const srv_object *o, const char *name, int64_t low, int64_t high, int64_t *v);
bool srv_field_real(const srv_object *o, const char *name, double low, double high, double *v);
/* Terminated; n NULL: NUL bytes within are refused. */
bool srv_field_text(const srv_object *o, const char *name, const char **v, size_t *n);
bool srv_field_array(const srv_object *o, const char *name, json_t **v);
/* The object of a field; *v has j NULL when absent; path is memory for its path. */
bool srv_field_object(const srv_object *o, const char *name, srv_path path, srv_object *v);

/* A whole number, also written as 5.0. */
bool srv_json_int(const json_t *j, int64_t *v);
/* A string's bytes kept in mem. */
bool srv_keep_text(const json_t *j, const char *path, mf_arena *mem, const char **v, size_t *n, srv_error *e);
/* A JSON text of j kept in mem. */
bool srv_keep_json(const json_t *j, mf_arena *mem, const char **v, srv_error *e);
/* An array of n elements kept in mem; NULL with *e filled when memory is short. */
void *srv_keep_array(mf_arena *mem, size_t n, size_t size, srv_error *e);

#endif
