/*
 * mem - copying and filling memory, where the C library's own are slow
 *
 * In the command's build with musl these are memcpy, memmove and memset (cli/musl.c). Other code
 * calls them by those names.
 */
#pragma once

#include <stddef.h>

/* As memmove: the two places may overlap. Returns `into`. */
void *mem_move(void *into, const void *of, size_t size);
/* As memset. Returns `into`. */
void *mem_fill(void *into, int byte, size_t size);
