"""The page of a job: what it says against the books, whatever the worker put there, and what it says of a broken record."""
import html
import html.parser
import json
import os
import re
import stat

import pytest

from job_chain import Chain

EVIL = "</td><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202eevil\u2066 '\"&amp;"


class Page(html.parser.HTMLParser):
    """The tags, their attributes and the text of a page; every tag that is opened is closed."""

    VOID = {"meta", "link", "br", "img", "path", "rect"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words, self.bad = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open and not self.bad, (self.open, self.bad)
        self.text = re.sub(r"\s+", " ", "".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data + " " if self.open and self.open[-1] in ("td", "th", "dd", "dt", "p") else data)


def report(jobs, name, status=0):
    done = jobs.cli("report", name)
    assert done.returncode == status, done.stderr
    assert len(done.stdout.encode()) < 1_000_000
    return done.stdout, Page(done.stdout), done.stderr


def check_harmless(page):
    """Nothing in it runs, loads, or leads anywhere."""
    assert {tag for tag, _ in page.tags} <= {
        "html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "h1", "h2", "h3", "p", "div", "dl",
        "dt", "dd", "span", "strong", "code", "time", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption",
        "svg", "path", "rect", "text"}
    for tag, attributes in page.tags:
        assert set(attributes) <= {"lang", "charset", "http-equiv", "content", "name", "class", "id", "aria-labelledby", "role", "tabindex",
                                   "aria-label", "aria-hidden", "scope", "colspan", "datetime", "viewbox", "preserveaspectratio", "d",
                                   "x", "y", "width", "height", "text-anchor"}, (tag, attributes)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", page.text)


def test_a_page_says_what_the_books_say(jobs):
    done = jobs.start("one", """
caisson-report usage cost_usd=0.0042 tokens=150
caisson-report iteration summary='<b>first</b> & "last"' cost_usd=0.3
mkdir -p kept; echo '{}' >kept/1.json
caisson-report checkpoint path=kept/1.json
caisson-report tool_call tool=bash command='echo </script>'
caisson-report usage tokens=-1
echo x >/workspace/data/no
exit 3
""", flags=["--max-cost-usd", "2", "--max-iterations", "10"])
    assert done.returncode == 3, done.stderr
    text, page, _ = report(jobs, "one")
    check_harmless(page)
    assert text.startswith("<!DOCTYPE html>\n") and "<script" not in text
    for said in ("failed", "exited, status 3", "Record verified.", "$0.3042 of $2.00", "1 of 10", "150", "Iteration 1 : <b>first</b> & \"last\"",
                 "kept/1.json checkpoint", "FilesystemWriteViolation", "/workspace/data", "Launch 1", "acceptEdits", "exit code 3",
                 '"command":"echo </script>"', "tokens is no number", "sh /workspace/run/worker.sh"):
        assert said.replace(" :", ":") in page.text.replace(" :", ":"), (said, page.text)
    assert f"All {len(jobs.events('one'))} lines" in page.text
    data = jobs.base / "page.html"
    told = json.loads(jobs.cli("report", "one", "--output", data, "--json").stdout)
    assert told["chain"] == "verified" and told["bytes"] == data.stat().st_size and told["status"] == "failed" and told["why"] is None
    assert data.stat().st_mode & 0o777 == 0o600
    assert jobs.cli("report", "one", "--json").returncode == 2


def test_raised_ceilings_and_launches_are_told(jobs):
    worker = "[ -e again ] || sleep=600; touch again; caisson-report usage cost_usd=1.5; exec sleep ${sleep:-0}"
    assert jobs.start("one", worker, flags=["--max-cost-usd", "1"]).returncode == 124
    assert "It reached its ceiling of money." in report(jobs, "one")[1].text
    assert jobs.cli("extend", "one", "--add-cost-usd", "4").returncode == 0
    assert jobs.cli("resume", "one").returncode == 0
    page = report(jobs, "one")[1]
    for said in ("$1.00 → $5.00", "Launch 2, after it was limited", "$3.00 of $5.00", "60.0 %", "The worker ended by itself, with status 0."):
        assert said in page.text, (said, page.text)


def test_a_running_job_is_told_up_to_now(jobs):
    job = jobs.popen(*jobs.started("one", "caisson-report iteration summary=first; exec sleep 600"))
    try:
        jobs.wait_for("one", lambda state: state.get("iteration") == 1)
        page = report(jobs, "one")[1]
        assert "It is running" in page.text and "Record not closed yet." in page.text and "Iteration 1: first" in page.text
    finally:
        jobs.cli("stop", "one")
        job.communicate(timeout=60)
    assert "Somebody stopped it. (SIGTERM" in report(jobs, "one")[1].text


def hostile(root):
    chain = Chain(root, "evil", {"max_cost_usd": 4.0}, worker=["sh", "-c", EVIL])
    chain.launch([{"at": "/workspace/run", "host": EVIL, "mode": "rw"}], network=EVIL, image=EVIL, env_passed=[EVIL], tier="\0nul")
    chain.report("iteration", cost=0.25, summary=EVIL)
    chain.report("iteration", summary="x" * 30000)
    chain.report("iteration", summary=["no", {"text": EVIL}])
    chain.report("checkpoint", path=f"kept/{EVIL.replace('/', '')}.json")
    chain.report("tool_call", command=EVIL, deep={EVIL: [EVIL, 1.5, None]})
    chain.report("other", nul="a\0b")
    for i in range(300):
        chain.deny(f"{EVIL} {i}", EVIL if i % 2 else "SyscallViolation", count=i + 1)
    chain.end(EVIL, EVIL, 3)
    (chain.folder / "kept").mkdir()
    for name in (os.fsencode(EVIL.replace("/", "")), b"\xff\xfe\n<script>", b"x" * 250, b"-- \x1b]0;title\x07"):
        with open(os.path.join(os.fsencode(chain.folder), b"kept", name), "wb") as file:
            file.write(b"x")
    os.symlink("/etc/passwd", chain.folder / "kept/link")
    os.mkfifo(chain.folder / "kept/fifo")
    return chain


def test_what_a_worker_wrote_is_text(jobs):
    hostile(jobs.root).write()
    text, page, _ = report(jobs, "evil")
    check_harmless(page)
    assert "Record verified." in page.text
    shown = EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u{202e}").replace("\u2066", "\\u{2066}")
    assert page.text.count(shown) > 100
    assert r"\xff\xfe\n<script>" in page.text and "1 symbolic links, 1 others" in page.text
    assert r"a\u0000b" in page.text or r"a\x00b" in page.text
    assert "attempts of other kinds are in the record and not listed here" in page.text and "45,150" in page.text
    assert "root:" not in text


def test_a_million_rows_are_counted_not_listed(jobs):
    chain = Chain(jobs.root, "long", {"max_iterations": 10})
    for _ in range(30):
        chain.launch(pause=3600)
        for i in range(60):
            chain.report("iteration", summary=f"step {i} " + "&" * 400)
            chain.report(f"kind-{i}", text="'" * 3000)
        chain.extend(max_cost_usd=float(chain.launches))
        chain.end("limited", "max_iterations", 124)
    chain.write()
    page = report(jobs, "long")[1]
    check_harmless(page)
    assert "1,720 more iterations and checkpoints" in page.text and "1,720 more reports" in page.text
    assert "14 more launches are in the record" in page.text and "1,800" in page.text and "Launch 30" in page.text


@pytest.mark.parametrize("fault, where, kept", [
    ("changed", "line 12", 11), ("removed", "line 12", 11), ("nonsense", "line 12", 11), ("short", "line 20", 19), ("added", "line 24", 23),
    ("state", "result.json", 23), ("head", "line 23", 22), ("first", "line 1", 0)])
def test_a_broken_record_is_said_loudly(jobs, fault, where, kept):
    chain = Chain(jobs.root, "one")
    chain.launch()
    for i in range(18):
        chain.report("iteration", summary=f"step {i}")
    chain.end()
    events = chain.write()
    lines = events.read_bytes().splitlines(keepends=True)
    if fault == "changed":
        lines[11] = lines[11].replace(b"step 8", b"step 9")
    elif fault == "removed":
        del lines[11]
    elif fault == "nonsense":
        lines[11] = b'\xff<script>alert(1)</script>{"event":\n'
    elif fault == "short":
        lines = lines[:19]
    elif fault == "added":
        lines.append(lines[-1])
    elif fault == "first":
        lines[0] = b"{}\n"
    elif fault == "state":
        (chain.folder / "result.json").write_text("[]")
    elif fault == "head":
        heads = jobs.root / "heads.jsonl"
        heads.write_text(heads.read_text().replace(chain.head, "f" * 64))
    events.write_bytes(b"".join(lines))
    text, page, stderr = report(jobs, "one", status=1)
    check_harmless(page)
    assert "Record broken" in page.text and where in page.text and "the record is broken" in stderr
    assert "Record verified" not in page.text and 'role="alert"' in text
    assert f"This page is made of {kept} lines" in page.text, page.text
    if fault == "changed":
        assert "step 7" in page.text and "step 9" not in page.text


def test_a_line_that_a_kill_cut_is_no_fault(jobs):
    chain = Chain(jobs.root, "one")
    chain.launch()
    chain.report("iteration", summary="done")
    events = chain.write(closes=False)
    with events.open("ab") as file:
        file.write(b'{"event":"WorkerEv')
    page = report(jobs, "one")[1]
    assert "Record not closed yet." in page.text and "Its launcher was killed" in page.text and "Iteration 1: done" in page.text


def test_output_writes_to_nothing_that_was_there(jobs, tmp_path):
    jobs.start("one", "true")
    kept = tmp_path / "kept"
    kept.write_text("kept")
    (tmp_path / "link").symlink_to(kept)
    os.link(kept, tmp_path / "twin")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "twin", "pipe"):
        done = jobs.cli("report", "one", "--output", tmp_path / name)
        assert done.returncode == 0, done
        st = (tmp_path / name).lstat()
        assert stat.S_ISREG(st.st_mode) and st.st_mode & 0o777 == 0o600 and st.st_nlink == 1
    assert kept.read_text() == "kept"


def test_output_goes_through_no_link(jobs, tmp_path):
    jobs.start("one", "true")
    (tmp_path / "there").mkdir()
    (tmp_path / "way").symlink_to("there")
    done = jobs.cli("report", "one", "--output", tmp_path / "way/page.html")
    assert done.returncode == 1 and "symbolic link" in done.stderr and not list((tmp_path / "there").iterdir())
    assert jobs.cli("report", "one", "--output", tmp_path / "there").returncode == 1
