"""Commands of an agent, and the processes they are, as /proc shows them from outside."""
import pathlib
import time

ENV = {b"PATH": b"/usr/bin:/bin"}
# setsid and a double fork, 200 times; eight of them go on forking and dying as fast as their dead
# are reaped: without that a slow moment fills the whole machine's table of processes
STORM = ("import os, signal, time\n"
         "def is_there(pid):\n"
         "  try: os.kill(pid, 0)\n"
         "  except ProcessLookupError: return False\n"
         "  except PermissionError: pass\n"
         "  return True\n"
         "for i in range(200):\n"
         "  if os.fork() == 0:\n"
         "    os.setsid()\n"
         "    if os.fork(): os._exit(0)\n"
         "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
         "    open('up', 'a').write('x')\n"
         "    dead = []\n"
         "    while i < 8:\n"
         "      dead.append(os.getpid())\n"
         "      if os.fork(): os._exit(0)\n"
         "      while len(dead) > 64 and is_there(dead[0]): time.sleep(0.001)\n"
         "      del dead[:-64]\n"
         "    time.sleep(1000)\n")
STAYS = "time.sleep(1000)\n"
ENDS = "while len(open('up').read()) < 200: time.sleep(0.01)\n"


def argv(agent, *words, **more):
    return agent.begin("exec", argv=list(words), env=ENV, **more)


def text(agent, command, **more):
    return agent.begin("exec", command=command, env=ENV, **more)


def detach(agent, command, tag, **more):
    reply = agent.end(text(agent, command, detach=True, tag=tag, **more))
    assert reply["detached"] is True and reply["exit_code"] is None and reply["signal"] is None
    return reply["pid"]


def all_children(pid):
    return [int(n) for n in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def is_spare(pid):
    """A keeper whose leader waits for the next call."""
    try:
        return name_of(pid) == "caisson-agent" and "caisson-spare" in map(name_of, all_children(pid))
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    """Without the pair that is forked ahead for the next call."""
    return [child for child in all_children(pid) if not is_spare(child)]


def descendants(pid):
    seen = []
    for child in children(pid):
        try:
            seen += [child] + descendants(child)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return seen


def until(claim, seconds=10):
    end = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def one(agent, tag):
    found = [c for c in agent.call("ps")["commands"] if c.get("tag") == tag.encode()]
    assert len(found) == 1, found
    return found[0]


def spare_of(agent):
    """(keeper, leader) of the pair that waits for the next call, or None."""
    for keeper in all_children(agent.process.pid):
        try:
            leaders = [child for child in all_children(keeper) if name_of(child) == "caisson-spare"]
        except (FileNotFoundError, ProcessLookupError):  # one that has just ended
            continue
        if leaders:
            return keeper, leaders[0]
    return None


def keeper_of(agent, pid):
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    keeper = int(stat[1])
    assert keeper in children(agent.process.pid)
    return keeper
