"""docs/api.md: each snippet stands in a program that is compiled by the page's own line, without a warning, and run.

Functions of a snippet stay outside of main(), and are there for those after it. What a program has beside them, and what it prints, is told here."""
import os
import pathlib
import re

import pytest
from snippets import TOP, snippets

BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD") or TOP / "build").resolve()
HEAD = """#include <caisson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
"""
SNIPPETS = snippets("docs/api.md", "c")
FUNCTION = re.compile(r"^static [^;={]*\n\{\n.*?^\}\n", re.M | re.S)
OPEN = """csn_options options = { .workspace = ".:cow" };
csn_error err;
csn_sandbox *sandbox = csn_open(&options, &err);
csn_exec_result *result;
if (!sandbox)
	return puts(err.text), 1;
"""
EXEC = """if (csn_exec(sandbox, &request, &result, &err) < 0)
	return puts(err.text), 1;
printf("%s, status %d\\n", result->reason_name, result->exit_code);
"""
ON_SIGNAL = """static int signal_fd;
static int on_signal(void *data)
{
	struct signalfd_siginfo told;

	fprintf(data, "signal %d\\n", read(signal_fd, &told, sizeof(told)) == sizeof(told) ? (int)told.ssi_signo : -1);
	return 0;
}
"""
BLOCKED = """sigset_t set;
sigemptyset(&set);
sigaddset(&set, SIGUSR1);
sigprocmask(SIG_BLOCK, &set, NULL);
signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
kill(getpid(), SIGUSR1);
"""
USE_WALL = """csn_exec_request request = { .command = "anything", .call.timeout_ms = 200 };
csn_read_request read = { .path = "greeting" }, missing = { .path = "other" };
csn_exec_result *result;
csn_bytes *bytes;
if (!sandbox || csn_read(sandbox, &read, &bytes, &err) < 0)
	return puts(err.text), 1;
printf("%s", bytes->data);
printf("%s: ", csn_code_name(csn_read(sandbox, &missing, &bytes, &err)));
puts(err.text);
""" + EXEC
CLOSE = "csn_close(sandbox);\n"

# name: snippets, functions beside theirs, what main() has before and after them, input, what is printed
PROGRAMS = {
    "run": (2, "", "", "", "", ["exited, status 2", "made", "Writing /etc/x is not permitted"]),
    "read": (1, "", OPEN + 'csn_exec_request change = { .command = "echo more >>Makefile; echo new >new" };\n'
             "csn_exec(sandbox, &change, &result, &err);\n", CLOSE,
             "", ["int main", "bytes behind wall process", "modified Makefile", "added new", "+new"]),
    "output": (1, "", OPEN, EXEC + CLOSE, "", ["made", "exited, status 2"]),
    "terminal": (1, ON_SIGNAL, OPEN + BLOCKED, EXEC + CLOSE, "stty size; exit 5\n", ["signal 10", "24 80", "exited, status 5"]),
    "cancel": (2, "", OPEN + 'csn_exec_request request = { .command = "sleep 60" };\n',
               "puts(csn_code_name(csn_exec(sandbox, &request, &result, &err)));\n" + CLOSE, "", ["cancelled"]),
    "gate": (1, "", "csn_error err;\ncsn_exec_result *result;\n", "if (!sandbox)\n\treturn puts(err.text), 1;\n" + EXEC
             + 'printf("%s%s", result->output.data, result->errors.data);\n' + CLOSE,
             "", ["exited, status 1", "seven\n", "there is one ticket, 7"]),
    "wall": (1, "", "csn_error err;\n", USE_WALL + CLOSE, "",
             ["hello", "enoent: there is one file, named greeting", "timeout, status "]),
}


def test_every_snippet_is_in_a_program():
    assert sum(program[0] for program in PROGRAMS.values()) == len(SNIPPETS)


def program_of(name):
    at = 0
    for other, (count, functions, before, after, *_) in PROGRAMS.items():
        if other == name:
            text = "".join(SNIPPETS[at:at + count])
            functions += "".join(FUNCTION.findall("".join(SNIPPETS[:at + count])))
            return f"{HEAD}{functions}int main(void)\n{{\n{before}{FUNCTION.sub('', text)}{after}return 0;\n}}\n"
        at += count


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, sh, env, project, tmp_path):
    given, expected = PROGRAMS[name][-2:]
    [line] = snippets("docs/api.md", "sh")
    (project / "src").mkdir()
    (project / "src/a.c").write_text("int main(void) { return 0; }\n")
    (project / "Makefile").write_text("test:\n\t@echo made; touch /etc/x\nall: test\n")
    (tmp_path / "program.c").write_text(program_of(name))
    (tmp_path / "input").write_text(given)
    # The library of the build folder: not installed, so its header lies elsewhere.
    env |= {"PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled"), "CPATH": str(TOP / "include"),
            "LD_LIBRARY_PATH": str(BUILD / "src/client")}
    sh(f"cd {tmp_path}; {line.replace('program.c', 'program.c -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Werror -o program')}")
    said = sh(f"{tmp_path}/program <{tmp_path}/input")
    for text in expected:
        assert text in said, f"{text!r} is not in {said}"
