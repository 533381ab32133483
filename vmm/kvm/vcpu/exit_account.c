// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/exit_account.h"

#include <vprof/exit.h>

/* With this many kinds of exit, new ones with a detail are filed under their reason only. */
#define DETAILS_MAX 96u
#define REASONS_MAX 48u /* KVM_EXIT_* up to 43 in Linux 6.18, and ours */

_Static_assert(DETAILS_MAX + 2 * REASONS_MAX <= GUEST_EXITS_MAX && GUEST_EXITS_MAX < EXIT_ACCOUNT_SLOTS,
               "there is always room for a reason, without detail and for all other details");

void exit_account_begin(struct exit_account *account, uint64_t now_ns)
{
	*account = (struct exit_account){.start_ns = now_ns, .mark_ns = now_ns};
}

static uint64_t advance(struct exit_account *account, uint64_t now_ns)
{
	uint64_t ns = now_ns - account->mark_ns;

	account->mark_ns = now_ns;
	return ns;
}

void exit_account_returned(struct exit_account *account, uint64_t now_ns, bool offline)
{
	uint64_t ns = advance(account, now_ns);

	account->run_ns += ns;
	if (offline)
		account->offline_ns += ns;
}

void exit_account_waited(struct exit_account *account, uint64_t ns)
{
	account->offline_ns += ns;
}

/* The slot of this ip, or the free one where it belongs. */
static struct guest_exit *find(struct exit_account *account, uint64_t ip)
{
	/* Fibonacci hashing (Knuth, vol. 3, 6.4): reasons differ in the top bits, ports and MSRs in the lowest. */
	uint64_t slot = ip * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	for (;; slot++) {
		struct guest_exit *exit = &account->exits[slot % EXIT_ACCOUNT_SLOTS];

		if (exit->ip == ip || exit->ip == 0)
			return exit;
	}
}

static struct guest_exit *find_or_add(struct exit_account *account, uint64_t ip)
{
	struct guest_exit *exit = find(account, ip);

	if (exit->ip == ip)
		return exit;
	if (account->n_exits >= DETAILS_MAX && vprof_exit_detail(ip) != 0) {
		ip = vprof_exit_ip(vprof_exit_reason(ip), VPROF_EXIT_DETAIL_MASK);
		exit = find(account, ip);
	}
	if (exit->ip == 0)
		account->n_exits++;
	exit->ip = ip;
	return exit;
}

void exit_account_handled(struct exit_account *account, uint64_t now_ns, uint64_t ip, unsigned times)
{
	struct guest_exit *exit = find_or_add(account, ip);
	uint64_t ns = advance(account, now_ns);

	account->vmm_ns += ns;
	exit->ns += ns;
	exit->count += times;
}

void exit_account_read(const struct exit_account *account, struct guest_vcpu_time *out)
{
	out->time.wall_ns = account->mark_ns - account->start_ns;
	out->time.run_ns = account->run_ns;
	out->time.vmm_ns = account->vmm_ns;
	out->time.offline_ns = account->offline_ns;
	out->n_exits = 0;
	for (size_t i = 0; i < EXIT_ACCOUNT_SLOTS; i++)
		if (account->exits[i].ip != 0)
			out->exits[out->n_exits++] = account->exits[i];
	guest_exits_sort(out);
}
