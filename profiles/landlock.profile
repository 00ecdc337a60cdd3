# landlock - what a command may ask of the kernel where there are no namespaces
#
# The network, the IPC objects and the interfaces are the host's own here. Landlock guards
# files, abstract sockets and signals; this text refuses the rest.

include command        # the same allow-list; a syscall named below replaces all that it says

socket                 allow when arg0 is AF_UNIX and arg1 & SOCK_TYPE_MASK is SOCK_STREAM, SOCK_SEQPACKET # local sockets; connect is judged
socket                 deny EACCES when arg0 is AF_UNIX, AF_INET, AF_INET6 # datagrams by path, and the host's network
socket                 quiet EAFNOSUPPORT when arg0 is AF_NETLINK and arg2 is NETLINK_ROUTE # the host's interfaces; getaddrinfo does without
socket                 deny EAFNOSUPPORT # an allow-list of families

shmget                 deny EACCES # the host's IPC objects
shmat                  deny EACCES # the host's IPC objects
shmdt                  deny EACCES # the host's IPC objects
shmctl                 deny EACCES # the host's IPC objects
semget                 deny EACCES # the host's IPC objects
semop                  deny EACCES # the host's IPC objects
semtimedop             deny EACCES # the host's IPC objects
semctl                 deny EACCES # the host's IPC objects
msgget                 deny EACCES # the host's IPC objects
msgsnd                 deny EACCES # the host's IPC objects
msgrcv                 deny EACCES # the host's IPC objects
msgctl                 deny EACCES # the host's IPC objects
mq_open                deny EACCES # the host's queues
mq_unlink              deny EACCES # the host's queues
