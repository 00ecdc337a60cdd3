"""`make install` and `make uninstall` for real, into a folder of their own: what is there, that it works
from there, and that nothing is left."""
import os
import pathlib
import shutil
import subprocess
import sysconfig

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
LIB = os.path.join("lib", sysconfig.get_config_var("MULTIARCH") or "")  # as meson chooses it on Debian
FILES = {
    "bin/caisson": 0o755,
    "include/caisson.h": 0o644,
    "include/caisson_gates.h": 0o644,
    f"{LIB}/libcaisson.a": 0o644,
    f"{LIB}/libcaisson.so": 0o755,
    f"{LIB}/libcaisson.so.0": 0o755,
    f"{LIB}/libcaisson.so.0.1.0": 0o755,
    f"{LIB}/pkgconfig/caisson.pc": 0o644,
    "libexec/caisson/caisson-agent": 0o755,
    "libexec/caisson/caisson-mcp": 0o755,
    "libexec/caisson/caisson-lua": 0o755,
    "libexec/caisson/caisson-search": 0o755,
    "libexec/caisson/bin/caisson-report": 0o755,
    "libexec/caisson/caisson-serve": 0o755,
    "share/bash-completion/completions/caisson.bash": 0o644,
    "share/fish/vendor_completions.d/caisson.fish": 0o644,
    "share/man/man1/caisson.1": 0o644,
    "share/zsh/site-functions/_caisson": 0o644,
}


def run(argv, **more):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=300, encoding="utf-8", **more)


def make(target, build, stage, prefix="/usr"):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = run(["make", "-C", str(TOP), target, f"BUILD={build}", f"DESTDIR={stage}", f"prefix={prefix}"], env=env)
    assert done.returncode == 0, done.stdout
    return done.stdout


def files(folder):
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o7777 for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture(scope="module")
def stage(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stage")
    make("install", build, folder)
    return folder


def test_what_is_installed(stage):
    assert files(stage / "usr") == FILES
    assert os.listdir(stage) == ["usr"]


def test_it_runs_from_there(stage, env, project):
    """With its own agent: the build folder's is not asked."""
    # Whatever wall there is: where AppArmor closes user namespaces, a staged program has no profile.
    (project / "caisson.yaml").write_text("version: 1\ntier: auto\n")
    argv = [stage / "usr/bin/caisson", "run", "--policy", "caisson.yaml", "--", "echo", "from there"]
    done = run(argv, cwd=project, env=env)
    assert (done.returncode, done.stdout) == (0, "from there\n")
    agent = stage / "usr/libexec/caisson/caisson-agent"
    agent.rename(agent.with_suffix(".away"))
    try:
        done = run(argv, cwd=project, env=env)
        assert done.returncode == 125 and "caisson-agent is missing" in done.stdout
    finally:
        agent.with_suffix(".away").rename(agent)


def test_pages_and_scripts_are_the_programs_own(stage, env):
    for path, words in {"share/man/man1/caisson.1": ["help", "--man"], "share/zsh/site-functions/_caisson": ["completion", "zsh"],
                        "share/fish/vendor_completions.d/caisson.fish": ["completion", "fish"],
                        "share/bash-completion/completions/caisson.bash": ["completion", "bash"]}.items():
        assert (stage / "usr" / path).read_text() == run([stage / "usr/bin/caisson", *words], env=env).stdout, path


def test_uninstall_leaves_nothing(build, stage, tmp_path):
    copy = tmp_path / "stage"
    make("install", build, copy, "/opt/some where")
    assert files(copy / "opt/some where") == FILES
    kept = copy / "opt/some where/share/man/man1/other.1"
    kept.write_text("")
    out = make("uninstall", build, copy, "/opt/some where")
    assert out.count("removing ") == len(FILES)
    assert files(copy) == {str(kept.relative_to(copy)): 0o644}
    kept.unlink()
    make("install", build, copy, "/usr")
    make("uninstall", build, copy, "/usr")
    assert [str(path.relative_to(copy)) for path in copy.rglob("*") if "opt" not in str(path)] == []
    assert make("uninstall", build, copy, "/usr").count("removing ") == 0


def test_uninstall_removes_by_the_prefix_it_is_told(build, stage):
    """Not by the one that the build folder had last."""
    make("uninstall", build, stage, "/usr/local")
    assert files(stage / "usr") == FILES


def test_uninstall_without_a_build_folder(tmp_path):
    done = run(["make", "-C", str(TOP), "uninstall", f"BUILD={tmp_path}/none", f"DESTDIR={tmp_path}"])
    assert done.returncode != 0 and "is no build folder" in done.stdout and "Traceback" not in done.stdout


def test_completion_is_found_where_shells_look(stage, env, project):
    """bash and fish search the folders of XDG_DATA_DIRS."""
    env = env | {"XDG_DATA_DIRS": f"{stage}/usr/share:/usr/share", "PATH": f"{stage}/usr/bin:{env['PATH']}"}
    if os.path.exists("/usr/share/bash-completion/bash_completion"):
        done = run(["bash", "-c", "source /usr/share/bash-completion/bash_completion; _completion_loader caisson; complete -p caisson"],
                   env=env, cwd=project)
        assert done.stdout == "complete -F _caisson caisson\n"
    if shutil.which("fish"):
        done = run(["fish", "-c", "complete -C 'caisson policy tr'"], env=env, cwd=project)
        assert done.stdout.split("\t")[0] == "trust"


def test_manual_page_is_found(stage, env):
    if not shutil.which("man"):
        pytest.skip("man: not installed")
    done = run(["man", "--warnings", "-M", f"{stage}/usr/share/man", "caisson"], env=env | {"LC_ALL": "C.UTF-8", "MANWIDTH": "96"})
    assert done.returncode == 0 and "caisson policy set [FLAGS] KEY=VALUE" in done.stdout
    assert not [line for line in done.stdout.splitlines() if "warning" in line.lower()]
