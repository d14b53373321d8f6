/* strftime, in English and UTC whatever the process's locale and time zone are. */
#include "template/objects.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};

typedef struct moment {
    mf_trender *r;
    mf_tsb out;
    struct tm tm;
    int64_t seconds;
    char pad; /* GNU's flag: '-' nothing, '_' blanks, '0' zeros, 0 the directive's own */
    bool upper;
} moment;

static minfer_status put(moment *c, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool raise = c->upper && s[i] >= 'a' && s[i] <= 'z';
        MF_TRY(mf_tsb_char(c->r, &c->out, (char)(raise ? s[i] - 32 : s[i])));
    }
    return MINFER_OK;
}

static minfer_status put_number(moment *c, long long v, int width, char pad)
{
    char text[32];
    if (c->pad) pad = c->pad;
    int n = pad == '-'   ? snprintf(text, sizeof text, "%lld", v)
            : pad == '_' ? snprintf(text, sizeof text, "%*lld", width, v)
                         : snprintf(text, sizeof text, "%0*lld", width, v);
    return put(c, text, (size_t)n);
}

/* Week of the year whose weeks begin on `first` (0 Sunday, 1 Monday). */
static int week(const struct tm *t, int first)
{
    return (t->tm_yday + 7 - (t->tm_wday - first + 7) % 7) / 7;
}

static int is_leap(int y)
{
    return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
}

/* Week and year of ISO 8601: weeks begin on Monday and belong to the year that has their Thursday. */
static int iso_week(const struct tm *t, int *year)
{
    int thursday = t->tm_yday - (t->tm_wday + 6) % 7 + 3;
    *year = t->tm_year + 1900;
    if (thursday < 0)
        thursday += 365 + is_leap(--*year);
    else if (thursday >= 365 + is_leap(*year))
        thursday -= 365 + is_leap((*year)++);
    return thursday / 7 + 1;
}

static int hour12(const struct tm *t)
{
    return t->tm_hour % 12 ? t->tm_hour % 12 : 12;
}

static minfer_status expand(moment *c, const char *format, size_t n);

static minfer_status put_name(moment *c, const char *name, bool whole)
{
    return put(c, name, whole ? strlen(name) : 3);
}

static minfer_status put_date(moment *c, char directive)
{
    const struct tm *t = &c->tm;
    int year;
    switch (directive) {
    case 'Y': return put_number(c, t->tm_year + 1900, 1, '0');
    case 'C': return put_number(c, (t->tm_year + 1900) / 100, 2, '0');
    case 'y': return put_number(c, (t->tm_year + 1900) % 100, 2, '0');
    case 'm': return put_number(c, t->tm_mon + 1, 2, '0');
    case 'd': return put_number(c, t->tm_mday, 2, '0');
    case 'e': return put_number(c, t->tm_mday, 2, '_');
    case 'j': return put_number(c, t->tm_yday + 1, 3, '0');
    case 'u': return put_number(c, t->tm_wday ? t->tm_wday : 7, 1, '0');
    case 'w': return put_number(c, t->tm_wday, 1, '0');
    case 'U': return put_number(c, week(t, 0), 2, '0');
    case 'W': return put_number(c, week(t, 1), 2, '0');
    case 'V': return put_number(c, iso_week(t, &year), 2, '0');
    case 'G': iso_week(t, &year); return put_number(c, year, 1, '0');
    case 'g': iso_week(t, &year); return put_number(c, year % 100, 2, '0');
    case 'a': return put_name(c, days[t->tm_wday], false);
    case 'A': return put_name(c, days[t->tm_wday], true);
    case 'b':
    case 'h': return put_name(c, months[t->tm_mon], false);
    case 'B': return put_name(c, months[t->tm_mon], true);
    default: return MINFER_OK;
    }
}

static minfer_status put_time(moment *c, char directive)
{
    const struct tm *t = &c->tm;
    switch (directive) {
    case 'H': return put_number(c, t->tm_hour, 2, '0');
    case 'k': return put_number(c, t->tm_hour, 2, '_');
    case 'I': return put_number(c, hour12(t), 2, '0');
    case 'l': return put_number(c, hour12(t), 2, '_');
    case 'M': return put_number(c, t->tm_min, 2, '0');
    case 'S': return put_number(c, t->tm_sec, 2, '0');
    case 's': return put_number(c, c->seconds, 1, '0');
    case 'p': return put(c, t->tm_hour < 12 ? "AM" : "PM", 2);
    case 'P': return put(c, t->tm_hour < 12 ? "am" : "pm", 2);
    case 'f': return put(c, "000000", 6);
    default: return MINFER_OK;
    }
}

/* Directives that stand for others; NULL: not one of them. */
static const char *compound(char directive)
{
    switch (directive) {
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'T':
    case 'X': return "%H:%M:%S";
    case 'R': return "%H:%M";
    case 'r': return "%I:%M:%S %p";
    default: return NULL;
    }
}

/* The directive at format[i], which follows a '%'; returns how many bytes it took, 0 when it is none. */
static size_t take_directive(moment *c, const char *format, size_t n, minfer_status *st)
{
    size_t i = 0;
    c->pad = 0;
    c->upper = false;
    for (; i < n && format[i] && strchr("-_0^", format[i]); i++) {
        if (format[i] == '^')
            c->upper = true;
        else
            c->pad = format[i];
    }
    if (i == n || !format[i]) return 0;
    char d = format[i];
    const char *same = compound(d);
    if (same)
        *st = expand(c, same, strlen(same));
    else if (strchr("YCymdejuwUWVGgaAbhB", d))
        *st = put_date(c, d);
    else if (strchr("HkIlMSspPf", d))
        *st = put_time(c, d);
    else if (strchr("%nt", d))
        *st = put(c, d == 'n' ? "\n" : d == 't' ? "\t" : "%", 1);
    else if (!strchr("zZ", d))
        return 0; /* a time without a zone shows none */
    return i + 1;
}

static minfer_status expand(moment *c, const char *format, size_t n)
{
    minfer_status st = MINFER_OK;
    for (size_t i = 0; i < n && st == MINFER_OK;) {
        size_t used = format[i] == '%' ? take_directive(c, format + i + 1, n - i - 1, &st) : 0;
        if (used == 0) MF_TRY(mf_tsb_char(c->r, &c->out, format[i]));
        i += used + 1;
    }
    return st;
}

minfer_status mf_tstrftime(mf_trender *r, const mf_tstr *format, int64_t seconds, mf_tval *out)
{
    moment c = {.r = r, .seconds = seconds};
    time_t t = (time_t)seconds;
    if (!gmtime_r(&t, &c.tm) || c.tm.tm_year < -1899 || c.tm.tm_year > 8099)
        return mf_trender_raise(r, MF_TE_VALUE, "the time %lld is out of range", (long long)seconds);
    MF_TRY(mf_trender_charge(r, format->n));
    MF_TRY(expand(&c, format->p, format->n));
    return mf_tstr_wrap(r, c.out.p, c.out.n, out);
}
