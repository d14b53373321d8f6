#!/usr/bin/env python3
"""Renders the cases of golden_cases.py and golden_chats.py with Jinja, set up as transformers does for chat templates, and writes
tests/data/template/golden.json. Needs: pip install jinja2. Run it after changing the cases; never edit the output."""
import datetime
import json
import pathlib
import platform
import sys
import unicodedata

import jinja2
import jinja2.ext
import jinja2.sandbox

import golden_cases
import golden_chats

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "data/template/golden.json"
NOW = 1700000000  # 2023-11-14 22:13:20 UTC
DEFAULTS = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": False}


class GenerationTag(jinja2.ext.Extension):
    """{% generation %}: marks what the model writes; renders its body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    """Refuses names that begin with an underscore, as transformers 5 does."""

    def __init__(*args, **kwargs):
        self, attrs = args[0], dict(*args[1:], **kwargs)
        for name in attrs:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attrs)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(format)


def environment(immutable):
    base = jinja2.sandbox.ImmutableSandboxedEnvironment if immutable else jinja2.sandbox.SandboxedEnvironment
    env = base(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception, strftime_now=strftime_now, namespace=Namespace)
    del env.globals["lipsum"]
    return env


STRICT, MUTABLE = environment(True), environment(False)


def render(env, template, variables):
    """{"out": text} or {"error": class, "message": text}."""
    try:
        compiled = env.from_string(template)
    except (jinja2.TemplateSyntaxError, SyntaxError, AssertionError) as e:
        return {"error": "syntax", "message": str(e)}
    try:
        return {"out": compiled.render(**{**DEFAULTS, **json.loads(json.dumps(variables))})}
    except Exception as e:
        return {"error": type(e).__name__, "message": str(e)}


def small_cases():
    for group, cases in golden_cases.GROUPS.items():
        env = MUTABLE if group == "changing methods" else STRICT
        for template, variables in cases:
            result = render(env, template, variables)
            if " at 0x" in result.get("out", ""):
                sys.exit(f"{group}: {template!r} prints an address")
            yield {"group": group, "template": template, "vars": variables, **result}


def chat_cases():
    for name, path in golden_chats.templates():
        for label, variables in golden_chats.conversations().items():
            yield {"chat": name, "conversation": label, **render(STRICT, path.read_text(), variables)}


def rows(cases):
    return ",\n".join(json.dumps(c) for c in cases)


def main():
    origin = {"script": "tests/template/make_golden.py", "date": datetime.date.today().isoformat(), "jinja2": jinja2.__version__,
              "python": platform.python_version(), "unicode": unicodedata.unidata_version, "now": NOW}
    small, chats = list(small_cases()), list(chat_cases())
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(f'''{{"origin": {json.dumps(origin)},
"conversations": {json.dumps(golden_chats.conversations())},
"cases": [
{rows(small)}],
"chats": [
{rows(chats)}]}}
''')
    failed = sum("error" in c for c in small + chats)
    print(f"{len(small)} small cases, {len(chats)} chat renderings, {failed} of them errors")


if __name__ == "__main__":
    main()
