#!/usr/bin/env python3
"""The running server against docs/openapi.yaml, by schemathesis: bodies that fit the schemas and bodies that do not; every status,
type and body of a reply is one that the document tells. Skips without the packages.

    test_schema.py PROGRAM [EXAMPLES]"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from served import ROOT, Server

try:
    import schemathesis  # noqa: F401
    import yaml
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import tiny_model  # noqa: E402  (served has put it on the path)

PROGRAM = os.path.abspath(sys.argv[1])
EXAMPLES = sys.argv[2] if len(sys.argv) > 2 else "20"
# Not every body that fits its schema is taken: ids may lie beyond the vocabulary, prompts may be too long, grammars wrong.
LEFT_OUT = "positive_data_acceptance,unsupported_method,use_after_free,ensure_resource_availability"


def document(folder, name):
    """The document with the model's name where a name is expected, or nearly all requests would end there."""
    doc = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text())
    for schema in doc["components"]["schemas"].values():
        for part in [schema, *schema.get("allOf", [])]:
            if "model" in part.get("properties", {}) and "created" not in part["properties"] and "data" not in part["properties"]:
                part["properties"]["model"] = {"enum": [name, None]}
    for item in doc["paths"].values():
        for parameter in item.get("get", {}).get("parameters", []):
            parameter["schema"] = {"enum": [name, name + "-2"]}
    path = folder / "openapi.yaml"
    path.write_text(yaml.safe_dump(doc))
    return path


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="minfer-schema-"))
    tiny_model.build("qwen3", n_ctx=64, seed=5).write(folder / "tiny.gguf")
    server = Server(PROGRAM, folder / "tiny.gguf", "--n-ctx", 64)
    try:
        command = [sys.executable, "-m", "schemathesis.cli", "run", document(folder, "tiny"), "--url", f"http://127.0.0.1:{server.port}",
                   "--max-examples", EXAMPLES, "--phases", "examples,coverage,fuzzing", "--exclude-checks", LEFT_OUT,
                   "--seed", "1", "--generation-database", ":memory:", "--no-color"]
        status = subprocess.run(command, cwd=folder, timeout=800, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}).returncode
        alive = server.get("/health").status == 200
    finally:
        ended = server.stop()
        shutil.rmtree(folder)
    print(f"schemathesis: {status}, server: {'alive' if alive else 'dead'}, ended with {ended}")
    return int(bool(status) or not alive or ended != 0)


sys.exit(main())
