/* All filters by name, and what several families share. */
#include "template/filters.h"
#include "template/unicode.h"

const mf_tfndef *mf_filter_find(const mf_tstr *name)
{
    static const mf_tfndef *(*const families[])(const mf_tstr *) = {
        mf_filter_text_find, mf_filter_web_find, mf_filter_value_find, mf_filter_sequence_find,
        mf_filter_lazy_find};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const mf_tfndef *def = families[i](name);
        if (def) return def;
    }
    return NULL;
}

minfer_status mf_filter_fold(mf_render *r, mf_tval v, bool case_sensitive, mf_tval *out)
{
    if (!case_sensitive && mf_tis(v, MF_T_STR)) return mf_uc_convert_all(r, MF_CASE_LOWER, v.s, out);
    *out = v;
    return MINFER_OK;
}
