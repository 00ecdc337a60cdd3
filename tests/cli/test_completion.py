"""Completion in the shells themselves: bash and zsh at a terminal with a real TAB, fish by its own
`complete -C`. What is expected is the same for all three; where they differ it is said."""
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import time

import pytest

DEADLINE_S = 20

# Where the shell notes what it would offer, and what our command was given after Enter.
BASH = r"""
PS1=ready; PS2=; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
@bash_completion@
source @script@
_watched() { _caisson "$@"; printf '%s\n' "${COMPREPLY[@]}" >@offered@; }
complete -F _watched caisson
ask() { COMPREPLY=(); }
"""
ZSH = r"""
PS1=ready; PS2=; unsetopt zle_bracketed_paste beep; setopt no_list_beep
fpath=(@folder@ $fpath)
autoload -Uz compinit && compinit -u -D
zstyle ':completion:*' list-prompt ''; zstyle ':completion:*' verbose yes
compadd() {
	if [[ " ${(j: :)@[1,(i)--]} " == *' -'[OAD]' '* ]]; then builtin compadd "$@"; return; fi
	local -a hits
	builtin compadd -A hits "$@"
	local hit; for hit in $hits; do print -r -- $IPREFIX$hit >>@offered@; done
	builtin compadd "$@"
}
"""


class Terminal:
    """A shell at a terminal of its own."""

    def __init__(self, argv, cwd, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        self.seen = b""

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, done):
        end = time.monotonic() + DEADLINE_S
        while not done():
            left = end - time.monotonic()
            assert left > 0, self.seen.decode(errors="replace")
            if select.select([self.fd], [], [], min(left, 0.05))[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    break

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Shell:
    """ask(line): (what is offered for the last word, what the word became)."""

    def __init__(self, name, folder, caisson, env):
        self.name, self.folder, self.env = name, folder, env
        script = subprocess.run([caisson, "completion", name], stdout=subprocess.PIPE, check=True, timeout=30).stdout
        self.script = folder / ("_caisson" if name == "zsh" else f"caisson.{name}")
        self.script.write_bytes(script)
        self.given, self.offered, self.rc = folder / "given", folder / "offered", folder / "rc"

    def ask(self, line, cwd):
        return self.ask_fish(line, cwd) if self.name == "fish" else self.ask_at_terminal(line, cwd)

    def ask_fish(self, line, cwd):
        text = f"source {self.script}; complete -C {shlex.quote(line)}"
        done = subprocess.run(["fish", "--no-config", "-c", text], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE_S, encoding="utf-8")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        offers = [row.split("\t")[0] for row in done.stdout.splitlines()]
        return set(offers), offers[0] if len(offers) == 1 else None

    def ask_at_terminal(self, line, cwd):
        for file in (self.given, self.offered):
            file.unlink(missing_ok=True)
        loader = "source /usr/share/bash-completion/bash_completion" if self.env.get("WITH_PACKAGE") else ":"
        text = {"bash": BASH, "zsh": ZSH}[self.name]
        for key, value in {"script": self.script, "offered": self.offered, "folder": self.folder,
                           "bash_completion": loader}.items():
            text = text.replace(f"@{key}@", str(value))
        # After Enter our command says what it was given; `command caisson` is still the program.
        text += f"\ncaisson() {{ printf '%s\\n' \"$@\" >{self.given}.new; mv {self.given}.new {self.given}; }}\n"
        self.rc.write_text(text)
        (self.folder / ".zshrc").write_text(text)
        argv = ["bash", "--rcfile", str(self.rc), "-i"] if self.name == "bash" else ["zsh", "-d", "-i"]
        terminal = Terminal(argv, cwd, self.env | {"ZDOTDIR": str(self.folder), "TERM": "xterm"})
        try:
            terminal.wait_for(lambda: b"ready" in terminal.seen)
            terminal.send(line + "\t\x05\r")
            terminal.wait_for(self.given.exists)
        finally:
            terminal.close()
        offers = set(self.offered.read_text().split("\n")) - {""} if self.offered.exists() else set()
        if self.name == "bash":
            # Bash is given what follows the last `=` or `:` only.
            kept = re.match(r"(.*[=:])?", line.split(" ")[-1])[0]
            offers = {kept + offer for offer in offers}
        return {offer.rstrip() for offer in offers}, self.given.read_text()[:-1].split("\n")[-1]


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request, caisson, env, tmp_path):
    if not shutil.which(request.param):
        pytest.skip(f"{request.param}: not installed")
    bin_dir, folder = tmp_path / "bin", tmp_path / "shell"
    bin_dir.mkdir()
    folder.mkdir()
    (bin_dir / "caisson").symlink_to(caisson)
    return Shell(request.param, folder, caisson, env | {"PATH": f"{bin_dir}:{env['PATH']}", "LC_ALL": "C.UTF-8"})


@pytest.fixture
def place(project):
    """Files whose names shells have to quote."""
    (project / "one folder").mkdir()
    (project / "one folder" / "inner.yaml").touch()
    (project / "notes.yaml").touch()
    return project


TIERS = {"local", "virtual", "auto", "balanced", "assisted", "strict"}
LIMITS = {"command=", "budget=", "startup=", "idle=", "cpus=", "memory=", "processes=", "output=", "open_files=", "scratch="}
WORDS = [
    ("", {"run", "why", "doctor", "policy", "runs", "version", "help", "completion", "up", "exec", "read", "write", "edit", "glob", "cp", "shell",
          "grep", "logs", "wait", "kill", "diff", "commit", "snapshot", "fork", "ps", "stats", "mount", "pool", "gc", "down", "monitor", "port", "mcp", "serve",
          "approve", "job", "eval"}),
    ("policy ", {"init", "set", "check", "show", "explain", "trust"}),
    ("runs ", {"ls", "show", "verify", "diff", "commit", "rm", "gc"}),
    ("run --tier ", TIERS),
    ("run --tier=", {f"--tier={tier}" for tier in TIERS}),
    ("run --rw --tier=a", {"--tier=auto", "--tier=assisted"}),
    ("run --backend ", {"any", "process", "landlock", "local", "docker", "podman", "oci", "gvisor", "command"}),
    ("run -q --network l", {"loopback"}),
    ("run -n ", {"none", "loopback", "allow", "engine"}),
    ("run -qn l", {"loopback"}),
    ("run --tty ", {"auto", "always", "never"}),
    ("run --at ", {"host"}),
    ("run --limit ", LIMITS),
    ("run --limit=co", {"--limit=command="}),
    ("run --limit command=1m -l m", {"memory="}),
    ("run --limit command=", set()),
    ("run --workspace notes:", {"notes:ro", "notes:rw", "notes:cow"}),
    ("run --mount /etc:/etc:r", {"/etc:/etc:ro", "/etc:/etc:rw"}),
    ("run --tag ", set()),
    ("policy show --tier=st", {"--tier=strict"}),
    ("policy set limits.c", {"limits.command=", "limits.cpus="}),
    ("policy set tier=st", {"tier=strict"}),
    ("policy set tier=strict network.mode=", {f"network.mode={word}" for word in ("none", "loopback", "allow", "engine")}),
    ("policy set env.git_identity=", {"env.git_identity=true", "env.git_identity=false"}),
    ("policy set mounts", set()),
    ("help po", {"policy", "pool", "port"}),
    ("completion ", {"bash", "zsh", "fish"}),
    ("doctor ", set()),
    ("policy check notes.yaml ", set()),
]


@pytest.mark.parametrize("typed, expected", WORDS, ids=[typed or "nothing" for typed, _ in WORDS])
def test_words(shell, place, typed, expected):
    if shell.name == "fish" and typed == "run -qn l":
        expected = {"-qnloopback", "loopback"} & shell.ask("caisson " + typed, place)[0] or set()
    offered = shell.ask("caisson " + typed, place)[0]
    if shell.name == "zsh" and not expected:  # its way: where no word may stand, the flags
        offered = {offer for offer in offered if not offer.startswith("-")}
    assert offered == expected


def test_flags_of_each_command(shell, cli, place):
    page = cli("help", "--markdown").out
    for section in re.split(r"^## caisson ", page, flags=re.M)[1:]:
        name, flags = section.splitlines()[0], set(re.findall(r"^\| `(?:-\w, )?(--[a-z-]+)", section, re.M))
        if name not in ("run", "policy explain", "policy set", "runs gc", "doctor", "completion"):
            continue
        offered = {offer.rstrip("=") for offer in shell.ask(f"caisson {name} --", place)[0]}
        assert offered - {"--"} == flags, name


@pytest.mark.parametrize("typed, word", [
    ("run --policy not", "notes.yaml"), ("run --policy=not", "--policy=notes.yaml"), ("run --stdin one", "one folder/"),
    ("run --result not", "notes.yaml"), ("policy check not", "notes.yaml"), ("run --workspace one", "one folder/"),
    ("run -w one", "one folder/"), ("run --mount one", "one folder/"), ("run --policy one\\ folder/", "one folder/inner.yaml"),
    ("runs ls --run-dir one", "one folder/"), ("run --mount notes.yaml:not", "notes.yaml:notes.yaml"),
])
def test_files(shell, place, typed, word):
    # zsh takes the slash away again when Enter follows.
    assert shell.ask("caisson " + typed, place)[1] in (word, word.rstrip("/") if shell.name == "zsh" else word)


def test_folders_only(shell, place):
    """No file where a folder is asked for."""
    assert shell.ask("caisson run --workspace not", place)[1] in ("not", None)


@pytest.mark.parametrize("before", ["run", "run --", "run --rw --tier local", "run --tier=local --", "policy explain", "policy explain -qn none --"])
def test_programs(shell, place, before):
    bin_dir = pathlib.Path(shell.env["PATH"].split(":")[0])
    (bin_dir / "zzz-program").write_text("#!/bin/sh\n")
    (bin_dir / "zzz-program").chmod(0o755)
    assert shell.ask(f"caisson {before} zzz-pr", place)[1] == "zzz-program"
    assert shell.ask(f"caisson {before} cat not", place)[1] == "notes.yaml"
    # Flags after the program are the program's.
    assert not {"--tier", "--tier="} & shell.ask(f"caisson {before} zzz-program --ti", place)[0]


def test_programs_flags_and_words(shell, place):
    """What another program's completion offers is offered behind `run` too."""
    if shell.name == "bash":
        if not os.path.exists("/usr/share/bash-completion/bash_completion"):
            pytest.skip("bash-completion: not installed")
        shell.env = shell.env | {"WITH_PACKAGE": "1"}
    offers = shell.ask("caisson run --rw -- caisson policy tr", place)[0]
    assert offers == {"trust"} or shell.name == "bash"
    if shell.name == "bash":
        assert shell.ask("caisson run --rw -- caisson policy tr", place)[1] == "trust"


def test_variables(shell, place):
    shell.env = shell.env | {"ZZZ_FIRST": "1", "ZZZ_SECOND": "2"}
    assert {"ZZZ_FIRST", "ZZZ_SECOND"} <= shell.ask("caisson run --env ZZZ_", place)[0]


def test_runs(shell, place, make_record):
    ids = {make_record(), make_record()}
    for typed in ("runs show ", "why ", "runs rm ", f"runs rm {min(ids)} ", "runs diff "):
        assert shell.ask("caisson " + typed, place)[0] == ids, typed
    assert shell.ask(f"caisson runs verify {max(ids)[:-1]}", place)[1] == max(ids)
    assert shell.ask(f"caisson runs show --run-dir={place} ", place)[0] == set()
    assert shell.ask(f"caisson runs diff {min(ids)} not", place)[1] == "notes.yaml"


def test_quiet_listing_is_ids_alone(cli, make_record, runs):
    assert cli("runs", "ls", "-q").out == ""
    ids = [make_record() for _ in range(3)]
    (runs / ids[0] / "result.json").write_text("no JSON")
    assert cli("runs", "ls", "-q").out.split() == sorted(ids, reverse=True)
    start = time.monotonic()
    cli("runs", "ls", "--quiet")
    assert time.monotonic() - start < 0.5
    assert {row["run_id"] for row in cli("runs", "ls", "-q", "--json").json()} == set(ids)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_good_syntax(cli, name):
    if not shutil.which(name):
        pytest.skip(f"{name}: not installed")
    subprocess.run([name, "-n"], input=cli("completion", name).out, encoding="utf-8", check=True, timeout=30)


def test_another_shell_is_refused(cli):
    answer = cli("completion", "csh")
    assert answer.status == 2 and "bash, zsh and fish" in answer.err


def test_no_output_when_sourced(shell, place):
    """A person's start-up file sources it: nothing is printed, nothing fails."""
    argv = [shell.name, "-c", f"source {shell.script}"]
    if shell.name == "zsh":
        argv = ["zsh", "-fc", f"autoload -Uz compinit && compinit -u -D && source {shell.script} && print -- $_comps[caisson]"]
    done = subprocess.run(argv, cwd=place, env=shell.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=DEADLINE_S, encoding="utf-8")
    assert (done.returncode, done.stdout) == (0, "_caisson\n" if shell.name == "zsh" else "")
