// SPDX-License-Identifier: BSD-2-Clause
#include "guest/gprs.h"

#include "guest/processor.h"

const char *guest_gpr_name(enum guest_processor processor, unsigned n)
{
	const struct processor_gprs *gprs = processor_of(processor)->gprs;

	return n < gprs->n ? gprs->names[n] : NULL;
}

const char *guest_gpr_names(enum guest_processor processor)
{
	return processor_of(processor)->gprs->all;
}

uint64_t guest_gprs_value(const struct guest_gprs *gprs, unsigned n)
{
	const struct processor_gprs *of = processor_of(gprs->processor)->gprs;

	return n < of->n ? of->value(gprs, n) : 0;
}

uint64_t guest_gprs_argument(const struct guest_gprs *gprs, unsigned n)
{
	return processor_of(gprs->processor)->gprs->argument(gprs, n);
}

uint64_t guest_gprs_result(const struct guest_gprs *gprs)
{
	return processor_of(gprs->processor)->gprs->result(gprs);
}

uint64_t guest_gprs_stack(const struct guest_gprs *gprs)
{
	return processor_of(gprs->processor)->gprs->stack(gprs);
}
