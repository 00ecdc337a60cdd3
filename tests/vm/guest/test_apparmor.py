"""AppArmor closes user namespaces to programs without a profile, as Ubuntu 24.04 does.

Ubuntu's switch is a change of its own to the kernel; the mediation behind it is in every kernel
from 6.7. So a profile that lacks `userns,` stands in for the switch, and a file for its place.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import HERE, TESTER, make_box, remove_box

FEATURE = pathlib.Path("/sys/kernel/security/apparmor/features/namespaces/mask")
TOP = HERE.parents[2]
# Everything but user namespaces, and every program in the same profile but the one with its own.
RESTRICTED = """abi <abi/4.0>,
profile csn-restricted flags=(attach_disconnected, mediate_deleted) {
  capability, network, unix, signal, ptrace, mount, umount, pivot_root, change_profile,
  /** rwlkm,
  / r,
  /{usr/,}{bin,sbin,lib}/** ix,
  /caisson/** ix,
  %s px,
}
"""
AS_USER = f"""
import os, sys
os.setgroups([]); os.setgid({TESTER}); os.setuid({TESTER})
with open("/proc/self/attr/apparmor/exec", "w") as file:
    file.write("exec csn-restricted")
os.execv("/bin/sh", ["sh", "-c", sys.argv[1]])
"""


def load(text, name):
    path = pathlib.Path("/etc/apparmor.d") / name
    path.write_text(text)
    subprocess.run(["apparmor_parser", "-r", str(path)], check=True, stdin=subprocess.DEVNULL)


@pytest.fixture
def own(shared, program):
    """A user's box with a copy of the programs at a place that a profile can name."""
    if not FEATURE.exists() or "userns_create" not in FEATURE.read_text():
        pytest.skip("this kernel's AppArmor does not mediate user namespaces")
    if not shutil.which("apparmor_parser"):
        pytest.skip("an image made with --full")
    box = make_box(shared, program, TESTER)
    box.folder = pathlib.Path("/opt/csn")
    box.folder.mkdir(exist_ok=True)
    shutil.copy(os.path.realpath(box.caisson), box.folder / "caisson")
    shutil.copy(os.path.realpath(os.environ["CAISSON_BUILD"] + "/caisson-agent"), box.folder / "caisson-agent")
    load(RESTRICTED % (box.folder / "caisson"), "csn-restricted")
    box.switch = box.base / "switch"
    box.switch.write_text("1\n")
    box.give()
    yield box
    set_up(box, "unprofile")
    remove_box(box)


def set_up(box, word):
    return subprocess.run([str(TOP / "tools/setup"), word, str(box.folder / "caisson")], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          env=os.environ | {"CSN_USERNS_SWITCH": str(box.switch)}, check=False)


def restricted(box, text):
    """A shell of the user's under the restricting profile."""
    done = subprocess.run(["/usr/bin/python3", "-c", AS_USER, text], env=box.env, cwd=box.ws, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, encoding="utf-8", check=False)
    return done.returncode, done.stdout


def shown(box, text):
    """The same where kernel.* shows Ubuntu's switch; no proc can be mounted there."""
    names = ["apparmor_restrict_unprivileged_userns", "unprivileged_userns_clone"]
    show = box.base / "kernel"
    show.mkdir(exist_ok=True)
    (show / names[0]).write_text("1\n")
    (show / names[1]).write_text("1\n")
    done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount --bind {show} /proc/sys/kernel && exec /usr/bin/python3 -c '{AS_USER}' \"$1\"",
                           "sh", text], env=box.env, cwd=box.ws, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, encoding="utf-8", check=False)
    return done.returncode, done.stdout


def test_the_stand_in_restricts(own):
    assert restricted(own, "cat /proc/self/attr/apparmor/current") == (0, "csn-restricted (enforce)\n")
    status, out = restricted(own, "unshare -U true")
    assert status != 0 and "Permission denied" in out, out


def test_doctor_names_cause_and_fix(own):
    _, out = shown(own, f"{os.environ['CAISSON']} doctor")
    assert "AppArmor lets only programs with a profile make user namespaces" in out, out
    assert "userns," in out and "kernel.apparmor_restrict_unprivileged_userns=0" in out, out


def test_doctor_does_not_call_the_wall_usable(own):
    _, out = shown(own, f"{os.environ['CAISSON']} doctor")
    assert re.search(r"^no +process", out, re.M), out


def test_a_run_says_why(own):
    status, out = shown(own, f"{os.environ['CAISSON']} run -q -- true")
    assert status == 125 and "AppArmor" in out and "profile" in out, out


def test_set_up_opens_it(own):
    """The profile that `make install` loads: with it the same program in the same shell runs."""
    program = own.folder / "caisson"
    done = set_up(own, "profile")
    assert done.returncode == 0, done.stdout
    status, out = restricted(own, f"{program} run -q -- sh -c 'echo ran'")
    assert (status, out.splitlines()[-1:]) == (0, ["ran"]), out
    status, out = restricted(own, f"{program} doctor")
    assert re.search(r"^yes +process", out, re.M) and re.search(r"^userns +yes", out, re.M), out


def test_set_up_takes_it_back(own):
    assert set_up(own, "profile").returncode == 0
    assert "opt.csn.caisson" in pathlib.Path("/sys/kernel/security/apparmor/profiles").read_text()
    assert set_up(own, "unprofile").returncode == 0
    assert "opt.csn.caisson" not in pathlib.Path("/sys/kernel/security/apparmor/profiles").read_text()


def test_the_profile_does_not_reach_inside(own):
    """What runs behind the wall has the profile's name and still gets no user namespace."""
    assert set_up(own, "profile").returncode == 0
    status, out = restricted(own, f"{own.folder}/caisson run -q -- sh -c 'unshare -U true && echo made; echo end'")
    assert status == 0 and "made" not in out and "end" in out, out
