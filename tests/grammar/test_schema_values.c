/* Random texts of a schema's grammar are JSON, and valid: thousands of them for each schema. */
#include "common.h"
#include "validate.h"

static const char *const schemas[] = {
    "{}",
    "{\"type\":\"object\"}",
    "{\"type\":\"string\",\"minLength\":3,\"maxLength\":9}",
    "{\"type\":\"number\"}",
    "{\"type\":\"integer\",\"minimum\":-1234,\"maximum\":987}",
    "{\"type\":\"integer\",\"minimum\":99,\"exclusiveMaximum\":100100}",
    "{\"type\":\"integer\",\"exclusiveMinimum\":-70,\"maximum\":-7}",
    "{\"type\":\"integer\",\"minimum\":50000}",
    "{\"type\":\"number\",\"exclusiveMinimum\":-3,\"exclusiveMaximum\":12}",
    "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
    "{\"type\":\"number\",\"minimum\":10}",
    "{\"type\":\"number\",\"maximum\":-5}",
    "{\"type\":[\"integer\",\"null\",\"array\"],\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"maxItems\":"
    "4}",
    "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"enum\":[\"a\",null,1.5,[],{\"q\":[1]}]}],"
    "\"items\":{\"type\":\"null\"},\"minItems\":1}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"ab\":{\"const\":\"x\\n\\\"\"},"
    "\"\xC3\xA9\":{\"type\":\"null\"}},\"required\":[\"ab\"],"
    "\"additionalProperties\":{\"type\":\"boolean\"}}",
    "{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"null\"},\"c\":{},\"d\":false},"
    "\"required\":[\"z\"]}",
    "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"},\"minProperties\":1}",
    "{\"$defs\":{\"t\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"c\":{\"type\":"
    "\"array\",\"items\":{\"$ref\":\"#/$defs/t\"},\"maxItems\":2}},"
    "\"required\":[\"v\"],\"additionalProperties\":false}},\"$ref\":\"#/$defs/t\"}",
    "{\"anyOf\":[{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#\"},\"a\":{\"type\":\"null\"}},"
    "\"required\":[\"next\",\"a\"]},"
    "{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#\"},\"b\":{\"type\":\"null\"}},\"required\":["
    "\"next\",\"b\"]},{\"type\":\"null\"}]}",
    "{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"minimum\":3}},\"required\":[\"a\"]},{"
    "\"properties\":{\"a\":{\"type\":\"integer\",\"maximum\":30},\"b\":{\"type\":\"boolean\"}}}],"
    "\"anyOf\":[{\"required\":[\"b\"]},{\"properties\":{\"a\":{\"minimum\":7}}}]}",
    "{\"type\":\"string\",\"nullable\":true,\"maxLength\":2}",
};

static void check(machine *m, const json_t *schema, mf_rng *r, mf_buf *text, int *whole)
{
    json_error_t e;
    if (!machine_random(m, r, 0.3, 600, text)) return;
    json_t *v = json_loadb(text->data, text->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    /* Names may hold NUL, which the reader refuses; and a name may come twice, of which it keeps one. */
    bool nul = !v && strstr(e.text, "NUL byte in object key") != NULL;
    if (!v && !nul) fail_msg("%.*s: %s", (int)text->len, text->data, e.text);
    if (v && !is_valid(schema, schema, v)) {
        char *s = json_dumps(schema, 0);
        fail_msg("%s\nallows %.*s", s, (int)text->len, text->data);
    }
    json_decref(v);
    ++*whole;
}

static void test_values(void **state)
{
    (void)state;
    mf_rng r;
    mf_buf text = {0};
    mf_rng_seed(&r, 21);
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        machine m;
        int whole = 0;
        json_t *schema = json_loads(schemas[i], JSON_DECODE_ANY, NULL);
        machine_open_schema(&m, schemas[i]);
        for (int k = 0; k < 500; k++) check(&m, schema, &r, &text, &whole);
        if (whole < 50) fail_msg("%s: only %d whole texts", schemas[i], whole);
        machine_close(&m);
        json_decref(schema);
    }
    mf_buf_free(&text);
}

/* Bounds of every shape, all small numbers. */
static void test_bounds(void **state)
{
    (void)state;
    for (int lo = -23; lo <= 120; lo += 11)
        for (int hi = lo; hi <= 130; hi += 7) {
            char schema[100], text[16];
            machine m;
            snprintf(schema, sizeof schema, "{\"type\":\"integer\",\"minimum\":%d,\"maximum\":%d}", lo, hi);
            machine_open_schema(&m, schema);
            for (int v = -150; v <= 150; v++) {
                snprintf(text, sizeof text, "%d", v);
                if (machine_accepts(&m, text, strlen(text)) != (v >= lo && v <= hi))
                    fail_msg("%s: %d", schema, v);
            }
            machine_close(&m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
