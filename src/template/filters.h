/* The filters' tables, by family. */
#ifndef MF_TEMPLATE_FILTERS_H
#define MF_TEMPLATE_FILTERS_H

#include "template/call.h"

const mf_tfndef *mf_tfilter_text_find(const mf_tstr *name);     /* filters_text.c */
const mf_tfndef *mf_tfilter_web_find(const mf_tstr *name);      /* filters_web.c */
const mf_tfndef *mf_tfilter_value_find(const mf_tstr *name);    /* filters_value.c */
const mf_tfndef *mf_tfilter_sequence_find(const mf_tstr *name); /* filters_seq.c */
const mf_tfndef *mf_tfilter_lazy_find(const mf_tstr *name);     /* filters_lazy.c */

/* HTML: & < > ' " as entities. */
minfer_status mf_thtml_escape(mf_trender *r, mf_tsb *out, const mf_tstr *s);
/* |wordwrap (wordwrap.c). */
minfer_status mf_tfilter_wordwrap(mf_trender *r, mf_targs *a, mf_tval *out);
/* str.lower() of a string, anything else as it is: how filters ignore case. */
minfer_status mf_tfilter_fold(mf_trender *r, mf_tval v, bool case_sensitive, mf_tval *out);

#endif
