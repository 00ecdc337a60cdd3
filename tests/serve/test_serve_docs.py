"""docs/serve.md: every snippet is run, one after the other, and shows what it says it shows."""
import os
import pathlib
import re
import subprocess

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "serve.md"


def test_snippets(caisson, home):
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == text.count("```sh") >= 8
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
        for expected in re.findall(r"# → (.*)$", block, re.M):
            assert expected in shown, (number, expected, shown)
