#!/usr/bin/env python3
"""A development server behind a wall: started, waited for, asked, read, and ended.

    python3 -m venv v && v/bin/pip install sdk/python && v/bin/python3 examples/dev_server.py FOLDER

The sandbox has a loopback of its own, which no program outside can reach, and nothing else.
"""

import sys

import caisson

PORT = 8000


def main(folder):
    with caisson.Sandbox(workspace=f"{folder}:ro", network="loopback", no_record=True) as sandbox:
        sandbox.start(f"exec python3 -u -m http.server {PORT} --bind 127.0.0.1", tag="web")
        ready = sandbox.wait("web", port=PORT, timeout=30)
        if not ready.reached:
            print(sandbox.logs("web").output.decode("utf-8", "replace"), file=sys.stderr)
            return 1
        get = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{PORT}/').status)"
        print("status", sandbox.exec(["python3", "-c", get], timeout=10).text.strip())
        sandbox.kill("web")
        ended = sandbox.wait("web", timeout=10)
        print("ended by signal", ended.signal)
        print(sandbox.logs("web").output.decode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
