/* The program `minfer`: options, then one command. */
#include "cli/commands.h"
#include "server/serve.h"

#include "common/output.h"
#include "common/term.h"

#include <unistd.h>

static const app_program *const commands[APP_N_COMMANDS] = {
    [APP_RUN] = &cli_run,
    [APP_CHAT] = &cli_chat,
    [APP_INFO] = &cli_info,
    [APP_LIST] = &cli_list,
    [APP_TOKENIZE] = &cli_tokenize,
    [APP_LOGITS] = &cli_logits,
    [APP_TEMPLATE] = &cli_template,
    [APP_BENCH] = &cli_bench,
    [APP_PERPLEXITY] = &cli_perplexity,
    [APP_SPECVERIFY] = &cli_specverify,
    [APP_SERVE] = &srv_serve,
    [APP_ENV] = &cli_env,
};

/* Output that nobody reads any more is no failure: see app_out. */
static int report(minfer_status st, const minfer_error *err, int status)
{
    if (st == MINFER_OK || (st == MINFER_ERR_IO && !err->message[0])) return APP_EXIT_OK;
    app_note("%s", err->message[0] ? err->message : mf_status_name(st));
    return status;
}

/* `minfer` alone. */
static int tell_usage(void)
{
    mf_buf b = {0};
    if (app_help_usage(&b)) (void)!write(STDERR_FILENO, b.data, b.len);
    mf_buf_free(&b);
    return APP_EXIT_USAGE;
}

static minfer_status tell_help(const app_options *o, minfer_error *err)
{
    mf_buf b = {0};
    bool ok = o->version  ? mf_buf_printf(&b, "minfer %s\n", minfer_version())
              : o->global ? app_help_program(&b)
                          : app_help_command(o->command, &b);
    return app_out_buf(&b, ok, err);
}

int main(int argc, char **argv)
{
    minfer_error err = {0};
    app_options o;
    int status;
    app_term_start();
    if (argc < 2) return tell_usage();
    minfer_status st = app_options_parse(&o, argc, argv, &err);
    const app_program *c = commands[o.command];
    if (st == MINFER_OK && !o.help && !o.version && c->check) st = c->check(&o, &err);
    if (st != MINFER_OK)
        status = report(st, &err, APP_EXIT_USAGE);
    else
        status = report(o.help || o.version ? tell_help(&o, &err) : c->run(&o, &err), &err, APP_EXIT_FAILED);
    app_options_free(&o);
    return status;
}
