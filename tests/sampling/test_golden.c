/* sampling: golden sequences. The tokens that seeds 1, 2 and 3 give for one family of parameters each, on
 * rows made from random numbers in exact arithmetic. They are the same on every machine and for every
 * compiler; a change of any of them changes everybody's texts. `test_sampling_golden print` writes the table.
 */
#include "common.h"

enum { N_VOCAB = 700, STEPS = 12, SEEDS = 3 };

static const struct family {
    const char *name;
    float temperature;
    int32_t top_k;
    float top_p, min_p, typical_p, repeat_penalty, frequency_penalty, xtc_probability, dry_multiplier;
    int32_t mirostat;
} families[] = {
    {.name = "temperature", .temperature = 1.3f},
    {.name = "top-k", .temperature = 1, .top_k = 20},
    {.name = "top-p", .temperature = 1, .top_p = 0.9f},
    {.name = "min-p", .temperature = 1.5f, .min_p = 0.05f},
    {.name = "typical", .temperature = 1, .typical_p = 0.8f},
    {.name = "XTC", .temperature = 1, .xtc_probability = 0.5f},
    {.name = "penalties", .temperature = 0.5f, .repeat_penalty = 1.3f, .frequency_penalty = 0.5f},
    {.name = "DRY", .temperature = 0.3f, .dry_multiplier = 2},
    {.name = "mirostat 1", .temperature = 1, .mirostat = 1},
    {.name = "mirostat 2", .temperature = 1, .mirostat = 2},
    {.name = "defaults", .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .repeat_penalty = 1.1f},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static const int32_t golden[N_FAMILIES * SEEDS][STEPS] = {
#include "golden.inc"
};

static minfer_sampling parameters(const struct family *f, uint64_t seed)
{
    minfer_sampling p = plain();
    p.temperature = f->temperature;
    p.top_k = f->top_k;
    if (f->top_p > 0) p.top_p = f->top_p;
    p.min_p = f->min_p;
    if (f->typical_p > 0) p.typical_p = f->typical_p;
    if (f->repeat_penalty > 0) p.repeat_penalty = f->repeat_penalty;
    p.frequency_penalty = f->frequency_penalty;
    p.xtc_probability = f->xtc_probability;
    p.dry_multiplier = f->dry_multiplier;
    p.mirostat = f->mirostat;
    p.seed = seed;
    return p;
}

/* Each row prefers a few tokens that the rows share, so that penalties have something to do. */
static void make_row(mf_rng *r, float *row)
{
    for (int i = 0; i < N_VOCAB; i++) row[i] = random_logit(r, 2) + (i % 97 == 0 ? 6.f : 0.f);
}

static void draw_sequence(const struct family *f, uint64_t seed, int32_t *ids)
{
    float row[N_VOCAB];
    mf_rng r;
    mf_rng_seed(&r, 1234);
    minfer_sampling p = parameters(f, seed);
    minfer_sampler *s = make_sampler(&p, N_VOCAB);
    for (int i = 0; i < STEPS; i++) {
        make_row(&r, row);
        ids[i] = sample(s, row, ids, (size_t)i);
    }
    minfer_sampler_free(s);
}

static void test_golden_sequences(void **state)
{
    (void)state;
    for (int f = 0; f < N_FAMILIES; f++)
        for (int seed = 1; seed <= SEEDS; seed++) {
            int32_t ids[STEPS];
            draw_sequence(&families[f], (uint64_t)seed, ids);
            for (int i = 0; i < STEPS; i++)
                if (ids[i] != golden[f * SEEDS + seed - 1][i])
                    fail_msg("%s, seed %d, token %d: %d, expected %d", families[f].name, seed, i, ids[i],
                             golden[f * SEEDS + seed - 1][i]);
        }
}

static int print_table(void)
{
    puts("/* Written by `test_sampling_golden print`: for each family of test_golden.c a line per seed. */");
    puts("/* clang-format off */");
    for (int f = 0; f < N_FAMILIES; f++) {
        printf("/* %s */\n", families[f].name);
        for (int seed = 1; seed <= SEEDS; seed++) {
            int32_t ids[STEPS];
            draw_sequence(&families[f], (uint64_t)seed, ids);
            for (int i = 0; i < STEPS; i++) printf("%s%d", i ? ", " : "{", ids[i]);
            printf("},\n");
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "print") == 0) return print_table();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden_sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
