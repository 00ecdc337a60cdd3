"""Reads the caller's environment, and has it load a library.

Would gain: tokens and passwords that CI systems and shells keep in variables; code in every
program that is started inside.
"""
import os

from inside import attempt, main

NAMES = ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV",
         "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "GIT_SSH_COMMAND",
         "PERL5OPT", "RUBYOPT", "GCONV_PATH"]
SECRET = "csn-secret-value"


def in_file(path):
    with open(path, "rb") as file:
        return SECRET.encode() in file.read()


def attack():
    for name in NAMES:
        attempt(name, lambda: name in os.environ)
    attempt("a value by any name", lambda: any(SECRET in value for value in os.environ.values()))
    attempt("/proc/self/environ", in_file, "/proc/self/environ")
    attempt("/proc/self/cmdline", in_file, "/proc/self/cmdline")
    attempt("the starter's", in_file, f"/proc/{os.getppid()}/environ")


def host(case):
    case.env |= {name: f"/nonexistent/{SECRET}" for name in NAMES if not name.startswith("LD_")}
    case.env["LD_LIBRARY_PATH"] = f"/nonexistent/{SECRET}"
    yield {}


if __name__ == "__main__":
    main(attack)
