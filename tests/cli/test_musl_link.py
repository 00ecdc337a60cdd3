"""tools/musl-link finds what crosses between musl and the libraries compiled for glibc.

The command's own map is reviewed by meson's test of that name; here are maps that must not pass.
"""
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JANSSON = subprocess.run(["pkg-config", "--variable=libdir", "jansson"], capture_output=True,
                         text=True).stdout.strip() + "/libjansson.a"
GOOD = f"Archive member included to satisfy reference by file (symbol)\n\n{JANSSON}(memory.o)\n  a.o (json_delete)\n"


def review(tmp_path, text):
    path = tmp_path / "program.map"
    path.write_text(text)
    return subprocess.run([os.path.join(ROOT, "tools/musl-link"), "review", path], capture_output=True, text=True)


def test_a_good_map_passes(tmp_path):
    result = review(tmp_path, GOOD)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.startswith("ok: ")


@pytest.mark.parametrize("member, said", [
    ("/musl/libc.a(pthread_create.lo)", "a thread"),
    ("/musl/libc.a(malloc.lo)", "musl's allocator"),
    ("/usr/lib/libz.a(inflate.o)", "nobody reviewed"),
])
def test_what_must_stay_out(tmp_path, member, said):
    result = review(tmp_path, GOOD + f"{member}\n  a.o (name)\n")
    assert result.returncode == 1 and said in result.stdout, result


def test_a_name_that_nobody_reviewed(tmp_path):
    """The archive's file functions are reviewed; a member of our own asks for one that is not."""
    source, archive = tmp_path / "new.c", tmp_path / "libyaml.a"
    source.write_text("extern int getpwnam_r(void); int new_one(void); int new_one(void) { return getpwnam_r(); }\n")
    subprocess.run(["cc", "-c", "-o", tmp_path / "new.o", source], check=True)
    subprocess.run(["ar", "rc", archive, tmp_path / "new.o"], check=True)
    result = review(tmp_path, GOOD + f"{archive}(new.o)\n  a.o (new_one)\n")
    assert result.returncode == 1 and "libyaml.a(new.o) needs getpwnam_r" in result.stdout, result


@pytest.mark.parametrize("text", ["", "Archive member included to satisfy reference by file (symbol)\n\n"])
def test_another_map(tmp_path, text):
    result = review(tmp_path, text)
    assert result.returncode == 1 and (result.stdout or result.stderr), result
