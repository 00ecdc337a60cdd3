# command-alone - command, where nobody can take the listener (kernel.yama.ptrace_scope)
#
# What is only watched goes on: mounts and Landlock decide about files. What the monitor decides
# itself is refused: connect, whose address is behind a pointer that no filter follows.

include command        # the same allow-list; a syscall named below replaces all that it says
listener none          # deny is an errno; no watch may be left

open                   deny EPERM on x86_64 when arg1 has O_CREAT|__O_TMPFILE and arg2 has S_ISUID|S_ISGID # a set-id file in a workspace is the caller's on the host
open                   allow on x86_64 # decided by mounts and Landlock
openat                 deny EPERM when arg2 has O_CREAT|__O_TMPFILE and arg3 has S_ISUID|S_ISGID # as above
openat                 allow # decided by mounts and Landlock
creat                  deny EPERM on x86_64 when arg1 has S_ISUID|S_ISGID # as above
creat                  allow on x86_64 # decided by mounts and Landlock
rename                 allow on x86_64 # decided by mounts and Landlock
renameat               allow # decided by mounts and Landlock
renameat2              allow # decided by mounts and Landlock
link                   allow on x86_64 # decided by mounts and Landlock
linkat                 allow # decided by mounts and Landlock
symlink                allow on x86_64 # decided by mounts and Landlock
symlinkat              allow # decided by mounts and Landlock
unlink                 allow on x86_64 # decided by mounts and Landlock
unlinkat               allow # decided by mounts and Landlock
rmdir                  allow on x86_64 # decided by mounts and Landlock
mkdir                  allow on x86_64 # decided by mounts and Landlock
mkdirat                allow # decided by mounts and Landlock
mknod                  deny EPERM on x86_64 when arg1 & S_IFMT is not 0, S_IFREG, S_IFIFO # a device, a socket or an overlay whiteout
mknod                  deny EPERM on x86_64 when arg1 has S_ISUID|S_ISGID # as creat
mknod                  allow on x86_64 # a file or a FIFO
mknodat                deny EPERM when arg2 & S_IFMT is not 0, S_IFREG, S_IFIFO # a device, a socket or an overlay whiteout
mknodat                deny EPERM when arg2 has S_ISUID|S_ISGID # as creat
mknodat                allow # a file or a FIFO
chmod                  deny EPERM on x86_64 when arg1 has S_ISUID|S_ISGID # as above
chmod                  allow on x86_64 # read-only mounts hold
fchmodat               deny EPERM when arg2 has S_ISUID|S_ISGID # as above
fchmodat               allow # read-only mounts hold
fchmodat2              deny EPERM when arg2 has S_ISUID|S_ISGID # as above
fchmodat2              allow # read-only mounts hold
chown                  allow on x86_64 # no capability gives it away
lchown                 allow on x86_64 # as chown
fchownat               allow # as chown
truncate               allow # decided by mounts and Landlock
setxattr               allow # read-only mounts hold
lsetxattr              allow # as setxattr
removexattr            allow # as setxattr
lremovexattr           allow # as setxattr

connect                deny EACCES # a path may be a host process's socket
bind                   allow # makes only what mounts and Landlock permit
sendto                 allow # the namespace has no way out; datagrams by path have no socket
sendmsg                allow # as sendto
sendmmsg               allow # as sendto
