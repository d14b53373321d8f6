/* Methods by type. */
#include "template/methods.h"
#include "template/loop.h"
#include "template/objects.h"

static minfer_status is_integer(mf_trender *r, mf_targs *a, mf_tval *out)
{
    (void)r;
    double f = a->v[0].f;
    *out = mf_tbool(f - f == 0 && (f >= 0x1p63 || f <= -0x1p63 || (double)(int64_t)f == f));
    return MINFER_OK;
}

static const mf_tfndef *float_find(const mf_tstr *name)
{
    static const mf_tfndef defs[] = {{"is_integer", is_integer, "", 0, 0}};
    return MF_FIND(defs, name);
}

static const mf_tfndef *str_find(const mf_tstr *name)
{
    const mf_tfndef *def = mf_tmethod_text_find(name);
    return def ? def : mf_tmethod_class_find(name);
}

const mf_tfndef *mf_tmethod_find(mf_tval obj, const mf_tstr *name)
{
    static const mf_tfndef *(*const by_type[MF_T_COUNT])(const mf_tstr *) = {
        [MF_T_FLOAT] = float_find,
        [MF_T_STR] = str_find,
        [MF_T_LIST] = mf_tmethod_list_find,
        [MF_T_TUPLE] = mf_tmethod_tuple_find,
        [MF_T_RANGE] = mf_tmethod_tuple_find,
        [MF_T_DICT] = mf_tmethod_dict_find,
        [MF_T_LOOP] = mf_tloop_method,
        [MF_T_CYCLER] = mf_tcycler_method,
    };
    return by_type[obj.type] ? by_type[obj.type](name) : NULL;
}
