/* GBNF: the syntax, what it means on texts, and refusals with line and column. */
#include "common.h"

typedef struct meaning {
    const char *grammar;
    const char *yes[8], *no[10]; /* texts up to the first NULL */
} meaning;

static const meaning meanings[] = {
    {"root ::= \"ok\"", {"ok"}, {"", "o", "okk", "OK"}},
    {"root ::= \"\"", {""}, {"a"}},
    {"root ::= ", {""}, {"a"}},
    {"root ::= \"a\" | \"b\" |", {"a", "b", ""}, {"ab"}},
    {"root ::= \"a\"\n  | \"b\"\n  | \"c\"\n", {"a", "b", "c"}, {"", "ab"}},
    {"root ::= (\"a\"\n | \"b\")\n\n# a comment\nx ::= \"y\" # another", {"a", "b"}, {"y"}},
    {"root ::= # first\n  \"a\" # then\n", {"a"}, {""}},
    {"root ::= [a-cx] [^a-c] .",
     {"axx", "x\xC3\xA9z", "b\nq", "cd\xF0\x9F\xA6\x8A"},
     {"aax", "yxx", "ax", "axx\x80"}},
    {"root ::= [^\"\\\\]*",
     {"", "abc", "\xE4\xB8\xAD"},
     {"\"", "\\", "\xE4\xB8", "\xED\xA0\x80", "\xC0\x80"}},
    {"root ::= [\\]\\[\\x41\\u0042-]+", {"]", "[", "A", "B", "-"}, {"C", "\\"}},
    {"root ::= [a-] [-a] [a\\-z]", {"a-z", "--a", "aa-"}, {"abz", "aab"}},
    {"root ::= \"\\n\\t\\r\\\\\\\"\\x41\\u00e9\\U0001F98A\"", {"\n\t\r\\\"A\xC3\xA9\xF0\x9F\xA6\x8A"}, {"n"}},
    {"root ::= \"\xF0\x9F\xA6\x8A\"", {"\xF0\x9F\xA6\x8A"}, {"\xF0\x9F\xA6", "\xF0\x9F\xA6\x8B"}},
    {"root ::= [\xC3\xA0-\xC3\xA9]+", {"\xC3\xA0", "\xC3\xA5\xC3\xA9"}, {"\xC3\xAA", "\xC3", "a"}},
    {"root ::= [\\u0700-\\uFFFF]",
     {"\xDC\x80", "\xEF\xBF\xBF", "\xE0\xA0\x80"},
     {"\xDB\xBF", "\xF0\x90\x80\x80", "\xED\xA0\x80"}},
    {"root ::= \"ab\"* \"c\"", {"c", "abc", "ababc"}, {"ac", "abbc", "ab"}},
    {"root ::= \"a\"+ \"b\"? \"c\"{2} \"d\"{1,} \"e\"{0,2}",
     {"accd", "aabccdddee", "accdde"},
     {"ccd", "acd", "acccd", "accdeee", "acc"}},
    {"root ::= \"a\"{0} \"b\"{0,0} \"c\"{ 1 , 2 }", {"c", "cc"}, {"", "ac", "bc", "ccc"}},
    {"root ::= (\"a\" | \"bc\"){2,3}", {"aa", "abc", "bcbcbc"}, {"a", "aaaa", "bcb"}},
    {"root ::= (\"a\"?){2,3} (\" \"*)* \"x\"", {"x", "aaax", "aa   x", " x"}, {"aaaax", "a"}},
    {"root ::= (\"a\"* \"b\"?)+", {"", "aab", "bbb", "abab"}, {"c"}},
    {"root ::= (\"\")* \"a\"", {"a"}, {"", "aa"}},
    {"root ::= x*\nx ::= y | \"\"\ny ::= \"a\"? \"b\"? z\nz ::= \"c\"?",
     {"", "a", "abc", "bccab"},
     {"d", "ad"}},
    {"root ::= \"a\"?*+ \"b\"", {"b", "ab", "aaab"}, {"a"}},
    {"root ::= \"(\" root \")\" | \"x\"", {"x", "((x))"}, {"(x", "x)", "()"}},
    {"root ::= ws\nws ::= ([ \\t] ws)?", {"", " \t "}, {"a"}},
    {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"\"",
     {"", "ab", "aabc", "aacb", "aaabbb"},
     {"a", "abc", "aab"}},
    {"root ::= a-b_C9\na-b_C9 ::= \"x\"", {"x"}, {"y"}},
    {"root\t::=\t\"x\"\r\n", {"x"}, {""}},
};

static void test_meaning(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        const meaning *t = &meanings[i];
        machine m;
        machine_open(&m, t->grammar, 4);
        for (int k = 0; k < 8 && t->yes[k]; k++) {
            if (!machine_accepts(&m, t->yes[k], strlen(t->yes[k])))
                fail_msg("%s\ndoes not accept '%s'", t->grammar, t->yes[k]);
        }
        for (int k = 0; k < 10 && t->no[k]; k++) {
            if (machine_accepts(&m, t->no[k], strlen(t->no[k])))
                fail_msg("%s\naccepts '%s'", t->grammar, t->no[k]);
        }
        machine_close(&m);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"", "line 1, column 1: no rule 'root'"},
        {"x ::= \"a\"", "no rule 'root'"},
        {"root ::= x", "line 1, column 10: rule 'x' is not defined"},
        {"root ::= \"a\"\n\nroot ::= \"b\"", "line 3, column 1: rule 'root' is defined a second time"},
        {"root = \"a\"", "line 1, column 6: '=' where ::= is wanted"},
        {"root ::= \"a\" )", "line 1, column 14: ')' where a literal"},
        {"root ::= (\"a\"", "line 1, column 10: a group without its closing )"},
        {"root ::= \"\xC3\xA9\" \"a", "line 1, column 14: a literal without its closing \""},
        {"root ::= \"a\nb\"", "a literal without"},
        {"root ::= [a", "a character class without its closing ]"},
        {"root ::= []", "line 1, column 10: a character class that no character is in"},
        {"root ::= [^\\x00-\\U0010FFFF]", "no character is in"},
        {"root ::= [z-a]", "line 1, column 11: a range that runs backwards"},
        {"root ::= *", "line 1, column 10: '*' with nothing before it to repeat"},
        {"root ::= \"a\" | +", "nothing before it"},
        {"root ::= \"a\"{2,1}", "a repetition of at least 2 and at most 1"},
        {"root ::= \"a\"{}", "line 1, column 14: '}' where a number is wanted"},
        {"root ::= \"a\"{2", "the end where } is wanted"},
        {"root ::= \"a\"{99999999999}", "a count beyond"},
        {"root ::= \"\\q\"", "line 1, column 11: unknown escape \\'q'"},
        {"root ::= \"\\x4\"", "an escape of 2 hexadecimal digits is cut short"},
        {"root ::= \"\\uD800\"", "U+D800 is not a character"},
        {"root ::= \"\\UFFFFFFFF\"", "is not a character"},
        {"root ::= \"\xFF\"", "not UTF-8"},
        {"root ::= <think>", "tokens (<...>) in grammars are not supported"},
        {"root ::= root \"a\"", "line 1, column 1: rule 'root' begins with itself (left recursion)"},
        {"root ::= root \"a\" | \"b\"", "rule 'root' begins with itself"},
        {"root ::= \"z\" x\nx ::= y* x \"a\" | \"b\"\ny ::= \"c\"",
         "line 1, column 14: rule 'x' begins with itself"},
        {"root ::= a\na ::= b \"x\" | \"y\"\nb ::= \"\" a", "begins with itself"},
        {"root ::= (root? \"a\")+", "begins with itself"},
        {"root ::= \"a\" root", "rule 'root' can never end"},
        {"root ::= \"a\" | x\nx ::= \"b\" y\ny ::= \"c\" (x | y)", "can never end"},
        {"root ::= \"a\"\nx ::= \"b\" x", "rule 'x' can never end"},
        {"root ::= \"a\"\nroot2", "the end where ::= is wanted"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        mf_program p;
        minfer_error err = {0};
        minfer_status st = mf_program_read(&p, refused[i][0], strlen(refused[i][0]), NULL, &err);
        if (st != MINFER_ERR_ARG) print_error("%s\n", refused[i][0]);
        assert_fails(st, MINFER_ERR_ARG, &err, refused[i][1]);
    }
}

static void test_nul(void **state)
{
    (void)state;
    machine m;
    machine_open(&m, "root ::= \"a\" \"\\u0000\"", 4);
    assert_true(machine_accepts(&m, "a\0", 2));
    assert_false(machine_accepts(&m, "a", 1));
    machine_close(&m);
}

/* Deep, long and wide ones are read, or refused, without a crash and in no time. */
static void test_sizes(void **state)
{
    (void)state;
    mf_buf b = {0};
    machine m;
    minfer_error err = {0};
    mf_program p;
    mf_buf_str(&b, "root ::= ");
    for (int i = 0; i < 100000; i++) mf_buf_char(&b, '(');
    assert_fails(mf_program_read(&p, b.data, b.len, NULL, &err), MINFER_ERR_ARG, &err, "groups deeper than");
    b.len = 0;
    mf_buf_str(&b, "root ::= r0\n");
    for (int i = 0; i < 50000; i++) mf_buf_printf(&b, "r%d ::= r%d \"x\"?\n", i, i + 1);
    mf_buf_str(&b, "r50000 ::= \"y\"\n");
    machine_open(&m, b.data, 4);
    machine_close(&m);
    machine_open(&m, "root ::= [a-z]{1,100000}", 16);
    machine_start(&m);
    for (int i = 0; i < 100000; i++) machine_byte(&m, (uint8_t)('a' + i % 26));
    assert_true(mf_gsets_can_end(&m.sets, m.set));
    assert_false(mf_gsets_can_go_on(&m.sets, m.set));
    machine_close(&m);
    mf_buf_free(&b);
}

/* All readings at once: their number doubles with every step, the sets do not. */
static void test_many_readings(void **state)
{
    (void)state;
    machine m;
    machine_open(&m, "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"", 4);
    machine_start(&m);
    for (int i = 0; i < 1000; i++) machine_byte(&m, 'a');
    for (int i = 0; i < 999; i++) machine_byte(&m, i % 3 ? 'b' : 'c');
    assert_true(mf_gsets_can_end(&m.sets, m.set));
    machine_close(&m);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const char text[] =
        "root ::= \"a\" x{3,9} | [^b]+ (\"c\"? y)*\nx ::= [a-z\\u00e0-\\u0fff]\ny ::= x? (\"\" | x)\n";
    for (long at = 1;; at++) {
        mf_program p;
        mf_gsets s = {0};
        minfer_error err = {0};
        uint32_t set;
        mf_mem_fail_at(at);
        minfer_status st = mf_program_read(&p, text, sizeof text - 1, NULL, &err);
        if (st == MINFER_OK) {
            st = mf_gsets_init(&s, &p, 4, &err);
            if (st == MINFER_OK) st = mf_gsets_start(&s, &set, &err);
            for (const char *c = "aabcdc"; *c && st == MINFER_OK; c++)
                st = mf_gsets_step(&s, set, p.class_of[(uint8_t)*c], &set, &err);
            uint32_t *keep = &set;
            if (st == MINFER_OK) st = mf_gsets_collect(&s, &keep, 1, &err);
            mf_gsets_free(&s);
            mf_program_free(&p);
        }
        mf_mem_fail_at(0);
        if (st == MINFER_OK) break;
        assert_int_equal(st, MINFER_ERR_NOMEM);
        assert_true(at < 2000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meaning),       cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nul),           cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_many_readings), cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
