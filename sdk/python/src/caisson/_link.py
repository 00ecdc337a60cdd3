"""A core and its socket: reads, writes and time, none of which wait. Each client has its own way to be told when."""

from __future__ import annotations

import time
from typing import Any, Callable, Optional

from ._core import Core
from ._process import Child

READ_SIZE = 256 << 10
STOP_S = 10.0
REAP_S = 10.0
UNREADY_S = 2.0

now = time.monotonic


class Link:
    """One sandbox's stream."""

    def __init__(self, core: Core, child: Child) -> None:
        self.core, self.child = core, child
        self.sock = child.sock
        self.is_deaf = False  # it takes nothing more; its last words are still to be read
        self.has_ended = False

    def readable(self) -> None:
        try:
            data = self.sock.recv(READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self.core.receive(data, now())
        else:
            self.has_ended = True
            self.core.end(self.child.said())
        self.flush()

    def flush(self) -> None:
        out = self.core.out
        while out and not self.is_deaf:
            try:
                sent = self.sock.send(out)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.is_deaf = True
                out.clear()
                return
            del out[:sent]

    def wants_write(self) -> bool:
        return bool(self.core.out) and not self.is_deaf

    def do(self, function: Callable[..., Any], *args: Any) -> None:
        """A change to the core, and what it has to say then."""
        try:
            function(*args)
        except Exception as error:  # a defect of ours must not leave anybody waiting
            self.core.lose(f"the Python package failed: {error!r}")
        self.flush()

    def expire(self) -> None:
        deadline = self.core.deadline()
        if deadline is not None and deadline <= now():
            self.do(self.core.expire, now())

    def left_s(self) -> Optional[float]:
        """Until there is something to expire."""
        deadline = self.core.deadline()
        return None if deadline is None else max(0.0, deadline - now())
