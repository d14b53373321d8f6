/* Asks a model questions and prints the answers as they come: example MODEL.gguf "Why is the sky blue?" ...
 *     cc example.c $(pkg-config --cflags --libs minfer) -o example */
#include <minfer.h>

#include <stdio.h>
#include <string.h>

static bool print(void *user, int32_t id, const char *text, size_t n)
{
    (void)user, (void)id;
    return fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0; /* false ends the answer */
}

static minfer_status talk(const char *path, char **questions, minfer_error *err)
{
    minfer_model *model = NULL;
    minfer_engine *engine = NULL;
    minfer_sampler *sampler = NULL;
    minfer_conversation *chat = NULL;
    minfer_turn_options turn = {.generate = {.max_tokens = 200, .on_text = print}};
    minfer_turn_result result;

    minfer_status st = minfer_model_open(path, NULL, NULL, &model, err);
    if (st == MINFER_OK) st = minfer_engine_create(model, NULL, &engine, err);
    if (st == MINFER_OK) st = minfer_sampler_create(model, NULL, &sampler, err);
    if (st == MINFER_OK) st = minfer_conversation_create(engine, NULL, &chat, err);
    for (char **q = questions; *q && st == MINFER_OK; q++) {
        st = minfer_conversation_send(chat, sampler, *q, strlen(*q), &turn, &result, err);
        if (st == MINFER_OK) printf("\n(%zu tokens)\n", result.generate.n_generated);
    }
    minfer_conversation_free(chat);
    minfer_sampler_free(sampler);
    minfer_engine_free(engine);
    minfer_model_free(model);
    return st;
}

int main(int argc, char **argv)
{
    minfer_error err;
    if (argc > 2 && talk(argv[1], argv + 2, &err) == MINFER_OK) return 0;
    fprintf(stderr, "%s\n", argc > 2 ? err.message : "usage: example MODEL.gguf QUESTION...");
    return argc > 2 ? 1 : 2;
}
