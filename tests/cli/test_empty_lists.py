"""Lists with nothing in them, and the time of a sandbox that stayed."""
import json
import time

from run_fixtures import *  # noqa: F403
from test_ps import at_terminal, stay, typed  # noqa: F401


def test_an_empty_list_says_what_fills_it(stay, typed):  # noqa: F811
    for words, said in ((("ps",), "no sandbox stays; `caisson up NAME` starts one"),
                        (("runs", "ls"), "there are no records of runs here; each `caisson run -- COMMAND` leaves one")):
        assert at_terminal(stay, *words).startswith(f"caisson: {said}")
        assert at_terminal(stay, *words, "-q") == ""
        done = typed(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert json.loads(typed(*words, "--json").stdout) in ([], {"sandboxes": []})
    assert typed("up", "one", "--backend", "process").returncode == 0
    assert "no sandbox" not in at_terminal(stay, "ps")


def test_a_sandbox_that_stayed_has_a_time(stay, typed):  # noqa: F811
    done = typed("up", "one", "--backend", "process")
    assert done.returncode == 0, done.stderr
    time.sleep(0.2)
    assert typed("down", "one").returncode == 0
    shown = typed("runs", "show")
    assert shown.returncode == 0 and "wall 0 ms" not in shown.stdout, shown.stdout + shown.stderr
    result = json.loads(typed("runs", "show", "--json").stdout)
    assert result["usage"]["wall_ms"] >= 200 and result["usage"]["scope"] == "sandbox"
