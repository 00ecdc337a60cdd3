# command-alone-net - command, on a network that a container engine lends (network.mode: engine)
#
# No filter follows the pointer to an address, so what must not be reached may have no socket: a
# path in the workspace can be a host process's. What is left leads into the engine's network alone.

include command-alone  # the same list; a syscall named below replaces all that it says
listener none          # as there

socket                 quiet EACCES when arg0 is AF_UNIX # connect could name a host process's; nscd and syslog are tried by every program
socket                 allow when arg0 is AF_INET, AF_INET6 and arg1 & SOCK_TYPE_MASK is SOCK_STREAM, SOCK_DGRAM and arg2 is 0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6 # the engine's network decides
socket                 quiet EPROTONOSUPPORT when arg0 is AF_INET, AF_INET6 and arg2 is IPPROTO_MPTCP # Go tries it first and falls back
socket                 deny EPROTONOSUPPORT when arg0 is AF_INET, AF_INET6 # raw packets, and protocols whose modules the kernel would load for it
socket                 allow when arg0 is AF_NETLINK and arg2 is NETLINK_ROUTE # getifaddrs of the own namespace
socket                 deny EAFNOSUPPORT # vsock, packet, alg, other netlink: an allow-list of families
connect                allow # of an inet socket; a pair is connected, and answers EISCONN
