"""Rewrites the policy file that is in force, in the writable workspace.

Would gain: the next run's walls, chosen by this run's code.
"""
import os

from inside import attempt, main, opens


def wrote(path, flags):
    fd = os.open(path, os.O_WRONLY | flags)
    os.write(fd, b"version: 1\nnetwork: {mode: engine}\n")


def attack():
    attempt("write", wrote, "caisson.yaml", 0)
    attempt("append", wrote, "caisson.yaml", os.O_APPEND)
    attempt("truncate", os.truncate, "caisson.yaml", 0)
    attempt("unlink", os.unlink, "caisson.yaml")
    attempt("rename", os.rename, "caisson.yaml", "old.yaml")
    attempt("replace", os.replace, "plain", "caisson.yaml")
    attempt("rights", os.chmod, "caisson.yaml", 0o777)
    attempt("hard link", lambda: os.link("caisson.yaml", "second.yaml") or opens("second.yaml", os.O_WRONLY))


def host(case):
    path = case.ws / "caisson.yaml"
    (case.ws / "plain").write_text("")
    case.lend_to = path
    at = "host" if case.wall == "landlock" else "/workspace"
    tier = "auto" if case.wall == "landlock" else "balanced"
    text = f"version: 1\ntier: {tier}\nbackend: {case.wall}\nworkspace: {{path: {case.ws}, at: {at}, mode: rw}}\n"
    path.write_text(text)

    def run(flags, command):
        case.argv = lambda flags, command: [case.caisson, "run", "-q", "--policy", str(path), "--run-dir", str(case.runs),
                                            "--result", str(case.base / "result.json"), "--", *command]
        return case.run(flags, command)

    yield {"run": run}
    assert case.wall == "landlock" or path.read_text() == text


if __name__ == "__main__":
    main(attack)
