#!/usr/bin/env python3
"""The installed library: what lies where, which symbols it shows, that its header stands alone in C and C++, and that the programs of
docs/ are compiled against it and run.

    installed.py [CLASS]      with MINFER_TEST_BUILD, _CMAKE, _CC, _NM and _SANITIZE in the environment"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TINY = ROOT / "tests" / "data" / "tiny" / "tiny-llama-Q4_0.gguf"
HEADER = (ROOT / "include" / "minfer.h").read_text()
GUIDE = ROOT / "docs" / "library.md"
BUILD = os.environ["MINFER_TEST_BUILD"]
CC = os.environ.get("MINFER_TEST_CC", "cc")
SANITIZE = os.environ.get("MINFER_TEST_SANITIZE", "")
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]

FUNCTIONS = set(re.findall(r"^MINFER_API [^;(]*?(\w+)\(", HEADER, re.M))
VERSION = re.search(r'#define MINFER_VERSION "(.*?)"', HEADER)[1]


def skip(why):
    print("SKIP:", why, flush=True)
    raise unittest.SkipTest(why)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Installed in one place and moved to another, which nothing may mind."""
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-library-"))
        first, cls.prefix = cls.folder / "first", cls.folder / "moved"
        subprocess.run([os.environ.get("MINFER_TEST_CMAKE", "cmake"), "--install", BUILD, "--prefix", first], check=True,
                       stdout=subprocess.DEVNULL)
        first.rename(cls.prefix)
        pc = next(cls.prefix.rglob("minfer.pc"))
        cls.lib = pc.parent.parent
        cls.env = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent), LD_LIBRARY_PATH=str(cls.lib))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_all(self, *args, status=0, **more):
        done = subprocess.run([*map(str, args)], env=self.env, capture_output=True, text=True, errors="replace", timeout=300,
                              cwd=self.folder, **more)
        self.assertEqual(done.returncode, status, f"{args}\n{done.stdout}{done.stderr}")
        return done

    def pkg_config(self, *args):
        return shlex.split(self.run_all("pkg-config", *args, "minfer").stdout)

    def compile(self, source, static=False):
        """A program of the source against what is installed."""
        program = self.folder / (source.stem + ("-static" if static else ""))
        flags = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
        asked = ["--static"] if static else []
        self.run_all(CC, "-std=c17", *WARNINGS, *flags, source, *(["-static"] if static else []),
                     *self.pkg_config(*asked, "--cflags", "--libs"), "-o", program)
        return program


class Installed(Case):
    def test_files(self):
        minor = ".".join(VERSION.split(".")[:1 if int(VERSION.split(".")[0]) else 2])
        names = {str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*") if not p.is_dir()}
        lib = self.lib.relative_to(self.prefix)
        self.assertEqual(names, {"bin/minfer", "include/minfer.h", f"{lib}/libminfer.a", f"{lib}/libminfer.so", f"{lib}/libminfer.so.{minor}",
                                 f"{lib}/libminfer.so.{VERSION}", f"{lib}/pkgconfig/minfer.pc"})
        self.assertEqual((self.lib / "libminfer.so").resolve().name, f"libminfer.so.{VERSION}")
        self.assertIn(f"[libminfer.so.{minor}]", self.run_all("readelf", "-d", self.lib / "libminfer.so").stdout)

    def test_version(self):
        self.assertEqual(self.pkg_config("--modversion"), [VERSION])
        self.assertIn(VERSION, self.run_all(self.prefix / "bin" / "minfer", "--version").stdout)

    def symbols(self, *args):
        out = self.run_all(os.environ.get("MINFER_TEST_NM", "nm"), "--defined-only", "-P", *args).stdout
        return {line.split()[0] for line in out.splitlines() if len(line.split()) > 2}

    def test_shared_library_shows_the_header_and_no_more(self):
        self.assertEqual(self.symbols("-D", self.lib / "libminfer.so"), FUNCTIONS)

    def test_static_library_shows_the_header_and_no_more(self):
        self.assertEqual(self.symbols("-g", self.lib / "libminfer.a"), FUNCTIONS)

    def test_header_alone(self):
        """In every dialect, by every compiler that is here, before anything else is included."""
        used = 0
        for language, compilers, dialects in (("c", {CC, "gcc", "clang"}, ("c99", "c11", "c17")),
                                              ("c++", {"g++", "clang++", "c++"}, ("c++11", "c++17", "c++20"))):
            found = sorted(filter(None, map(shutil.which, compilers)))
            for compiler in found:
                for dialect in dialects:
                    with self.subTest(compiler=compiler, dialect=dialect):
                        text = "#include <minfer.h>\n#include <minfer.h>\nminfer_sampling s; minfer_logit_bias b; minfer_finish f;\n"
                        self.run_all(compiler, "-x", language, f"-std={dialect}", *WARNINGS, "-fsyntax-only", f"-I{self.prefix}/include",
                                     "-", input=text)
            if not found:
                print(f"SKIP: no compiler for {language}: none of {sorted(compilers)} is here", flush=True)
            used += len(found)
        self.assertGreater(used, 0)

    def test_cpp_program(self):
        """Functions have C's names."""
        compiler = next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
        if not compiler:
            skip("no C++ compiler is here")
        source = self.folder / "names.cpp"
        source.write_text("#include <minfer.h>\nextern \"C\" int puts(const char *);\nint main() { puts(minfer_version()); return 0; }\n")
        flags = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
        if SANITIZE and "clang" in CC:
            compiler = shutil.which("clang++") or skip("no clang++ is here, which the sanitizers of clang need")
        self.run_all(compiler, *flags, source, *self.pkg_config("--cflags", "--libs"), "-o", self.folder / "names")
        self.assertEqual(self.run_all(self.folder / "names").stdout, VERSION + "\n")

    def test_documents_name_what_exists(self):
        known = set(re.findall(r"\bminfer_\w+", HEADER)) | {"minfer_noun_verb", "minfer_cli"}
        for doc in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("*.md")]:
            text = re.sub("<!-- metrics -->.*<!-- end of metrics -->", "", doc.read_text(), flags=re.S)  # see tests/server/test_metrics.py
            named = re.findall(r"(?<![/\w])minfer_\w+(?![\w.])", text)
            unknown = {n for n in named if n not in known and not (n.endswith("_") and any(k.startswith(n) for k in known))}
            self.assertEqual(unknown, set(), doc.name)


PIECES = """#include <minfer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
{macro}
static bool print(void *user, int32_t id, const char *text, size_t n)
{{
    (void)user, (void)id;
    return fwrite(text, 1, n, stdout) == n;
}}
static int fail(const minfer_error *err) {{ return fprintf(stderr, "%s\\n", err->message), 1; }}
static int pieces(minfer_model *model, minfer_engine *engine)
{{
    minfer_error err;
{body}
    minfer_engine_get_info(engine, &info);
    printf("\\n%d of %d\\n", info.n_ctx_unused, info.n_ctx);
    return 0;
}}
int main(int argc, char **argv)
{{
    minfer_error err;
    minfer_model *model;
    minfer_engine *engine;
    TRY(minfer_model_open(argv[argc - 1], NULL, NULL, &model, &err));
    TRY(minfer_engine_create(model, NULL, &engine, &err));
    int status = pieces(model, engine);
    minfer_engine_free(engine);
    minfer_model_free(model);
    return status;
}}
"""


class Programs(Case):
    def check_example(self, program, model):
        out = self.run_all(program, model, "Hello!", "And again?").stdout
        self.assertEqual(len(re.findall(r"^\((\d+) tokens\)$", out, re.M)), 2, out)
        self.assertIn("usage", self.run_all(program, status=2).stderr)
        self.assertEqual(self.run_all(program, "none.gguf", "?", status=1).stderr.count("none.gguf"), 1)
        return out

    def test_example(self):
        self.check_example(self.compile(ROOT / "docs" / "example.c"), TINY)

    def test_example_needs_the_library_only(self):
        """Not what the library itself needs."""
        program = self.compile(ROOT / "docs" / "example.c")
        needed = re.findall(r"NEEDED.*\[(.*)\]", self.run_all("readelf", "-d", program).stdout)
        self.assertIn("libminfer.so", " ".join(needed))
        self.assertFalse(re.search("pcre|utf8proc|jansson", " ".join(needed)), needed)

    def test_example_static(self):
        if SANITIZE:
            skip("sanitizers do not link statically")
        source = self.folder / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        libs = self.run_all("pkg-config", "--static", "--libs", "libpcre2-8", "libutf8proc", "jansson").stdout.split()
        if subprocess.run([CC, source, "-static", *libs, "-lm", "-o", self.folder / "empty"], capture_output=True).returncode:
            skip("what the library needs is not here as static libraries")
        program = self.compile(ROOT / "docs" / "example.c", static=True)
        self.assertNotIn("NEEDED", self.run_all("readelf", "-d", program).stdout)
        self.check_example(program, TINY)

    def test_pieces_of_the_guide(self):
        """All blocks of C in docs/library.md, as one function; the last frees all that was made."""
        macro, *blocks = re.findall(r"^```c\n(.*?)^```$", GUIDE.read_text(), re.S | re.M)
        source = self.folder / "pieces.c"
        source.write_text(PIECES.format(macro=macro, body="".join(blocks)))
        out = self.run_all(self.compile(source), TINY).stdout
        unused, cells = re.search(r"\n(\d+) of (\d+)\n$", out).groups()
        self.assertEqual(unused, cells)


class Real(Case):
    def test_example_answers(self):
        at = pathlib.Path(os.environ.get("MINFER_MODEL_DIR") or pathlib.Path.home() / ".cache/minfer/models")
        model = at / "SmolLM2-135M-Instruct.Q4_1.gguf"
        if not model.exists():
            skip(f"{model.name} is not in the model cache (tools/get_model)")
        out = self.run_all(self.compile(ROOT / "docs" / "example.c"), model, "What is the capital of France?").stdout
        self.assertIn("Paris", out)


if __name__ == "__main__":
    unittest.main()
