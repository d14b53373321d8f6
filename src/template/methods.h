/* The methods of Python's types, by family. */
#ifndef MF_TEMPLATE_METHODS_H
#define MF_TEMPLATE_METHODS_H

#include "template/call.h"

const mf_tfndef *mf_method_text_find(
    const mf_tstr *name); /* methods_text.c: what gives text, parts or places */
const mf_tfndef *mf_method_class_find(const mf_tstr *name); /* methods_class.c: isdigit() and the like */
/* str.isupper() or islower(). */
minfer_status mf_method_in_case(mf_render *r, const mf_tstr *s, bool upper, mf_tval *out);
const mf_tfndef *mf_method_list_find(const mf_tstr *name); /* methods_box.c */
const mf_tfndef *mf_method_tuple_find(const mf_tstr *name);
const mf_tfndef *mf_method_dict_find(const mf_tstr *name);

#endif
