"""Reads hidden files (.env, keys) of a read-only workspace, by other names and ways.

Would gain: the secrets that a project keeps beside its code.
"""
import os

from inside import attempt, main, reads


def linked(path, to):
    os.link(path, to)
    return reads(to)


def by_path_fd(path):
    fd = os.open(path, os.O_PATH)
    return reads(f"/proc/self/fd/{fd}")


def attack():
    scratch = os.environ["TMPDIR"]
    for path in (".env", "sub/.env.local", "sub/deep/server.pem"):
        attempt(f"read {path}", reads, path)
        attempt(f"/proc/self/cwd/{path}", reads, f"/proc/self/cwd/{path}")
        attempt(f"/proc/self/root {path}", reads, f"/proc/self/root{os.getcwd()}/{path}")
        attempt(f"dots {path}", reads, f"sub/../{path}")
        attempt(f"by descriptor {path}", by_path_fd, path)
        attempt(f"hard link {path}", linked, path, f"{scratch}/{os.path.basename(path)}")
        attempt(f"chmod {path}", os.chmod, path, 0o777)
        attempt(f"symlink {path}", lambda: os.symlink(os.path.abspath(path), f"{scratch}/l-{os.path.basename(path)}")
                or reads(f"{scratch}/l-{os.path.basename(path)}"))
    attempt("the folder of a hidden folder", os.listdir, "certs.pem")


def plant(case):
    for name in (".env", "sub/.env.local", "sub/deep/server.pem", "certs.pem/key"):
        path = case.ws / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("csn-secret-value")
    case.give()


def host(case):
    from hosts import picture
    plant(case)
    before = picture(case.ws)
    run = yield {}
    assert "csn-secret-value" not in run.out and picture(case.ws) == before


if __name__ == "__main__":
    main(attack)
