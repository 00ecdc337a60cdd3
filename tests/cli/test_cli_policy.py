"""The policy file: where it is found, what is refused, what trust is."""
import json
import os
import pty
import subprocess

import pytest

LOOSE = "version: 1\nlimits: {command: 10m}\n"
TIGHT = "version: 1\nlimits: {command: 5s}\n"


def limit(answer):
    assert answer.status == 0, answer
    return next(line for line in answer.out.splitlines() if line.startswith("limits.command: ")).split()[1]


def test_without_a_file_defaults_hold(cli):
    answer = cli("policy", "show")
    assert answer.status == 0 and "built-in defaults" in answer.out
    assert limit(cli("policy", "explain")) == "45s"
    assert cli("policy", "show", "--json").json()["path"] is None


def test_init_check_set(cli, project):
    assert cli("policy", "init").status == 0
    again = cli("policy", "init")
    assert again.status == 1 and "--force" in again.err
    assert cli("policy", "init", "--force").status == 0
    assert cli("policy", "check").out == f"{project}/caisson.yaml: good\n"
    assert cli("policy", "set", "limits.command=10m", "limits.processes=9").status == 0
    text = (project / "caisson.yaml").read_text()
    assert "# " in text, "comments stay"
    assert limit(cli("policy", "explain")) == "10m", "what init and set wrote is the caller's own: trusted"
    assert cli("policy", "set", "limits.command=soon").status == 1
    assert cli("policy", "set", "nonsense").status == 1
    assert (project / "caisson.yaml").read_text() == text, "a wrong value changes nothing"
    assert sorted(os.listdir(project)) == ["caisson.yaml"], "no temporary file stays"


def test_set_does_not_vouch_for_an_untrusted_file(cli, project):
    (project / "caisson.yaml").write_text(LOOSE)
    assert cli("policy", "set", "limits.processes=9").status == 0
    assert cli("policy", "show", "--json").json()["trusted"] is False


def test_check_names_line_and_column(cli, project):
    (project / "caisson.yaml").write_text("version: 1\nlimts: {}\n")
    answer = cli("policy", "check")
    assert answer.status == 1 and f"{project}/caisson.yaml:2:1" in answer.err
    assert cli("policy", "check", "--json").json()["error"]["stage"] == "policy"


def test_found_here_and_above_but_not_in_home(cli, home, project):
    (project / "caisson.yaml").write_text(TIGHT)
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    assert limit(cli("policy", "explain", cwd=deep)) == "5s"
    (project / "caisson.yaml").unlink()
    (home / "caisson.yaml").write_text(TIGHT)
    assert limit(cli("policy", "explain", cwd=deep)) == "45s"


def test_project_is_the_nearest_marked_folder(cli, home, project):
    deep = project / "a" / "b"
    deep.mkdir(parents=True)

    def workspace(cwd):
        lines = cli("policy", "explain", cwd=cwd).out.splitlines()
        return next(line for line in lines if line.startswith("workspace.path: ")).split()[1]

    assert workspace(deep) == str(deep)
    (project / ".git").mkdir()
    assert workspace(deep) == str(project)
    (home / ".git").mkdir()
    (project / ".git").rmdir()
    assert workspace(deep) == str(deep), "home is never the project"


def needs_root():
    if os.geteuid() != 0:
        pytest.skip("root: files of another user are made by the test")


def test_a_stranger_s_marker_does_not_count(cli, project):
    needs_root()
    deep = project / "a"
    deep.mkdir()
    (project / ".git").mkdir()
    os.chown(project / ".git", 4321, 4321)
    assert f"workspace.path: {deep} " in cli("policy", "explain", cwd=deep).out


@pytest.mark.parametrize("command", [["check"], ["show"], ["explain"], ["trust", "--yes"]])
def test_what_a_search_refuses(cli, project, tmp_path, command):
    path = project / "caisson.yaml"
    path.mkdir()
    assert "is a folder" in cli("policy", *command).err
    path.rmdir()
    os.mkfifo(path)
    assert "not a regular file" in cli("policy", *command).err
    path.unlink()
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    assert "1 MiB" in cli("policy", *command).err
    path.write_text(TIGHT)
    path.chmod(0o664)
    answer = cli("policy", *command)
    assert answer.status == 1 and f"chmod go-w {path}" in answer.err


def test_a_search_follows_no_link(cli, project, tmp_path):
    (tmp_path / "elsewhere.yaml").write_text(TIGHT)
    (project / "caisson.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    answer = cli("policy", "explain")
    assert answer.status == 1 and "symbolic link" in answer.err
    assert limit(cli("policy", "explain", "--policy", "caisson.yaml")) == "5s"


def test_a_stranger_s_file_is_refused_until_named(cli, project):
    needs_root()
    (project / "caisson.yaml").write_text(TIGHT)
    os.chown(project / "caisson.yaml", 4321, 4321)
    answer = cli("policy", "explain")
    assert answer.status == 1 and "another user" in answer.err and "--policy" in answer.err
    assert limit(cli("policy", "explain", "--policy", "caisson.yaml")) == "5s"


def test_explicit_files(cli, project, tmp_path):
    missing = cli("policy", "explain", "--policy", "none.yaml")
    assert missing.status == 1 and "policy init" in missing.err
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in cli("policy", "explain", "--policy", tmp_path / "pipe").err
    (tmp_path / "p.yaml").write_text(LOOSE)
    assert limit(cli("policy", "explain", "--policy", tmp_path / "p.yaml")) == "10m"
    shown = cli("policy", "show", "--json", "--policy", tmp_path / "p.yaml").json()
    assert shown["trusted"] and shown["explicit"] and shown["text"] == LOOSE


# ---- trust -----------------------------------------------------------------------------------

def test_found_may_only_tighten_until_trusted(cli, project, home):
    path = project / "caisson.yaml"
    path.write_text(TIGHT)
    assert limit(cli("policy", "explain")) == "5s"
    path.write_text(LOOSE)
    refused = cli("policy", "explain")
    assert refused.status == 1 and "trust" in refused.err
    asked = cli("policy", "trust")
    assert asked.status == 1 and "--yes" in asked.err and "never trusted" in asked.out and LOOSE in asked.out
    assert cli("policy", "explain").status == 1
    assert cli("policy", "trust", "--yes").status == 0
    assert limit(cli("policy", "explain")) == "10m"
    store = home / ".config" / "caisson" / "trusted"
    assert store.stat().st_mode & 0o777 == 0o600
    entry = json.loads(store.read_text())["trusted"][-1]
    assert entry["path"] == str(path) and entry["text"] == LOOSE
    path.write_text(LOOSE.replace("10m", "11m"))
    assert cli("policy", "explain").status == 1, "another byte, and it is asked for again"
    shown = cli("policy", "trust", "--yes").out
    assert "-limits: {command: 10m}" in shown and "+limits: {command: 11m}" in shown
    assert "already trusted" in cli("policy", "trust").out
    path.write_text(LOOSE)
    assert limit(cli("policy", "explain")) == "10m", "an earlier version stays trusted"


def test_trust_is_bound_to_the_path(cli, project, home):
    (project / "caisson.yaml").write_text(LOOSE)
    assert cli("policy", "trust", "--yes").status == 0
    other = home / "other"
    other.mkdir()
    (other / "caisson.yaml").write_text(LOOSE)
    assert cli("policy", "explain", cwd=other).status == 1


def test_a_bad_file_cannot_be_trusted(cli, project):
    (project / "caisson.yaml").write_text("version: 2\n")
    assert cli("policy", "trust", "--yes").status == 1


@pytest.mark.parametrize("spoil", [
    lambda store: store.chmod(0o644), lambda store: store.write_text("{}"), lambda store: store.write_text("["),
])
def test_a_store_that_cannot_be_believed(cli, project, home, spoil):
    (project / "caisson.yaml").write_text(LOOSE)
    assert cli("policy", "trust", "--yes").status == 0
    store = home / ".config" / "caisson" / "trusted"
    spoil(store)
    answer = cli("policy", "explain")
    assert answer.status == 1 and str(store) in answer.err and "remove it" in answer.err


def test_a_project_cannot_bring_its_trust_along(cli, project, home):
    (project / "caisson.yaml").write_text(LOOSE)
    assert cli("policy", "trust", "--yes").status == 0
    (home / ".config" / "caisson").rename(project / "caisson")
    answer = cli("policy", "explain", env={"XDG_CONFIG_HOME": str(project)})
    assert answer.status == 1 and "XDG_CONFIG_HOME" in answer.err


def test_escapes_in_a_file_do_not_reach_the_terminal(cli, project):
    (project / "caisson.yaml").write_text("version: 1\n# a\u202eb\n")
    out = cli("policy", "trust").out
    assert "\u202e" not in out and "\\u{202e}" in out


def on_terminal(caisson, argv, cwd, env, typed):
    main, sub = pty.openpty()
    child = subprocess.Popen([caisson, *argv], cwd=cwd, env=env, stdin=sub, stdout=sub, stderr=sub)
    os.close(sub)
    os.write(main, typed)
    out = b""
    try:
        while chunk := os.read(main, 4096):
            out += chunk
    except OSError:
        pass
    os.close(main)
    return child.wait(timeout=30), out.decode()


def test_a_person_is_asked(caisson, cli, project, env):
    (project / "caisson.yaml").write_text(LOOSE)
    status, out = on_terminal(caisson, ["policy", "trust"], project, env, b"n\n")
    assert status == 1 and "Trust it? [y/N]" in out and "nothing changed" in out
    assert cli("policy", "explain").status == 1
    status, out = on_terminal(caisson, ["policy", "trust"], project, env, b"y\n")
    assert status == 0
    assert limit(cli("policy", "explain")) == "10m"


def test_colours_only_on_a_terminal_that_wants_them(caisson, cli, env, project):
    assert "\033" not in cli("why", env={"TERM": "xterm"}).err
    for more, wanted in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                         ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
        _, out = on_terminal(caisson, ["why"], project, env | more, b"")
        assert ("\033[31m" in out) is wanted, more
    _, out = on_terminal(caisson, ["why", "--no-color"], project, env | {"TERM": "xterm"}, b"")
    assert "\033" not in out


def test_effective_policy_is_a_policy(cli, project, tmp_path):
    shown = cli("policy", "show", "--effective", "--timeout", "7s", "--json").json()["text"]
    (tmp_path / "again.yaml").write_text(shown)
    assert cli("policy", "check", tmp_path / "again.yaml").status == 0
    assert limit(cli("policy", "explain", "--policy", tmp_path / "again.yaml")) == "7s"


def test_a_refusal_is_told_with_the_nearest_allowed(cli, project):
    (project / "data").mkdir()
    (project / "caisson.yaml").write_text("version: 1\nlimits: {command: 20s}\nenv: {pass: [LANG, EXTRA]}\n"
                                          "mounts: [{host: data, at: /data}]\n")
    flags = ["--policy", "caisson.yaml", "--timeout", "10m", "-l", "memory=8MiB", "-m", "/:/x", "-m", "data:/data",
             "-e", "SECRET=hush", "-e", "EXTRA", "-n", "allow", "--tier", "assisted", "--", "true"]
    answer = cli("policy", "explain", *flags)
    assert answer.status == 1 and answer.err.startswith("caisson: ") and "hush" not in answer.out + answer.err
    head, rules = answer.out.split("\ngives\n")
    assert head.splitlines() == ["nearest allowed, without", "  --network allow", "  --limit command=10m", "  --env SECRET",
                                 "  --mount /:/x"]
    rules = rules.splitlines()
    assert f"limits.command: 20s  <- {project}/caisson.yaml:2:19" in rules
    assert "limits.memory: 8MiB  <- --limit memory" in rules and "tier: assisted  <- --tier" in rules
    told = cli("policy", "explain", "--json", *flags).json()
    assert told["error"]["code"] == "eperm" and told["nearest"]["rules"] == rules
    assert [entry["flag"] for entry in told["refused"]] == [line.strip() for line in head.splitlines()[1:]]
    assert "root of the file system" in told["refused"][-1]["reason"]


def test_nothing_is_near_where_nothing_is_allowed(cli, home, project):
    answer = cli("policy", "explain", "--timeout", "10m", "--", "true", cwd=home)
    assert answer.status == 1 and answer.out == "" and "home" in answer.err
    answer = cli("policy", "explain", "-w", "project", "--timeout", "10m", "--", "true", cwd=home)
    assert answer.status == 1 and "45s" in answer.err and f"workspace.path: {home}/project" in answer.out


def test_home_as_current_folder_is_refused_with_a_way_out(cli, home):
    answer = cli("policy", "explain", "--", "true", cwd=home)
    assert answer.status == 1 and "workspace" in answer.err.lower()


def test_set_in_a_file_that_begins_with_an_empty_line(cli, project):
    (project / "caisson.yaml").write_text("\nversion: 1\n")
    for setting in ("tier=balanced", "limits.memory=512MiB"):
        answer = cli("policy", "set", setting)
        assert answer.status == 0, answer
    assert (project / "caisson.yaml").read_text().startswith("\nversion: 1\n")


def test_a_byte_order_mark_is_named(cli, project):
    (project / "caisson.yaml").write_text("\ufeffversion: 1\nlimits: {memory: 1GiB}\n")
    answer = cli("policy", "check")
    assert answer.status == 1 and "caisson.yaml:1:1: a byte order mark, expected YAML without one" in answer.err, answer
