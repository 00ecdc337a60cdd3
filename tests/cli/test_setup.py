"""tools/setup on machines that are not this one: other users, other distributions, closed user namespaces.
What it would call (apt-get, sudo, apparmor_parser) is replaced on PATH and notes how it was called."""
import os
import pathlib
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOLS = "sh env awk sed id dirname cat grep uname readlink tee rm printf".split()
NOBODY = 65534


class Machine:
    """A PATH with a few tools and fakes; setup() and make() run under it."""

    def __init__(self, folder):
        self.folder, self.bin, self.log = folder, folder / "bin", folder / "log"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.log.touch()
        # A copy, since another user may not reach this tree.
        self.tree = folder / "tree"
        shutil.copytree(TOP / "tools", self.tree / "tools")
        self.profiles = folder / "profiles"
        self.profiles.mkdir()
        self.env = {"PATH": str(self.bin), "HOME": str(folder), "CSN_OS_RELEASE": str(folder / "os-release"),
                    "CSN_USERNS_SWITCH": str(folder / "switch"), "CSN_PROFILE_DIR": str(self.profiles)}
        self.release("ID=debian\n")
        # Writable for the other user of some tests; readable down to here.
        for path in (folder, self.profiles, self.log):
            path.chmod(0o777)
        for parent in folder.parents:
            if parent.owner() == folder.owner() and parent != pathlib.Path("/") and len(parent.parts) > 2:
                parent.chmod(parent.stat().st_mode | 0o011)

    def release(self, text):
        (self.folder / "os-release").write_text(text)

    def fake(self, name, text):
        (self.bin / name).write_text(f'#!{shutil.which("sh")}\necho "{name} $*" >>{self.log}\n{text}\n')
        (self.bin / name).chmod(0o755)

    def calls(self):
        return self.log.read_text().splitlines()

    def setup(self, *argv, user=None):
        return subprocess.run([f"{self.tree}/tools/setup", *argv], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, encoding="utf-8", user=user)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def bare(machine):
    """A Debian machine without packages."""
    machine.fake("dpkg-query", "exit 1")
    machine.fake("apt-get", "")
    return machine


def ordinary():
    """The uid of an ordinary user: ours, or another for root."""
    return NOBODY if os.getuid() == 0 else os.getuid()


# ---- packages ------------------------------------------------------------------------------


@pytest.mark.skipif(os.getuid() != 0, reason="root: only root installs without sudo")
def test_root_installs_without_sudo(bare):
    bare.fake("sudo", "exit 9")
    done = bare.setup("build")
    assert done.returncode == 0 and "setup: installing gcc " in done.stdout
    assert [call.split()[:3] for call in bare.calls() if call.startswith("apt-get")] == [
        ["apt-get", "-q", "update"], ["apt-get", "-q", "install"]]


def test_a_user_with_sudo(bare):
    bare.fake("sudo", 'exec "$@"')
    done = bare.setup("test", user=ordinary())
    assert done.returncode == 0, done.stdout
    installs = [call for call in bare.calls() if call.startswith("apt-get -q install")]
    assert len(installs) == 1 and "python3-pytest" in installs[0]
    assert sum(call.startswith("sudo ") for call in bare.calls()) == 2


def test_a_user_whose_sudo_refuses(bare):
    bare.fake("sudo", "echo 'sudo: not in the sudoers file' >&2; exit 1")
    done = bare.setup("build", user=ordinary())
    assert done.returncode == 1 and "setup: apt could not install: gcc" in done.stdout
    assert not [call for call in bare.calls() if call.startswith("apt-get")]


def test_a_user_without_sudo(bare):
    done = bare.setup("build", user=ordinary())
    assert done.returncode == 1
    assert "without root and sudo they cannot be installed; as root: apt-get install --no-install-recommends gcc" in done.stdout
    assert "installing" not in done.stdout and not [call for call in bare.calls() if call.startswith("apt-get")]


@pytest.mark.parametrize("release", ["ID=fedora\n", "ID=arch\n", 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "ID=alpine\n", ""])
def test_other_distributions(bare, release):
    bare.release(release)
    done = bare.setup("test", user=ordinary())
    assert done.returncode == 1 and done.stdout.count("\n") == 1, done.stdout
    assert "this distribution is not set up automatically" in done.stdout
    for word in ("gcc", "meson", "libseccomp-dev", "musl-tools", "python3-pytest", "static libraries"):
        assert word in done.stdout
    assert bare.calls() == []


def test_other_distributions_that_have_all(bare):
    bare.release("ID=fedora\n")
    for tool in ("meson", "ninja", "pkg-config"):
        bare.fake(tool, "")
    assert (bare.setup("build").returncode, bare.setup("build").stdout) == (0, "")
    assert "python3-pytest" in bare.setup("test").stdout  # git is missing
    bare.fake("git", "")
    bare.fake("python", "")
    bare.env["PYTHON"] = f"{bare.bin}/python"
    assert (bare.setup("test").returncode, bare.setup("test").stdout) == (0, "")
    bare.fake("python", "exit 1")
    assert "python3-pytest" in bare.setup("test").stdout


@pytest.mark.parametrize("release", ["ID=ubuntu\nID_LIKE=debian\n", 'ID=linuxmint\nID_LIKE="ubuntu debian"\n', "ID=raspbian\nID_LIKE=debian\n"])
def test_relatives_of_debian(bare, release):
    bare.release(release)
    bare.fake("sudo", 'exec "$@"')
    assert bare.setup("build").returncode == 0
    assert [call for call in bare.calls() if call.startswith("apt-get -q install")]


@pytest.mark.parametrize("system, sentence", [("Darwin", "on macOS run it inside a Linux machine"), ("FreeBSD", "needs Linux; this is FreeBSD")])
def test_other_systems(bare, system, sentence):
    (bare.bin / "uname").unlink()
    bare.fake("uname", f"echo {system}")
    done = bare.setup("build")
    assert done.returncode == 1 and sentence in done.stdout and done.stdout.count("\n") == 1


def test_places_that_are_no_ordinary_machine(bare):
    """One sentence, with the first set-up only."""
    (bare.bin / "grep").unlink()
    bare.fake("grep", "exit 0")  # as if /proc/version named Microsoft
    bare.fake("sudo", 'exec "$@"')
    assert bare.setup("build").stdout.count("this is WSL2, a Linux machine of its own") == 1
    (bare.tree / "build").mkdir()
    assert "WSL2" not in bare.setup("build").stdout


# ---- AppArmor ------------------------------------------------------------------------------


@pytest.fixture
def closed(machine):
    """A machine whose user namespaces are closed."""
    (machine.folder / "switch").write_text("1\n")
    machine.fake("apparmor_parser", "")
    machine.fake("sudo", 'exec "$@"')
    return machine


def test_profile_is_loaded(closed):
    done = closed.setup("profile", "/usr/local/bin/caisson", user=ordinary())
    file = closed.profiles / "usr.local.bin.caisson"
    assert done.returncode == 0 and done.stdout == (
        f"setup: AppArmor closes user namespaces on this machine: loading {file}, which opens them to /usr/local/bin/caisson alone\n")
    assert f"apparmor_parser -r -W {file}" in closed.calls()
    assert 'profile usr.local.bin.caisson "/usr/local/bin/caisson" flags=(unconfined) {' in file.read_text()
    assert closed.setup("profile", "/usr/local/bin/caisson", user=ordinary()).stdout == ""


def test_profile_of_a_changed_program_is_loaded_again(closed):
    file = closed.profiles / "opt.caisson"
    file.write_text("an older one\n")
    file.chmod(0o666)
    assert "loading" in closed.setup("profile", "/opt/caisson", user=ordinary()).stdout
    assert "userns," in file.read_text()


def test_profile_that_is_refused_is_not_left(closed):
    closed.fake("apparmor_parser", "echo 'AppArmor parser error' >&2; exit 1")
    done = closed.setup("profile", "/opt/caisson", user=ordinary())
    assert done.returncode == 1 and "AppArmor did not take the profile" in done.stdout
    assert os.listdir(closed.profiles) == []


def test_profile_without_root(closed):
    (closed.bin / "sudo").unlink()
    done = closed.setup("profile", "/opt/caisson", user=ordinary())
    assert done.returncode == 1 and f"as root: {closed.tree}/tools/setup profile '/opt/caisson'" in done.stdout
    assert os.listdir(closed.profiles) == []


@pytest.mark.parametrize("path", ["caisson", "/opt/[a]/caisson", "/opt/*/caisson", '/opt/"/caisson', "/opt/@{HOME}/caisson", "/a\nb"])
def test_profile_of_a_path_that_would_mean_more(closed, path):
    done = closed.setup("profile", path, user=ordinary())
    assert done.returncode == 1 and "its path must be absolute, of letters" in done.stdout
    assert os.listdir(closed.profiles) == []


def test_profile_is_taken_back(closed):
    closed.setup("profile", "/opt/caisson", user=ordinary())
    done = closed.setup("unprofile", "/opt/caisson", user=ordinary())
    assert done.returncode == 0 and os.listdir(closed.profiles) == []
    assert f"apparmor_parser -R {closed.profiles}/opt.caisson" in closed.calls()
    assert closed.setup("unprofile", "/opt/caisson").stdout == ""


def test_open_machines_get_no_profile(closed):
    (closed.folder / "switch").write_text("0\n")
    assert closed.setup("profile", "/opt/caisson").stdout == "" and closed.calls() == []
    (closed.folder / "switch").unlink()
    assert closed.setup("profile", "/opt/caisson").stdout == "" and closed.calls() == []


def test_profile_is_good_apparmor(tmp_path):
    """The real parser reads it, if there is one that knows `userns` (4.0)."""
    parser = shutil.which("apparmor_parser", path=f"{os.environ['PATH']}:/usr/sbin")
    if not parser or not os.path.exists("/etc/apparmor.d/abi/4.0"):
        pytest.skip("apparmor 4.0: not installed")
    text = (TOP / "tools/apparmor/caisson.in").read_text().replace("@PROGRAM@", "/opt/a b/caisson").replace("@NAME@", "opt.a.b.caisson")
    file = tmp_path / "profile"
    file.write_text(text)
    argv = [parser, "-Q", "-T", "-K", str(file)]
    assert subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=60).returncode == 0
    file.write_text(text.replace("userns,", "usernamespaces,"))
    assert subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60).returncode != 0


# ---- with make -----------------------------------------------------------------------------


def run_make(closed, build, *argv):
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    # The machine's own tools behind the fakes.
    env |= closed.env | {"PATH": f"{closed.bin}:{os.environ['PATH']}"}
    done = subprocess.run(["make", "-C", str(TOP), f"BUILD={build}", *argv], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=300, encoding="utf-8")
    return done


def test_make_loads_a_profile_for_what_it_built(closed, build):
    done = run_make(closed, build, "all")
    program = os.path.realpath(build / "caisson")
    assert done.returncode == 0 and f"opens them to {program} alone" in done.stdout, done.stdout
    (file,) = closed.profiles.iterdir()
    assert f'"{program}"' in file.read_text()


def test_make_goes_on_without_a_profile(closed, build):
    closed.fake("apparmor_parser", "exit 1")
    done = run_make(closed, build, "all")
    assert done.returncode == 0 and "AppArmor did not take the profile" in done.stdout, done.stdout


def test_install_and_uninstall_see_to_the_profile(closed, build, tmp_path):
    """Without DESTDIR, behind a link: AppArmor goes by real paths."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    prefix = tmp_path / "link"
    done = run_make(closed, build, "install", f"prefix={prefix}")
    assert done.returncode == 0 and f"opens them to {tmp_path}/real/bin/caisson alone" in done.stdout, done.stdout
    done = run_make(closed, build, "uninstall", f"prefix={prefix}")
    assert done.returncode == 0 and "removing " in done.stdout and list(closed.profiles.iterdir()) == []
    assert [path for path in (tmp_path / "real").rglob("*") if not path.is_dir()] == []


def test_a_staged_install_loads_nothing(closed, build, tmp_path):
    done = run_make(closed, build, "install", "prefix=/usr/local", f"DESTDIR={tmp_path}/stage")
    assert done.returncode == 0 and list(closed.profiles.iterdir()) == [], done.stdout
