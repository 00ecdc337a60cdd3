/* show_ids - prints its effective uid and gid: what a set-user-id copy of it came to. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	printf("%u %u\n", geteuid(), getegid());
	return 0;
}
