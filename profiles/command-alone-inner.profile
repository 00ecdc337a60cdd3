# command-alone-inner - command, on a kernel of its own (the wall gvisor)
#
# That kernel carries the filter out, and answers the calls: it opens no socket and no fifo of the
# host's (--host-uds=none) and has a network stack of its own. An address leads nowhere but inside.

include command-alone  # the same list; a syscall named below replaces all that it says
listener none          # as there

connect                allow # no name inside is a host process's socket
