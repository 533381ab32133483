// SPDX-License-Identifier: BSD-2-Clause
#include "exits/bpf_complaint.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

/* The rest is a log of the verifier. */
static char first[160];
static libbpf_print_fn_t print_before;

static int take(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level != LIBBPF_WARN || first[0] != '\0')
		return 0;
	vsnprintf(first, sizeof(first), format, arguments);
	first[strcspn(first, "\n")] = '\0';
	return 0;
}

void bpf_complaint_begin(void)
{
	first[0] = '\0';
	print_before = libbpf_set_print(take);
}

const char *bpf_complaint_end(void)
{
	libbpf_set_print(print_before);
	return first;
}
