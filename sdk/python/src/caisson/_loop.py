"""The one thread that reads and writes for all sandboxes of the sync client.

Callers only put requests into a queue and take answers from one. So whatever interrupts a caller, a Ctrl-C above all,
interrupts no frame. It is a daemon: at the interpreter's end _sandbox.py closes what is open first. A fork has none
of it; the first call there starts its own.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from ._link import Link

_lock = threading.Lock()
_loop: "Optional[Loop]" = None


class Loop(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="caisson", daemon=True)
        self._requests: Deque[Tuple[Callable[..., Any], Tuple[Any, ...]]] = deque()
        self._poll = select.epoll()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._poll.register(self._wake_in.fileno(), select.EPOLLIN)
        self._links: Dict[int, Link] = {}
        self._writing: Dict[int, bool] = {}

    # ---- for callers ----------------------------------------------------------------------------

    def post(self, function: Callable[..., Any], *args: Any) -> None:
        """Has it done in this thread, soon."""
        self._requests.append((function, args))
        try:
            self._wake_out.send(b"\0")
        except BlockingIOError:
            pass  # it is full: the thread is awake

    # ---- in the thread --------------------------------------------------------------------------

    def add(self, link: Link) -> None:
        fd = link.sock.fileno()
        self._links[fd] = link
        self._writing[fd] = False
        self._poll.register(fd, select.EPOLLIN)
        link.flush()
        self._look(fd, link)

    def drop(self, link: Link) -> None:
        """Its socket is no longer looked at."""
        fd = link.sock.fileno()
        if self._links.get(fd) is link:
            del self._links[fd], self._writing[fd]
            self._poll.unregister(fd)

    def _look(self, fd: int, link: Link) -> None:
        if link.has_ended:
            self.drop(link)
        elif link.wants_write() != self._writing[fd]:
            self._writing[fd] = not self._writing[fd]
            self._poll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if self._writing[fd] else 0))

    def _wait_s(self) -> float:
        left = [link.left_s() for link in self._links.values()]
        return min((s for s in left if s is not None), default=-1.0)

    def _ready(self, fd: int, events: int) -> None:
        if fd == self._wake_in.fileno():
            self._wake_in.recv(4096)
            return
        link = self._links.get(fd)
        if link is None:
            return
        try:
            if events & ~select.EPOLLOUT:
                link.readable()
            else:
                link.flush()
        except Exception as error:  # a defect of ours ends one sandbox, and not all
            link.core.lose(f"the Python package failed: {error!r}")

    def run(self) -> None:
        while True:
            for fd, events in self._poll.poll(self._wait_s()):
                self._ready(fd, events)
            while self._requests:
                function, args = self._requests.popleft()
                function(*args)
            for fd, link in list(self._links.items()):
                link.expire()
                self._look(fd, link)

    def forget(self) -> None:
        """In a fork: the thread is not here, and its descriptors are the parent's."""
        self._poll.close()
        self._wake_in.close()
        self._wake_out.close()


def loop() -> Loop:
    """The thread, started when it is first needed."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = Loop()
            _loop.start()
        return _loop


def _after_fork() -> None:
    global _loop, _lock
    _lock = threading.Lock()
    if _loop is not None:
        _loop.forget()
        _loop = None


os.register_at_fork(after_in_child=_after_fork)
