"""Prints "Permission denied" and fails, having tried nothing.

Would gain: a record full of violations that never were, under which a real one is not seen.
"""
import os


def host(case):
    run = yield {"command": ["/bin/sh", "-c", "echo 'bash: /etc/shadow: Permission denied' >&2; "
                             "echo 'Operation not permitted'; echo '{\"done\": true}'; "
                             "echo '{\"attempt\": \"a violation\", \"got\": false, \"errno\": null}'; exit 1"]}
    assert run.status == 1 and run.violations == [], run


if __name__ == "__main__":
    os._exit(1)
