# landlock-alone - landlock, where nobody can take the listener (kernel.yama.ptrace_scope)
#
# As command-alone. Rights, owners, times and attributes are unknown to Landlock and have no
# read-only mounts to hold them here, so without the monitor nobody may change them.

include landlock       # the same allow-list; a syscall named below replaces all that it says
listener none          # deny is an errno; no watch may be left

open                   deny EPERM on x86_64 when arg1 has O_CREAT|__O_TMPFILE and arg2 has S_ISUID|S_ISGID # a set-id file in a workspace is the caller's on the host
open                   deny EPERM on x86_64 when arg1 has O_TRUNC and arg1 & O_ACCMODE is not O_WRONLY, O_RDWR # empties a file that it opens not to write: Landlock before its ABI 3 does not see it
open                   allow on x86_64 # decided by Landlock
openat                 deny EPERM when arg2 has O_CREAT|__O_TMPFILE and arg3 has S_ISUID|S_ISGID # as above
openat                 deny EPERM when arg2 has O_TRUNC and arg2 & O_ACCMODE is not O_WRONLY, O_RDWR # as above
openat                 allow # decided by Landlock
creat                  deny EPERM on x86_64 when arg1 has S_ISUID|S_ISGID # as above
creat                  allow on x86_64 # decided by Landlock
rename                 allow on x86_64 # decided by Landlock
renameat               allow # decided by Landlock
renameat2              allow # decided by Landlock
link                   allow on x86_64 # decided by Landlock
linkat                 allow # decided by Landlock
symlink                allow on x86_64 # decided by Landlock
symlinkat              allow # decided by Landlock
unlink                 allow on x86_64 # decided by Landlock
unlinkat               allow # decided by Landlock
rmdir                  allow on x86_64 # decided by Landlock
mkdir                  allow on x86_64 # decided by Landlock
mkdirat                allow # decided by Landlock
mknod                  deny EPERM on x86_64 when arg1 & S_IFMT is not 0, S_IFREG, S_IFIFO # a device, a socket or an overlay whiteout
mknod                  deny EPERM on x86_64 when arg1 has S_ISUID|S_ISGID # as creat
mknod                  allow on x86_64 # a file or a FIFO
mknodat                deny EPERM when arg2 & S_IFMT is not 0, S_IFREG, S_IFIFO # a device, a socket or an overlay whiteout
mknodat                deny EPERM when arg2 has S_ISUID|S_ISGID # as creat
mknodat                allow # a file or a FIFO

chmod                  deny EPERM on x86_64 # the monitor's work, and there is none
fchmod                 deny EPERM # opened for reading is enough for it
fchmodat               deny EPERM # the monitor's work, and there is none
fchmodat2              deny EPERM # the monitor's work, and there is none
chown                  deny EPERM on x86_64 # the monitor's work, and there is none
lchown                 deny EPERM on x86_64 # the monitor's work, and there is none
fchown                 deny EPERM # the monitor's work, and there is none
fchownat               deny EPERM # the monitor's work, and there is none
utime                  deny EPERM on x86_64 # the monitor's work, and there is none
utimes                 deny EPERM on x86_64 # the monitor's work, and there is none
futimesat              deny EPERM on x86_64 # the monitor's work, and there is none
utimensat              deny EPERM # the monitor's work, and there is none
setxattr               deny EPERM # the monitor's work, and there is none
lsetxattr              deny EPERM # the monitor's work, and there is none
fsetxattr              deny EPERM # the monitor's work, and there is none
removexattr            deny EPERM # the monitor's work, and there is none
lremovexattr           deny EPERM # the monitor's work, and there is none
fremovexattr           deny EPERM # the monitor's work, and there is none

connect                deny EACCES # a path may be a host process's socket
truncate               deny EPERM # no right of Landlock's before its ABI 3
bind                   allow # makes only what Landlock permits
sendto                 allow # there are no datagram sockets
sendmsg                allow # as sendto
sendmmsg               allow # as sendto
