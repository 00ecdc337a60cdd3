/*
 * port - does somebody listen on a TCP port, as far as this network namespace goes?
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether somebody does; -EOPNOTSUPP where neither the kernel's list nor a connection tells. */
int port_is_open(uint16_t port, bool *ret_open);
