/* minfer: large language models on the machine in front of you. The public interface; docs/library.md
 * shows how it is used.
 *
 * Objects: a model is a file, its tokenizer and its chat template; an engine runs it on devices; a session is
 * one timeline of tokens in an engine's cache; a sampler turns logits into tokens, within a grammar if one is
 * set; a conversation is a session that knows its messages.
 *
 * Errors: a call that can fail returns a minfer_status and fills the caller's minfer_error, when one is
 * given, with one line that names the thing and the values. What it would have made is then NULL. The library
 * never exits, prints, or reads the environment.
 *
 * Memory: an object belongs to the caller of the function that made it and goes back to the matching _free,
 * which accepts NULL. A model outlives its engines, an engine its sessions, drafts and conversations;
 * samplers and grammars stand on their own. What is handed out as char ** or int32_t ** is given back with
 * minfer_free. What a caller hands in is copied where it is kept, unless its comment says "not owned".
 *
 * Arguments: strings are UTF-8. Where a length stands beside a pointer, it counts bytes, the text may hold
 * any byte and needs no terminator; texts that are handed out have one all the same, which the length does
 * not count. Counts of tokens, cells and threads are numbers of them. Calls that make an object take NULL
 * for options that have an _init: the defaults. Other structs are zeroed before they are filled, so that what
 * is added to them later is off.
 *
 * Threads: a model may be shared by threads and engines. An engine and everything made from it, and a
 * sampler with its grammar, belong to one thread at a time. Functions without an object may be called by any.
 * Callbacks come on the caller's thread, during the call. */
#ifndef MINFER_H
#define MINFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define MINFER_API __attribute__((visibility("default")))
#else
#define MINFER_API
#endif

typedef enum minfer_status {
    MINFER_OK = 0,
    MINFER_ERR_NOMEM,       /* an allocation failed, or a budget would be exceeded */
    MINFER_ERR_IO,          /* a file could not be opened, read or written */
    MINFER_ERR_FORMAT,      /* bytes that are not what they claim to be */
    MINFER_ERR_ARG,         /* the caller gave a value that cannot be used */
    MINFER_ERR_UNSUPPORTED, /* well-formed, but nothing here can do it */
    MINFER_ERR_LIMIT,       /* a limit (context, depth, output, steps) was reached */
    MINFER_ERR_STATE,       /* the object cannot do this as it is, or is broken: a model without its weights,
                               logits that are not numbers, a defect that is reported instead of an abort */
} minfer_status;

typedef struct minfer_error {
    minfer_status code;
    char message[1024]; /* one line, always terminated */
} minfer_error;

#define MINFER_VERSION "0.1.0"               /* of this header */
MINFER_API const char *minfer_version(void); /* of the library */
MINFER_API void minfer_free(void *p);        /* accepts NULL */

/* ---- model files ---- */

typedef struct minfer_model minfer_model;

/* Opens a GGUF file (any part of a split one), checks it whole, and prepares tokenizer and template. Weights
 * stay in the mapped file, which must not change meanwhile. An architecture, tensor or key that cannot be
 * used is refused by name. progress (may be NULL) is told a share of 0..1. */
typedef void minfer_progress_fn(void *user, double share);
MINFER_API minfer_status minfer_model_open(const char *path, minfer_progress_fn *progress, void *user,
                                           minfer_model **out, minfer_error *err);

/* The same for a model that drafts for another one: its weights are named apart from that one's. */
MINFER_API minfer_status minfer_model_open_draft(const char *path, minfer_progress_fn *progress, void *user,
                                                 minfer_model **out, minfer_error *err);

/* Opens only metadata, tokenizer and template, of any architecture, also of files without tensors. Such a
 * model makes no engine. */
MINFER_API minfer_status minfer_model_open_vocab(const char *path, minfer_model **out, minfer_error *err);

/* Opens only the directory of a file: for `info`, which also describes what cannot be run. */
MINFER_API minfer_status minfer_model_open_info(const char *path, minfer_model **out, minfer_error *err);
MINFER_API void minfer_model_free(minfer_model *m);

typedef struct minfer_model_info {
    const char *path, *architecture, *name; /* owned by the model; empty when the file does not say */
    uint32_t gguf_version, n_parts;
    uint64_t file_bytes, n_params; /* of all parts; n_params: values of all tensors */
    size_t n_metadata, n_tensors;
    /* 0 when not known. n_vocab: tokens; n_ctx: the context it was trained with, in tokens; n_embd, n_ff,
     * head_dim: values */
    int32_t n_vocab, n_ctx, n_embd, n_layer, n_head, n_head_kv, head_dim, n_ff;
    bool has_template;
} minfer_model_info;
MINFER_API void minfer_model_get_info(const minfer_model *m, minfer_model_info *out);

/* Metadata entry i < n_metadata as text: long arrays are shortened ("[151936 strings]"). */
MINFER_API minfer_status minfer_model_metadata(const minfer_model *m, size_t i, char **key, char **value,
                                               minfer_error *err);

/* The same as a JSON value of its own type, arrays whole. */
MINFER_API minfer_status minfer_model_metadata_json(const minfer_model *m, size_t i, char **key, char **value,
                                                    minfer_error *err);

typedef struct minfer_tensor_info {
    const char *name, *type; /* owned by the model */
    uint32_t n_dims;
    uint64_t dims[4]; /* values; dims[0] is the row length; 1 from n_dims on */
    uint64_t bytes;
} minfer_tensor_info;
/* Tensor i < n_tensors. */
MINFER_API void minfer_model_tensor(const minfer_model *m, size_t i, minfer_tensor_info *out);

/* ---- text and tokens ---- */

enum {
    MINFER_TOKENIZE_SPECIAL = 1, /* recognise special tokens in the text */
    MINFER_TOKENIZE_BOS = 2,     /* begin with BOS where the model's metadata asks for it, never twice */
};
/* Takes any bytes; what is no UTF-8 is read as U+FFFD. */
MINFER_API minfer_status minfer_tokenize(const minfer_model *m, const char *text, size_t n, unsigned flags,
                                         int32_t **ids, size_t *n_ids, minfer_error *err);

/* The bytes of one token, which need not be whole characters. Control tokens give their name only when
 * special is true. */
MINFER_API minfer_status minfer_token_bytes(const minfer_model *m, int32_t id, bool special, char **bytes,
                                            size_t *n, minfer_error *err);
MINFER_API bool minfer_token_is_end(const minfer_model *m, int32_t id); /* ends a turn */
MINFER_API int32_t minfer_token_bos(const minfer_model *m);             /* -1 when there is none */
MINFER_API int32_t minfer_token_eos(const minfer_model *m);             /* -1 when there is none */

/* What a chat template is rendered with: JSON texts, not owned, NULL where absent. */
typedef struct minfer_chat {
    const char *messages;       /* array of {role, content, ...} */
    const char *tools;          /* array */
    const char *kwargs;         /* object: further template variables */
    const char *special_tokens; /* object: bos_token, eos_token, ...; NULL: the model's own */
    bool add_generation_prompt; /* end where the assistant's answer begins */
} minfer_chat;

/* Renders with the model's template (ChatML when it has none). An exception raised by the template is
 * MINFER_ERR_ARG. */
MINFER_API minfer_status minfer_chat_render(const minfer_model *m, const minfer_chat *chat, char **text,
                                            size_t *n, minfer_error *err);
/* Renders and turns the rendering into ids, BOS as with MINFER_TOKENIZE_BOS. Special tokens are recognised
 * where the template put them: what stands in messages, tools and kwargs stays text. A token that the
 * template itself looks for inside messages cannot be told apart and is recognised (<think> in old answers);
 * a control token of which that is true outside the assistant's messages is MINFER_ERR_UNSUPPORTED. */
MINFER_API minfer_status minfer_chat_tokenize(const minfer_model *m, const minfer_chat *chat, int32_t **ids,
                                              size_t *n_ids, minfer_error *err);
/* Do these tokens of a prompt end in an opened <think> part, so that the answer begins in it? */
MINFER_API bool minfer_prompt_opens_thinking(const minfer_model *m, const int32_t *ids, size_t n);
/* Renders with a template given as text; special_tokens NULL: none. */
MINFER_API minfer_status minfer_template_render(const char *source, size_t source_n, const minfer_chat *chat,
                                                char **text, size_t *n, minfer_error *err);

/* ---- engine ---- */

typedef struct minfer_engine minfer_engine;

/* How keys and values are stored. */
typedef enum minfer_cache_type {
    MINFER_CACHE_DEFAULT, /* f16 */
    MINFER_CACHE_F32,
    MINFER_CACHE_F16,
    MINFER_CACHE_Q8_0
} minfer_cache_type;

typedef struct minfer_engine_options {
    int32_t n_ctx;     /* cells of the cache: tokens of all sessions; 0: 4096; never above the model's */
    int32_t n_threads; /* 0: physical cores within affinity and quota */
    int32_t n_batch;   /* most tokens of one forward pass; 0: 512 */
    minfer_cache_type cache_type;
    const char *backends; /* names separated by commas; NULL: all usable here */
    int32_t gpu_layers;   /* -1: all */
    uint64_t gpu_budget;  /* bytes; 0: no limit */
    const char *cpu_tier; /* "scalar", "avx2", "avx512", "neon": the highest to use; NULL: the best */
    bool no_flash_attn, no_fuse_qkv, no_fuse_ffn, no_fuse; /* leave that out; changes no result */
    /* When set, told once per graph: its splits and node counts, in lines. */
    void (*trace)(void *user, const char *text);
    void *trace_user;
    bool op_timing; /* measure where the time goes, for minfer_engine_times; changes no result */
} minfer_engine_options;

MINFER_API void minfer_engine_options_init(minfer_engine_options *o); /* the defaults */
/* Refuses what no model could make usable: values out of range, an unknown tier, and backends that are
 * unknown, not compiled in or not usable here (the message says which). minfer_engine_create does it, too. */
MINFER_API minfer_status minfer_engine_options_check(const minfer_engine_options *o, minfer_error *err);
MINFER_API minfer_status minfer_engine_create(const minfer_model *m, const minfer_engine_options *o,
                                              minfer_engine **out, minfer_error *err);
MINFER_API void minfer_engine_free(minfer_engine *e);

typedef struct minfer_engine_info {
    int32_t n_ctx, n_threads;
    int32_t n_ctx_unused;   /* of the n_ctx cells, those that no session uses */
    int32_t n_vocab;        /* length of a row of logits; may be more than the model has tokens */
    const char *backends;   /* "cpu"; this and the next two are owned by the engine */
    const char *cpu_tier;   /* "avx2" */
    const char *cache_type; /* "f16" */
    uint64_t graphs_built, graphs_reused;
} minfer_engine_info;
MINFER_API void minfer_engine_get_info(const minfer_engine *e, minfer_engine_info *out);

typedef enum minfer_time_kind {
    MINFER_TIME_PASS, /* all of them together: "prefill" or "decode" */
    MINFER_TIME_STEP, /* a part: the steps of a pass add up to it. "plan" (finding or building the graph),
                         "inputs", "split 0" and on (what one device does in a row; alone it is the whole
                         graph), "copies" and "waits" between devices, "rest" (reading results among it) */
    MINFER_TIME_OP,   /* inside the splits, where a device tells ops apart: an op as in exported graphs,
                         "quantize" (of activations) or "barrier" (waiting for other threads) */
} minfer_time_kind;

typedef struct minfer_time {
    minfer_time_kind kind;
    bool decode;               /* of passes over one token; else of passes over several */
    const char *device, *name; /* device "" for what belongs to none; valid during the call */
    uint64_t count;            /* how often */
    int64_t ns;                /* ops: on the clock of one thread, waiting for others apart */
    uint64_t bytes, macs;      /* weights and cached rows read, products added; 0 where not known */
} minfer_time;
typedef void minfer_time_fn(void *user, const minfer_time *t);
/* Tells the times of all passes so far, prefill first; nothing without options.op_timing. */
MINFER_API void minfer_engine_times(const minfer_engine *e, minfer_time_fn *fn, void *user);

typedef enum minfer_graph_format { MINFER_GRAPH_DOT, MINFER_GRAPH_JSON } minfer_graph_format;
/* The graph of n_tokens tokens (1: decode) as text, as it would run: assigned and fused. */
MINFER_API minfer_status minfer_engine_graph(minfer_engine *e, int32_t n_tokens, minfer_graph_format format,
                                             char **text, size_t *n, minfer_error *err);

/* ---- sessions: timelines of tokens ---- */

/* Any number of sessions share an engine's n_ctx cells, one per token; each may be as long as there are cells
 * left. */
typedef struct minfer_session minfer_session;

MINFER_API minfer_status minfer_session_create(minfer_engine *e, minfer_session **out, minfer_error *err);
/* A session that begins with the first n tokens of s. Their cells are shared; what either does later, the
 * other does not see. */
MINFER_API minfer_status minfer_session_fork(const minfer_session *s, size_t n, minfer_session **out,
                                             minfer_error *err);
MINFER_API void minfer_session_free(minfer_session *s);

/* Appends n tokens. logits (may be NULL) receives n_logits rows of n_vocab floats, those of the last n_logits
 * tokens, n_logits <= n. Without room for all n tokens nothing is fed and the status is MINFER_ERR_LIMIT;
 * after another error the session is as before the call. */
MINFER_API minfer_status minfer_session_feed(minfer_session *s, const int32_t *tokens, size_t n,
                                             float *logits, size_t n_logits, minfer_error *err);

/* What one session is fed in a batch: as minfer_session_feed. */
typedef struct minfer_feed {
    minfer_session *session;
    const int32_t *tokens;
    size_t n;
    float *logits;
    size_t n_logits;
} minfer_feed;

/* Feeds several sessions of e, none twice, in as few forward passes as n_batch allows. Each gets the logits
 * it would get alone, to the bit. After an error all sessions are as before the call. */
MINFER_API minfer_status minfer_feed_batch(minfer_engine *e, const minfer_feed *feeds, size_t n,
                                           minfer_error *err);

/* The same, with states in the place of logits: rows of n_embd floats, what the model's last norm makes of a
 * token; logits would be made of them. For embeddings. */
MINFER_API minfer_status minfer_feed_batch_states(minfer_engine *e, const minfer_feed *feeds, size_t n,
                                                  minfer_error *err);

MINFER_API size_t minfer_session_length(const minfer_session *s); /* tokens */
/* These tokens; owned by the session, valid until it changes. */
MINFER_API const int32_t *minfer_session_tokens(const minfer_session *s);
/* Forgets everything from the n-th token on. */
MINFER_API minfer_status minfer_session_rollback(minfer_session *s, size_t n, minfer_error *err);

/* Takes tokens [from, to) out and frees their cells. The kept ones keep their keys, values and positions to
 * the bit: those behind the gap were computed while they saw what is now gone, so the session is not what
 * feeding the kept tokens would give. Tokens fed later see the kept ones only, at their old distances, and
 * count on from the last kept position; positions go up to the context the model was trained with. to =
 * length is a rollback. MINFER_ERR_LIMIT, with nothing changed, when the gap would be a fifth run of cells
 * and other sessions share its run. */
MINFER_API minfer_status minfer_session_remove(minfer_session *s, size_t from, size_t to, minfer_error *err);

/* Writes the session and n bytes of the host's own (such as its history as JSON; at most 4 GiB) to a file
 * that replaces path whole or not at all: after an error, or a kill at any moment, path is what it was or the
 * new file. Two savers of one path take turns. */
MINFER_API minfer_status minfer_session_save(const minfer_session *s, const char *path, const char *host_json,
                                             size_t n, minfer_error *err);
/* A new session from such a file, which goes on with the bits the saved one would have had, and the host's
 * bytes (terminated; host_json and n may be NULL). The file is verified whole before anything changes: damage
 * is MINFER_ERR_FORMAT; another model, context, cache type or backend than e's is MINFER_ERR_ARG, naming what
 * differs; no room for its cells is MINFER_ERR_LIMIT. */
MINFER_API minfer_status minfer_session_restore(minfer_engine *e, const char *path, minfer_session **out,
                                                char **host_json, size_t *n, minfer_error *err);

/* ---- sampling ---- */

typedef struct minfer_logit_bias {
    int32_t id;
    float bias; /* -infinity forbids */
} minfer_logit_bias;

/* Defaults and ranges stand beside the fields; docs/sampling.md has what they do. Order: logit bias,
 * penalties, DRY, grammar, (temperature < 1e-6: argmax, first index on ties), top-k, typical, top-p, min-p,
 * XTC, temperature and draw, or mirostat. */
typedef struct minfer_sampling {
    float temperature;                         /* 0.8; >= 0 */
    int32_t top_k;                             /* 40; <= 0: off */
    float top_p;                               /* 0.95; 0..1; keeps the token that crosses */
    float min_p;                               /* 0; 0..1 */
    float typical_p;                           /* 1; 0..1; 1: off */
    float repeat_penalty;                      /* 1.1; > 0; 1: off */
    int32_t repeat_last_n;                     /* 64; 0: off; -1: the whole context */
    float frequency_penalty, presence_penalty; /* 0; -2..2 */
    float xtc_probability, xtc_threshold;      /* 0, 0.1; 0..1 */
    float dry_multiplier, dry_base;            /* 0 (off), >= 0; 1.75, >= 1 */
    int32_t dry_allowed_length;                /* 2; >= 0 */
    int32_t mirostat;                          /* 0, 1 or 2 */
    float mirostat_tau, mirostat_eta;          /* 5, 0.1; >= 0 */
    uint64_t seed;                             /* 0; the same seed gives the same tokens everywhere */
    const minfer_logit_bias *logit_bias;       /* several for one id add up */
    size_t n_logit_bias;
} minfer_sampling;

MINFER_API void minfer_sampling_init(minfer_sampling *p); /* the defaults */
/* Refuses values out of range, naming the field. n_vocab, in tokens, bounds the ids of logit_bias. */
MINFER_API minfer_status minfer_sampling_check(const minfer_sampling *p, int32_t n_vocab, minfer_error *err);

/* Fields that a model's file may recommend values for. */
enum {
    MINFER_SAMPLING_TEMPERATURE = 1,
    MINFER_SAMPLING_TOP_K = 2,
    MINFER_SAMPLING_TOP_P = 4,
    MINFER_SAMPLING_MIN_P = 8,
    MINFER_SAMPLING_REPEAT_PENALTY = 16,
    MINFER_SAMPLING_REPEAT_LAST_N = 32,
    MINFER_SAMPLING_XTC_PROBABILITY = 64,
    MINFER_SAMPLING_XTC_THRESHOLD = 128,
    MINFER_SAMPLING_MIROSTAT = 256,
    MINFER_SAMPLING_MIROSTAT_TAU = 512,
    MINFER_SAMPLING_MIROSTAT_ETA = 1024,
};
/* Sets what m's file recommends (general.sampling.*), but for the fields whose bits are in `given`. */
MINFER_API minfer_status minfer_sampling_recommended(const minfer_model *m, unsigned given,
                                                     minfer_sampling *p, minfer_error *err);

typedef struct minfer_sampler minfer_sampler;
/* For m's vocabulary; p is checked as by minfer_sampling_check. */
MINFER_API minfer_status minfer_sampler_create(const minfer_model *m, const minfer_sampling *p,
                                               minfer_sampler **out, minfer_error *err);
MINFER_API void minfer_sampler_free(minfer_sampler *s);
/* Draws a token from a row of logits; history holds the tokens so far, prompt included (for penalties and
 * DRY). NaN or infinite logits are MINFER_ERR_STATE. A grammar goes on by the token. */
MINFER_API minfer_status minfer_sampler_sample(minfer_sampler *s, const float *logits, const int32_t *history,
                                               size_t n_history, int32_t *id, minfer_error *err);

/* What an answer may look like: GBNF, or a JSON schema (docs/grammar.md has both). A grammar may be set on
 * any number of samplers, which keep what they use of it; all of them belong to one thread at a time. */
typedef struct minfer_grammar minfer_grammar;
/* Refusals name line and column, and the rule: what does not parse, rules that are missing, begin with
 * themselves or can never end. */
MINFER_API minfer_status minfer_grammar_create(const char *gbnf, size_t n, minfer_grammar **out,
                                               minfer_error *err);
/* A JSON schema; {"type":"object"} is any JSON object. Refusals name the JSON pointer of the place: a keyword
 * that constrains and is not supported (MINFER_ERR_UNSUPPORTED), or a schema that no value satisfies. */
MINFER_API minfer_status minfer_grammar_create_schema(const char *json, size_t n, minfer_grammar **out,
                                                      minfer_error *err);
MINFER_API void minfer_grammar_free(minfer_grammar *g);
/* The grammar that a schema is turned into, as text; its first rule is root. */
MINFER_API minfer_status minfer_schema_to_gbnf(const char *json, size_t n, char **gbnf, size_t *n_gbnf,
                                               minfer_error *err);

/* From now on s draws only tokens with which the text stays within g, from g's start; tokens that end a turn
 * exactly where the text may end. NULL: no grammar. s was made for m's vocabulary. When no token can go on,
 * sampling is MINFER_ERR_STATE. */
MINFER_API minfer_status minfer_sampler_set_grammar(minfer_sampler *s, const minfer_model *m,
                                                    minfer_grammar *g, minfer_error *err);
/* Tells s about a token that the caller chose. One that the grammar does not allow here is MINFER_ERR_ARG and
 * changes nothing. */
MINFER_API minfer_status minfer_sampler_accept(minfer_sampler *s, int32_t id, minfer_error *err);
/* Makes dst go on as src would: random numbers, mirostat, and the place in the grammar. Both were made from
 * the same parameters and vocabulary. Cheap, except that dst takes over src's grammar. */
MINFER_API minfer_status minfer_sampler_copy(minfer_sampler *dst, const minfer_sampler *src,
                                             minfer_error *err);

/* ---- drafts: speculative decoding ---- */

/* A draft guesses the next tokens, and the model checks all of them in one forward pass. What is generated is
 * to the byte what it is without one. */
typedef struct minfer_draft minfer_draft;

enum { MINFER_DRAFT_MAX = 16 };
typedef struct minfer_draft_options {
    int32_t n_max; /* most tokens of a draft: 2; 1..MINFER_DRAFT_MAX */
    bool adaptive; /* as many of them as promise the most tokens per time, by what was measured so far: also
                      none; else always n_max, where the source has as many */
} minfer_draft_options;
MINFER_API void minfer_draft_options_init(minfer_draft_options *o); /* the defaults */

/* Drafts with e, the engine of a smaller model, for generations of target's engines. Refuses models whose
 * vocabularies differ (more than 128 ids in size, BOS, EOS, or the text of an id that both have), saying
 * where. e and target must outlive the draft; the draft has a session of its own in e. */
MINFER_API minfer_status minfer_draft_create_model(minfer_engine *e, const minfer_model *target,
                                                   const minfer_draft_options *o, minfer_draft **out,
                                                   minfer_error *err);
/* Drafts what followed the last tokens when they stood in the text before: prompt, answer, all the session
 * holds. For any model. */
MINFER_API minfer_status minfer_draft_create_lookup(const minfer_draft_options *o, minfer_draft **out,
                                                    minfer_error *err);
MINFER_API void minfer_draft_free(minfer_draft *d);

/* ---- generation ---- */

typedef enum minfer_finish {
    MINFER_FINISH_STOP,     /* the end of the turn, a stop string, or the end of a grammar */
    MINFER_FINISH_LENGTH,   /* max_tokens, or the context is full */
    MINFER_FINISH_CANCELLED /* by a callback */
} minfer_finish;

typedef struct minfer_generate_options {
    int32_t max_tokens;      /* 0: the prompt is fed, and that is all; < 0: as many as the context holds */
    const char *const *stop; /* not owned: stop strings, matched against the bytes of the whole output, which
                                is cut before the earliest; none may be empty */
    size_t n_stop;
    bool ignore_end; /* go on after end-of-turn tokens; where a grammar ends, the answer does in any case */
    bool special;    /* write control tokens as their names */
    /* May be NULL. Told every token (id, or -1) and the text that became certain with it: whole characters
     * only, nothing of a possible stop string. false cancels. */
    bool (*on_text)(void *user, int32_t id, const char *text, size_t n);
    void *user;
    /* Not owned; NULL: none. May serve one generation after the other, of any session of its model, and
     * learns from each. While on_text is called the session may hold drafted tokens, too. */
    minfer_draft *draft;
} minfer_generate_options;

typedef struct minfer_generate_result {
    minfer_finish finish;
    size_t n_prompt, n_generated; /* tokens; the end-of-turn token counts as generated */
    int64_t prompt_ns;            /* feeding the prompt, nanoseconds */
    int64_t first_ns;             /* from the call to the first token */
    int64_t decode_ns;            /* from then on */
    /* With a draft: forward passes whose logits were wanted, after the prompt's; tokens drafted in them, and
     * those that were right. A pass brings one token more than are right: (n_accepted + n_rounds) / n_rounds
     * tokens per round. */
    size_t n_rounds, n_drafted, n_accepted;
} minfer_generate_result;

/* Feeds the prompt (at least one token) and generates; a grammar of the sampler begins anew. A prompt that
 * leaves no room for one token is MINFER_ERR_LIMIT, with nothing fed. The session then holds prompt and
 * answer, the end-of-turn token among it, but not the token that completed a stop string or at which on_text
 * cancelled; after an error that comes later, what was fed until then. */
MINFER_API minfer_status minfer_generate(minfer_session *s, minfer_sampler *sampler, const int32_t *prompt,
                                         size_t n_prompt, const minfer_generate_options *o,
                                         minfer_generate_result *result, minfer_error *err);

/* ---- answers, one token at a time ---- */

/* For programs that feed sessions themselves, such as several in one batch: what minfer_generate does between
 * two forward passes. Draws tokens and turns them into text. */
typedef struct minfer_answer minfer_answer;

typedef struct minfer_answer_options { /* as in minfer_generate_options */
    int32_t max_tokens;
    const char *const *stop;
    size_t n_stop;
    bool ignore_end, special;
} minfer_answer_options;

typedef struct minfer_piece {
    int32_t id;       /* the token; -1: none */
    const char *text; /* n bytes that became certain with it: whole characters, nothing of a possible stop
                         string; valid until the answer's next call */
    size_t n;
    bool ended;     /* nothing more can be drawn: minfer_answer_finish has the rest */
    bool end_token; /* the token ends the turn */
} minfer_piece;

/* sampler must outlive the answer and serves it alone meanwhile; its grammar begins anew. o is copied. */
MINFER_API minfer_status minfer_answer_create(const minfer_model *m, minfer_sampler *sampler,
                                              const minfer_answer_options *o, minfer_answer **out,
                                              minfer_error *err);
MINFER_API void minfer_answer_free(minfer_answer *a);
/* Draws the next token from logits[n_vocab]; history holds prompt and answer so far. Unless it ended the
 * answer, the caller feeds it. */
MINFER_API minfer_status minfer_answer_next(minfer_answer *a, const float *logits, const int32_t *history,
                                            size_t n_history, minfer_piece *p, minfer_error *err);
/* The end, also when the caller wants no more or has no room: the text that was held back, and whether the
 * answer came to its own end (MINFER_FINISH_STOP) or was cut (MINFER_FINISH_LENGTH). */
MINFER_API minfer_status minfer_answer_finish(minfer_answer *a, minfer_piece *p, minfer_finish *finish,
                                              minfer_error *err);

/* ---- conversations ---- */

/* Messages and the session that has seen them. A turn renders what there is to see with the chat template and
 * evaluates what the session does not hold already; whatever is edited, dropped or left out by the template,
 * the answer is the one that evaluating everything anew would give, to the bit. An exchange is a message of
 * the user and what follows it. */
typedef struct minfer_conversation minfer_conversation;

/* On e, which must outlive it; its session may use all of e's context. kwargs (may be NULL): a JSON object of
 * further template variables. A chat template that does not parse is refused. */
MINFER_API minfer_status minfer_conversation_create(minfer_engine *e, const char *kwargs,
                                                    minfer_conversation **out, minfer_error *err);
MINFER_API void minfer_conversation_free(minfer_conversation *c);

typedef struct minfer_turn_prompt {
    size_t n_tokens;  /* of the prompt, the whole of what the model sees */
    size_t n_reused;  /* of these, the first, which the session held already */
    size_t n_fed;     /* evaluated so far; n_reused + n_fed = n_tokens - 1 when the answer begins */
    size_t n_dropped; /* exchanges that are left out from this turn on, because the context is full */
    bool thinking;    /* the prompt ends in an opened <think> part, where the answer begins */
} minfer_turn_prompt;

typedef struct minfer_turn_options {
    minfer_generate_options generate;
    /* Told before the prompt is evaluated and after each part of it, with generate.user. false cancels. May
     * be NULL. */
    bool (*on_prompt)(void *user, const minfer_turn_prompt *p);
} minfer_turn_options;

typedef struct minfer_turn_result {
    minfer_generate_result generate; /* n_prompt: tokens evaluated, without those reused */
    minfer_turn_prompt prompt;
    bool taken_back; /* cancelled before any text came: the conversation is as before the call */
} minfer_turn_result;

/* One turn: text (n bytes of UTF-8) becomes a message of the user, and the answer one of the assistant, also
 * when it was cancelled or cut. Where prompt and answer need more than the context has, the oldest exchanges
 * are dropped: they stay in the messages, and the model does not see them any more. A text that is too long
 * on its own is MINFER_ERR_LIMIT. After an error the conversation is as before the call. */
MINFER_API minfer_status minfer_conversation_send(minfer_conversation *c, minfer_sampler *sampler,
                                                  const char *text, size_t n, const minfer_turn_options *o,
                                                  minfer_turn_result *result, minfer_error *err);
/* Answers the last message of the user once more, or for the first time where messages were read that end
 * with it. The old answer stays when no new one comes. */
MINFER_API minfer_status minfer_conversation_regenerate(minfer_conversation *c, minfer_sampler *sampler,
                                                        const minfer_turn_options *o,
                                                        minfer_turn_result *result, minfer_error *err);

/* Forgets the last exchange; all exchanges, but not the system message. */
MINFER_API minfer_status minfer_conversation_undo(minfer_conversation *c, minfer_error *err);
MINFER_API void minfer_conversation_clear(minfer_conversation *c);
/* The system message, n bytes of UTF-8; NULL: none. Getting: *text is for minfer_free, NULL when there is
 * none. */
MINFER_API minfer_status minfer_conversation_set_system(minfer_conversation *c, const char *text, size_t n,
                                                        minfer_error *err);
MINFER_API minfer_status minfer_conversation_get_system(const minfer_conversation *c, char **text, size_t *n,
                                                        minfer_error *err);
MINFER_API size_t minfer_conversation_exchanges(const minfer_conversation *c);

/* The whole history as JSON: {format: "minfer-conversation", version: 1, dropped, messages}. Reading also
 * takes an array of messages; it replaces the history, and refuses by place what is no conversation. *json is
 * for minfer_free. */
MINFER_API minfer_status minfer_conversation_get_json(const minfer_conversation *c, char **json, size_t *n,
                                                      minfer_error *err);
MINFER_API minfer_status minfer_conversation_set_json(minfer_conversation *c, const char *json, size_t n,
                                                      minfer_error *err);
/* The same check without a conversation. */
MINFER_API minfer_status minfer_conversation_check_json(const char *json, size_t n, minfer_error *err);

/* The session's keys and values in a file (minfer_session_save). Restoring takes of them what agrees with the
 * rendered history, *n_used tokens, in place of what the session holds; a file that is damaged, of another
 * model or another conversation is refused and changes nothing. */
MINFER_API minfer_status minfer_conversation_save_cache(const minfer_conversation *c, const char *path,
                                                        minfer_error *err);
MINFER_API minfer_status minfer_conversation_restore_cache(minfer_conversation *c, const char *path,
                                                           size_t *n_used, minfer_error *err);

/* The session behind it: for its length and tokens. Between turns it holds a prefix of the rendered history:
 * the end of a turn is in it, tokens of a matched stop string are not. */
MINFER_API const minfer_session *minfer_conversation_session(const minfer_conversation *c);

/* ---- the model cache ---- */

#define MINFER_DEFAULT_MODEL "SmolLM2-135M-Instruct"

/* Turns what a user calls a model (a path, or the name of a cached file with or without its quantization and
 * .gguf) into a path. NULL or "": the default model. Several matches are listed and refused. dir is the cache
 * folder. */
MINFER_API minfer_status minfer_hub_resolve(const char *dir, const char *name, char **path,
                                            minfer_error *err);

/* Cached models, one call per model (first part of split ones), sorted by name. false stops. */
typedef bool minfer_hub_fn(void *user, const char *name, const char *path, uint64_t bytes);
MINFER_API minfer_status minfer_hub_list(const char *dir, minfer_hub_fn *fn, void *user, minfer_error *err);

#ifdef __cplusplus
}
#endif
#endif
