// SPDX-License-Identifier: BSD-2-Clause
/* What libbpf says while it loads a program. Main thread only; not in builds without BPF. */
#ifndef VPROF_ATTACH_BPF_LOAD_H
#define VPROF_ATTACH_BPF_LOAD_H

#include <glib.h>

/* Between the two calls libbpf prints nothing. */
void bpf_load_begin(void);
/* `number`: the errno of a load that failed; sets a GUEST_PROGRAM_ERROR with the cause. 0: it did not. */
void bpf_load_end(int number, GError **error);

#endif
