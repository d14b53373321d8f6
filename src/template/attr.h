/* obj.name and obj[key], by the rules of Jinja's sandbox. */
#ifndef MF_TEMPLATE_ATTR_H
#define MF_TEMPLATE_ATTR_H

#include "template/call.h"

/* obj.name: the attribute, else the item, else undefined. */
minfer_status mf_tattr_get(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out);
/* obj[key]: the item, else (for a string) the attribute, else undefined. */
minfer_status mf_titem_get(mf_trender *r, mf_tval obj, mf_tval key, mf_tval *out);
/* The attribute only; out is MISSING when there is none. */
minfer_status mf_tattr_only(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out);

/* A path as filters take it: an int, or "a.b.0" whose numeric parts are indices. */
typedef struct mf_tpath {
    mf_tval *part;
    size_t n;
} mf_tpath;

minfer_status mf_tpath_parse(mf_trender *r, mf_tval path, mf_tpath *out);
/* Follows a path by mf_titem_get; otherwise (unless MISSING or None) stands for what is undefined on the way.
 */
minfer_status mf_tpath_get(mf_trender *r, const mf_tpath *path, mf_tval obj, mf_tval otherwise, mf_tval *out);

#endif
