/* The methods of Python's types, by family. */
#ifndef MF_TEMPLATE_METHODS_H
#define MF_TEMPLATE_METHODS_H

#include "template/call.h"

const mf_tfndef *mf_tmethod_text_find(
    const mf_tstr *name); /* methods_text.c: what gives text, parts or places */
const mf_tfndef *mf_tmethod_class_find(const mf_tstr *name); /* methods_class.c: isdigit() and the like */
/* str.isupper() or islower(). */
minfer_status mf_tmethod_in_case(mf_trender *r, const mf_tstr *s, bool upper, mf_tval *out);
const mf_tfndef *mf_tmethod_list_find(const mf_tstr *name); /* methods_box.c */
const mf_tfndef *mf_tmethod_tuple_find(const mf_tstr *name);
const mf_tfndef *mf_tmethod_dict_find(const mf_tstr *name);

#endif
