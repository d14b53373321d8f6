/* What a user may ask for. One table of options drives the command line, the environment, help and refusals;
 * the defaults are what app_options_init sets. Knows no command's work. */
#ifndef APP_COMMON_OPTIONS_H
#define APP_COMMON_OPTIONS_H

#include "base/mem.h"

/* Exit statuses. A run whose reader goes away (a closed pipe) ends with 0. */
enum { APP_EXIT_OK = 0, APP_EXIT_FAILED = 1, APP_EXIT_USAGE = 2, APP_EXIT_INTERRUPTED = 130 };

typedef enum app_command {
    APP_RUN,
    APP_CHAT,
    APP_INFO,
    APP_LIST,
    APP_TOKENIZE,
    APP_LOGITS,
    APP_TEMPLATE,
    APP_BENCH,
    APP_PERPLEXITY,
    APP_SPECVERIFY,
    APP_SERVE,
    APP_ENV,
    APP_N_COMMANDS
} app_command;

typedef struct app_command_info {
    const char *name, *usage, *summary;
    bool takes_model, takes_words; /* words: text after MODEL */
} app_command_info;
extern const app_command_info app_commands[APP_N_COMMANDS];

typedef struct app_texts { /* strings of the caller */
    const char **v;
    size_t n, cap;
} app_texts;

typedef struct app_ints {
    int32_t *v;
    size_t n, cap;
} app_ints;

typedef struct app_biases {
    minfer_logit_bias *v;
    size_t n, cap;
} app_biases;

typedef struct app_seed {
    bool fixed; /* false: a random one */
    uint64_t value;
} app_seed;

typedef enum app_color { APP_COLOR_AUTO, APP_COLOR_ON, APP_COLOR_OFF } app_color;
typedef enum app_table_format { APP_FORMAT_MD, APP_FORMAT_CSV, APP_FORMAT_JSON } app_table_format;

/* Strings point into argv or the environment; NULL where nothing was given. */
typedef struct app_options {
    app_command command;
    bool bare;          /* `minfer MODEL ...`: run was not written */
    bool help, version; /* asked for: nothing after it was looked at */
    bool global;        /* ... before any command */
    const char *model;  /* NULL: the default model */
    app_texts words;    /* the text after MODEL */

    const char *prompt, *text, *file, *system, *messages; /* what goes in */
    app_ints tokens;
    bool no_template, special;

    int32_t n_predict; /* < 0: no limit */
    app_texts stop;
    bool ignore_eos, ids, json, tensors, last, verbose;
    const char *output;
    const char *dump_graph, *dump_graph_json;
    const char *session;
    bool cnv; /* `run --cnv` is chat */
    app_color color;

    minfer_sampling sampling; /* seed and logit_bias are left to the next three */
    unsigned sampling_given;  /* MINFER_SAMPLING_ bits */
    app_seed seed;
    app_biases bias;
    bool greedy;
    const char *grammar, *json_schema; /* files */

    minfer_engine_options engine; /* gpu_budget is left to the next one */
    int32_t gpu_mib;              /* 0: no limit */

    const char *spec_draft; /* the model that drafts */
    int32_t spec_draft_n;   /* 0: not given */
    bool spec_draft_adaptive, lookup;

    bool graph_trace;
    const char *model_dir;

    app_ints bench_prompt, bench_gen, bench_depth, bench_batch;
    int32_t repetitions;
    int32_t stride, windows; /* 0: not given */
    const char *save_logits, *kl;
    app_ints pass_tokens;
    app_table_format format;

    struct { /* serve */
        const char *host, *alias, *tls_cert, *tls_key, *key_file;
        app_texts keys, origins;
        int32_t port, n_slots, max_queue, max_body_mib, max_connections;
        int32_t header_s, idle_s, ping_s, grace_s, drain_ms;
        bool batch, no_reuse;
    } server;

    struct {
        bool flag;
        int32_t number;
        const char *text;
    } unused; /* values of variables that nothing reads yet: they are only checked */
} app_options;

typedef enum app_kind {
    APP_FLAG,   /* bool */
    APP_INT,    /* int32_t in lo..hi, or `word` for -1 */
    APP_FLOAT,  /* float in lo..hi */
    APP_ABOVE,  /* float above lo */
    APP_SEED,   /* app_seed */
    APP_TEXT,   /* const char *; one of choices when there are any */
    APP_CHOICE, /* an enum: place in choices + lo */
    APP_INTS,   /* app_ints: numbers in lo..hi, separated by commas */
    APP_TEXTS,  /* app_texts: each use adds one */
    APP_BIASES, /* app_biases: each use adds one */
} app_kind;

typedef enum app_group {
    APP_GROUP_INPUT,
    APP_GROUP_OUTPUT,
    APP_GROUP_SAMPLING,
    APP_GROUP_ENGINE,
    APP_GROUP_GENERAL
} app_group;

typedef struct app_option {
    const char *name; /* without --; NULL: an environment variable only */
    char letter;      /* short form, 0: none */
    app_kind kind;
    app_group group;
    size_t field;               /* in app_options */
    unsigned commands;          /* bit 1 << app_command */
    double lo, hi;              /* hi INFINITY: no end */
    const char *word;           /* stands for -1 */
    const char *const *choices; /* ends with NULL */
    const char *value;          /* what help calls the value */
    const char *standard;       /* the default in words, where the field's value does not tell */
    const char *help;
    const char *env;   /* variable that sets it, too */
    bool unused;       /* nothing reads it in this version */
    unsigned sampling; /* MINFER_SAMPLING_ bit */
} app_option;
extern const app_option app_option_table[];
extern const size_t app_option_count;

void app_options_init(app_options *o); /* the defaults */
void app_options_free(app_options *o);

/* Reads the environment, then the command line, which wins. Every refusal is one line that names the option
 * or the variable, the value and what is possible. A bad variable matters only to commands that do
 * something: not for help, the version and `env`. */
minfer_status app_options_parse(app_options *o, int argc, char **argv, minfer_error *err);

/* Sets the field of row from text; label names the option or the variable in refusals. */
minfer_status app_value_set(const app_option *row, const char *label, const char *text, app_options *o,
                            minfer_error *err);
/* Appends the field's value as a user would write it; nothing for one that is not set. */
bool app_value_show(const app_option *row, const app_options *o, mf_buf *out);
/* Appends what values are possible: "a whole number from 1 to 256". */
bool app_value_possible(const app_option *row, mf_buf *out);

/* Help of one command, of the whole program, and the lines for `minfer` alone. */
bool app_help_command(app_command c, mf_buf *out);
bool app_help_program(mf_buf *out);
bool app_help_usage(mf_buf *out);

/* The name nearest to what was typed, or NULL when none is near. */
typedef const char *app_name_fn(const void *user, size_t i); /* NULL after the last; "" is passed over */
const char *app_nearest(const char *typed, app_name_fn *names, const void *user);
const char *app_nearest_command(const char *typed);

#endif
