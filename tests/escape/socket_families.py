"""Opens sockets of every family but the few that programs need.

Would gain: AF_VSOCK reaches the hypervisor, AF_PACKET and raw sockets forge packets, AF_ALG and
the rest load kernel modules that nobody else uses. All of them open in an empty net namespace.
"""
import socket

from inside import attempt, control, main

KEPT = {1: "unix", 2: "inet", 10: "inet6", 16: "netlink"}


def opened(family, kind, protocol=0):
    socket.socket(family, kind, protocol).close()


def attack():
    control("a local socket", opened, socket.AF_UNIX, socket.SOCK_STREAM)
    for family in range(47):
        if family not in KEPT:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
                attempt(f"family {family} type {int(kind)}", opened, family, kind)
    attempt("raw IPv4", opened, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    attempt("raw ICMP", opened, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    attempt("raw IPv6", opened, socket.AF_INET6, socket.SOCK_RAW, 58)
    attempt("packet type", opened, socket.AF_INET, 10)
    attempt("SCTP", opened, socket.AF_INET, socket.SOCK_STREAM, 132)
    attempt("UDP lite", opened, socket.AF_INET, socket.SOCK_DGRAM, 136)
    attempt("DCCP", opened, socket.AF_INET, 6, 33)
    attempt("SMC", opened, socket.AF_INET, socket.SOCK_STREAM, 256)
    for protocol in range(1, 24):
        attempt(f"netlink {protocol}", opened, socket.AF_NETLINK, socket.SOCK_RAW, protocol)


if __name__ == "__main__":
    main(attack)
