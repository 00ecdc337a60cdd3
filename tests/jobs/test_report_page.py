"""The page in a browser: hostile text is text, nothing runs and nothing is loaded, a long job makes a small page."""
import http.server
import pathlib
import sys
import threading
import time

import pytest
from job_chain import Chain
from test_report import EVIL, hostile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serve"))
from browser import Browser  # noqa: E402

EVENTS = 20_000
CONTRAST = """
const lum = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (node) => { for (; node; node = node.parentElement) { const c = rgb(getComputedStyle(node).backgroundColor);
  if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
const bad = [];
for (const node of document.querySelectorAll('main *')) {
  if (node.closest('svg') || ![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
  const [a, b] = [lum(rgb(getComputedStyle(node).color).slice(0, 3)), lum(behind(node))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) bad.push([node.tagName, node.className, ratio, node.textContent.slice(0, 40)]);
}
return bad;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def show(jobs, browser, tmp_path):
    """Shows a job's page as a server of tickets would; what was asked of that server is in show.asked."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *rest):
            super().__init__(*rest, directory=str(tmp_path / "pages"))

        def log_message(self, _format, *words):
            asked.append(words[0])

    (tmp_path / "pages").mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def show(name):
        page = tmp_path / "pages" / f"{name}.html"
        done = jobs.cli("report", name, "--output", page)
        assert done.returncode == 0, done.stderr
        browser.said()
        browser.go(f"http://127.0.0.1:{server.server_port}/{name}.html")
        return page

    show.asked = asked
    yield show
    server.shutdown()
    server.server_close()


def test_hostile_text_is_text(jobs, browser, show):
    hostile(jobs.root).write()
    show("evil")
    shown = EVIL.replace("\x1b", "\\x1b").replace("\u202e", "\\u{202e}").replace("\u2066", "\\u{2066}")
    assert browser.js("return document.querySelectorAll('script, img, iframe, a, link, [style], [onerror], foreignObject').length") == 0
    assert browser.js("return document.body.textContent").count(shown) > 100
    assert browser.js("return document.title") == f"Job evil: {EVIL[:15]}"
    assert browser.js("return performance.getEntriesByType('resource').length") == 0
    assert [word.split()[1] for word in show.asked if "favicon" not in word] == ["/evil.html"]
    assert [line for line in browser.said() if "favicon" not in line] == []


def test_its_own_policy_holds(jobs, browser, show):
    """What the policy forbids is forbidden, were there ever a hole: added by the driver's own hand, it neither runs nor loads."""
    Chain(jobs.root, "one").write()
    show("one")
    assert browser.js("return getComputedStyle(document.querySelector('main')).maxWidth") == "1060px"  # the style sheet is let in
    browser.js("""
window.ran = 0;
const at = document.body;
const script = document.createElement('script'); script.textContent = 'window.ran = 1'; at.append(script);
const image = document.createElement('img'); image.src = '/image.png'; at.append(image);
const style = document.createElement('style'); style.textContent = 'main { max-width: 7px; }'; at.append(style);
at.insertAdjacentHTML('beforeend', '<svg onload="window.ran = 2"></svg><img src=x onerror="window.ran = 3">');
""")
    time.sleep(0.3)
    assert browser.js("return window.ran") == 0
    assert browser.js("return getComputedStyle(document.querySelector('main')).maxWidth") == "1060px"
    assert len([line for line in browser.said() if "Content Security Policy" in line]) >= 4
    assert not any("image.png" in word for word in show.asked)


def test_numbers_headings_and_contrast(jobs, browser, show):
    jobs.start("one", """
caisson-report usage cost_usd=0.25 tokens=1200
caisson-report iteration summary=first
echo x >/workspace/data/no
exit 4
""", flags=["--max-cost-usd", "1"])
    show("one")
    facts = browser.js("return Object.fromEntries([...document.querySelectorAll('.facts div')].map((div) => "
                       "[div.querySelector('dt').innerText, div.querySelector('dd').innerText]))")
    state = jobs.state("one")
    assert facts["Cost"] == "$0.25 of $1.00" and facts["Tokens"] == "1,200" == f"{state['cumulative']['tokens']:,}"
    assert facts["Iterations"] == "1" and facts["Reports entered"] == str(state["reports"]) and facts["Denied attempts"] == "1"
    levels = browser.js("return [...document.querySelectorAll('h1, h2, h3')].map((node) => Number(node.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1 and all(after - before <= 1 for before, after in zip(levels, levels[1:]))
    assert browser.js("return [...document.querySelectorAll('table')].every((table) => table.caption.innerText && table.tHead)")
    assert browser.js("return document.querySelectorAll('figure svg[role=img][aria-label]').length") == 4
    for scheme in ("light", "dark"):
        browser.look(scheme=scheme)
        assert browser.js(CONTRAST) == [], scheme
    browser.look(width=400)
    assert browser.js("return document.documentElement.scrollWidth <= 400")
    browser.look()


def test_a_long_job_makes_a_small_page(jobs, browser, show):
    chain = Chain(jobs.root, "long", {"max_cost_usd": 900.0, "max_iterations": 100000})
    launches = 10
    for _ in range(launches):
        chain.launch(pause=3600)
        for i in range(EVENTS // launches // 2):
            chain.report("tool_call", seconds=0.1, command=EVIL)
            chain.report("iteration", cost=0.015625, tokens=7, summary=f"step {i} {EVIL * 3}")
        chain.extend(max_cost_usd=chain.books["cost_usd"] + 50)
        chain.end("limited", "max_cost_usd", 124)
    chain.write()
    page = show("long")
    assert page.stat().st_size < 1_000_000
    text = browser.js("return document.body.innerText")
    assert "$156.25 of $206.25" in text and "70,000" in text and "10,000 of 100,000" in text
    assert "9,920 more iterations and checkpoints" in text and f"{EVENTS // 2:,}" in text
    drawn = browser.js("return document.querySelector('figure .curve').getBBox().height")
    assert drawn > 50
