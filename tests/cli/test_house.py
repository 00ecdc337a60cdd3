"""The rules of the house prove themselves: each is fed something bad and must see it, and
something like it that is fine and must not be seen."""
import json
import os
import shutil
import subprocess
import textwrap
import time

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = "/usr/bin/python3"


def run(argv, **more):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, encoding="utf-8", **more)


def check(tree, files, rule):
    """Writes `files` into `tree` and returns (status, findings) of one rule over it."""
    for path, text in files.items():
        os.makedirs(os.path.dirname(tree / path), exist_ok=True)
        (tree / path).write_text(textwrap.dedent(text))
    result = run([PYTHON, f"{TOP}/tools/check", "--root", str(tree), rule])
    return result.returncode, result.stdout


def sees(tree, files, rule, finding):
    status, text = check(tree, files, rule)
    assert status == 1 and finding in text, text


def passes(tree, files, rule):
    status, text = check(tree, files, rule)
    assert status == 0, text


def function(body, head="int f(int a, int b)"):
    return f"/* x */\n{head}\n{{\n{body}\n}}\n"


# ---- sizes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lines, bad", [(77, False), (78, True)])
def test_function_length(tmp_path, lines, bad):
    files = {"src/base/x.c": function("\n".join(["\ta++;"] * lines))}
    if bad:
        sees(tmp_path, files, "sizes", "x.c:2: sizes: f: lines 81, at most 80")
    else:
        passes(tmp_path, files, "sizes")


def test_file_length(tmp_path):
    sees(tmp_path, {"src/base/x.c": "/* x */\n" + "int f(void);\n" * 800}, "sizes", "801 lines, at most 800")
    passes(tmp_path, {"src/base/x.c": "/* x */\n" + "int f(void);\n" * 799}, "sizes")


def test_complexity_counts_every_fork(tmp_path):
    forks = "if (a && b || a) ; while (a) ; for (;;) ; do ; while (b); a = b ? 1 : 2; switch (a) { case 1: case 2: ; }"
    sees(tmp_path, {"src/base/x.c": function(forks + " if (a) ;" * 6)}, "sizes", "f: complexity 16, at most 15")
    passes(tmp_path, {"src/base/x.c": function(forks + " if (a) ;" * 5)}, "sizes")


def test_complexity_is_not_fooled_by_text(tmp_path):
    text = '\t/* if (a && b) */ a = "if && || ? case"[0]; // while\n\tb = \'?\';\n' * 20
    passes(tmp_path, {"src/base/x.c": function(text)}, "sizes")


@pytest.mark.parametrize("body", [
    "if (a) { for (;;) { while (b) { if (b) a++; } } }",
    "if (a) for (;;) while (b) if (b) a++;",
    "do { if (a) switch (b) { case 1: if (a) b++; } } while (a);",
    "if (a) ; else { if (b) { while (a) { do a--; while (b); } } }",
    "list_for_each(a, b) { if (a) { if (b) { if (a) b++; } } }",
    "json_array_foreach(a, b) if (a) while (b) if (a) b++;",
])
def test_nesting(tmp_path, body):
    sees(tmp_path, {"src/base/x.c": function(body)}, "sizes", "f: nesting 4, at most 3")


@pytest.mark.parametrize("body", [
    "if (a) a++; else if (b) a++; else if (a) a++; else if (b) a++; else b++;",
    "for (;;) if (a) while (b) a++;\nout:\n\treturn ({ if (a) b++; a; });",
    "switch (a) { case 1: { if (a) { while (b) ; } } break; default: ; }",
    "struct x y = { .a = 1, .b = { 2 } }; call((struct x){ 1 }, a ? b : a);",
])
def test_nesting_three_is_fine(tmp_path, body):
    passes(tmp_path, {"src/base/x.c": function(body)}, "sizes")


@pytest.mark.parametrize("head, count", [
    ("int f(int a, int b, int c, int d, int e, int g)", 6),
    ("static __attribute__((nonnull(1, 2))) struct x *f(int a, void (*b)(int, int), int c, int d, int e, int g)", 6),
    ("int f(int a, int b, int c, int d, int e)", 5),
    ("int f(int a, int b, int c, int d, const char *format, ...)", 5),
    ("int f(void)", 0),
])
def test_parameters(tmp_path, head, count):
    files = {"src/base/x.c": function("\treturn 0;", head)}
    if count > 5:
        sees(tmp_path, files, "sizes", f"f: parameters {count}, at most 5")
    else:
        passes(tmp_path, files, "sizes")


def test_conditional_compilation_inside_a_function(tmp_path):
    sees(tmp_path, {"src/os/x.c": function("#ifdef A\n\ta++;\n#endif")}, "sizes", "#ifdef inside a function")


def test_functions_are_found(tmp_path):
    text = """\
        /* x */
        #define LOOP(x) do { if (x) { } } while (0)
        struct s { int (*call)(int); };
        static const struct s table[] = { { f }, { g } };
        extern "C" {
        int one(int a)
        {
        \treturn a;
        }
        }
        static inline struct s *two(void) { return 0; }
        """
    status, out = check(tmp_path, {"src/base/x.c": text}, "sizes")
    assert status == 0 and "2 functions" in out, out


# ---- rooms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path, include, finding", [
    ("src/base/x.c", '"wire/frame.h"', "base may not include wire (it may: nothing)"),
    ("src/policy/x.c", '"os/landlock.h"', "policy may not include os (it may: base plan)"),
    ("src/os/x.h", '"plan/plan.h"', "os may not include plan"),
    ("src/monitor/x.c", '"shell/parse.h"', "monitor may not include shell"),
    ("src/base/x.c", '"buf.h"', 'write it from src/, "base/buf.h"'),
    ("src/base/x.c", '"../base/buf.h"', "write it from src/"),
    ("src/base/x.c", '"elsewhere/buf.h"', "no such room"),
    ("src/policy/x.c", "<sys/stat.h>", "policy is pure"),
    ("src/policy/x.c", '"base/clock.h"', "policy is pure"),
    ("src/agent/x.c", "<jansson.h>", "agent may not use <jansson.h>"),
    ("src/launch/x.c", "<openssl/sha.h>", "launch may not use <openssl/sha.h>"),
    ("src/os/x.c", "<seccomp.h>", "os may not use <seccomp.h>"),
    ("src/cellar/x.c", "<stdio.h>", "src/cellar is not in the table of rooms"),
    ("include/caisson.h", "<linux/filter.h>", "in a public header"),
])
def test_rooms(tmp_path, path, include, finding):
    sees(tmp_path, {path: f"/* x */\n#include {include}\n"}, "rooms", finding)


def test_rooms_that_are_fine(tmp_path):
    passes(tmp_path, {"src/policy/x.c": '/* "os/x.h" */\n#include "policy/y.h"\n#include "plan/plan.h"\n#include <yaml.h>\n',
                      "src/cli/y.c": '/* y */\n#include "monitor/monitor.h"\n#include <unistd.h>\n',
                      "include/caisson.h": "#include <stdint.h>\n#include \"caisson_gates.h\"\n"}, "rooms")


def test_rooms_of_the_architecture(tmp_path):
    sees(tmp_path, {"ARCHITECTURE.md": "src/os/        kernel facilities    → base plan\n"}, "rooms",
         "ARCHITECTURE.md:1: rooms: src/os/ may use base, not base plan")
    passes(tmp_path, {"ARCHITECTURE.md": "src/os/        kernel facilities    → base\n"}, "rooms")


# ---- banned --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", "system popen strcpy strcat sprintf strtok atoi gets alloca access".split())
def test_banned_calls(tmp_path, name):
    sees(tmp_path, {"src/os/x.c": function(f"\treturn {name}(a);")}, "banned", f"x.c:4: banned: {name}()")
    sees(tmp_path, {"src/os/x.c": f"/* x */\n#define X(a) {name}(a)\n"}, "banned", f"{name}()")
    passes(tmp_path, {"src/os/x.c": function(f'\t/* {name}(a) */ a->{name}(b); x_{name}(a); say("{name}(");')}, "banned")


def test_a_test_may_ask_for_a_file(tmp_path):
    passes(tmp_path, {"tests/unit/x.c": function("\treturn access(a, 0);")}, "banned")
    sees(tmp_path, {"tests/unit/x.c": function("\treturn system(a);")}, "banned", "system()")


def test_numbers_are_parsed_in_one_file(tmp_path):
    text = function("\treturn strtoul(a, 0, 10);")
    sees(tmp_path, {"src/os/x.c": text}, "banned", "strtoul(): text becomes a number in base/str.c only")
    shutil.rmtree(tmp_path / "src")
    passes(tmp_path, {"src/base/str.c": text}, "banned")


def test_attribute_access_is_not_the_call(tmp_path):
    passes(tmp_path, {"src/os/x.c": "/* x */\n__attribute__((access(read_only, 1, 2))) int f(void *a, int b);\n"}, "banned")


@pytest.mark.parametrize("body", ["\tchar text[a];", "\tint n = a;\n\tstruct x *items[n + 1];", "\tuint8_t one[4], two[b * 2];"])
def test_arrays_of_run_time_length(tmp_path, body):
    sees(tmp_path, {"src/os/x.c": function(body)}, "banned", "has a run-time length")


def test_arrays_of_constant_length(tmp_path):
    passes(tmp_path, {"src/os/x.c": function("\tchar text[PATH_MAX], more[sizeof(a) + 1];\n\ttext[a] = more[b];\n\treturn list[a];\n"
                                            "\tint d[] = { 1 };\n\tconst int *e = call(a, d[b]);\n\tchar g[sizeof c->d.e + 1];",
                                            "int f(int a, int b, char c[PATH_MAX])")},
           "banned")


@pytest.mark.parametrize("text", ["static int count;", "struct x y = { 0 };", "static char *names[] = { 0 };", "_Thread_local int depth;"])
def test_mutable_globals(tmp_path, text):
    sees(tmp_path, {"src/os/x.c": f"/* x */\n{text}\n"}, "banned", "a global that changes")
    shutil.rmtree(tmp_path / "src")
    passes(tmp_path, {"src/cli/x.c": f"/* x */\n{text}\n"}, "banned")


def test_constant_globals(tmp_path):
    passes(tmp_path, {"src/os/x.c": "/* x */\nstatic const int a = 1;\nenum { B = 2, C = B };\nstruct x { int d; };\n"
                                    "struct x;\ntypedef int e;\nextern int f;\nint g(int h);\nunion u { int i; };\n"}, "banned")


# ---- headers -------------------------------------------------------------------------------


def test_prototype_without_a_sentence(tmp_path):
    sees(tmp_path, {"src/os/x.h": "/* x */\n#pragma once\n\nint f(int a);\n"}, "headers", "x.h:4: headers: f: a prototype")
    sees(tmp_path, {"src/os/x.h": "/* x */\n#pragma once\n\n/* one */\nint f(int a);\n\nint g(int a,\n      int b);\n"},
         "headers", "x.h:7: headers: g: a prototype")
    body = "\ta++;\n" * 6
    sees(tmp_path, {"src/os/x.h": f"/* x */\n#pragma once\n\nstatic inline int f(int a)\n{{\n{body}}}\n"}, "headers", "f: a prototype")


def test_documented_prototypes(tmp_path):
    passes(tmp_path, {"src/os/x.h": """\
        /* x, ended by x_done() */
        #pragma once

        /* One and two. */
        int one(int a);
        __attribute__((format(printf, 1, 2))) int two(const char *format, ...);

        int three(void); /* three */

        void x_done(struct x *x);

        static inline int four(void)
        {
        \treturn 4;
        }

        typedef int (*call)(int);
        struct table { int (*run)(int a); };
        """}, "headers")


def test_opening_comment_and_guard(tmp_path):
    sees(tmp_path, {"src/os/x.c": "#include <stdio.h>\n"}, "headers", "no opening comment")
    sees(tmp_path, {"src/os/x.h": "/* x */\nstruct x;\n"}, "headers", "no #pragma once")


# ---- form ----------------------------------------------------------------------------------


def test_form(tmp_path):
    shutil.copy(f"{TOP}/.clang-format", tmp_path)
    passes(tmp_path, {"src/os/x.c": "/* x */\nint f(int a)\n{\n\treturn a;\n}\n"}, "form")
    sees(tmp_path, {"src/os/x.c": "/* x */\nint f(int a) {\n    return a; }\n"}, "form", "src/os/x.c:2: form: run clang-format")


# ---- documents -----------------------------------------------------------------------------


@pytest.mark.parametrize("text, finding", [
    ("[gone](docs/gone.md)", "docs/gone.md: no such file"),
    ('<p><img width="9" src="gone.svg"></p>', "gone.svg: no such file"),
    ("see [this][one]\n\n[one]: gone.md", "README.md:3: docs: gone.md: no such file"),
    ("![gone](gone.svg)", "gone.svg: no such file"),
    ("# Here\n[x](#there)", "#there: no such heading"),
    ("[x](http://example.org)", "links are https"),
    ("run `make haste`", "make haste: no such target"),
])
def test_documents(tmp_path, text, finding):
    sees(tmp_path, {"README.md": text + "\n", "Makefile": "speed:\n"}, "docs", finding)


def test_documents_that_are_fine(tmp_path):
    passes(tmp_path, {"README.md": "# A place, here\n[a](#a-place-here) [b](docs/x.md#two) [c](https://example.org)\n"
                                   "`[not](a-link)`\n```\n[nor](this)\nmake speed\n```\n",
                      "docs/x.md": "## Two\n", "Makefile": "speed:\n"}, "docs")


def test_files_named_in_comments(tmp_path):
    sees(tmp_path, {"src/os/x.c": "/* x */\n\n/* Why:\n * tests/escape/gone.py */\n"}, "docs", "src/os/x.c:4: docs: tests/escape/gone.py")
    passes(tmp_path, {"src/os/x.c": "/* x */\n/* src/os/x.c, tests/NAME.py, /usr/src/x.c */\n"}, "docs")
    sees(tmp_path, {"docs/x.md": "see `src/os/y.c`\n"}, "docs", "docs/x.md:1: docs: src/os/y.c: no such file")


def test_tree_of_the_architecture(tmp_path):
    tree = "```tree\nsrc/os/    kernel\nsrc/gone/  nothing\n```\n"
    sees(tmp_path, {"ARCHITECTURE.md": tree, "src/os/x.c": "/* x */\n"}, "docs", "ARCHITECTURE.md:3: docs: src/gone/ is in the tree")
    sees(tmp_path, {"ARCHITECTURE.md": "```tree\nsrc/os/    kernel\n```\n", "src/wire/x.c": "/* x */\n"}, "docs",
         "src/wire is on the disk and not in the tree")
    sees(tmp_path, {"ARCHITECTURE.md": "# no tree\n"}, "docs", "no ```tree block")


def test_table_of_walls(tmp_path):
    files = {"README.md": "| `process` | x | here |\n| `docker`, `podman` | x | planned |\n", "src/backend/process/x.c": "struct backend process = {\n\t.name = \"process\",\n};\n"}
    passes(tmp_path, files, "docs")
    sees(tmp_path, {"README.md": "| `qemu` | x | here |\n"}, "docs", "README.md:1: docs: qemu is not here")
    sees(tmp_path, {"README.md": "| `process` | x | planned |\n"}, "docs", "README.md:1: docs: process is here")


# ---- words ---------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["see /" + "work/main", "TO" + "DO: later", "/home/" + "somebody/x", "<" * 7 + " HEAD"])
def test_words(tmp_path, text):
    sees(tmp_path, {"docs/x.md": f"a\n{text}\n"}, "words", "docs/x.md:2: words:")


def test_words_that_are_fine(tmp_path):
    passes(tmp_path, {"docs/x.md": "/workspace/x, upper/work/x, %s/work/x, TODOS, mktemp XXXXXX, /home/me/x\n"}, "words")


# ---- flags ---------------------------------------------------------------------------------


PROGRAM = """\
#!/bin/sh
case $2 in
--markdown) printf '# Flags\\n\\n## caisson run\\n\\n`--policy FILE`, `-q, --quiet`\\n' ;;
--man) printf '%s\\n' '.TP' '{man}' ;;
run) echo '{help}' ;;
esac
"""
PAGE = "# Flags\n\n## caisson run\n\n`--policy FILE`, `-q, --quiet`\n"


@pytest.mark.parametrize("man, text, page, finding", [
    (r"\fB\-\-policy\fR \fB\-q\fR \-\-quiet", "--policy FILE -q, --quiet", PAGE, None),
    (r"\-\-policy \-q \-\-quiet \-\-magic", "--policy -q --quiet", PAGE, "--magic is in the manual page only"),
    (r"\-\-policy \-q", "--policy -q --quiet", PAGE, "--quiet is not in the manual page"),
    (r"\-\-policy \-q \-\-quiet", "--policy -q", PAGE, "--quiet is not in the help of the commands"),
    (r"\-\-policy \-q \-\-quiet", "--policy -q --quiet", PAGE + "x", "is not what `caisson help --markdown` prints"),
])
def test_flags(tmp_path, man, text, page, finding):
    fake(tmp_path / "build", "caisson", PROGRAM.replace("{man}", man).replace("{help}", text))
    if finding:
        sees(tmp_path, {"docs/cli.md": page}, "flags", finding)
    else:
        passes(tmp_path, {"docs/cli.md": page}, "flags")


# ---- skips ---------------------------------------------------------------------------------


def tally(tmp_path, tap, result="OK", ci="1"):
    log = tmp_path / "testlog.json"
    log.write_text(json.dumps({"name": "t", "stdout": tap, "result": result}) + "\n")
    done = run([PYTHON, f"{TOP}/tools/check-skips", str(log)], env={**os.environ, "CSN_CI": ci})
    return done.returncode, done.stdout.strip().split("\n")[-1]


def test_tally_counts(tmp_path):
    assert tally(tmp_path, "1..2\nok 1 - a\nok 2 - b\n") == (0, "2 passed, 0 failed")
    assert tally(tmp_path, "1..2\nok 1 - a\nnot ok 2 - b\n", "FAIL") == (1, "1 passed, 1 failed")
    assert tally(tmp_path, "1..2\nok 1 - a\n") == (1, "1 passed, 1 failed")
    assert tally(tmp_path, "1..1\nok 1 - a\n", "TIMEOUT") == (1, "1 passed, 1 failed")
    assert tally(tmp_path, "", "FAIL") == (1, "0 passed, 1 failed")
    assert tally(tmp_path, "3 inputs\n") == (0, "1 passed, 0 failed")


@pytest.mark.parametrize("thing", ["landlock", "seccomp", "namespaces", "cgroup v1"])
def test_skips_of_what_is_here_fail_in_ci(tmp_path, thing):
    tap = f"1..2\nok 1 - a\n# SKIP {thing}: the kernel has none\nok 2 - b # SKIP (reason above)\n"
    assert tally(tmp_path, tap, ci="1") == (1, "1 passed, 1 failed")
    assert tally(tmp_path, tap, ci="0") == (0, "1 passed, 0 failed")


def test_skips_of_what_may_be_missing(tmp_path):
    tap = "1..2\nok 1 - a\n# SKIP kvm: no device\nok 2 - b # SKIP (reason above)\n"
    assert tally(tmp_path, tap) == (0, "1 passed, 0 failed")


def test_tally_of_nothing_fails(tmp_path):
    assert run([PYTHON, f"{TOP}/tools/check-skips", str(tmp_path / "none.xml")]).returncode == 1
    assert run([PYTHON, f"{TOP}/tools/check-skips"]).returncode == 1


def test_tally_reads_junit(tmp_path):
    report = tmp_path / "pytest.xml"
    report.write_text('<testsuites><testsuite><testcase classname="a" name="b"/><testcase classname="a" name="c">'
                      '<failure message="no"/></testcase><testcase classname="a" name="d">'
                      '<skipped message="seccomp: none"/></testcase></testsuite></testsuites>')
    done = run([PYTHON, f"{TOP}/tools/check-skips", str(report)], env={**os.environ, "CSN_CI": "1"})
    assert done.stdout.strip().split("\n")[-1] == "1 passed, 2 failed"


def test_tally_of_programs_that_were_asked_again(tmp_path):
    for name, *tests in (("meson", ("a", "ok 1 - x\nnot ok 2 - y\n", "FAIL"), ("b", "", "FAIL")),
                         ("meson-again", ("a", "ok 1 - x\nok 2 - y\n", "OK"), ("b", "", "FAIL"))):
        (tmp_path / f"{name}.json").write_text("".join(
            json.dumps({"name": test, "stdout": f"1..{text.count('ok')}\n{text}", "result": result}) + "\n" for test, text, result in tests))
    done = run([PYTHON, f"{TOP}/tools/check-skips", *sorted(map(str, tmp_path.iterdir()))])
    *lines, last = done.stdout.strip().split("\n")
    assert last == "2 passed, 1 failed" and "failed once, passed by itself: a: FAIL" in lines


def test_tally_of_what_was_asked_again(tmp_path):
    def report(name, *cases):
        text = "".join(f'<testcase classname="a" name="{case}">{told}</testcase>' for case, told in cases)
        (tmp_path / name).write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")

    no = '<failure message="no"/>'
    report("pytest-x.xml", ("b", ""), ("c", no), ("d", no), ("e", no))
    report("pytest-x-again.xml", ("c", ""), ("d", no), ("e", '<skipped message="kvm"/>'))
    done = run([PYTHON, f"{TOP}/tools/check-skips", *sorted(map(str, tmp_path.iterdir()))])
    *lines, last = done.stdout.strip().split("\n")
    assert last == "2 passed, 2 failed" and "failed once, passed by itself: a::c: no" in lines


# ---- set-up --------------------------------------------------------------------------------


def fake(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    os.chmod(folder / name, 0o755)


def setup(tmp_path, *argv, **env):
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    return run([f"{TOP}/tools/setup", *argv], env={**os.environ, "PATH": path, **env})


def test_setup_is_silent_and_fast_when_all_is_there(tmp_path):
    if setup(tmp_path, "check").stdout:
        pytest.skip("packages: this machine was not set up by apt")
    start = time.monotonic()
    done = setup(tmp_path, "check")
    assert (done.returncode, done.stdout) == (0, "") and time.monotonic() - start < 0.5


def test_setup_installs_what_is_missing(tmp_path):
    (tmp_path / "os-release").write_text("ID=ubuntu\nID_LIKE=debian\n")
    log = tmp_path / "log"
    fake(tmp_path / "bin", "dpkg-query", "echo 'installed gcc '; echo 'config-files meson '; exit 1")
    fake(tmp_path / "bin", "apt-get", f'echo "$*" >>{log}')
    fake(tmp_path / "bin", "sudo", f'echo sudo >>{log}; exec "$@"')
    done = setup(tmp_path, "build", CSN_OS_RELEASE=str(tmp_path / "os-release"))
    assert done.returncode == 0, done.stdout
    lines = log.read_text().split("\n")
    assert ("sudo" in lines) == (os.getuid() != 0)
    install = [line for line in lines if " install " in line][0].split()
    assert "meson" in install and "libseccomp-dev" in install and "gcc" not in install


def test_setup_names_packages_elsewhere(tmp_path):
    (tmp_path / "os-release").write_text("ID=fedora\n")
    for tool in ("pkg-config",):
        fake(tmp_path / "bin", tool, "exit 1")
    done = setup(tmp_path, "build", CSN_OS_RELEASE=str(tmp_path / "os-release"))
    assert done.returncode == 1 and "libseccomp-dev" in done.stdout and "is not set up automatically" in done.stdout


def test_setup_says_one_sentence_on_macos(tmp_path):
    fake(tmp_path / "bin", "uname", "echo Darwin")
    done = setup(tmp_path, "build")
    assert done.returncode == 1 and "on macOS run it inside a Linux machine" in done.stdout
    assert done.stdout.count("\n") == 1


def test_profile_only_where_namespaces_are_closed(tmp_path):
    (tmp_path / "switch").write_text("1\n")
    (tmp_path / "profiles").mkdir()
    log = tmp_path / "log"
    fake(tmp_path / "bin", "apparmor_parser", f'echo "$*" >>{log}')
    fake(tmp_path / "bin", "sudo", 'exec "$@"')
    env = {"CSN_USERNS_SWITCH": str(tmp_path / "switch"), "CSN_PROFILE_DIR": str(tmp_path / "profiles")}
    done = setup(tmp_path, "profile", "/opt/a b/build/caisson", **env)
    profile = tmp_path / "profiles" / "opt.a.b.build.caisson"
    assert done.returncode == 0 and "opens them to /opt/a b/build/caisson alone" in done.stdout
    assert 'profile opt.a.b.build.caisson "/opt/a b/build/caisson"' in profile.read_text()
    assert "\n  userns,\n" in profile.read_text() and "@" not in profile.read_text()
    assert setup(tmp_path, "profile", "/opt/a b/build/caisson", **env).stdout == ""  # the second time: nothing to do
    assert log.read_text().count("\n") == 1
    setup(tmp_path, "unprofile", "/opt/a b/build/caisson", **env)
    assert not profile.exists() and "-R" in log.read_text()
    (tmp_path / "switch").write_text("0\n")
    assert setup(tmp_path, "profile", "/opt/x/caisson", **env).stdout == "" and not (tmp_path / "profiles" / "opt.x.caisson").exists()


# ---- this tree -----------------------------------------------------------------------------


def test_every_rule_has_run_here():
    """`make check` judges this tree; here only that no rule dies on it."""
    done = run([PYTHON, f"{TOP}/tools/check"])
    for rule in "sizes rooms banned headers form docs words flags".split():
        assert f"ok   {rule}: " in done.stdout or f"FAIL {rule}: " in done.stdout, done.stdout
