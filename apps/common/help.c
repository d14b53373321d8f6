/* Help texts, written from the table. */
#include "common/options.h"

#include "base/utf8.h"

#include <string.h>

enum { INDENT = 28, WIDTH = 80 };

static bool pad(mf_buf *out, size_t n)
{
    bool ok = true;
    while (ok && n--) ok = mf_buf_char(out, ' ');
    return ok;
}

/* Words of text from column `at` on, wrapped below it; ends the line. */
static bool wrapped(mf_buf *out, const char *text, size_t at)
{
    size_t column = at;
    bool ok = true;
    while (ok && *text) {
        size_t n = strcspn(text, " "), width = mf_utf8_count(text, n);
        if (column > at && column + 1 + width > WIDTH) {
            ok = mf_buf_char(out, '\n') && pad(out, at);
            column = at;
        } else if (column > at) {
            ok = mf_buf_char(out, ' ');
            column++;
        }
        ok = ok && mf_buf_append(out, text, n);
        column += width;
        text += n + strspn(text + n, " ");
    }
    return ok && mf_buf_char(out, '\n');
}

/* left, then text in the second column. */
static bool two_columns(mf_buf *out, const char *left, const char *text)
{
    size_t n = strlen(left);
    bool ok = mf_buf_str(out, left);
    if (n + 2 <= INDENT)
        ok = ok && pad(out, INDENT - n);
    else
        ok = ok && mf_buf_char(out, '\n') && pad(out, INDENT);
    return ok && wrapped(out, text, INDENT);
}

enum { TELLING = 1 << 16 }; /* an end beyond this is no news */

/* "(0 to 1)", "(f32, f16, q8_0)". */
static bool add_range(const app_option *row, mf_buf *text)
{
    bool ok = true;
    for (size_t i = 0; row->choices && row->choices[i] && ok; i++)
        ok = mf_buf_printf(text, "%s%s%s", i ? ", " : " (", row->choices[i], row->choices[i + 1] ? "" : ")");
    bool number = row->kind == APP_INT || row->kind == APP_FLOAT;
    if (ok && number && row->hi <= TELLING) ok = mf_buf_printf(text, " (%.6g to %.6g)", row->lo, row->hi);
    return ok;
}

/* What follows the explanation: choices or range, default, variable. */
static bool add_facts(const app_option *row, const app_options *defaults, mf_buf *text)
{
    mf_buf standard = {0};
    bool ok = add_range(row, text);
    if (row->kind != APP_FLAG)
        ok = ok && (row->standard ? mf_buf_str(&standard, row->standard)
                                  : app_value_show(row, defaults, &standard));
    if (standard.len) ok = ok && mf_buf_printf(text, " [%s]", standard.data);
    if (row->env) ok = ok && mf_buf_printf(text, " [%s]", row->env);
    mf_buf_free(&standard);
    return ok;
}

static bool option_line(const app_option *row, const app_options *defaults, mf_buf *out)
{
    mf_buf left = {0}, text = {0};
    bool ok = mf_buf_str(&left, "  ") &&
              (row->letter ? mf_buf_printf(&left, "-%c, ", row->letter) : mf_buf_str(&left, "    ")) &&
              mf_buf_printf(&left, "--%s%s%s", row->name, row->value ? " " : "",
                            row->value ? row->value : "") &&
              mf_buf_str(&text, row->help) && add_facts(row, defaults, &text) &&
              two_columns(out, left.data, text.data);
    mf_buf_free(&left);
    mf_buf_free(&text);
    return ok;
}

bool app_help_command(app_command c, mf_buf *out)
{
    static const char *const titles[] = {"Input", "Output", "Sampling", "Engine", "General"};
    const app_command_info *info = &app_commands[c];
    app_options defaults;
    app_options_init(&defaults);
    bool ok = mf_buf_printf(out, "usage: minfer %s %s%s[options]\n\n", info->name, info->usage,
                            *info->usage ? " " : "") &&
              wrapped(out, info->summary, 0);
    for (app_group g = 0; g <= APP_GROUP_GENERAL && ok; g++) {
        bool any = false;
        for (size_t i = 0; i < app_option_count && ok; i++) {
            const app_option *row = &app_option_table[i];
            if (!row->name || row->group != g || !(row->commands >> c & 1)) continue;
            if (!any) ok = mf_buf_printf(out, "\n%s\n", titles[g]);
            any = true;
            ok = ok && option_line(row, &defaults, out);
        }
    }
    app_options_free(&defaults);
    return ok;
}

bool app_help_usage(mf_buf *out)
{
    return mf_buf_str(out, "usage: minfer COMMAND ...          a command; `minfer -h` lists them\n"
                           "       minfer MODEL [PROMPT...]    an answer from a model\n"
                           "       minfer -p PROMPT            an answer from the default model\n");
}

bool app_help_program(mf_buf *out)
{
    bool ok = app_help_usage(out) &&
              mf_buf_str(out, "\nCommands (`minfer COMMAND -h` shows their options)\n");
    for (app_command c = 0; c < APP_N_COMMANDS && ok; c++) {
        mf_buf left = {0};
        ok = mf_buf_printf(&left, "  %s", app_commands[c].name) &&
             two_columns(out, left.data, app_commands[c].summary);
        mf_buf_free(&left);
    }
    return ok &&
           mf_buf_str(out, "\nMODEL is a path to a GGUF file, or the name of a cached model; without one, "
                           "the default\nmodel is used: ") &&
           mf_buf_str(out, MINFER_DEFAULT_MODEL ".\n\n") &&
           mf_buf_str(out, "Text goes to stdout, everything else to stderr. Exit status: 0 done, 1 failed, "
                           "2 refused\nbefore anything was loaded, 130 interrupted.\n");
}
