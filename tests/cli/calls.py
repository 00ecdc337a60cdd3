"""One table of calls whose answers no wall may change, and what is left out of an answer.

A row is Call(verb, arguments, what to do meanwhile). The rows are one story, told in order in one workspace that
begins with a fifo: a file that one row writes the next one reads. Nothing in it depends on where the workspace lies, who
runs it or how long it takes; what does is named in UNLIKE, or is a path, which becomes WS.
"""
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "agent"))
from etf import Atom  # noqa: E402

# Of an answer: times, usage, process ids, and facts, which are what a wall observes and not what a call answers.
UNLIKE = {"wall_us", "cpu_us", "mem_peak_bytes", "user_us", "system_us", "max_rss_bytes", "pid", "violations",
          "mtime_ms", "started_ms", "scope", "ref"}
LONG = b"n" * 255
OUTPUT = 1 << 20  # limits.output in the policy of each wall


class Call:
    """One call. `stdin`: pieces of input; `signal`, `cancel`: sent after the first output; `ordered`: the order of
    output is part of the answer."""

    def __init__(self, verb, stdin=None, signal=None, cancel=False, ordered=False, **args):
        self.verb, self.args = verb, args
        self.stdin, self.signal, self.cancel, self.ordered = stdin, signal, cancel, ordered

    def __repr__(self):
        args = ", ".join(f"{key}={value!r:.60}" for key, value in self.args.items())
        return f"{self.verb}({args})"


def sh(text, **more):
    return Call("exec", command=text.encode() if isinstance(text, str) else text, **more)


def argv(*words, **more):
    return Call("exec", argv=[word if isinstance(word, bytes) else word.encode() for word in words], **more)


def read(path, **more):
    return Call("read", path=path, **more)


def write(path, content, **more):
    return Call("write", path=path, bytes=content, **more)


def edit(path, old, new):
    return Call("edit", path=path, old=old, new=new)


def stat(path):
    return Call("stat", path=path)


def ls(path):
    return Call("list", path=path)


def rm(path, **more):
    return Call("remove", path=path, **more)


def mv(path, to):
    return Call("move", path=path, to=to)


def glob(pattern, **more):
    return Call("glob", pattern=pattern, **more)


def grep(pattern, **more):
    return Call("grep", pattern=pattern, **more)


# What every program that answers frames can do, also one that keeps its files in a dictionary.
PLAIN = [
    write(b"plain/a.txt", b"one\ntwo\nthree\n"),
    read(b"plain/a.txt"),
    read(b"plain/a.txt", offset=4),
    read(b"plain/a.txt", offset=4, length=3),
    read(b"plain/a.txt", offset=14),
    read(b"plain/a.txt", offset=1 << 40),
    read(b"plain/a.txt", length=0),
    read(b"./plain//a.txt"),
    read(b"plain/none"),
    read(b"plain"),
    read(b"plain/a.txt/x"),
    read(b"../a.txt"),
    read(b"plain/../../a.txt"),
    write(b"plain/empty", b""),
    read(b"plain/empty"),
    write(b"plain/new\nline \xff\xfe", bytes(range(256))),
    read(b"plain/new\nline \xff\xfe"),
    write(b"plain/a.txt", b"again"),
    read(b"plain/a.txt"),
    write(b"plain", b"x"),
    write(b"plain/a.txt/x", b"x"),
    write(b"../x", b"x"),
    write(b"plain/deep/er/still", b"x"),
    read(b"plain/deep/er/still"),
    write(b"plain/full", b"\0" * 65536),
    read(b"plain/full", offset=65530),
    edit(b"plain/a.txt", b"gai", b"GAI"),
    read(b"plain/a.txt"),
    edit(b"plain/a.txt", b"none", b"x"),
    edit(b"plain/a.txt", b"", b"x"),
    edit(b"plain/none", b"a", b"b"),
    edit(b"plain", b"a", b"b"),
    write(b"plain/crlf", b"\xef\xbb\xbfone\r\ntwo\r\n"),
    edit(b"plain/crlf", b"one\n", b"x"),
    edit(b"plain/crlf", b"one\r\n", b"1\r\n"),
    read(b"plain/crlf"),
    write(b"plain/twice", b"aaa b b"),
    edit(b"plain/twice", b"aa", b"x"),
    edit(b"plain/twice", b"b", b"x"),
    read(b"plain/twice"),
    edit(b"plain/twice", b"aaa ", b""),
    ls(b"plain/deep"),
    ls(b"plain/a.txt"),
    ls(b"plain/none"),
    rm(b"plain/none"),
    rm(b"plain/empty"),
    read(b"plain/empty"),
    rm(b"plain/deep"),
    rm(b"plain/deep", recursive=True),
    ls(b"plain/deep"),
    rm(b"../x"),
]

FILES = [
    sh("umask 022; mkdir dir; printf 'one\\ntwo\\n' >dir/f; ln -s f dir/link; ln -s loop-b loop-a; ln -s loop-a loop-b;"
       "ln -s / root; ln -s ../.. up; ln -s missing dangling; mkdir dir/sub; printf x >dir/sub/deep;"
       "ln -s dir dirlink; ln dir/f hard; mv -v dir/sub/deep deep; mv deep dir/sub"), write(b"bin", b"a\0b", mode=0o600),
    read(b"dir/link"), read(b"dirlink/f"), read(b"loop-a"), read(b"dangling"), read(b"fifo"), read(b"root/etc/passwd"),
    read(b"up/x"), read(b"/dev/null"), read(b"/nonexistent/x"), read(b"/proc/self/root/etc/passwd"), read(b"bin"),
    read(b"x" * 256), read(LONG), read(b"a/" * 2047 + b"a"), read(b"a/" * 2048), read(b""), read(b"a\0b"), read("ü"),
    Call("read"), Call("read", path=b"dir/f", offset=-1), Call("read", path=b"dir/f", what=1), Call("read", path=7),
    Call("read", path=b"dir/f", length=1 << 62), Call("nonsense"), Call("nonsense", path=b"x"),
    write(b"dir/link", b"through\n"), stat(b"dir/link"), read(b"dir/f"), read(b"hard"),
    write(b"dangling", b"made\n"), read(b"missing"), write(b"loop-a", b"x"), write(b"fifo", b"x"),
    write(b"root/x-not-here/y", b"x"), write(b"up/x", b"x"), write(b"moded", b"x", mode=0o640), stat(b"moded"),
    write(b"moded", b"y"), stat(b"moded"), write(b"setid", b"x", mode=0o6755), stat(b"setid"),
    write(b"x" * 256, b"x"), write(LONG, b"long"), read(LONG), rm(LONG), write(b"", b"x"), write(b"a\0b", b"x"),
    write(b"big", b"x" * 65537), Call("write", path=b"x"), Call("write", path=b"x", bytes=b"x", mode=0o10000),
    Call("write", path=b"piped", stdin=[b"p" * 65536] * 5 + [b"end"]), read(b"piped", offset=327670), read(b"piped"),
    Call("write", path=b"piped", stdin=[]), stat(b"piped"), Call("write", path=b"piped", bytes=b"x", stdin=[]),
    edit(b"dir/link", b"rough", b"ick"), read(b"dir/f"), edit(b"loop-a", b"a", b"b"), edit(b"fifo", b"a", b"b"),
    edit(b"bin", b"\0", b"\0\0"), read(b"bin"), stat(b"bin"), Call("edit", path=b"bin", old=b"a"),
    stat(b"dir"), stat(b"fifo"), stat(b"loop-a"), stat(b"dangling"), stat(b"none"), stat(b".."), stat(b"."), stat(b"up"),
    stat(b"/dev/null"), stat(b"dirlink/sub/"), stat(b"dir/f/"),
    ls(b"dir"), ls(b"dirlink"), ls(b"loop-a"), ls(b"fifo"), ls(b".."), ls(b"up"), Call("list"),
    mv(b"dir/f", b"dir/moved"), mv(b"dir/none", b"x"), mv(b"dir/moved", b"dir/f"), mv(b"dir", b"dir/sub/x"),
    mv(b"dir/f", b"../x"), mv(b"dir/f", b"up/x"), mv(b"dir", b"moded"), mv(b"moded", b"dir"), mv(b"loop-a", b"loop-c"),
    mv(b"dir/f", b"none/x"), mv(b"hard", b"moded"), stat(b"moded"),
    rm(b"loop-c"), rm(b"loop-b"), rm(b"dirlink"), ls(b"dir/sub"), rm(b"."), rm(b"dir/sub"), rm(b"up"),
    rm(b"root", recursive=True), Call("remove", path=b"x", recursive=3),
]

SEARCH = [
    sh("mkdir -p s/a/b s/.hid; printf 'foo\\nbar\\nfoo x\\n' >s/a/one.c; printf 'FOO\\r\\nend' >s/a/b/two.h; printf 'foo\\0' >s/bin;"
       "printf 'foo\\n' >s/.hid/f; printf 'foo\\n' >'s/new\nline'; ln -s . s/self; printf '\\357\\273\\277foo\\n' >s/bom"),
    glob("s/**"), glob("s/**/*.{c,h}"), glob("*", cwd=b"s"), glob("**/[to]*", cwd=b"s/a"), glob("s/?i?"), glob("s/[!a-z]*"),
    glob("none*"), glob("s/**", limit=2), glob("s/**", limit=0), glob("["), glob("{a"), glob("s/{b,[z-a]}"), glob(""), glob("\\"),
    glob("*", cwd=b".."), glob("*", cwd=b"s/bin"), glob("*", cwd=b"none"), glob("../*"), glob("/etc/*"), glob(b"\xff*"),
    glob("a/" * 2048), Call("glob"), glob("*", cwd=b"s/self/self/a"),
    grep("foo", path=b"s"), grep("foo", path=b"s", case_sensitive=False), grep("^foo$", path=b"s", glob="*.c"), grep("foo", path=b"s/bin"),
    grep("bar", path=b"s", context=1), grep("foo", path=b"s", limit=1), grep("o{2", path=b"s"), grep("(", path=b"s"), grep("a[z-a]", path=b"s"),
    grep("x\\", path=b"s"), grep("", path=b"s/a/b"), grep("foo", path=b"none"), grep("foo", path=b"../x"), grep("foo", path=b"fifo"),
    grep("foo", path=b"s", glob="["), grep("(?<=fo)o", path=b"s/a/one.c"), grep("end$", path=b"s"), grep(b"\xff", path=b"s"),
    grep("foo", path=b"s/self/a/one.c"), Call("grep", path=b"s"), grep("foo", path=b"s", context=101),
]

EXEC = [
    sh("echo out; echo err >&2; exit 3"), sh("exit 255"), sh("kill -9 $$"), sh("kill -TERM $$"), sh("true"), sh("("), sh(""),
    argv("printf", "%s|", "a b", "", "c\nd", b"\xff"), argv("no-such-program"), argv("/etc/passwd"), argv("./dir"), argv("bin"),
    argv("/nonexistent/x"), argv(""), Call("exec"), Call("exec", argv=[]), Call("exec", argv=[b"true"], command=b"true"),
    Call("exec", argv=[b"a\0b"]), sh(b"echo \xff\xfe"), sh("printf '%s' \"$0\""), sh("pwd"), sh("pwd", cwd=b"dir"), sh("pwd", cwd=b"/usr"),
    sh("pwd", cwd=b"none"), sh("pwd", cwd=b"moded"), sh("pwd", cwd=b"./."), sh("echo $MARK; echo ${NOT-unset}; umask; echo $LANG"), sh("cd dir; export MARK=2; X=3"),
    sh("pwd; echo $MARK$X"), sh("env", env={b"A": b"1"}), sh("cat", stdin=[b"one\n", b"two"]), sh("cat", stdin=[]), sh("cat"), sh("wc -c", stdin=[b"x" * 65536] * 6),
    sh("head -c 3", stdin=[b"abcdef"]), sh("exec <&-; cat", stdin=[b"x"]),
    sh("for i in 1 2 3; do echo o$i; sleep 0.05; echo e$i >&2; sleep 0.05; done", ordered=True),
    sh("sleep 30", timeout_ms=150), sh("trap '' TERM; echo deaf; sleep 30 & wait; sleep 30", timeout_ms=150), sh("(sleep 30; echo late) & echo gone"),
    sh("setsid sleep 30 >/dev/null 2>&1 & echo left"), sh("echo begun; exec sleep 30", cancel=True), sh("exec 2>/dev/null; trap 'echo usr1; exit 4' USR1; echo begun; while :; do sleep 0.02; done", signal=10),
    sh("echo begun; exec sleep 30", signal=15), sh("echo begun; exec sleep 30", signal=9), sh("yes | head -c 300000 | wc -c"), sh("head -c 200000 /dev/zero"),
    sh("head -c 2000000 /dev/zero; echo never"), sh("ulimit -n; ulimit -c"), sh("echo a >&3"), sh("ls /proc/self/fd | wc -l"), sh("grep -E '^(SigBlk|SigIgn|NoNewPrivs)' /proc/self/status | head -2"),
    sh("exit 0", tag=b"t" * 256), sh("true", timeout_ms=-1), sh("true", nonsense=1),
]

DETACHED = [
    sh("echo up; sleep 0.05; echo ready to go; exec sleep 30", detach=True, tag=b"web"), sh("true", detach=True, tag=b"web"),
    sh("cat", detach=True, stdin=[b"x"]), Call("wait", tag=b"web", line=b"^ready", timeout_ms=5000), Call("wait", tag=b"web", text=b"to go", timeout_ms=5000),
    Call("wait", tag=b"web", line=b"never", timeout_ms=50), Call("wait", tag=b"web", line=b"("), Call("wait", tag=b"none"), Call("logs", tag=b"web"), Call("logs", tag=b"none"), Call("ps"),
    Call("kill", tag=b"web", signal=10), Call("wait", tag=b"web", timeout_ms=5000), Call("logs", tag=b"web", follow=True), Call("ps"), Call("wait", tag=b"web", forget=True), Call("ps"), Call("kill", tag=b"web"), Call("kill", tag=b"web", signal=65),
    sh("trap 'exit 7' TERM; echo set; while :; do sleep 0.02; done", detach=True, tag=b"soft"), Call("wait", tag=b"soft", line=b"set", timeout_ms=5000), Call("kill", tag=b"soft"), Call("wait", tag=b"soft", timeout_ms=5000),
    argv("no-such-program", detach=True, tag=b"none"), sh("exit 9", detach=True, tag=b"short"), Call("wait", tag=b"short", timeout_ms=5000), Call("kill", tag=b"short"), Call("wait"), Call("logs"), Call("kill"),
    Call("wait", tag=b"short", port=70000),
]

CALLS = PLAIN + FILES + SEARCH + EXEC + DETACHED


def like(term, replacements):
    """A term without what no two walls have in common."""
    if isinstance(term, dict):
        return {key: like(value, replacements) for key, value in term.items() if key not in UNLIKE}
    if isinstance(term, (list, tuple)):
        return type(term)(like(item, replacements) for item in term)
    if isinstance(term, bytes):
        for old, new in replacements:
            term = term.replace(old, new)
    return term


class Teller:
    """Makes the calls of a table over one connection: send(name, …), and frame(), the next one."""

    def __init__(self, connection, workspace, more=()):
        self.peer, self.ref = connection, 0
        self.replacements = [(bytes(path), b"WS") for path in workspace] + list(more)

    def feed(self, ref, pieces):
        """Under the window, as far as anybody reads; a call may end before."""
        room, waiting = 256 << 10, [*pieces, Atom("eof")]
        while waiting:
            size = 0 if isinstance(waiting[0], Atom) else len(waiting[0])
            if size > room:
                frame = self.peer.frame()
                if frame[0] == "window":
                    room += frame[2]
                    continue
                return frame
            self.peer.send("data", ref, Atom("stdin"), waiting.pop(0))
            room -= size
        return None

    def answer(self, call):
        """(reply | failed, its map or reason and detail, output)"""
        self.ref += 1
        args = call.args | ({"stdin": True} if call.stdin is not None else {})
        self.peer.send("call", self.ref, Atom(call.verb), args)
        first = self.feed(self.ref, call.stdin) if call.stdin is not None else None
        pieces, streams, meddled = [], {}, False
        while True:
            frame = first or self.peer.frame()
            first = None
            if frame[0] == "fact":  # told again in the account
                continue
            assert frame[1] == self.ref, (call, frame)
            if frame[0] in ("reply", "failed"):
                break
            if frame[0] != "data":
                continue
            pieces.append((str(frame[2]), frame[3]))
            streams[str(frame[2])] = streams.get(str(frame[2]), b"") + frame[3]
            self.peer.send("window", self.ref, len(frame[3]))
            if not meddled and (call.cancel or call.signal):
                meddled = True
                self.peer.send(*(("cancel", self.ref) if call.cancel else ("signal", self.ref, call.signal)))
        return self.told(frame, pieces if call.ordered else streams)

    def told(self, frame, output):
        """What is compared. What was cut, and by which signal its writer died, is a race on any wall."""
        told, seen = like(frame[2:], self.replacements), like(output, self.replacements)
        if frame[0] == "reply" and "stdout_bytes" in told[0]:
            if told[0]["reason"] == "output":
                return frame[0], "output", max(map(len, output.values())) <= OUTPUT
            del told[0]["stdout_bytes"], told[0]["stderr_bytes"]  # of paths as they are
        return frame[0], told, seen
