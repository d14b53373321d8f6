/* JSON schemas: which texts they allow, and what is refused, with the pointer of its place. */
#include "common.h"

#include "base/json.h"

#include <stdlib.h>

typedef struct meaning {
    const char *schema;
    const char *yes[8], *no[10]; /* texts up to the first NULL */
} meaning;

static const meaning meanings[] = {
    {"{}",
     {"1", "null", "\"x\"", "{\"a\": [1, true]}", "[]", "-0.5e+10"},
     {"", "01", "tru", "{a:1}", "[1,]", "\"\\q\"", "1 "}},
    {"true", {"{}", "3"}, {"x"}},
    {"{\"type\":\"object\"}", {"{}", "{ }", "{\"a\":1,\"b\":{}}"}, {"[]", "1", "{\"a\"}"}},
    {"{\"type\":\"null\"}", {"null"}, {"", "0"}},
    {"{\"type\":\"boolean\"}", {"true", "false"}, {"null"}},
    {"{\"type\":[\"integer\",\"null\"]}", {"null", "12", "-3", "0"}, {"1.5", "\"\"", "00"}},
    {"{\"type\":\"integer\",\"nullable\":true}", {"null", "12"}, {"1.0"}},
    {"{\"type\":\"number\"}", {"1", "1.5", "-0", "1e5", "2E-07"}, {".5", "1.", "+1", "1e", "0x1"}},
    {"{\"enum\":[\"x\",1,null,{\"a\":[0.1]},\"\\\"\\n\"]}",
     {"\"x\"", "1", "null", "{\"a\":[0.1]}", "\"\\\"\\n\""},
     {"\"y\"", "x", "2"}},
    {"{\"const\":\"\xC3\xA9\"}", {"\"\xC3\xA9\""}, {"\"e\""}},
    {"{\"type\":\"string\",\"enum\":[\"x\",1]}", {"\"x\""}, {"1"}},
    {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":5}",
     {"\"abc\"", "\"a\\nb\\\"\"", "\"\xF0\x9F\xA6\x8A\xC3\xA9z\"", "\"\\uD83E\\uDD8A12\""},
     {"\"ab\"", "\"abcdef\"", "\"ab", "\"\\ud800ab\""}},
    {"{\"type\":\"integer\",\"minimum\":-5,\"maximum\":123}",
     {"-5", "-1", "0", "9", "10", "99", "100", "123"},
     {"-6", "124", "200", "1000", "-0", "00", "1.0"}},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":17,\"exclusiveMaximum\":1000}",
     {"18", "20", "99", "100", "999"},
     {"17", "9", "1000", "0"}},
    {"{\"type\":\"integer\",\"minimum\":1000}", {"1000", "1001", "9999", "123456"}, {"999", "0", "-1000"}},
    {"{\"type\":\"integer\",\"maximum\":-10}", {"-10", "-11", "-99", "-100"}, {"-9", "0", "10"}},
    {"{\"type\":\"integer\",\"minimum\":0.5,\"maximum\":2.5}", {"1", "2"}, {"0", "3"}},
    {"{\"type\":\"number\",\"minimum\":0,\"maximum\":1}",
     {"0", "1", "0.5", "1.0", "0.05"},
     {"1.1", "-0.1", "2", "1.01"}},
    {"{\"type\":\"number\",\"exclusiveMinimum\":-2,\"maximum\":3}",
     {"-1", "-1.5", "0", "-0.25", "2.75", "3", "3.0"},
     {"-2", "-2.0", "-2.5", "3.5"}},
    {"{\"type\":\"number\",\"minimum\":5,\"exclusiveMinimum\":true}",
     {"5.1", "6", "70"},
     {"5", "5.0", "4.9"}},
    {"{\"type\":\"array\"}", {"[]", "[1]", "[ 1, \"a\" ]"}, {"{}", "[1"}},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":3}",
     {"[1,2]", "[1, 2, 3]"},
     {"[]", "[1]", "[1,2,3,4]", "[1,\"a\"]"}},
    {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"maxItems\":0}", {"[]"}, {"[1]"}},
    {"{\"type\":\"array\",\"items\":false}", {"[]"}, {"[1]"}},
    {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}]}",
     {"[1,\"a\"]"},
     {"[]", "[1]", "[1,\"a\",2]", "[\"a\",1]"}},
    {"{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2},{\"const\":3}],\"minItems\":1,"
     "\"items\":{\"const\":4}}",
     {"[1]", "[1,2]", "[1,2,3,4,4]"},
     {"[]", "[1,3]", "[1,2,4]"}},
    {"{\"type\":\"array\",\"items\":[{\"const\":1}],\"additionalItems\":{\"const\":2},\"minItems\":3}",
     {"[1,2,2]", "[1,2,2,2]"},
     {"[1]", "[1,2]", "[2,2,2]"}},
    {"{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},\"tag\":{\"enum\":[\"x\",\"y\"]}},"
     "\"required\":[\"n\",\"tag\"],\"additionalProperties\":false}",
     {"{\"n\":1,\"tag\":\"x\"}", "{ \"n\": 12, \"tag\": \"y\" }"},
     {"{}", "{\"n\":1}", "{\"tag\":\"x\",\"n\":1}", "{\"n\":1,\"tag\":\"z\"}",
      "{\"n\":1,\"tag\":\"x\",\"q\":1}"}},
    {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2},\"c\":{\"const\":3}},\"required\":[\"b\"]}",
     {"{\"b\":2}", "{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2,\"c\":3}"},
     {"{}", "{\"a\":1}", "{\"a\":1,\"c\":3}", "{\"b\":2,}", "{\"b\":2,\"x\":3}"}},
    {"{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}",
     {"{}", "{ }", "{\"a\":1}", "{\"b\":2}", "{\"a\":1, \"b\":2}"},
     {"{\"b\":2,\"a\":1}", "{,}", "{\"a\":1,}"}},
    {"{\"properties\":{\"a\":{\"const\":1},\"ab\":{\"const\":2},\"b\":false},\"additionalProperties\":{"
     "\"type\":\"integer\"},\"required\":[\"z\"]}",
     {"{\"z\":3}", "{\"a\":1,\"z\":3,\"q\":4}", "{\"ab\":2,\"z\":3,\"abc\":5,\"aa\":1,\"\":2}"},
     {"{\"z\":3,\"a\":7}", "{\"a\":1}", "{\"z\":3,\"ab\":1}", "{\"z\":\"x\"}", "{\"z\":3,\"\\u0061\":7}"}},
    {"{\"type\":\"object\",\"additionalProperties\":{\"type\":\"null\"},\"minProperties\":1,"
     "\"maxProperties\":2}",
     {"{\"a\":null}", "{\"a\":null,\"b\":null}"},
     {"{}", "{\"a\":1}", "{\"a\":null,\"b\":null,\"c\":null}"}},
    {"{\"type\":\"object\",\"properties\":{\"a\\\"b\\n\":{\"type\":\"number\"}},\"required\":[\"a\\\"b\\n\"]"
     "}",
     {"{\"a\\\"b\\n\":1}"},
     {"{}", "{\"a\"b\n\":1}"}},
    {"{\"$defs\":{\"l\":{\"type\":\"object\",\"properties\":{\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
     "l\"},{\"type\":\"null\"}]}},\"required\":[\"next\"]}},\"$ref\":\"#/$defs/l\"}",
     {"{\"next\":null}", "{\"next\":{\"next\":{\"next\":null}}}"},
     {"{}", "{\"next\":{}}"}},
    {"{\"definitions\":{\"a/b~\":{\"const\":5}},\"properties\":{\"x\":{\"$ref\":\"#/definitions/"
     "a~1b~0\"},\"y\":{\"$ref\":\"#/definitions/a%2Fb%7E\"}},\"required\":[\"x\"]}",
     {"{\"x\":5}"},
     {"{\"x\":6}"}},
    {"{\"type\":\"object\",\"properties\":{\"c\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}}}",
     {"{}", "{\"c\":[]}", "{\"c\":[{},{\"c\":[{}]}]}"},
     {"{\"c\":[1]}"}},
    {"{\"anyOf\":[{\"type\":\"integer\"},{\"enum\":[\"a\"]}]}", {"1", "\"a\""}, {"\"b\"", "null"}},
    {"{\"oneOf\":[{\"type\":\"integer\",\"minimum\":3,\"maximum\":2},{\"const\":7}]}", {"7"}, {"2", "3"}},
    {"{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"string\"}},\"required\":[\"k\"],\"anyOf\":[{"
     "\"properties\":{\"k\":{\"const\":\"a\"},\"n\":{\"const\":1}},\"required\":[\"n\"]},{\"properties\":{"
     "\"k\":{\"const\":\"b\"}}}]}",
     {"{\"k\":\"a\",\"n\":1}", "{\"k\":\"b\"}"},
     {"{\"k\":\"a\"}", "{\"k\":\"c\"}", "{\"k\":\"b\",\"n\":1}"}},
    {"{\"allOf\":[{\"type\":[\"integer\",\"string\"],\"minimum\":2},{\"type\":\"number\",\"maximum\":4,"
     "\"description\":\"d\"}]}",
     {"2", "4"},
     {"1", "5", "\"a\"", "2.5"}},
    {"{\"$defs\":{\"a\":{\"properties\":{\"x\":{\"const\":1}},\"required\":[\"x\"]},\"b\":{\"properties\":{"
     "\"y\":{\"const\":2}},\"required\":[\"y\"]}},\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/"
     "b\"}]}",
     {"{\"x\":1,\"y\":2}"},
     {"{\"x\":1}", "{\"y\":2}"}},
    {"{\"$ref\":\"#/$defs/n\",\"maximum\":3,\"$defs\":{\"n\":{\"type\":\"integer\",\"minimum\":1}}}",
     {"1", "3"},
     {"0", "4"}},
    {"{\"type\":\"string\",\"pattern\":\"^a(b|[0-9]{2})*\\\\.\\\"$\"}",
     {"\"a.\\\"\"", "\"ab12b.\\\"\""},
     {"\"a1.\\\"\"", "\"xa.\\\"\"", "\"a.\""}},
    {"{\"type\":\"string\",\"pattern\":\"b+\"}", {"\"b\"", "\"abba\\n\""}, {"\"\"", "\"a\""}},
    {"{\"type\":\"string\",\"pattern\":\"^(?<y>\\\\d{4})-(?:\\\\w|\\\\u00e9)?$|^[^\\\\s\\\\-x]$\"}",
     {"\"2024-\"", "\"2024-\xC3\xA9\"", "\"y\"", "\"\\\"\"", "\"\\\\\""},
     {"\"x\"", "\"-\"", "\" \"", "\"204-\"", "\"\\n\""}},
    {"{\"type\":\"string\",\"pattern\":\"^[\\\\t\\\\\\\\]{1,2}?$\"}",
     {"\"\\t\"", "\"\\\\\\t\""},
     {"\"\"", "\"t\"", "\"\t\""}},
    {"{\"type\":\"string\",\"format\":\"date\"}",
     {"\"2024-02-28\"", "\"1999-12-31\""},
     {"\"2024-02-30\"", "\"2024-13-01\"", "\"24-01-01\"", "\"2024-04-31\""}},
    {"{\"type\":\"string\",\"format\":\"date-time\"}",
     {"\"2024-02-28T23:59:59Z\"", "\"2024-01-01T00:00:00.123+02:00\""},
     {"\"2024-02-28\"", "\"2024-02-28T24:00:00Z\""}},
    {"{\"type\":\"string\",\"format\":\"uuid\"}",
     {"\"123e4567-e89b-12d3-a456-426614174000\""},
     {"\"123e4567e89b12d3a456426614174000\""}},
    {"{\"type\":\"string\",\"format\":\"ipv4\"}",
     {"\"127.0.0.1\"", "\"255.255.255.255\""},
     {"\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""}},
    {"{\"type\":\"string\",\"format\":\"email\"}", {"\"a.b@c.de\""}, {"\"a@b\"", "\"@c.de\""}},
    {"{\"title\":\"t\",\"description\":\"d\",\"default\":3,\"examples\":[1],\"$schema\":\"s\",\"x-mine\":{},"
     "\"minimum\":3,\"type\":\"string\"}",
     {"\"x\""},
     {"3"}},
};

static void test_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        const meaning *t = &meanings[i];
        machine m;
        machine_open_schema(&m, t->schema);
        for (int k = 0; k < 8 && t->yes[k]; k++)
            if (!machine_accepts(&m, t->yes[k], strlen(t->yes[k])))
                fail_msg("%s\ndoes not accept %s", t->schema, t->yes[k]);
        for (int k = 0; k < 10 && t->no[k]; k++)
            if (machine_accepts(&m, t->no[k], strlen(t->no[k])))
                fail_msg("%s\naccepts %s", t->schema, t->no[k]);
        machine_close(&m);
    }
}

typedef struct refusal {
    const char *schema;
    minfer_status st;
    const char *word;
} refusal;

#define UNSUPPORTED MINFER_ERR_UNSUPPORTED
#define BAD         MINFER_ERR_ARG

static const refusal refusals[] = {
    {"{\"type\":", MINFER_ERR_FORMAT, "schema: line 1, column"},
    {"3", BAD, "schema: #: a schema is an object, true or false"},
    {"{\"type\":\"wat\"}", BAD, "schema: #: 'wat' is not a type"},
    {"{\"type\":3}", BAD, "type is neither a name nor a list"},
    {"{\"type\":[]}", BAD, "type is an empty list"},
    {"{\"properties\":{\"a\":{\"not\":{}}},\"required\":[\"a\"]}", UNSUPPORTED,
     "schema: #/properties/a: the keyword 'not' is not supported"},
    {"{\"properties\":{\"a/b~\":{\"if\":{}}}}", UNSUPPORTED, "#/properties/a~1b~0: the keyword 'if'"},
    {"{\"patternProperties\":{}}", UNSUPPORTED, "'patternProperties'"},
    {"{\"type\":\"array\",\"uniqueItems\":true}", UNSUPPORTED, "'uniqueItems'"},
    {"{\"type\":\"array\",\"contains\":{}}", UNSUPPORTED, "'contains'"},
    {"{\"type\":\"number\",\"multipleOf\":0.1}", UNSUPPORTED, "'multipleOf'"},
    {"{\"type\":\"number\",\"minimum\":0.5}", UNSUPPORTED, "minimum 0.5: only whole numbers"},
    {"{\"dependentRequired\":{}}", UNSUPPORTED, "'dependentRequired'"},
    {"{\"minlength\":3}", UNSUPPORTED, "the keyword 'minlength'"},
    {"{\"type\":\"string\",\"format\":\"iri\"}", UNSUPPORTED, "the format 'iri'"},
    {"{\"type\":\"string\",\"format\":\"date\",\"maxLength\":3}", UNSUPPORTED,
     "the keyword 'maxLength' beside 'format'"},
    {"{\"enum\":[\"abc\"],\"maxLength\":2}", UNSUPPORTED, "'maxLength' beside enum or const"},
    {"{\"type\":\"string\",\"pattern\":\"^(?<q>a)\\\\1$\"}", UNSUPPORTED,
     "pattern: a reference to a group at character 10"},
    {"{\"type\":\"string\",\"pattern\":\"(?=a)\"}", UNSUPPORTED, "looking around"},
    {"{\"type\":\"string\",\"pattern\":\"a^\"}", UNSUPPORTED, "an anchor inside"},
    {"{\"type\":\"string\",\"pattern\":\"\\\\bx\"}", UNSUPPORTED, "a word boundary"},
    {"{\"type\":\"string\",\"pattern\":\"\\\\p{L}\"}", UNSUPPORTED, "a Unicode property"},
    {"{\"type\":\"string\",\"pattern\":\"(a\"}", BAD, "a group without its closing )"},
    {"{\"type\":\"string\",\"pattern\":\"a)\"}", BAD, "a ) without its ("},
    {"{\"type\":\"string\",\"pattern\":\"[b-a]\"}", BAD, "runs backwards"},
    {"{\"type\":\"string\",\"pattern\":\"*\"}", BAD, "nothing to repeat"},
    {"{\"$ref\":\"#/$defs/none\"}", BAD, "$ref '#/$defs/none': there is nothing"},
    {"{\"$ref\":\"http://a/b\"}", UNSUPPORTED, "$ref 'http://a/b'"},
    {"{\"$ref\":\"#\"}", BAD, "contains itself without end"},
    {"{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":\"#/$defs/a\"}",
     BAD, "contains itself without end"},
    {"{\"properties\":{\"n\":{\"$ref\":\"#\"}},\"required\":[\"n\"]}", BAD, "contains itself without end"},
    {"{\"allOf\":[{\"$ref\":\"#\"},{\"type\":\"object\"}]}", MINFER_ERR_LIMIT, "deeper than"},
    {"false", BAD, "the schema false allows no value"},
    {"{\"enum\":[]}", BAD, "enum is empty"},
    {"{\"enum\":[1],\"const\":2}", BAD, "const is not among"},
    {"{\"type\":\"string\",\"enum\":[1,2]}", BAD, "none of the listed values is of the type"},
    {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", BAD, "minLength 3 is more than maxLength 2"},
    {"{\"type\":\"string\",\"minLength\":-1}", BAD, "minLength is not a whole number"},
    {"{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}", BAD, "minItems 3 is more than maxItems 2"},
    {"{\"type\":\"array\",\"prefixItems\":[{}],\"items\":false,\"minItems\":2}", BAD,
     "minItems 2, but only 1"},
    {"{\"type\":\"array\",\"items\":false,\"minItems\":1}", BAD, "minItems 1, but only 0"},
    {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", BAD, "no number is within"},
    {"{\"type\":\"integer\",\"exclusiveMinimum\":3,\"exclusiveMaximum\":4}", BAD, "no number is within"},
    {"{\"type\":\"integer\",\"minimum\":1e30}", UNSUPPORTED, "minimum 1e+30 is beyond 18 digits"},
    {"{\"type\":\"object\",\"properties\":{},\"required\":[\"x\"],\"additionalProperties\":false}", BAD,
     "'x' is required, but"},
    {"{\"type\":\"object\",\"properties\":{\"a\":false},\"required\":[\"a\"]}", BAD,
     "#/properties/a: the schema false"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{}},\"minProperties\":2}", BAD, "no object has"},
    {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"minProperties\":1}", UNSUPPORTED,
     "minProperties beside optional"},
    {"{\"type\":\"object\",\"minProperties\":2,\"maxProperties\":1}", BAD, "minProperties 2 is more than"},
    {"{\"anyOf\":[false,{\"enum\":[]}]}", BAD, "enum is empty"},
    {"{\"anyOf\":[]}", BAD, "anyOf is empty"},
    {"{\"allOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", BAD, "no type is allowed by all"},
    {"{\"allOf\":[{\"const\":1},{\"const\":2}]}", BAD, "different constants"},
    {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}", UNSUPPORTED, "allOf with 'pattern'"},
    {"{\"allOf\":[{\"additionalProperties\":false,\"properties\":{\"a\":{}}},{\"properties\":{\"b\":{}}}]}",
     UNSUPPORTED, "the property 'b' in another"},
    {"{\"a\":1,\"a\":2}", MINFER_ERR_FORMAT, "there twice"},
};

static minfer_status read_schema(const char *schema, minfer_error *err)
{
    mf_buf text = {0};
    mf_program p;
    minfer_status st = mf_schema_read(schema, strlen(schema), &text, &p, err);
    if (st == MINFER_OK) mf_program_free(&p);
    mf_buf_free(&text);
    return st;
}

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        minfer_error err = {0};
        minfer_status st = read_schema(refusals[i].schema, &err);
        if (st != refusals[i].st) print_error("%s\n", refusals[i].schema);
        assert_fails(st, refusals[i].st, &err, refusals[i].word);
    }
}

static void test_public(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_grammar *g;
    char *text;
    size_t n;
    static const char schema[] = "{\"type\":\"object\"}";
    assert_ok(minfer_schema_to_gbnf(schema, sizeof schema - 1, &text, &n, &err), &err);
    assert_memory_equal(text, "root ::= ", 9);
    assert_ok(minfer_grammar_create(text, n, &g, &err), &err);
    minfer_grammar_free(g);
    minfer_free(text);
    assert_ok(minfer_grammar_create_schema(schema, sizeof schema - 1, &g, &err), &err);
    minfer_grammar_free(g);
    assert_fails(minfer_grammar_create_schema("{", 1, &g, &err), MINFER_ERR_FORMAT, &err, "schema: line 1");
    assert_null(g);
    assert_fails(minfer_grammar_create("x", 1, &g, &err), MINFER_ERR_ARG, &err, "grammar: line 1, column 2");
    minfer_grammar_free(NULL);
}

static void test_deep(void **state)
{
    (void)state;
    mf_buf b = {0};
    minfer_error err = {0};
    for (int i = 0; i < 1500; i++) mf_buf_str(&b, "{\"items\":");
    mf_buf_str(&b, "true");
    for (int i = 0; i < 1500; i++) mf_buf_str(&b, "}");
    assert_fails(read_schema(b.data, &err), MINFER_ERR_LIMIT, &err, "deeper than 100");
    mf_buf_free(&b);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char *const schemas[] = {
        "{\"properties\":{\"a\":{\"type\":[\"integer\",\"null\"],\"minimum\":-3},\"b\":{\"pattern\":\"^[^x]"
        "\\\\d$\"}},\"additionalProperties\":{\"$ref\":\"#\"}}",
        "{\"allOf\":[{\"anyOf\":[{\"enum\":[1,\"a\"]},false,{\"format\":\"uuid\"}]},{\"title\":\"t\"}],\"$"
        "defs\":{}}",
        "{\"type\":\"array\",\"prefixItems\":[{},{\"minLength\":2}],\"minItems\":1,\"items\":{\"type\":"
        "\"number\"}}",
        "{\"allOf\":[{\"properties\":{\"a\":{\"const\":0.30000000000000004}}},{\"required\":[\"a\"]}]}",
    };
    json_set_alloc_funcs(mf_malloc, mf_free);
    for (size_t i = 0; i < 2 * sizeof schemas / sizeof *schemas; i++)
        for (long at = 1;; at++) {
            minfer_error err = {0};
            mf_mem_fail_at(i & 1 ? -at : at);
            minfer_status st = read_schema(schemas[i / 2], &err);
            assert_int_equal(st, mf_mem_fail_at(0) < at ? MINFER_OK : MINFER_ERR_NOMEM);
            if (st == MINFER_OK) break;
        }
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meaning), cmocka_unit_test(test_refusals),      cmocka_unit_test(test_public),
        cmocka_unit_test(test_deep),    cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
