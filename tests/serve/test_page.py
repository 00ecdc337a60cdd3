"""The page in a real browser, before a real server: what a person sees, with a mouse, keys or a phone, and what hostile text does."""
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import threading

import pytest
from browser import Browser

CHIPS = "return document.querySelector('[data-kind=\"%s\"]')"
LINES = "return [...document.querySelectorAll('#events [role=option]')].map(e => e.innerText)"
HOSTILE = "<img src=x onerror=window.hit=1>"
LONG_EVENTS = 10_000


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    browser.look()
    yield browser
    browser.close()


@pytest.fixture
def page(browser, server):
    """The page, open, with its token; it says nothing on the console."""
    browser.look()
    browser.go(server.line)
    browser.until("return document.querySelector('#version').textContent")
    yield browser
    assert browser.said() == []


def show(page, place):
    page.js("location.hash = arguments[0]", place)
    page.until("return !document.querySelector('#record').hidden && document.querySelector('#events [role=option]')")


def run_id(server, box):
    return server.ask("GET", f"/v1/sandboxes/{box}").json()["run_id"]


def text(page, selector):
    return page.js("return document.querySelector(arguments[0]).innerText", selector)


def pictured(page, name):
    """CSN_PICTURES=FOLDER keeps what the page looks like there."""
    if folder := os.environ.get("CSN_PICTURES"):
        page.picture(pathlib.Path(folder) / f"{name}.png")


def test_the_token_leaves_the_address_bar(page, server):
    assert page.js("return location.href") == server.line.split("#")[0]
    assert page.js("return history.length") < 10 and server.token not in page.js("return document.documentElement.outerHTML")
    page.js("location.reload()")
    page.until("return document.readyState === 'complete' && document.querySelector('#version').textContent")


def test_without_a_token_the_page_asks_for_one(browser, server):
    browser.js("sessionStorage.clear()")
    browser.go(server.line.split("#")[0])
    browser.js("sessionStorage.clear(); location.reload()")
    browser.until("return document.readyState === 'complete' && !document.querySelector('#token').hidden")
    assert browser.js("return document.querySelector('#columns').hidden")
    browser.js("document.querySelector('#token-text').focus()")
    browser.press(*server.token, "Enter")
    browser.until("return !document.querySelector('#columns').hidden && document.querySelector('#version').textContent")
    browser.said()  # the refused request


def test_a_command_is_followed_while_it_runs(page, server, box):
    show(page, f"#sandbox/{box}")
    running = threading.Thread(target=server.call, args=(box, "exec"), kwargs={"command": "echo x > /usr/x; sleep 4; echo y > /usr/y"})
    running.start()
    try:
        said = page.until("return document.querySelector('#violations').textContent")
        assert "/usr/x" in said and "built-in: read-only root" in said and "/usr/y" not in said
        assert running.is_alive()
        assert "/usr/x" in page.until("return document.querySelector('#news').textContent")
        page.until("return document.querySelector('#facts').innerText.includes('busy')", seconds=3)
        page.until("return document.querySelector('.plot-line')?.getAttribute('d')")
        assert "of 1 GiB" in text(page, "#plots")
    finally:
        running.join()
    page.until("return document.querySelector('#violations').children.length === 2")
    assert text(page, "#tab-violations") == "Violations 2"


def test_filters_by_kind_and_text(page, server, box):
    server.call(box, "exec", command="echo one > /usr/one")
    server.call(box, "exec", command="echo two > /usr/two; exit 7")
    show(page, f"#sandbox/{box}")
    page.until("return document.querySelector('[data-kind=ExecEnded] .number')?.textContent === '2'")
    page.click("[data-kind=Violation]")
    page.until(f"{LINES}.length === 2".replace("return [...", "return [..."))
    page.click("#find")
    page.press(*"USR/TWO")
    lines = page.until("const l = [...document.querySelectorAll('#events [role=option]')]; return l.length === 1 && l.map(e => e.innerText)")
    assert "/usr/two" in lines[0] and re.match("1 of ", text(page, "#count"))
    page.click("[data-kind=Violation]")
    page.click("[data-kind=ExecStarted]")
    page.until("return document.querySelector('#events [role=option]')?.innerText.includes('exit 7')")
    page.click("#events [role=option]")
    assert "echo two > /usr/two; exit 7" in text(page, "#detail") and "hash " in text(page, "#detail")


def test_by_keyboard_alone(page, server, box):
    server.call(box, "exec", command="echo x > /usr/x")
    page.until("return document.querySelector(`a[href='#sandbox/${arguments[0]}']`)", box)  # lists are asked for from time to time
    page.js("document.body.focus()")
    seen = []
    while page.js("return document.activeElement.getAttribute('href')") != f"#sandbox/{box}":
        page.press("Tab")
        seen.append(page.js("const e = document.activeElement; return [e.id, getComputedStyle(e).outlineStyle]"))
        assert len(seen) < 40, seen
    assert seen[0][0] == "skip" and {style for _, style in seen} == {"solid"}, "a focus that cannot be seen"
    page.press("Enter")
    page.until("return document.querySelector('#events [role=option]')")
    page.press("Shift+Tab")
    page.js("document.querySelector('#skip').focus()")
    page.press("Enter")
    assert page.js("return document.activeElement.id") == "main"
    while page.js("return document.activeElement.id") != "tab-events":
        page.press("Tab")
    page.press("Right")
    assert page.js("return document.activeElement.id") == "tab-violations"
    assert "/usr/x" in text(page, "#panel-violations")
    page.press("Left")
    while page.js("return document.activeElement.id") != "events":
        page.press("Tab")
    page.press("Down", "Down")
    chosen = page.until("return document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.getAttribute('aria-posinset')")
    assert chosen == "2" and not page.js("return document.querySelector('#detail').hidden")
    page.press("End")
    page.until("const e = document.getElementById(document.activeElement.getAttribute('aria-activedescendant')); "
               "return e && e.getAttribute('aria-posinset') === e.getAttribute('aria-setsize')")


def test_hostile_text_stays_text(page, server, box, run_caisson):
    script = f"echo '<script>window.hit=1</script>' > '{HOSTILE}'; printf 'a\\342\\200\\256b' > bidi; echo x > '/usr/{HOSTILE}'"
    server.call(box, "exec", command=f"{script} # {HOSTILE}")
    assert run_caisson("run", "--cow", "-c", script).returncode in (0, 1)
    for place in (f"#sandbox/{box}", f"#run/{server.ask('GET', '/v1/runs?limit=1').json()['runs'][0]['run_id']}", f"#run/{HOSTILE}"):
        page.js("location.hash = arguments[0]", place)
        page.until("return document.querySelector('#record').hidden === false")
        if HOSTILE in place:
            continue
        page.until("return document.querySelector('#violations').textContent.includes(arguments[0])", HOSTILE)
        page.click("#tab-changes")
        page.until("return document.querySelector('#diff').innerText.includes(arguments[0])", f"b/{HOSTILE}")
        diff = text(page, "#diff")
        assert "+<script>window.hit=1</script>" in diff and "+a\\u{202e}b" in diff and "\u202e" not in diff
        assert page.js("return document.querySelector('.line.added').innerText[0]") == "+"
        page.click("#tab-events")
        page.click("#events [role=option]:last-child")
    assert page.js("return [window.hit, document.querySelectorAll('img[src=x], main script').length]") == [None, 0]
    page.said()  # the run of the hostile name, which is none


def test_the_policy_lets_no_text_run(server):
    policy = server.ask("GET", "/").headers["Content-Security-Policy"]
    assert {"default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'"} <= set(policy.split("; "))


def test_changes_verification_and_a_record_that_was_changed(page, server, home, run_caisson):
    (home.project / "kept").write_text("one\ntwo\n", encoding="utf-8")
    assert run_caisson("run", "--cow", "-c", "sed -i 's/two/-- three/' kept").returncode == 0
    run = server.ask("GET", "/v1/runs?limit=1").json()["runs"][0]["run_id"]
    show(page, f"#run/{run}")
    page.until("return document.querySelector('#proof').textContent.startsWith('Intact')")
    page.click("#tab-changes")
    page.until("return document.querySelector('#diff').innerText.includes('-- three')")
    kinds = page.js("return [...document.querySelectorAll('#diff .line')].map(e => [e.className, e.innerText])")
    assert ["line removed", "-two"] in kinds and ["line added", "+-- three"] in kinds and ["line file", "M kept"] in kinds
    assert "Time" in text(page, "#plots") and "of 45 s" in text(page, "#plots")
    file = home.folder / "state" / "caisson" / "runs" / run / "logs" / "events.jsonl"
    file.chmod(0o600)
    file.write_text(file.read_text(encoding="utf-8").replace("balanced", "strict", 1), encoding="utf-8")
    page.click("#tab-proof")
    page.click("#prove")
    page.until("return document.querySelector('#proof').textContent.startsWith('Not intact')")
    page.go("about:blank")  # it would ask once more for what is gone
    shutil.rmtree(file.parents[1])


def test_a_stream_that_was_cut_off_goes_on(page, server, box):
    """Out of sight the stream is let go; back in sight it goes on behind the last event, none twice."""
    show(page, f"#sandbox/{box}")
    server.call(box, "exec", command="true")
    page.until("return document.querySelector('[data-kind=ExecEnded] .number')?.textContent === '1'")
    before = page.js("return Number(document.querySelector('#count').textContent.split(' ')[0])")
    page.js("Object.defineProperty(document, 'hidden', {value: true, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))")
    server.call(box, "exec", command="true")
    page.js("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    page.until("return document.querySelector('#count').textContent === arguments[0]", f"{before + 2} events")


def long_record(home, run):
    """A record of LONG_EVENTS, made of a real one: its last lines again and again, numbered and chained anew."""
    runs = home.folder / "state" / "caisson" / "runs"
    shutil.copytree(runs / run, runs / (other := run[:-4] + "0000"))
    file = runs / other / "logs" / "events.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    middle = [line for line in lines if line["event"] in ("ExecStarted", "Violation", "ExecEnded")]
    wanted = lines[:-1] + [middle[i % len(middle)] for i in range(LONG_EVENTS - len(lines))] + lines[-1:]
    last, out = "0" * 64, []
    for seq, line in enumerate(wanted, 1):
        line = {key: value for key, value in line.items() if key != "hash"} | {"seq": seq, "prev": last}
        last = hashlib.sha256(json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
        out.append(json.dumps(line | {"hash": last}, ensure_ascii=False))
    file.chmod(0o600)
    file.write_text("\n".join(out) + "\n", encoding="utf-8")
    return other


def test_ten_thousand_events_do_not_stutter(page, server, home, run_caisson):
    """All at once, as fast as the server sends them. In an idle machine no task takes 100 ms; the bound has slack for a busy one."""
    run_caisson("run", "--cow", "-c", "echo x > /usr/x")
    run = long_record(home, server.ask("GET", "/v1/runs?limit=1").json()["runs"][0]["run_id"])
    page.js("""window.tasks = []; window.frames_ = 0;
        new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(e => e.duration))).observe({type: 'longtask'});
        const count = () => { window.frames_++; requestAnimationFrame(count); }; count();""")
    page.js("location.hash = arguments[0]", f"#run/{run}")
    page.until("return document.querySelector('#count').textContent === arguments[0]", f"{LONG_EVENTS} events")
    assert page.js("return document.querySelectorAll('#events [role=option]').length") < 80
    page.click("#find")
    page.press(*"usr/x")
    page.until("return document.querySelector('#count').textContent.includes(' of ')")
    page.press("Tab", "End")
    page.until("return document.querySelector('#events [aria-selected=true]')")
    tasks, frames = page.js("return [window.tasks, window.frames_]")
    print("longest task", max(tasks, default=0), "frames", frames)
    assert max(tasks, default=0) < 300 and frames > 5
    shutil.rmtree(home.folder / "state" / "caisson" / "runs" / run)


@pytest.mark.parametrize("width, height, scheme", [(1280, 800, "light"), (1280, 800, "dark"), (390, 844, "light")])
def test_nothing_sticks_out_and_all_is_named(page, server, box, width, height, scheme):
    server.call(box, "exec", command="echo x > /usr/x; head -c 50M /dev/zero > /tmp/x")
    page.look(width, height, scheme)
    show(page, f"#sandbox/{box}")
    page.until("return document.querySelector('.plot-line')")
    pictured(page, f"{width}-{scheme}")
    assert page.js("return document.documentElement.scrollWidth") <= width
    assert page.js("""return [...document.querySelectorAll('button, a, input, [role=listbox], [role=region], nav, main')]
        .filter(e => e.checkVisibility() && !(e.innerText || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.outerHTML)""") == []
    if width < 600:
        page.click(".back")
        page.until("return document.querySelector('#side').checkVisibility() && !document.querySelector('main').checkVisibility()")
        assert page.js("return document.documentElement.scrollWidth") <= width


class Evil(http.server.BaseHTTPRequestHandler):
    """A page of another origin that wants to know what is up."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>evil</title><iframe id=f></iframe>")

    def log_message(self, *_):
        pass


def test_a_page_of_another_origin_reads_nothing(browser, server):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        browser.go(f"http://localhost:{evil.server_port}/")
        told = browser.js("""
            const [url, token] = arguments;
            const attempt = (path, options) => fetch(url + path, options).then(r => r.text()).then(t => t || 'opaque', () => 'refused');
            const framed = new Promise(done => { f.onload = () => { let seen = 'nothing';
              try { seen = f.contentDocument ? f.contentDocument.title : 'nothing'; } catch { } done(seen); }; f.src = url; });
            return Promise.all([attempt(''), attempt('app.js'), attempt('v1/sandboxes'),
              attempt('v1/sandboxes', {headers: {Authorization: 'Bearer ' + token}}), attempt('v1', {mode: 'no-cors'}), framed])""",
                          server.line.split("#")[0], server.token)
        assert set(told) <= {"refused", "opaque", "nothing", ""}, told
        evil.shutdown()
    browser.said()
