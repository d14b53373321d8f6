/* Strings: length, format, pattern. */
#include "grammar/schema.h"

#include <string.h>

/* Regular expressions of the formats; each matches only texts that are what the format says. */
#define DATE                                                                                                 \
    "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|" \
    "1[0-9]|2[0-8]))"
#define TIME  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define BYTE  "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
#define HEX   "[0-9a-fA-F]"

static const struct format {
    const char *name, *regex;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration",
     "^P(([0-9]{1,4}Y([0-9]{1,4}M([0-9]{1,4}D)?)?|[0-9]{1,4}M([0-9]{1,4}D)?|[0-9]{1,4}D)"
     "(T([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S))?|"
     "T([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S)|[0-9]{1,4}W)$"},
    {"uuid", "^" HEX "{8}(-" HEX "{4}){3}-" HEX "{12}$"},
    {"ipv4", "^" BYTE "(\\." BYTE "){3}$"},
    {"ipv6", "^(" HEX "{1,4}:){7}" HEX "{1,4}$"},
    {"hostname", "^" LABEL "(\\." LABEL "){0,3}$"},
    {"email", "^[a-zA-Z0-9_+-]{1,20}(\\.[a-zA-Z0-9_+-]{1,20}){0,2}@" LABEL "(\\." LABEL "){1,3}$"},
    {"uri", "^https?://" LABEL "(\\." LABEL "){0,3}(:[1-9][0-9]{0,3})?(/[a-zA-Z0-9._~-]{1,60}){0,9}/?"
            "(\\?[a-zA-Z0-9._~=&-]{1,200})?(#[a-zA-Z0-9._~-]{1,60})?$"},
};

static minfer_status put_regex(mf_schema *s, const char *at, const char *regex, size_t n, mf_buf *b)
{
    if (!mf_buf_str(b, "\"\\\"\" (")) return MF_NOMEM(s->err);
    MF_TRY(mf_schema_pattern(s, at, regex, n, b));
    return mf_buf_str(b, ") \"\\\"\"") ? MINFER_OK : MF_NOMEM(s->err);
}

static minfer_status put_format(mf_schema *s, mf_splace p, const char *name, mf_buf *b)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return put_regex(s, p.at, formats[i].regex, strlen(formats[i].regex), b);
    return mf_schema_fail(s, MINFER_ERR_UNSUPPORTED, p.at, "the format '%s' is not supported", name);
}

/* Keywords that each say what the whole string is cannot be combined. */
static minfer_status check_alone(mf_schema *s, mf_splace p)
{
    static const char *const keys[] = {"pattern", "format", "minLength", "maxLength"};
    const char *first = NULL;
    for (size_t i = 0; i < 4; i++) {
        if (!json_object_get(p.j, keys[i])) continue;
        if (first)
            return mf_schema_fail(s, MINFER_ERR_UNSUPPORTED, p.at,
                                  "the keyword '%s' beside '%s' is not supported", keys[i], first);
        first = keys[i];
    }
    return MINFER_OK;
}

minfer_status mf_schema_string(mf_schema *s, mf_splace p, mf_buf *b)
{
    static const char *const keys[] = {"pattern", "format"};
    uint32_t min = 0, max = MF_G_MANY;
    for (int i = 0; i < 2; i++) {
        json_t *j = json_object_get(p.j, keys[i]);
        if (!j) continue;
        if (!json_is_string(j)) return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "%s is not a text", keys[i]);
        MF_TRY(check_alone(s, p));
        if (i == 1) return put_format(s, p, json_string_value(j), b);
        return put_regex(s, p.at, json_string_value(j), json_string_length(j), b);
    }
    MF_TRY(mf_schema_count(s, p, "minLength", &min));
    MF_TRY(mf_schema_count(s, p, "maxLength", &max));
    if (min > max) return mf_schema_impossible(s, p.at, "minLength %u is more than maxLength %u", min, max);
    bool ok = min == 0 && max == MF_G_MANY ? mf_buf_str(b, "string")
              : max == MF_G_MANY           ? mf_buf_printf(b, "\"\\\"\" char{%u,} \"\\\"\"", min)
                                           : mf_buf_printf(b, "\"\\\"\" char{%u,%u} \"\\\"\"", min, max);
    return ok ? MINFER_OK : MF_NOMEM(s->err);
}
