"""The agent's own clock of its last command."""
import os
import signal
import time


def test_a_command_is_ended_by_its_clock(agent):
    reply = agent.call("exec", argv=[b"/bin/sleep", b"30"], timeout_ms=200, last=True)
    assert reply["timed_out"] is True and reply["signal"] == 9, reply


def test_a_command_that_ended_by_itself_is_not_late(agent):
    """The agent did not run when it ended, and its clock was over when the agent ran again."""
    ref = agent.begin("exec", argv=[b"/bin/sh", b"-c", b"echo; sleep 0.2; exit 3"], timeout_ms=1000, last=True)
    frame = agent.frame_of(ref)
    assert frame[0] == "data", frame
    os.kill(agent.process.pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(agent.process.pid, signal.SIGCONT)
    reply = agent.end(ref)
    assert reply["exit_code"] == 3 and "timed_out" not in reply, reply
