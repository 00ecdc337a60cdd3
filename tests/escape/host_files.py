"""Reads what else lies on the host.

Would gain: passwords' hashes, service data, logs, other users' files, sockets of services.
"""
import os

from inside import attempt, main, reads


def attack(outside):
    for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key"):
        attempt(f"read {path}", reads, path)
    for path in ("/boot", "/media", "/mnt", "/opt", "/srv", "/sys", "/var/lib", "/var/log", "/run/user", "/run/dbus",
                 "/sys/fs/cgroup", "/sys/kernel", "/var/run/docker.sock", "/lost+found"):
        attempt(f"list {path}", os.listdir, path)
    attempt("a file beside the workspace", reads, f"{outside}/file")
    attempt("by dots", reads, f"{os.getcwd()}/../outside/file")
    attempt("by the old root", os.listdir, "/..%s" % outside)


def host(case):
    (case.outside / "file").write_text("csn-secret-value")
    yield {"args": [str(case.outside)]}


if __name__ == "__main__":
    main(attack)
