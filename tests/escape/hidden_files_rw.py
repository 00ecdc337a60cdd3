"""Moves, replaces and removes hidden files of a writable workspace, or the folders they lie in.

Would gain: the secrets, under a name or a folder that the cover does not know.
"""
import os
import shutil

from hidden_files_ro import plant
from inside import attempt, main, opens, reads


def moved(path, to):
    os.rename(path, to)
    return reads(to)


def folder_moved(folder, to, inner):
    os.rename(folder, to)
    return reads(f"{to}/{inner}")


def copied(folder, to, inner):
    shutil.copytree(folder, to)
    return reads(f"{to}/{inner}")


def exchanged(path, other):
    """renameat2 with RENAME_EXCHANGE."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, path.encode(), -100, other.encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), "")
    return reads(other)


def attack():
    attempt("rename", moved, ".env", "env-visible")
    attempt("hard link", lambda: os.link(".env", "env-linked") or reads("env-linked"))
    attempt("exchange", exchanged, ".env", "plain")
    attempt("write", opens, ".env", os.O_WRONLY)
    attempt("truncate", os.truncate, ".env", 0)
    attempt("unlink", os.unlink, ".env")
    attempt("replace", os.replace, "plain", ".env")
    attempt("copy the folder", copied, "sub", "sub-copy", ".env.local")
    attempt("rename the folder", folder_moved, "sub", "sub-moved", ".env.local")
    attempt("read after the folder moved", reads, "sub-moved/.env.local")
    attempt("remove the folder", shutil.rmtree, "certs.pem")


def host(case):
    plant(case)
    (case.ws / "plain").write_text("plain")
    run = yield {"flags": ["--rw"]}
    assert "csn-secret-value" not in run.out
    kept = [path for path in case.ws.rglob("*") if path.is_file() and path.read_text(errors="replace") == "csn-secret-value"]
    assert len(kept) == 4, "hidden files are still there, unchanged"


if __name__ == "__main__":
    main(attack)
