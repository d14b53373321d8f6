/* Templates: the first byte chooses the values, the rest is the template. What parses is rendered twice; both
 * must agree, and an error must leave the output alone. */
#include "template/template.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const mf_template_input inputs[] = {
    {.messages = "[]", .now = 1700000000},
    {.messages = "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"h\\u00e9 "
                 "\\ud83d\\ude00"
                 " <b> 'q' \\\"\"},{\"role\":\"assistant\",\"content\":\"<think>\\nx\\n</think>\\n\\ny\"}]",
     .special_tokens = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}",
     .add_generation_prompt = true,
     .now = 1700000000},
    {.messages = "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"t\"},{\"type\":\"image\"}]},"
                 "{\"role\":"
                 "\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"abcdefghi\",\"type\":\"function\","
                 "\"function\":"
                 "{\"name\":\"f\",\"arguments\":{\"a\":1.5,\"b\":[true,null]}}}]},{\"role\":\"tool\","
                 "\"content\":\"r\"}]",
     .tools = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{"
              "\"type\":\"object\","
              "\"properties\":{\"a\":{\"type\":\"number\"},\"b\":{\"type\":\"array\",\"items\":{\"type\":"
              "\"string\"}}},"
              "\"required\":[\"a\"]}}}]",
     .kwargs = "{\"enable_thinking\":false}",
     .now = 1},
    {.messages = "[]",
     .kwargs = "{\"i\":3,\"z\":0,\"n\":-7,\"f\":2.5,\"s\":\"Hello "
               "World\",\"u\":\"a\\u00f1\\ud83d\\ude00\\u00df\",\"e\":\"\","
               "\"l\":[3,1,2],\"m\":[1,\"a\",null,[1],{\"k\":1}],\"d\":{\"b\":1,\"a\":\"x\"},\"t\":true,"
               "\"no\":null,\"p\":"
               "[{\"n\":\"x\",\"v\":2},{\"n\":\"Y\",\"v\":1},{\"n\":\"a\"}],\"big\":9223372036854775807}",
     .now = 1700000000},
};

/* Small enough that hostile inputs end fast, large enough to get everywhere. */
static const mf_template_limits limits = {
    .steps = 50000, .depth = 200, .output_bytes = 1 << 20, .memory_bytes = 4 << 20};

static void check(bool holds)
{
    if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mf_template *t;
    minfer_error err = {0}, again = {0};
    if (size == 0) return 0;
    if (mf_template_parse((const char *)data + 1, size - 1, &t, &err) != MINFER_OK) {
        check(err.message[0] != 0);
        return 0;
    }
    const mf_template_input *in = &inputs[data[0] % 4];
    mf_buf a = {0}, b = {0};
    check(mf_buf_char(&a, '!'));
    minfer_status first = mf_template_render(t, in, &limits, &a, &err);
    minfer_status second = mf_template_render(t, in, &limits, &b, &again);
    check(first == second && a.len == b.len + 1);
    check(b.len == 0 || memcmp(a.data + 1, b.data, b.len) == 0);
    check(first == MINFER_OK || (strcmp(err.message, again.message) == 0 && b.len == 0));
    mf_buf_free(&a);
    mf_buf_free(&b);
    mf_template_free(t);
    return 0;
}
