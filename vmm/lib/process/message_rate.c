// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/message_rate.h"

bool message_rate_take(struct message_rate *rate, int64_t now_us, uint64_t *left_out)
{
	*left_out = 0;
	if (rate->said == 0 || now_us - rate->since_us >= MESSAGE_RATE_US) {
		rate->since_us = now_us;
		rate->said = 0;
		*left_out = message_rate_end(rate);
	}
	if (rate->said < MESSAGE_RATE_MESSAGES) {
		rate->said++;
		return true;
	}
	rate->left_out++;
	return false;
}

uint64_t message_rate_end(struct message_rate *rate)
{
	uint64_t left_out = rate->left_out;

	rate->left_out = 0;
	return left_out;
}
