"""The OpenAPI document against the server that tells it: cases made from it by schemathesis, within a time.

Its check that whatever fits the schema is accepted is left out: a schema does not say which paths or tags a sandbox has."""
import os
import subprocess
import sys

import pytest

PINNED = "schemathesis==4.32.5"
CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
          "response_schema_conformance", "negative_data_rejection", "unsupported_method", "ignored_auth"]
HEAVY = os.environ.get("CSN_SDK_HEAVY") == "1"


@pytest.fixture(scope="module")
def program(build_folder):
    folder = build_folder / f"schemathesis-{PINNED[14:]}"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=120)
        subprocess.run([folder / "bin/pip", "-q", "--disable-pip-version-check", "install", "--only-binary", ":all:", PINNED],
                       check=True, timeout=300)
        (folder / "ready").touch()
    return folder / "bin" / "st"


@pytest.fixture
def no_forks(run_caisson):
    """What `fork` made belongs to the user, and outlives the server."""
    yield
    for name in run_caisson("ps", "-q").stdout.split():
        run_caisson("down", name)


def test_what_the_document_says_holds(server, program, tmp_path, no_forks):
    server.open(name="work")
    base = f"http://127.0.0.1:{server.port}"
    phases, count, seconds = ("coverage,fuzzing", 50, 300) if HEAVY else ("fuzzing", 3, 12)
    argv = [program, "run", f"{base}/v1/openapi.json", "--url", base, "-H", f"Authorization: Bearer {server.token}",
            "--phases", phases, "--max-examples", str(count), "--checks", ",".join(CHECKS), "--suppress-health-check", "all",
            "--request-timeout", "30", "--no-color", "--exclude-path-regex", "/(wait|logs|events)$", "--warnings", "off"]
    # Cases are made from the same seed each time, but for the longer run.
    argv += [] if HEAVY else ["--generation-deterministic"]
    begun = subprocess.Popen(argv, cwd=tmp_path, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)}, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said, _ = begun.communicate(timeout=10 * seconds)
    finally:
        begun.kill()
        begun.wait()
    assert begun.returncode == 0, said[-6000:]
    assert server.call(server.open(), "exec", command="true").json()["exit_code"] == 0
