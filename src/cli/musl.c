/*
 * What the build with musl has instead of musl's, and what the libraries expect from glibc
 *
 * jansson, libyaml and libcrypto are Debian's archives, compiled for glibc. What they call is
 * listed and reviewed (tools/musl-link, docs/decisions/musl.md); the three names that only glibc
 * has are made here. The allocator and the copies replace musl's, which are slow for this program.
 */
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/mem.h"

int __vsnprintf_chk(char *text, size_t size, int flag, size_t room, const char *format,
		    va_list list);
int __snprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, ...);
char *__strncpy_chk(char *to, const char *from, size_t size, size_t room);

static struct heap heap;

void *malloc(size_t size)
{
	return heap_alloc(&heap, size);
}

void *calloc(size_t count, size_t size)
{
	return heap_array(&heap, count, size);
}

void *realloc(void *block, size_t size)
{
	return heap_resize(&heap, block, size);
}

void free(void *block)
{
	heap_free(&heap, block);
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	return mem_move(to, from, size);
}

void *memmove(void *to, const void *from, size_t size)
{
	return mem_move(to, from, size);
}

void *memset(void *to, int byte, size_t size)
{
	return mem_fill(to, byte, size);
}

/* musl's goes by a thread's number that it keeps: in a child of clone3() that is the parent's. */
_Noreturn void abort(void)
{
	kill(getpid(), SIGABRT);
	__builtin_trap();
}

int __vsnprintf_chk(char *text, size_t size, int flag, size_t room, const char *format,
		    va_list list)
{
	(void)flag;
	if (room < size)
		__builtin_trap();
	return vsnprintf(text, size, format, list);
}

int __snprintf_chk(char *text, size_t size, int flag, size_t room, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = __vsnprintf_chk(text, size, flag, room, format, list);
	va_end(list);
	return length;
}

char *__strncpy_chk(char *to, const char *from, size_t size, size_t room)
{
	if (room < size)
		__builtin_trap();
	return strncpy(to, from, size);
}
