/* All filters by name, and what several families share. */
#include "template/filters.h"
#include "template/unicode.h"

const mf_tfndef *mf_tfilter_find(const mf_tstr *name)
{
    static const mf_tfndef *(*const families[])(const mf_tstr *) = {
        mf_tfilter_text_find, mf_tfilter_web_find, mf_tfilter_value_find, mf_tfilter_sequence_find,
        mf_tfilter_lazy_find};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const mf_tfndef *def = families[i](name);
        if (def) return def;
    }
    return NULL;
}

minfer_status mf_tfilter_fold(mf_trender *r, mf_tval v, bool case_sensitive, mf_tval *out)
{
    if (!case_sensitive && mf_tis(v, MF_T_STR)) return mf_tuc_convert_all(r, MF_CASE_LOWER, v.s, out);
    *out = v;
    return MINFER_OK;
}
