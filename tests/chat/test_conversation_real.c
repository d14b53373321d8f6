/* Conversations of the real models: ten turns with overflows, each as if everything were evaluated anew. */
#include "chat/talk.h"

static void ten_turns_of(const char *file, float temperature, int32_t n_ctx)
{
    const char *path = real_model(file);
    if (!path) SKIP_BECAUSE("%s is not in the model cache (tools/get_model)", file);
    ten_turns(path, temperature, n_ctx);
}

static void test_small(void **state)
{
    (void)state;
    ten_turns_of("SmolLM2-135M-Instruct.Q4_1.gguf", 1, 220);
}

static void test_large(void **state)
{
    (void)state;
    ten_turns_of("Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf", 0, 220);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
