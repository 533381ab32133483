// SPDX-License-Identifier: BSD-2-Clause
/* Computes for some seconds, in one function. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void spin_in_user_mode(void);

__attribute__((noinline)) void spin_in_user_mode(void)
{
	for (unsigned i = 0; i < 1000000; i++)
		__asm__ volatile("" : "+r"(i));
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);

	while (time(NULL) < end)
		spin_in_user_mode();
	puts("user_spin: done");
	return 0;
}
