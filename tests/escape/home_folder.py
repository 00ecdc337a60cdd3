"""Reads the caller's home folder.

Would gain: private keys, cloud credentials, shell history, browser profiles.
"""
import os

from inside import attempt, main, opens, reads


def attack(home):
    for name in (".ssh/id_ed25519", ".aws/credentials", ".bash_history", ".netrc", ".config/gh/hosts.yml"):
        attempt(f"read {name}", reads, f"{home}/{name}")
    attempt("list home", os.listdir, home)
    attempt("list .ssh", os.listdir, f"{home}/.ssh")
    attempt("by dots", reads, f"{os.getcwd()}/../home/.ssh/id_ed25519")
    attempt("by /proc/self/root", reads, f"/proc/self/root{home}/.ssh/id_ed25519")
    attempt("write", opens, f"{home}/.bashrc", os.O_WRONLY | os.O_CREAT)
    attempt("list /root", os.listdir, "/root")
    attempt("list /home", os.listdir, "/home")


def host(case):
    for name in (".ssh/id_ed25519", ".aws/credentials", ".bash_history", ".netrc", ".config/gh/hosts.yml"):
        path = case.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("csn-secret-value")
    yield {"args": [str(case.home)]}
    assert not (case.home / ".bashrc").exists()


if __name__ == "__main__":
    main(attack)
