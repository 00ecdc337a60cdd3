"""The same call gives the same answer behind a runtime: the whole table of the command line's tests."""
import os

from calls import CALLS, Teller
from runtimes import RUNTIMES
from test_differential import LIMITS, differences
from test_stay import Stay


def tell(box, wall, calls=CALLS):
    path = box.base / "policy.yaml"
    path.write_text(f"version: 1\ntier: balanced\nbackend: {wall}\nworkspace: {{mode: rw}}\n{LIMITS}")
    box.ws.chmod(0o777)
    os.mkfifo(box.ws / "fifo")
    stay = Stay(box).started("--policy", str(path))
    teller = Teller(stay.client(), [box.ws, b"/workspace"], [(bytes(box.base), b"BASE")])
    answers = [teller.answer(call) for call in calls]
    stay.down()
    return answers


def is_gvisors_own(call):
    """It opens no fifo of the host's, whoever asks, and its /proc/self/status is a shorter one: docs/gvisor.md."""
    text = call.args.get("command") or call.args.get("path")
    if not isinstance(text, bytes):
        return False
    return text == b"fifo" and call.verb in ("read", "edit", "grep") or b"NoNewPrivs" in text


def test_every_runtime_answers_as_the_process_wall(boxes):
    walls = {"process": tell(boxes("runc"), "process")}
    walls |= {runtime: tell(boxes(runtime), wall) for runtime, wall in RUNTIMES.items()}
    named = [number for number, call in enumerate(CALLS) if is_gvisors_own(call)]
    assert len(named) == 4 and all(walls["gvisor"][number] != walls["process"][number] for number in named)
    for number in named:
        walls["gvisor"][number] = walls["process"][number]
    found = differences(walls)
    assert not found, f"{len(found)} of {len(CALLS)} calls\n" + "\n".join(found)
