// SPDX-License-Identifier: BSD-2-Clause
#include "guest/look.h"

static bool look_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	struct look *look = (struct look *)guest;

	return look_take(look, bytes) && look->of->ops->memory_read(look->of, from, to, bytes);
}

void look_init(struct look *look, struct guest *of)
{
	static const struct guest_ops ops = {.memory_read = look_read};

	*look = (struct look){
		.guest = *of,
		.of = of,
		.bytes_left = LOOK_BYTES_MAX,
		.steps_left = LOOK_STEPS_MAX,
		.kernels_left = LOOK_KERNELS_MAX,
	};
	look->guest.ops = &ops;
}

/* Nothing small is read either once something large could not be: what is found then would depend on the order. */
static bool refuse(struct look *look)
{
	look->spent = true;
	look->bytes_left = 0;
	return false;
}

bool look_take(struct look *look, uint64_t bytes)
{
	uint64_t left;

	if (look_cancelled(look))
		return false;
	if (__builtin_sub_overflow(look->bytes_left, bytes, &left) ||
	    __builtin_sub_overflow(left, LOOK_READ_BYTES, &left))
		return refuse(look);
	look->bytes_left = left;
	return true;
}

bool look_take_kernel(struct look *look)
{
	if (look_cancelled(look))
		return false;
	if (look->kernels_left == 0)
		return refuse(look);
	look->kernels_left--;
	return true;
}

void look_cancel(struct look *look)
{
	atomic_store_explicit(&look->cancelled, true, memory_order_relaxed);
}

bool look_cancelled(const struct look *look)
{
	return atomic_load_explicit(&look->cancelled, memory_order_relaxed);
}

bool look_gave_up(const struct look *look)
{
	return look->spent || look->steps_left == 0 || look_cancelled(look);
}
