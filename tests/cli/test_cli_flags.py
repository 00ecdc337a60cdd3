"""The parser: what is wrong is refused with a sentence and a way out, and nothing is guessed."""
import pytest

REFUSED = [
    (["policy", "show", "--teir", "strict"], "did you mean --tier?"),
    (["policy", "show", "--zzzzzz"], "there is no flag --zzzzzz; `caisson help policy show` lists them"),
    (["policy", "show", "-Z"], "there is no flag -Z"),
    (["policy", "show", "--tier"], "--tier needs a value: --tier TIER"),
    (["policy", "show", "--tier", "--rw"], "--tier needs a value, but --rw follows"),
    (["policy", "show", "--tier="], "--tier needs a value, not an empty text"),
    (["policy", "show", "--rw=yes"], "--rw takes no value"),
    (["policy", "show", "--tier", "auto", "--tier", "strict"], "--tier is given twice"),
    (["policy", "show", "--rw", "--cow"], "--cow: already said by another flag (rw)"),
    (["policy", "show", "-w", ".:ro", "--rw"], "asked for as ro and as rw"),
    (["policy", "show", "-w", ":ro"], "--workspace needs a path"),
    (["policy", "show", "--network", "some"], "one of none|loopback|allow|engine, not \"some\""),
    (["policy", "show", "--tty", "alway"], "one of auto|always|never"),
    (["policy", "show", "-l", "command"], "--limit takes KEY=VALUE"),
    (["policy", "show", "-l", "=1s"], "--limit takes KEY=VALUE"),
    (["policy", "show", "-l", "command=1s", "--timeout", "2s"], "the limit \"command\" is given twice"),
    (["policy", "show", "extra"], "\"extra\" is one word too many"),
    (["policy", "set"], "something is missing: caisson policy set KEY=VALUE…"),
    (["runs", "gc", "--runs", "many"], "not a number of runs"),
    (["polcy"], "did you mean \"policy\"?"),
    (["policy", "chek"], "did you mean \"policy check\"?"),
    (["python3"], "to run a program: caisson run -- python3"),
    (["--quiet", "version"], "flags stand after the command"),
    (["help", "nothing"], "there is no command \"nothing\""),
]


@pytest.mark.parametrize("argv, sentence", REFUSED, ids=[" ".join(argv) for argv, _ in REFUSED])
def test_refused(cli, argv, sentence):
    answer = cli(*argv)
    assert answer.status == 2, answer
    assert sentence in answer.err and answer.err.startswith("caisson: ")
    assert answer.out == ""


def test_first_refusal_is_told_and_json_still_holds(cli):
    answer = cli("policy", "show", "--teir", "--alos", "--json")
    assert answer.status == 2 and answer.err.count("\n") == 1
    error = answer.json()["error"]
    assert error["code"] == "einval" and "--teir" in error["text"]


def rules(cli, *flags):
    answer = cli("policy", "explain", "--json", *flags, "--", "true")
    assert answer.status == 0, answer
    return answer.json()["rules"]


def has(lines, start):
    return any(line.startswith(start) for line in lines)


def test_values_arrive(cli, project):
    (project / "data").mkdir()
    lines = rules(cli, "--timeout", "5s", "--memory=64MiB", "-lprocesses=9", "-n", "loopback", "--cow")
    assert has(lines, "limits.command: 5s") and has(lines, "limits.memory: 64MiB")
    assert has(lines, "limits.processes: 9") and has(lines, "network.mode: loopback")
    assert has(lines, "workspace.mode: cow")
    assert has(rules(cli, "-w", f"{project}/data:rw"), f"workspace.path: {project}/data")
    assert has(rules(cli, f"-w{project}/data:rw"), "workspace.mode: rw")


def test_a_path_may_hold_a_colon(cli, project):
    (project / "a:b").mkdir()
    assert has(rules(cli, "--workspace", "a:b"), f'workspace.path: "{project}/a:b"')


def test_flags_end_at_the_command(cli):
    answer = cli("policy", "explain", "--json", "make", "--json", "--bogus")
    assert answer.status == 0, answer


def test_flags_may_follow_names_elsewhere(cli):
    assert cli("help", "why", "--help").status == 0
    answer = cli("runs", "show", "nothing", "--json")
    assert answer.status == 1 and "error" in answer.json()


def test_missing_workspace_is_named(cli):
    answer = cli("policy", "explain", "-w", "not-there", "--", "true")
    assert answer.status == 1 and "not-there" in answer.err


def test_output_that_cannot_be_written_is_a_failure(caisson, env):
    import subprocess
    with open("/dev/full", "w") as full:
        done = subprocess.run([caisson, "help"], stdout=full, stderr=subprocess.PIPE, env=env, timeout=30)
    assert done.returncode == 1 and b"cannot write the output" in done.stderr
