// SPDX-License-Identifier: BSD-2-Clause
/* The general registers of a vCPU, of either processor: by name, and by what a function's caller and the function agree
 * on. */
#ifndef VPROF_GUEST_GPRS_H
#define VPROF_GUEST_GPRS_H

#include "guest/guest_debug.h"

#define GUEST_GPRS_MAX 34u
/* Arguments in registers that every processor has. */
#define GUEST_GPR_ARGUMENTS 6u

/* The name of the n-th register of a processor, n < GUEST_GPRS_MAX; NULL: it has no more. */
const char *guest_gpr_name(enum guest_processor processor, unsigned n);
/* What names there are, for messages, such as "x0 to x30, sp, pc and pstate" of arm64. */
const char *guest_gpr_names(enum guest_processor processor);
/* The value of the register of that name. */
uint64_t guest_gprs_value(const struct guest_gprs *gprs, unsigned n);

/* Where a function begins: its n-th argument, n < GUEST_GPR_ARGUMENTS. */
uint64_t guest_gprs_argument(const struct guest_gprs *gprs, unsigned n);
/* Where it returns: its result. */
uint64_t guest_gprs_result(const struct guest_gprs *gprs);
/* The stack pointer, which is the same where a function begins and where it returns. */
uint64_t guest_gprs_stack(const struct guest_gprs *gprs);

#endif
