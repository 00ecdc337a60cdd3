#!/usr/bin/env python3
"""What --forward costs: 64 MiB each way through one connection, and 2,000 small requests one after another, by a socket
inside that is forwarded and by the same socket of the host's, reached directly.

    bench/forward.py [CAISSON]
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

CLIENT = r"""
import socket, sys, threading, time
SIZE, TIMES = 64 << 20, 2000
end = socket.socket(socket.AF_UNIX)
end.connect(sys.argv[1])

def whole(n):
    while n:
        n -= len(end.recv(min(n, 1 << 16)))

def send():
    for _ in range(SIZE >> 16):
        end.sendall(bytes(1 << 16))

took = []
for _ in range(TIMES):
    start = time.perf_counter()
    end.sendall(bytes(100))
    whole(100)
    took.append(time.perf_counter() - start)
took.sort()
start = time.perf_counter()
sender = threading.Thread(target=send)
sender.start()
whole(SIZE)
sender.join()
print(f"{SIZE / (time.perf_counter() - start) / 2**20:.0f} MiB/s each way, a small request {took[TIMES // 2] * 1e6:.0f} us (median)")
"""


def echo(end):
    while piece := end.recv(1 << 16):
        end.sendall(piece)


def serve(server):
    while True:
        threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()


def main():
    caisson = sys.argv[1] if len(sys.argv) > 1 else "build/caisson"
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as server:
        folder = pathlib.Path(name)
        server.bind(str(folder / "end.sock"))
        server.listen()
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        (folder / "ws").mkdir()
        (folder / "ws" / "client.py").write_text(CLIENT)
        direct = [sys.executable, str(folder / "ws" / "client.py"), str(folder / "end.sock")]
        inside = [os.path.abspath(caisson), "run", "--no-record", "--backend", "process", "-w", str(folder / "ws"), "--forward",
                  f"unix:{folder / 'end.sock'}:/tmp/end.sock", "--", "/usr/bin/python3", "/workspace/client.py", "/tmp/end.sock"]
        for what, words in (("direct", direct), ("forwarded", inside)):
            print(f"{what:10}", subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, cwd=folder).stdout.strip())


if __name__ == "__main__":
    main()
