# landlock-reads - landlock, with every open shown to the monitor

include landlock       # the same allow-list; a syscall named below replaces all that it says
open                   watch on x86_64 # reads are asked for too
openat                 watch # reads are asked for too
