"""The OpenAPI document: valid, and what it says of answers is so."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

PINNED = ["openapi-spec-validator==0.7.1", "jsonschema==4.23.0"]
CHECK = """
import json, sys
from openapi_spec_validator import OpenAPIV31SpecValidator
import jsonschema
told = json.load(sys.stdin)
OpenAPIV31SpecValidator(told["document"]).validate()
for schema, answer in told["answers"]:
    reference = {"$ref": f"#/components/schemas/{schema}", "components": told["document"]["components"]}
    jsonschema.Draft202012Validator(reference).validate(answer)
print("valid", len(told["answers"]))
"""


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """A Python with the validator: kept in the build folder."""
    build = os.environ.get("CAISSON_BUILD")
    folder = pathlib.Path(build) / "serve-venv" if build else tmp_path_factory.mktemp("venv")
    program, mark = folder / "bin" / "python", folder / "ready"
    if not mark.exists():
        made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True, check=False)
        if made.returncode != 0 and not os.environ.get("CSN_CI"):
            pytest.skip("python3-venv: missing")
        assert made.returncode == 0, made.stdout + made.stderr
        subprocess.run([program, "-m", "pip", "-q", "--disable-pip-version-check", "install", *PINNED], check=True, timeout=120)
        mark.touch()
    return str(program)


def test_the_document_is_valid_and_so_are_answers(server, python):
    document = server.ask("GET", "/v1/openapi.json").json()
    name = server.open()

    def call(verb, **body):
        return server.call(name, verb, **body).json()

    answers = [
        ("Server", server.ask("GET", "/v1").json()),
        ("Sandboxes", server.ask("GET", "/v1/sandboxes").json()),
        ("Sandbox", server.ask("GET", f"/v1/sandboxes/{name}").json()),
        ("Exec", call("exec", command="echo $'\\xff'; echo x > /usr/x; exit 1")),
        ("Exec", call("exec", argv=["missing-program"])),
        ("Exec", call("exec", argv=["sleep", "9"], detach=True, tag="t")),
        ("Commands", call("ps")),
        ("Logs", call("logs", tag="t")),
        ("Wait", call("wait", tag="t", timeout_ms=1)),
        ("Stat", call("stat", path=".")),
        ("List", call("list", path="/")),
        ("Glob", call("glob", pattern="*")),
        ("Grep", call("grep", pattern="x")),
        ("Diff", call("diff")),
        ("Commit", call("commit", dry_run=True)),
        ("Copied", call("snapshot", tag="s")),
        ("Stats", call("stats")),
        ("Problem", call("read", path="missing")),
        ("Runs", server.ask("GET", "/v1/runs").json()),
    ]
    run = server.ask("GET", f"/v1/sandboxes/{name}").json()["run_id"]
    answers.append(("Run", server.ask("GET", f"/v1/runs/{run}").json()))
    assert server.ask("DELETE", f"/v1/sandboxes/{name}").status == 204
    answers += [("Run", server.ask("GET", f"/v1/runs/{run}").json()),
                ("Result", server.ask("GET", f"/v1/runs/{run}/result").json()),
                ("Verdict", server.ask("GET", f"/v1/runs/{run}/verify").json())]
    told = subprocess.run([python, "-c", CHECK], input=json.dumps({"document": document, "answers": answers}),
                          capture_output=True, text=True, timeout=60, check=False)
    assert told.stdout == f"valid {len(answers)}\n", told.stderr


def test_every_route_of_the_document_is_dispatched(server):
    document = server.ask("GET", "/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        for method in methods:
            reply = server.ask(method.upper(), path.replace("{name}", "nobody").replace("{id}", "nothing"),
                               {} if method == "post" and path != "/v1/sandboxes" else None)
            if reply.headers["Content-Type"] == "application/problem+json":
                assert reply.json()["code"] not in ("no_route", "method"), (method, path)
