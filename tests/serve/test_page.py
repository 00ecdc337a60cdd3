"""The page of `caisson serve` in a real browser: runs and sandboxes, live, with a mouse, with keys, and on a phone."""
import pytest
from browser import Browser

ATTEMPTS = "echo x > /usr/x; echo '<script>document.title=1</script>' > '<img src=x onerror=document.title=2>'; exit 3"
ROWS = "return [...document.querySelectorAll('#events [role=option]')].map(row => row.innerText)"
LONG_TASKS = """window.longest = 0;
new PerformanceObserver(list => { for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration); })
  .observe({entryTypes: ['longtask']}); return true"""


@pytest.fixture(scope="module")
def server(serve):
    return serve("--cow")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    window = Browser(tmp_path_factory.mktemp("browser"))
    yield window
    window.close()


@pytest.fixture
def page(browser, server):
    """The page, opened as a person opens it: by the address that the server printed."""
    browser.look()
    browser.said()
    browser.go(server.line)
    browser.until("return document.querySelector('#runs') !== null")
    yield browser
    assert browser.said() == []  # no error, and nothing that the content policy stopped


@pytest.fixture(scope="module")
def box(server):
    """A sandbox whose command tried something."""
    made = server.ask("POST", "/v1/sandboxes", {"name": "work"})
    assert made.status == 201, made
    assert server.ask("POST", "/v1/sandboxes/work/exec", {"command": ATTEMPTS}).status == 200
    return "work"


def open_box(page, name):
    page.js("location.hash = '#sandbox/' + arguments[0]", name)
    page.until("return document.querySelector('h1').innerText === arguments[0]", name)
    page.until(f"return ({ROWS.removeprefix('return ')}).length > 3")


def test_the_token_leaves_the_address(page, box):
    assert "token" not in page.js("return location.href")
    page.until("return document.body.innerText.includes('work')")


def test_a_click_filters(page, box):
    open_box(page, box)
    page.click("[data-kind=Violation]")
    page.until(f"const rows = ({ROWS.removeprefix('return ')}); return rows.length === 1 && rows[0].includes('/usr/x')")
    page.click("[data-kind=Violation]")
    page.until(f"return ({ROWS.removeprefix('return ')}).length > 3")


def test_text_filters(page, box):
    open_box(page, box)
    page.click("input[type=search], input[placeholder='Filter by text']")
    page.press(*"/usr/x")
    page.until(f"const rows = ({ROWS.removeprefix('return ')}); return rows.length > 0 && rows.length < 5 && rows.every(row => row.includes('/usr/x'))")


def test_a_run_is_followed_while_it_goes_on(page, box, server):
    open_box(page, box)
    page.click("[data-kind=Violation]")
    server.ask("POST", f"/v1/sandboxes/{box}/exec", {"command": "echo x > /etc/later"})
    page.until(f"return ({ROWS.removeprefix('return ')}).some(row => row.includes('/etc/later'))")


def test_a_violation_has_its_sentence_and_rule(page, box):
    open_box(page, box)
    page.click("#tab-violations")
    page.until("return document.body.innerText.includes('is not permitted')")


def test_hostile_names_are_text(page, box):
    open_box(page, box)
    page.click("#tab-changes")
    page.until("return document.body.innerText.includes('<img src=x onerror=document.title=2>')")
    assert page.js("return document.querySelectorAll('main img, main script').length") == 0
    assert page.js("return document.title") not in ("1", "2")


def test_keys_alone_are_enough(page, box):
    open_box(page, box)
    page.js("document.querySelector('#tab-events').focus()")
    page.press("Right")
    page.until("return document.querySelector('#tab-violations').getAttribute('aria-selected') === 'true'")
    for _ in range(3):
        page.press("Tab")
    assert page.js("const style = getComputedStyle(document.activeElement); return style.outlineStyle !== 'none' || "
                   "document.activeElement !== document.body")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_aside(page, box, scheme):
    page.look(390, 844, scheme)
    open_box(page, box)
    assert page.js("return document.documentElement.scrollWidth") <= 390
    tops = page.js("return [...document.querySelectorAll('#events [role=option]')].map(row => row.getBoundingClientRect())"
                   ".sort((a, b) => a.top - b.top).map(box => [box.top, box.bottom])")
    assert all(above[1] <= below[0] + 1 for above, below in zip(tops, tops[1:])), tops


def test_ten_thousand_events_do_not_stutter(page, box, server, home):
    """Many calls, each with its lines in the record."""
    open_box(page, box)
    page.js(LONG_TASKS)
    for _ in range(25):
        server.ask("POST", f"/v1/sandboxes/{box}/exec", {"command": "for i in $(seq 40); do : > /usr/$RANDOM$i; done"})
    page.until("return Number((document.body.innerText.match(/(\\d[\\d,]*) events/) ?? ['', '0'])[1].replace(',', '')) > 300")
    assert page.js("return window.longest") < 500  # most of it is a busy machine
    assert len(page.js(ROWS)) < 100  # only what is in sight exists
