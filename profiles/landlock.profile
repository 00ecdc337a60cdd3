# landlock - what a command may ask of the kernel where there are no namespaces
#
# The network, the IPC objects and the interfaces are the host's own here. Landlock guards
# files, abstract sockets and signals; this text refuses the rest. Rights, owners, times and
# attributes of files Landlock does not know: the monitor makes these calls in the program's
# place; without a listener landlock-alone refuses them.

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

chmod                  deny EPERM on x86_64 when arg1 has S_ISUID|S_ISGID # a set-id file in a workspace is the caller's on the host
chmod                  watch on x86_64 # made by the monitor
fchmod                 deny EPERM when arg1 has S_ISUID|S_ISGID # as above
fchmod                 watch # made by the monitor: opened for reading is enough for it
fchmodat               deny EPERM when arg2 has S_ISUID|S_ISGID # as above
fchmodat               watch # made by the monitor
fchmodat2              deny EPERM when arg2 has S_ISUID|S_ISGID # as above
fchmodat2              watch # made by the monitor
chown                  watch on x86_64 # made by the monitor
lchown                 watch on x86_64 # made by the monitor
fchown                 watch # made by the monitor
fchownat               watch # made by the monitor
utime                  watch on x86_64 # made by the monitor
utimes                 watch on x86_64 # made by the monitor
futimesat              watch on x86_64 # made by the monitor
utimensat              watch # made by the monitor
setxattr               watch # made by the monitor
lsetxattr              watch # made by the monitor
fsetxattr              watch # made by the monitor
removexattr            watch # made by the monitor
lremovexattr           watch # made by the monitor
fremovexattr           watch # made by the monitor
