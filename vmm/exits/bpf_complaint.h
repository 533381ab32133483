// SPDX-License-Identifier: BSD-2-Clause
/* What libbpf has to complain of while it loads a program. Main thread only; not in builds without BPF. */
#ifndef VPROF_EXITS_BPF_COMPLAINT_H
#define VPROF_EXITS_BPF_COMPLAINT_H

/* Between the two calls libbpf prints nothing. */
void bpf_complaint_begin(void);
/* The first line of what it would have printed, which is the cause; "": nothing. Valid until the next begin. */
const char *bpf_complaint_end(void);

#endif
