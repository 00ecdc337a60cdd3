"""Tools that lie in the caller's home: version managers and their shims work inside, and home stays hidden."""
import pathlib
import re
import shutil
import subprocess

import pytest

from run_fixtures import *

SAY = "#!/bin/sh\necho {} $*\n"
SECRET = "token = secret\n"


def tool(box, path, text):
    return box.file(box.home / path, text, 0o755)


def path_of(box, *folders):
    return {"PATH": ":".join([*(str(box.home / folder) for folder in folders), "/usr/local/bin:/usr/bin:/bin"])}


def link(box, path, target):
    path = box.home / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def rustup(box):
    """A proxy like rustup's: asks its folder what its name means."""
    tool(box, ".cargo/bin/rustup", '#!/bin/sh\nexec "$RUSTUP_HOME/toolchains/${RUSTUP_TOOLCHAIN:-stable}/bin/${0##*/}" "$@"\n')
    link(box, ".cargo/bin/cargo", "rustup")
    tool(box, ".rustup/toolchains/stable/bin/cargo", SAY.format("stable cargo"))
    tool(box, ".rustup/toolchains/nightly/bin/cargo", SAY.format("nightly cargo"))
    box.file(box.home / ".rustup/settings.toml", 'default_toolchain = "stable"\n')
    box.file(box.home / ".rustup/other", SECRET)
    box.file(box.home / ".cargo/credentials.toml", SECRET)


def test_a_rustup_proxy(far_box):
    rustup(far_box)
    env = path_of(far_box, ".cargo/bin")
    run = far_box.run("cargo", "build", env=env)
    assert run.text == "stable cargo build\n" and run.status == 0 and run.facts == [], run
    run = far_box.run(far_box.home / ".cargo/bin/cargo", "build", env=env | {"RUSTUP_TOOLCHAIN": "nightly"})
    assert run.text == "nightly cargo build\n" and run.facts == [], run


def test_a_rustup_proxy_shows_no_more(far_box):
    rustup(far_box)
    home = far_box.home
    run = text(far_box, f"cargo >/dev/null && ls -A {home} {home}/.rustup {home}/.cargo; cat {home}/.rustup/other",
               path_of(far_box, ".cargo/bin"))
    for name in (".cargo", ".rustup", "toolchains", "settings.toml", "bin"):
        assert name in run.text.split(), run
    assert "credentials.toml" not in run.text and "other" not in run.text.split() and "secret" not in run.text, run


def text(box, words, env):
    """`caisson run -c WORDS`."""
    return box.cli("run", "--rw", "-c", words, env=env)


def test_a_text_sees_what_argv_sees(far_box):
    tool(far_box, ".pyenv/shims/python3", SAY.format("python of the shim"))
    env = path_of(far_box, ".pyenv/shims")
    assert far_box.run("python3", "x.py", env=env).text == "python of the shim x.py\n"
    for words in ("python3 x.py", "cd . && X=1 python3 x.py", "echo $(python3 x.py)", "bash -c 'python3 x.py'"):
        run = text(far_box, words, env)
        assert run.text == "python of the shim x.py\n", run
    run = far_box.run("bash", "-c", "python3 x.py", env=env)
    assert run.text == "python of the shim x.py\n", run


def test_a_path_in_a_text_shows_nothing(far_box):
    program = tool(far_box, "other/bin/tool", SAY.format("hello"))
    far_box.file(far_box.home / "other/lib/secret", SECRET)
    run = text(far_box, f"cat {program} {program.parent}/../lib/secret", path_of(far_box, ".local/bin"))
    assert "secret" not in run.text and run.status == 1, run


def test_a_link_to_the_current_version(far_box):
    """sdkman's candidates/java/current."""
    tool(far_box, ".sdkman/candidates/java/17/bin/java", "#!/bin/sh\ncat ${0%/bin/java}/conf/f\n")
    far_box.file(far_box.home / ".sdkman/candidates/java/17/conf/f", "17\n")
    link(far_box, ".sdkman/candidates/java/current", "17")
    run = far_box.run("java", env=path_of(far_box, ".sdkman/candidates/java/current/bin"))
    assert run.text == "17\n" and run.facts == [], run


@pytest.mark.parametrize("manager, installs, version_file, line", [
    (".asdf", "installs/nodejs", ".tool-versions", "nodejs 20.2\n"),
    (".local/share/mise", "installs/node", ".config/mise/config.toml", '[tools]\nnode = "20.2"\n'),
])
def test_shims_with_a_version_file_at_home(far_box, manager, installs, version_file, line):
    tool(far_box, f"{manager}/shims/node", "#!/bin/sh\necho no version is set\nexit 126\n")
    for version in ("18.1", "20.2"):
        tool(far_box, f"{manager}/{installs}/{version}/bin/node", SAY.format(f"node {version}"))
    far_box.file(far_box.home / version_file, line)
    run = far_box.run("node", "x", env=path_of(far_box, f"{manager}/shims"))
    assert run.text == "node 20.2 x\n" and run.facts == [], run


def test_none_means_none(far_box):
    tool(far_box, ".pyenv/shims/python3", SAY.format("python of the shim"))
    run = far_box.run("python3", "--version", env=path_of(far_box, ".pyenv/shims"),
                      policy=f"version: 1\ntoolchains: none\nworkspace: {{path: {far_box.ws}}}\n")
    assert run.text.startswith("Python 3"), run


def test_the_real_rustup(root_box):
    """Both of root's tool chains, chosen by argument, by name and by path."""
    proxy = shutil.which("cargo")
    if not proxy or pathlib.Path(proxy).resolve().name != "rustup":
        pytest.skip("rustup: no proxy on this machine")
    home = {"HOME": str(pathlib.Path("~").expanduser()), "PATH": f"{pathlib.Path(proxy).parent}:/usr/bin:/bin"}
    for argv in (["cargo", "--version"], [proxy, "--version"], ["rustc", "--version"]):
        run = root_box.run(*argv, env=home)
        assert run.status == 0 and run.facts == [] and run.err == "", run
    chains = subprocess.run(["rustup", "toolchain", "list"], stdout=subprocess.PIPE, encoding="utf-8", stdin=subprocess.DEVNULL)
    if "nightly" in chains.stdout:
        run = root_box.run("cargo", "+nightly", "--version", env=home)
        assert "nightly" in run.text and run.facts == [], run


def test_a_program_of_a_bin_in_home_says_how_to_lend_it(far_box):
    """~/bin is not shown: its parent is home."""
    program = tool(far_box, "bin/mine", SAY.format("mine"))
    env = path_of(far_box, "bin")
    run = far_box.run("mine", "x", env=env)
    hint = f"caisson run -m {program.parent}:{program.parent} -- {program} …\n"
    assert run.status == 127 and run.err.endswith(hint), run
    assert far_box.run(program, "x", env=env, flags=["-m", f"{program.parent}:{program.parent}"]).text == "mine x\n"
    far_box.file("tool", "#!/nonexistent\n", 0o755)
    run = far_box.run("tool", env={"PATH": f"{far_box.ws}:/usr/bin"})
    assert run.status == 127 and "-m" in run.err and "lies in" not in run.err, run


def test_a_tool_that_only_a_makefile_calls_is_named(far_box):
    tool(far_box, ".tools/bin/mytool", SAY.format("mytool"))
    tool(far_box, ".tools/bin/true", SAY.format("not this one"))
    env = path_of(far_box, ".tools/bin")
    told = "caisson: of your PATH not shown inside: ~/.tools/bin"
    far_box.file("Makefile", "all:\n\ttrue\n\tmytool --version\n")
    run = far_box.run("make", env=env, flags=["-v"])
    assert run.status == 2 and f"{told}/mytool\n" in run.err, run
    command = re.search(r"`caisson run -c '([^`]*)'`", run.err).group(1)
    run = far_box.sh(command, env=env, flags=["-v"])
    assert run.status == 0 and "mytool --version\n" in run.text and told not in run.err, run
    assert told not in far_box.run("make", env=env).err, "said to a person only"
    far_box.file("Makefile", "all:\n\tfalse # \x1b[2J\n")
    assert told not in far_box.run("make", env=env, flags=["-v"]).err, "a make that failed of itself"
    far_box.file("script", "mytool\n")
    run = far_box.run("sh", "script", env=env, flags=["-v"])
    assert run.status == 127 and f"{told}\n" in run.err, run
    (far_box.ws / "Makefile").unlink()
    (far_box.ws / "Makefile").symlink_to(far_box.home / ".tools/bin/mytool")
    assert told not in far_box.run("make", env=env, flags=["-v"]).err, "no link of a project's is followed"
