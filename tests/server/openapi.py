"""docs/openapi.yaml holds together, and names the fields that apps/server reads and docs/server.md lists: no more, no
fewer. docs/server.md tells of every option that is the server's. Usage: openapi.py ROOT"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
BODIES = {"ChatRequest", "CompletionRequest", "EmbeddingRequest", "TokenizeRequest", "DetokenizeRequest"}
try:
    import yaml
except ImportError:
    print("SKIP: no Python module yaml")
    sys.exit(77)

bad = []


def resolve(doc, ref):
    at = doc
    for part in ref.removeprefix("#/").split("/"):
        at = at.get(part) if isinstance(at, dict) else None
    if at is None:
        bad.append(f"{ref} leads nowhere")
    return at or {}


def walk(node, path=""):
    if isinstance(node, dict):
        yield path, node
        for k, v in node.items():
            yield from walk(v, f"{path}/{k}")
    elif isinstance(node, list):
        for i, v in enumerate(node):
            yield from walk(v, f"{path}/{i}")


def properties(doc, schema):
    out = set(schema.get("properties", {}))
    if "$ref" in schema:
        out |= properties(doc, resolve(doc, schema["$ref"]))
    for part in schema.get("allOf", []):
        out |= properties(doc, part)
    return out


def check_shape(doc):
    used = set()
    for path, node in walk(doc):
        if "$ref" in node:
            resolve(doc, node["$ref"])
            used.add(node["$ref"].split("/")[-1])
        if set(node.get("required", []) if isinstance(node.get("required"), list) else []) - set(node.get("properties", {})) \
                and "properties" in node:
            bad.append(f"{path}: required names a field that is none")
    for name in doc["components"]["schemas"]:
        if name not in used | {"ChatChunk"}:
            bad.append(f"schema {name} is not used")
    for path, item in doc["paths"].items():
        for method, op in item.items():
            if not op.get("responses") or not op.get("operationId"):
                bad.append(f"{method} {path}: no responses or no operationId")


def fields_of_code():
    """Names that are read from the body itself: srv_field...(body, "name" and FIELD(name)."""
    out = set()
    for path in (ROOT / "apps/server").glob("request*.c"):
        text = path.read_text()
        out |= set(re.findall(r'srv_(?:field\w*|read_prompts)\(body,\s*"(\w+)"', text))
        out |= set(re.findall(r"\{FIELD\((\w+)\)", text))
    return out


def fields_of_words():
    """First column of the tables in docs/server.md between the marks."""
    text = (ROOT / "docs/server.md").read_text()
    part = text.split("<!-- fields -->")[1].split("<!-- end of fields -->")[0]
    return {n for row in re.findall(r"^\| ([^|]*) \|", part, re.M) for n in re.findall(r"`(\w+)`", row)}


def compare(name, found, expected):
    for field in sorted(found - expected):
        bad.append(f"{name} has {field}, docs/openapi.yaml does not")
    for field in sorted(expected - found):
        bad.append(f"docs/openapi.yaml has {field}, {name} does not")


def check_options():
    """docs/cli.md has what `minfer serve -h` says; its options of sampling and the engine are told elsewhere."""
    text = (ROOT / "docs/server.md").read_text()
    told = {n for n in re.findall(r"`(--[a-z-]+)", text)}
    groups = re.split(r"\n\n(?=[A-Z])", (ROOT / "docs/cli.md").read_text().split("<!-- minfer serve -h -->")[1].split("```")[1])
    options = {g.split("\n")[0]: set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", g, re.M)) for g in groups}
    own = options["Input"] | options["General"] - {"--verbose", "--help", "--version"} | {"--n-slots", "--n-ctx", "--n-batch"}
    bad.extend(f"docs/server.md says nothing of {o}" for o in sorted(own - told))
    bad.extend(f"docs/server.md has {o}, minfer serve does not" for o in sorted(told - set().union(*options.values())))


def main():
    doc = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
    check_shape(doc)
    schemas = doc["components"]["schemas"]
    known = set().union(*(properties(doc, schemas[name]) for name in BODIES))
    compare("apps/server", fields_of_code(), known)
    compare("docs/server.md", fields_of_words(), known)
    check_options()
    print("\n".join(bad) or f"{len(doc['paths'])} paths, {len(known)} fields")
    return 1 if bad else 0


sys.exit(main())
