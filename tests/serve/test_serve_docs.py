"""docs/serve.md: every snippet is run, one after the other, and shows what it says it shows."""
import os
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "docs")]
from snippets import promised, snippets  # noqa: E402


def test_snippets(caisson, home):
    blocks = snippets("docs/serve.md", "sh")
    assert len(blocks) >= 8
    script = ["set -eu", "trap 'kill %1 2>/dev/null; cat block* >&2' EXIT"]
    for number, block in enumerate(blocks):
        script.append(f"{{\n{block}}} > block{number}")
    (home.project / "data.txt").write_text("x\n", encoding="ascii")
    env = {**home.env, "PATH": f"{os.path.dirname(caisson)}:{home.env['PATH']}"}
    done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=home.project, env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for number, block in enumerate(blocks):
        shown = (home.project / f"block{number}").read_text(encoding="utf-8")
        for expected in promised(block):
            assert expected in shown, (number, expected, shown)
