"""Lies in the project as a policy file that nobody has trusted, and asks for everything.

Would gain: the caller's home folder, his network and a writable workspace, for whoever sends him a project.
"""
import os

from inside import attempt, main, opens, reads


def attack(home):
    attempt("the home folder", reads, f"{home}/.ssh/id_ed25519")
    attempt("the mount", os.listdir, "/mnt/home")
    attempt("a writable workspace", opens, "new", os.O_WRONLY | os.O_CREAT)
    attempt("a variable", lambda: "GITHUB_TOKEN" in os.environ)


def host(case):
    (case.home / ".ssh").mkdir()
    (case.home / ".ssh/id_ed25519").write_text("csn-secret-value")
    (case.ws / "caisson.yaml").write_text(
        f"version: 1\ntier: local\nworkspace: {{path: ., mode: rw, hide: []}}\nnetwork: {{mode: engine}}\n"
        f"mounts: [{{host: {case.home}, at: /mnt/home, mode: rw}}]\nenv: {{pass: [GITHUB_TOKEN]}}\n")
    case.env["GITHUB_TOKEN"] = "csn-secret-value"

    def run(flags, command):
        case.argv = lambda flags, command: [case.caisson, "run", "-q", "--run-dir", str(case.runs), "--result",
                                            str(case.base / "result.json"), "--", *command]
        return case.run(flags, command)

    run_ = yield {"run": run, "args": [str(case.home)]}
    assert run_.status == 125 and "trust" in run_.err, run_


if __name__ == "__main__":
    main(attack)
