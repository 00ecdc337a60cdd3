"""docs/sandboxes.md: its commands, as they stand there and in their order, in a project that is like the one it speaks of."""
import re

import pytest
from snippets import TOP, snippets

PAGE = "docs/sandboxes.md"
WORK, POOL = snippets(PAGE, "sh")
SENTENCES = re.findall(r"`(caisson (?:exec|cp) [^`]*\bwork\b[^`]*)`", (TOP / PAGE).read_text(encoding="utf-8"))
POLICY = "version: 1\nworkspace: {mode: cow}\nnetwork: {mode: loopback}\nmount_roots: [../data]\n"
MAKEFILE = "test:\n\t@mkdir -p build; tar cf build/out.tar src; echo '/* tested */' >>src/a.c; echo made\n"
SERVER = "#!/bin/sh\nexec python3 -m http.server --bind 127.0.0.1 8080\n"


@pytest.fixture
def work(sh, project):
    """The project; what is left of its sandboxes ends with it."""
    for name in ("src", "data", ".git/hooks", "../data"):
        (project / name).mkdir(parents=True)
    for name, text in {"Makefile": MAKEFILE, "serve": SERVER, "src/a.c": "int a;\n", "data/d": "d\n", "../data/lent": "lent\n",
                       ".envrc": "export A=1\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/hooks/post": "#!/bin/sh\n"}.items():
        (project / name).write_text(text)
    (project / "serve").chmod(0o755)
    yield project
    sh("caisson ps -q | xargs -r -n 1 caisson down; caisson pool stop ready 2>&1 || true")


def told(sh, block, given=None):
    """{command: what it prints}, line by line."""
    lines = [re.sub(r" +# .*$", "", line) for line in block.splitlines()]
    return {line: sh(f"{line} <<<'{(given or {}).get(line, '')}'") for line in lines}


def test_one_that_stays(sh, work):
    (work / "caisson.yaml").write_text(POLICY)
    sh("caisson policy trust --yes")
    said = told(sh, WORK, {"caisson shell work": "cat src/a.c; exit 0"})
    assert len(said) >= 15 and said["caisson up work --cow -n loopback"].endswith("work\n")
    assert said["caisson exec work -- make test"] == "made\n"
    assert said["caisson read work src/a.c"] == "int a;\n/* tested */\n"
    assert said["caisson shell work"].endswith(said["caisson read work src/a.c"])
    assert sh("tar tf out.tar") == "src/\nsrc/a.c\n"
    assert "+/* tested */" in said["caisson diff work"] and "build/out.tar" in said["caisson diff work"]
    assert (work / "src/a.c").read_text() == "int a;\n/* tested */\n" and not (work / "build").exists()
    assert "work" in said["caisson ps"] and "balanced" in said["caisson stats work"]
    assert sh("caisson ps -q") == ""


def test_commands_within_sentences(sh, work):
    """One after the other: what cp brings out, and that a command's own path is meant as it is typed."""
    assert len(SENTENCES) >= 6
    sh("caisson up work --cow; caisson exec work -- make test")
    said = {line: sh(f"mkdir -p out; cd out; cp -r ../data .; {line}") for line in SENTENCES}
    assert said["caisson exec work -c 'echo $TMPDIR'"] == "/tmp\n"
    assert {path.name for path in (work / "out").iterdir()} >= {"out.tar", ".envrc", "x", ".git"}
    assert sh("caisson exec work -- cat /tmp/data/d") == "d\n"


def test_a_pool(sh, work):
    start, *rest = POOL.splitlines(keepends=True)
    told(sh, start)
    sh("until caisson pool status ready | grep -q '4 of 4 ready'; do sleep 0.1; done")  # one that waits is there to take
    said = told(sh, "".join(rest))
    assert len(said) == 3 and "work" in said["caisson up work --pool ready"]
    assert "1 taken" in said["caisson pool status ready"], said
    assert sh("caisson exec work -- echo it goes on") == "it goes on\n"
