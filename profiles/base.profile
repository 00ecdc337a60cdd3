# base - the agent's own filter
#
# The agent is process 1 inside the wall. It loads this once, before it reads a byte from
# outside; every command inherits it beneath a profile of its own. In a chain of filters an
# errno outranks a notification, so a call that the command profile reports must pass here:
# this text lists only calls that are refused everywhere and reported nowhere. A test holds
# each line against the command profile.

listener none                      # nothing listens to the agent: deny is an errno here
default allow                      # the command profile is the allow-list; whatever it reports must pass

io_uring_setup         deny ENOSYS # a second way into most of the kernel that no filter sees
io_uring_enter         deny ENOSYS # as io_uring_setup
io_uring_register      deny ENOSYS # as io_uring_setup
io_setup               deny ENOSYS # rings come out of one limit of the whole machine, fs.aio-max-nr
io_submit              deny ENOSYS # as io_setup
io_pgetevents          deny ENOSYS # as io_setup
userfaultfd            deny EPERM  # holds the kernel inside a copy, the classic aid of exploits
fanotify_init          deny EPERM  # shows file events of a whole mount
fanotify_mark          deny EPERM  # as fanotify_init
kcmp                   deny EPERM  # tells where kernel objects lie in memory
process_madvise        deny EPERM  # acts on another process's memory
process_mrelease       deny EPERM  # acts on another process's memory
memfd_secret           deny ENOSYS # memory that sampling cannot see
move_pages             deny ENOSYS # acts on another process's memory
migrate_pages          deny ENOSYS # acts on another process's memory
mbind                  deny ENOSYS # placement on nodes; nothing here has any
set_mempolicy          deny ENOSYS # as mbind
set_mempolicy_home_node deny ENOSYS # as mbind
uselib                 deny ENOSYS on x86_64 # loads a library by a path, forgotten code
