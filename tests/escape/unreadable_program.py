"""Executes a program that may be executed and not read, which the kernel keeps others from looking into.

Would gain: calls whose arguments the monitor cannot read, let through unseen.
"""
import os
import socket


def host(case):
    import shutil
    from hosts import Listeners
    host = Listeners(case)
    host.unix(socket.SOCK_STREAM, case.ws / "sock")
    shutil.copy(case.ws / "attack/reach_out", case.ws / "unreadable")

    def run(flags, command):
        case.give()
        case.give = lambda: None
        if os.geteuid() == 0:
            os.chown(case.ws / "unreadable", 65533, 65533)
        os.chmod(case.ws / "unreadable", 0o711)
        return case.run(flags, ["./unreadable"])

    yield {"run": run}
    assert host.silent()


if __name__ == "__main__":
    os._exit(1)
