# command - what a command may ask of the kernel, behind the process wall
#
# An allow-list of what compilers, interpreters, build tools and browsers use. The wall itself
# is made of namespaces, ids, mounts and Landlock; this list keeps what remains of the kernel
# small and gives the monitor its facts. docs/profiles.md explains the form.

default deny ENOSYS # a number nobody has judged: new libraries fall back on ENOSYS, not on EPERM; still a fact

# Reading, writing, descriptors
read                   allow # data of an open descriptor
write                  allow # data of an open descriptor
readv                  allow # data of an open descriptor
writev                 allow # data of an open descriptor
pread64                allow # data of an open descriptor
pwrite64               allow # data of an open descriptor
preadv                 allow # data of an open descriptor
pwritev                allow # data of an open descriptor
preadv2                allow # data of an open descriptor
pwritev2               allow # data of an open descriptor
lseek                  allow # data of an open descriptor
sendfile               allow # both descriptors are open already
copy_file_range        allow # both descriptors are open already
splice                 allow # both descriptors are open already
tee                    allow # both descriptors are open already
vmsplice               allow # own memory into an own pipe
close                  allow # own descriptors
close_range            allow # own descriptors
dup                    allow # own descriptors
dup2                   allow on x86_64 # own descriptors
dup3                   allow # own descriptors
pipe                   allow on x86_64 # own descriptors
pipe2                  allow # own descriptors
fcntl                  allow # own descriptors; SIGIO is held back by the Landlock signal scope
flock                  allow # locks of package managers and git
fsync                  allow # databases
fdatasync              allow # databases
syncfs                 allow # one file system, package managers
sync_file_range        allow # databases
sync                   quiet EPERM # would flush every disk of the host; its callers cannot see a failure
fadvise64              allow # a hint
readahead              allow # a hint
cachestat              allow # a count of own pages
fallocate              allow # the file is open for writing: judged then
ftruncate              allow # the file is open for writing: judged then

# Opening files: an intent to write is shown to the monitor
open                   watch on x86_64 when arg1 has O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|__O_TMPFILE # may write
open                   allow on x86_64 # reads are decided by mounts and Landlock
openat                 watch when arg2 has O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|__O_TMPFILE # may write
openat                 allow # reads are decided by mounts and Landlock
openat2                quiet ENOSYS # its flags hide behind a pointer; callers fall back to openat
creat                  watch on x86_64 # always writes
open_by_handle_at      deny EPERM # opens by inode, past every path
name_to_handle_at      deny EPERM # the other half of open_by_handle_at

# Changes by path: each is shown to the monitor
rename                 watch on x86_64 # changes two folders
renameat               watch # changes two folders
renameat2              watch # changes two folders
link                   watch on x86_64 # a new name
linkat                 watch # a new name
symlink                watch on x86_64 # a new name
symlinkat              watch # a new name
unlink                 watch on x86_64 # a name goes
unlinkat               watch # a name goes
rmdir                  watch on x86_64 # a name goes
mkdir                  watch on x86_64 # a new folder
mkdirat                watch # a new folder
mknod                  watch on x86_64 when arg1 & S_IFMT is 0, S_IFREG, S_IFIFO # a file or a FIFO
mknod                  deny EPERM on x86_64 # a device, a socket or an overlay whiteout
mknodat                watch when arg2 & S_IFMT is 0, S_IFREG, S_IFIFO # a file or a FIFO
mknodat                deny EPERM # a device, a socket or an overlay whiteout
chmod                  deny EPERM on x86_64 when arg1 has S_ISUID|S_ISGID # a set-id file in a workspace is the caller's on the host
chmod                  watch on x86_64 # rights of a path
fchmod                 deny EPERM when arg1 has S_ISUID|S_ISGID # as above
fchmod                 allow # of an open file; read-only mounts hold
fchmodat               deny EPERM when arg2 has S_ISUID|S_ISGID # as above
fchmodat               watch # rights of a path
fchmodat2              deny EPERM when arg2 has S_ISUID|S_ISGID # as above
fchmodat2              watch # rights of a path
chown                  watch on x86_64 # owner of a path; no capability gives it away
lchown                 watch on x86_64 # as chown
fchownat               watch # as chown
fchown                 allow # of an open file; no capability gives it away
truncate               watch # writes without opening
setxattr               watch # writes beside the data of a path
lsetxattr              watch # as setxattr
removexattr            watch # as setxattr
lremovexattr           watch # as setxattr
fsetxattr              allow # of an open file
fremovexattr           allow # of an open file
setxattrat             quiet ENOSYS # too new to be needed; callers fall back to setxattr
removexattrat          quiet ENOSYS # as setxattrat
file_setattr           quiet ENOSYS # too new to be needed
utime                  allow on x86_64 # times only: make, tar
utimes                 allow on x86_64 # times only
futimesat              allow on x86_64 # times only
utimensat              allow # times only: touch, cp -p, tar

# Looking at files
stat                   allow on x86_64 # metadata
lstat                  allow on x86_64 # metadata
fstat                  allow # metadata
newfstatat             allow # metadata
statx                  allow # metadata
statfs                 allow # metadata
fstatfs                allow # metadata
access                 allow on x86_64 # metadata
faccessat              allow # metadata
faccessat2             allow # metadata
readlink               allow on x86_64 # metadata
readlinkat             allow # metadata
getdents               allow on x86_64 # listing an open folder
getdents64             allow # listing an open folder
getcwd                 allow # own folder
chdir                  allow # own folder
fchdir                 allow # own folder
umask                  allow # own mask
getxattr               allow # ls, cp, git
lgetxattr              allow # ls, cp
fgetxattr              allow # ls, cp
listxattr              allow # cp, tar
llistxattr             allow # cp, tar
flistxattr             allow # cp, tar
getxattrat             quiet ENOSYS # too new to be needed
listxattrat            quiet ENOSYS # too new to be needed
file_getattr           quiet ENOSYS # too new to be needed
statmount              quiet ENOSYS # a probe of newer mount tools; mountinfo is there
listmount              quiet ENOSYS # as statmount
listns                 quiet ENOSYS # shows namespaces; a probe
inotify_init           allow on x86_64 # watchers of build tools, counted per user
inotify_init1          allow # watchers of build tools
inotify_add_watch      allow # watchers of build tools
inotify_rm_watch       allow # watchers of build tools
fanotify_init          quiet EPERM # events of a whole mount; what the kernel says without capability
fanotify_mark          quiet EPERM # as fanotify_init

# Memory
brk                    allow # own memory
mmap                   allow # own memory; just-in-time compilers need executable pages
munmap                 allow # own memory
mremap                 allow # own memory
mprotect               allow # own memory
madvise                allow # own memory
mincore                allow # own memory
msync                  allow # own memory
mlock                  allow # own memory, under RLIMIT_MEMLOCK
mlock2                 allow # as mlock
munlock                allow # as mlock
mlockall               allow # as mlock
munlockall             allow # as mlock
mseal                  allow # own memory, only ever tightens
pkey_alloc             allow # V8 guards its code pages
pkey_free              allow # as pkey_alloc
pkey_mprotect          allow # as pkey_alloc
remap_file_pages       allow # old databases; the kernel emulates it with mmap
map_shadow_stack       allow # control-flow protection of the C library
memfd_create           allow # interpreters and Wayland; counted as memory
memfd_secret           quiet ENOSYS # memory that sampling cannot see
membarrier             allow # runtimes
userfaultfd            quiet EPERM # holds the kernel inside a copy; callers fall back
get_mempolicy          quiet ENOSYS # libnuma turns itself off
set_mempolicy          quiet ENOSYS # as get_mempolicy
mbind                  quiet ENOSYS # as get_mempolicy
set_mempolicy_home_node quiet ENOSYS # as get_mempolicy
migrate_pages          quiet ENOSYS # another process's memory
move_pages             quiet ENOSYS # another process's memory
process_madvise        quiet EPERM # another process's memory; allocators try it on themselves
process_mrelease       quiet EPERM # another process's memory
process_vm_readv       deny EPERM # another process's memory: the agent's, a sibling's
process_vm_writev      deny EPERM # as process_vm_readv

# Processes and threads
clone                  deny EPERM when arg0 has CLONE_NEWNS|CLONE_NEWCGROUP|CLONE_NEWUTS|CLONE_NEWIPC|CLONE_NEWUSER|CLONE_NEWPID|CLONE_NEWNET # a namespace brings capabilities back
clone                  allow # processes and threads
clone3                 quiet ENOSYS # its flags hide behind a pointer; C libraries fall back to clone
fork                   allow on x86_64 # processes
vfork                  allow on x86_64 # processes
execve                 allow # programs; no-new-privs holds
execveat               allow # as execve
exit                   allow # the end
exit_group             allow # the end
wait4                  allow # own children
waitid                 allow # own children
getpid                 allow # own identity
getppid                allow # own identity
gettid                 allow # own identity
set_tid_address        allow # threads
set_robust_list        allow # threads
get_robust_list        allow when arg0 is 0 # own list
get_robust_list        quiet EPERM # an address in another process
rseq                   allow # the C library
futex                  allow # locks
futex_waitv            allow # locks
futex_wake             allow # locks
futex_wait             allow # locks
futex_requeue          allow # locks
arch_prctl             allow on x86_64 # thread-local storage
set_thread_area        quiet ENOSYS on x86_64 # for 32-bit programs
get_thread_area        quiet ENOSYS on x86_64 # for 32-bit programs
modify_ldt             deny EPERM on x86_64 # segments for 16-bit code, a source of kernel bugs
personality            allow when arg0 is 0, 0xffffffff, ADDR_NO_RANDOMIZE # reset, ask, and what debuggers and sanitizers set
personality            deny EPERM # others weaken memory protection
prctl                  deny EPERM when arg0 is PR_SET_MM # forges the program's name in /proc
prctl                  allow # names, no-new-privs, subreapers, capabilities only downwards
seccomp                deny EPERM when arg1 has SECCOMP_FILTER_FLAG_NEW_LISTENER # would take the place of the monitor
seccomp                allow # a program may tighten itself
landlock_create_ruleset allow # a program may tighten itself
landlock_add_rule      allow # a program may tighten itself
landlock_restrict_self allow # a program may tighten itself
setpgid                allow # job control
getpgid                allow # job control
getpgrp                allow on x86_64 # job control
setsid                 allow # job control
getsid                 allow # job control
pidfd_open             allow # a handle, no more than the number
pidfd_send_signal      allow # the Landlock signal scope guards the agent
pidfd_getfd            deny EPERM # takes another process's descriptors
kcmp                   quiet EPERM # tells where kernel objects lie in memory
ptrace                 deny EPERM # another process's registers and memory
unshare                deny EPERM # a namespace brings capabilities back
setns                  deny EPERM # into another namespace

# Signals and timers
kill                   allow # the Landlock signal scope guards the agent
tkill                  allow # as kill
tgkill                 allow # as kill
rt_sigqueueinfo        allow # as kill
rt_tgsigqueueinfo      allow # as kill
rt_sigaction           allow # own signals
rt_sigprocmask         allow # own signals
rt_sigpending          allow # own signals
rt_sigtimedwait        allow # own signals
rt_sigsuspend          allow # own signals
rt_sigreturn           allow # own signals
sigaltstack            allow # own signals
restart_syscall        allow # made by the kernel after a stop
pause                  allow on x86_64 # waits
alarm                  allow on x86_64 # own timers
getitimer              allow # own timers
setitimer              allow # own timers
timer_create           allow # own timers
timer_settime          allow # own timers
timer_gettime          allow # own timers
timer_getoverrun       allow # own timers
timer_delete           allow # own timers
timerfd_create         allow # own timers
timerfd_settime        allow # own timers
timerfd_gettime        allow # own timers
signalfd               allow on x86_64 # own signals
signalfd4              allow # own signals
nanosleep              allow # waits
clock_nanosleep        allow # waits
clock_gettime          allow # reads a clock
clock_getres           allow # reads a clock
gettimeofday           allow # reads a clock
time                   allow on x86_64 # reads a clock
times                  allow # own use
clock_settime          deny EPERM # the host's clock
settimeofday           deny EPERM # the host's clock
adjtimex               deny EPERM # the host's clock; a reading call looks the same from here
clock_adjtime          deny EPERM # as adjtimex

# Waiting for many descriptors
poll                   allow on x86_64 # waits
ppoll                  allow # waits
select                 allow on x86_64 # waits
pselect6               allow # waits
epoll_create           allow on x86_64 # waits
epoll_create1          allow # waits
epoll_ctl              allow # waits
epoll_wait             allow on x86_64 # waits
epoll_pwait            allow # waits
epoll_pwait2           allow # waits
epoll_ctl_old          quiet ENOSYS on x86_64 # never existed
epoll_wait_old         quiet ENOSYS on x86_64 # never existed
eventfd                allow on x86_64 # wakes
eventfd2               allow # wakes
io_uring_setup         quiet ENOSYS # a second way into most of the kernel that no filter sees; libuv falls back
io_uring_enter         quiet ENOSYS # as io_uring_setup
io_uring_register      quiet ENOSYS # as io_uring_setup
io_setup               quiet ENOSYS # rings come out of one limit of the whole machine; databases fall back
io_destroy             quiet ENOSYS # as io_setup
io_submit              quiet ENOSYS # as io_setup
io_cancel              quiet ENOSYS # as io_setup
io_getevents           quiet ENOSYS # as io_setup
io_pgetevents          quiet ENOSYS # as io_setup

# Scheduling and limits: of the caller only, or a command could cripple the agent
sched_yield            allow # own thread
sched_getaffinity      allow # reads
sched_getparam         allow # reads
sched_getscheduler     allow # reads
sched_getattr          allow # reads
sched_get_priority_max allow # reads
sched_get_priority_min allow # reads
sched_rr_get_interval  allow # reads
getpriority            allow # reads
ioprio_get             allow # reads
getcpu                 allow # reads
getrlimit              allow # own limits
setrlimit              quiet NOTHING when arg0 is RLIMIT_CORE # it stays 1: with 0 a crash would start the host's crash handler
setrlimit              allow # own limits; raising needs a capability
getrusage              allow # own use
sysinfo                allow # memory and load
uname                  allow # names
getrandom              allow # random bytes
capget                 allow # reads
capset                 allow # only drops
prlimit64              deny EPERM when arg0 is not 0 # another process's limits: the agent's
prlimit64              allow when arg2 is NULL # reads own limits
prlimit64              quiet NOTHING when arg1 is RLIMIT_CORE # as setrlimit
prlimit64              allow # own limits
sched_setaffinity      allow when arg0 is 0 # own thread
sched_setaffinity      deny EPERM # another process
sched_setscheduler     allow when arg0 is 0 # own thread
sched_setscheduler     deny EPERM # another process
sched_setparam         allow when arg0 is 0 # own thread
sched_setparam         deny EPERM # another process
sched_setattr          allow when arg0 is 0 # own thread
sched_setattr          deny EPERM # another process
setpriority            allow when arg0 is PRIO_PROCESS and arg1 is 0 # own thread: nice
setpriority            deny EPERM # another process, a group or a user
ioprio_set             allow when arg0 is IOPRIO_WHO_PROCESS and arg1 is 0 # own thread: ionice
ioprio_set             deny EPERM # another process, a group or a user

# Identity: without capabilities the kernel lets a process take no other one
getuid                 allow # reads
geteuid                allow # reads
getgid                 allow # reads
getegid                allow # reads
getresuid              allow # reads
getresgid              allow # reads
getgroups              allow # reads
setuid                 allow # own ids only
setgid                 allow # own ids only
setreuid               allow # own ids only
setregid               allow # own ids only
setresuid              allow # no other one to be had; GNU make resets its ids at every spawn
setresgid              allow # own ids only
setfsuid               allow # own ids only
setfsgid               allow # own ids only
setgroups              quiet EPERM # needs a capability; package managers try it

# Sockets: addresses are shown to the monitor
socket                 allow when arg0 is AF_UNIX and arg1 & SOCK_TYPE_MASK is SOCK_STREAM, SOCK_SEQPACKET # local sockets; connect is judged
socket                 deny EACCES when arg0 is AF_UNIX # datagrams carry an address in sendmsg, past the judgement of connect
socket                 allow when arg0 is AF_INET, AF_INET6 and arg1 & SOCK_TYPE_MASK is SOCK_STREAM, SOCK_DGRAM and arg2 is 0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6 # the network namespace decides
socket                 quiet EPROTONOSUPPORT when arg0 is AF_INET, AF_INET6 and arg2 is IPPROTO_MPTCP # Go tries it first and falls back
socket                 deny EPROTONOSUPPORT when arg0 is AF_INET, AF_INET6 # raw packets, and protocols whose modules the kernel would load for it
socket                 allow when arg0 is AF_NETLINK and arg2 is NETLINK_ROUTE # getifaddrs of the own namespace
socket                 deny EAFNOSUPPORT # vsock, packet, alg, other netlink: an allow-list of families
socketpair             allow when arg0 is AF_UNIX and arg1 & SOCK_TYPE_MASK is SOCK_STREAM, SOCK_SEQPACKET # asyncio, node
socketpair             deny EACCES when arg0 is AF_UNIX # a datagram end reaches any address by sendmsg
socketpair             deny EAFNOSUPPORT # only local sockets come in pairs
connect                watch # an address
bind                   watch # an address
sendto                 watch when arg4 is not NULL # an address
sendto                 allow # to the connected end
sendmsg                watch # its address is behind a pointer
sendmmsg               watch # its addresses are behind a pointer
accept                 allow # of an own listening socket
accept4                allow # of an own listening socket
listen                 allow # bind was judged
recvfrom               allow # data
recvmsg                allow # data
recvmmsg               allow # data
shutdown               allow # own socket
getsockname            allow # own socket
getpeername            allow # own socket
setsockopt             allow # own socket
getsockopt             allow # own socket

# ioctl: an allow-list of requests
ioctl                  deny EPERM when arg1 is TIOCSTI, TIOCLINUX # types into the terminal of whoever started this
ioctl                  allow when arg1 is TCGETS, TCSETS, TCSETSW, TCSETSF, TCGETA, TCSETA, TCSETAW, TCSETAF # terminal modes
ioctl                  allow when arg1 is TCGETS2, TCSETS2, TCSETSW2, TCSETSF2 # terminal modes, newer C libraries
ioctl                  allow when arg1 is TCSBRK, TCSBRKP, TCXONC, TCFLSH, TIOCOUTQ, TIOCEXCL, TIOCNXCL # terminal flow
ioctl                  allow when arg1 is TIOCGWINSZ, TIOCSWINSZ # terminal size
ioctl                  allow when arg1 is TIOCSCTTY, TIOCNOTTY, TIOCGPGRP, TIOCSPGRP, TIOCGSID # job control
ioctl                  allow when arg1 is TIOCGPTN, TIOCSPTLCK, TIOCGPTLCK, TIOCGPTPEER, TIOCPKT, TIOCGPKT # new terminals: script, tmux
ioctl                  allow when arg1 is FIONREAD, FIONBIO, FIOASYNC, FIOCLEX, FIONCLEX, FIOQSIZE # any descriptor
ioctl                  allow when arg1 is FICLONE, FICLONERANGE, FIDEDUPERANGE, FIGETBSZ, FS_IOC_FIEMAP # cp and package managers
ioctl                  allow when arg1 is FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR # reads a file's flags
ioctl                  allow when arg1 is SIOCGIFCONF, SIOCGIFNAME, SIOCGIFINDEX, SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFDSTADDR, SIOCGIFBRDADDR, SIOCGIFNETMASK, SIOCGIFHWADDR, SIOCGIFMTU, SIOCATMARK # interfaces of the own namespace
ioctl                  allow when arg1 is RNDGETENTCNT # cryptographic libraries ask for entropy
ioctl                  quiet ENOTTY # a device that is not there says the same

# System V and POSIX queues: the namespace is the sandbox's own
shmget                 allow # own IPC namespace
shmat                  allow # own IPC namespace
shmdt                  allow # own IPC namespace
shmctl                 allow # own IPC namespace
semget                 allow # own IPC namespace
semop                  allow # own IPC namespace
semtimedop             allow # own IPC namespace
semctl                 allow # own IPC namespace
msgget                 allow # own IPC namespace
msgsnd                 allow # own IPC namespace
msgrcv                 allow # own IPC namespace
msgctl                 allow # own IPC namespace
mq_open                allow # own IPC namespace
mq_unlink              allow # own IPC namespace
mq_timedsend           allow # own IPC namespace
mq_timedreceive        allow # own IPC namespace
mq_notify              allow # own IPC namespace
mq_getsetattr          allow # own IPC namespace

# Mounts: the view of files is fixed from outside
mount                  deny EPERM # changes the view
umount2                deny EPERM # changes the view
pivot_root             deny EPERM # changes the view
chroot                 deny EPERM # changes the view
open_tree              deny EPERM # changes the view
open_tree_attr         deny EPERM # changes the view
move_mount             deny EPERM # changes the view
fsopen                 deny EPERM # changes the view
fsconfig               deny EPERM # changes the view
fsmount                deny EPERM # changes the view
fspick                 deny EPERM # changes the view
mount_setattr          deny EPERM # changes the view
quotactl               deny EPERM # quotas of the host
quotactl_fd            deny EPERM # quotas of the host

# The machine
acct                   deny EPERM # accounting of the host
swapon                 deny EPERM # memory of the host
swapoff                deny EPERM # memory of the host
reboot                 deny EPERM # the host
sethostname            deny EPERM # the sandbox's name is given from outside
setdomainname          deny EPERM # as sethostname
syslog                 deny EPERM # the kernel's messages hold addresses
vhangup                deny EPERM # takes a terminal away
iopl                   deny EPERM on x86_64 # hardware ports
ioperm                 deny EPERM on x86_64 # hardware ports
kexec_load             deny EPERM # another kernel
kexec_file_load        deny EPERM # another kernel
init_module            deny EPERM # code in the kernel
finit_module           deny EPERM # code in the kernel
delete_module          deny EPERM # code in the kernel
bpf                    deny EPERM # code in the kernel
perf_event_open        deny EPERM # watches the machine, a source of kernel bugs
lookup_dcookie         deny EPERM # profiling of the host
nfsservctl             deny ENOSYS # the host's file server, long gone
add_key                deny EPERM # keyrings reach across namespaces
request_key            deny EPERM # keyrings, and a helper started by the kernel
keyctl                 deny EPERM # keyrings reach across namespaces

# Probes and remains: the kernel says ENOSYS too, or might
lsm_get_self_attr      quiet ENOSYS # a probe of newer tools
lsm_set_self_attr      quiet ENOSYS # a probe of newer tools
lsm_list_modules       quiet ENOSYS # a probe of newer tools
uselib                 quiet ENOSYS on x86_64 # forgotten
ustat                  quiet ENOSYS on x86_64 # forgotten
sysfs                  quiet ENOSYS on x86_64 # forgotten
_sysctl                quiet ENOSYS on x86_64 # gone
create_module          quiet ENOSYS on x86_64 # gone
get_kernel_syms        quiet ENOSYS on x86_64 # gone
query_module           quiet ENOSYS on x86_64 # gone
getpmsg                quiet ENOSYS on x86_64 # never existed
putpmsg                quiet ENOSYS on x86_64 # never existed
afs_syscall            quiet ENOSYS on x86_64 # never existed
tuxcall                quiet ENOSYS on x86_64 # never existed
security               quiet ENOSYS on x86_64 # never existed
vserver                quiet ENOSYS on x86_64 # never existed
