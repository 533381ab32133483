// SPDX-License-Identifier: BSD-2-Clause
/* Names from guest memory. */
#ifndef VPROF_LINUX_GUEST_TEXT_H
#define VPROF_LINUX_GUEST_TEXT_H

#include <stddef.h>

/* Replaces control characters, which a terminal would act on. */
static inline void guest_text_clean(char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
}

#endif
