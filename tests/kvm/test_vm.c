// SPDX-License-Identifier: BSD-2-Clause
/* The VM as a struct guest: what its run loop tells a watcher, requests to a vCPU, and the ways it stops. */
#include <check.h>
#include <linux/kvm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include <vprof/exit.h>

#include "guest/guest_debug.h"
#include "kvm/boot/x86/boot_ports.h"
#include "kvm/host/host.h"
#include "kvm/vm.h"
#include "lib/symbol/symtab.h"
#include "run_suite.h"
#include "support/host_features.h"

#define SKIP 77
#define PATIENCE_MS 20000

/* Written by the vCPU's thread only, read when that has left, or by a request that runs on it. */
struct log_watcher {
	struct vcpu_watcher watcher;
	unsigned started, exited, handled, interrupted;
	_Atomic unsigned stopped;
	useconds_t stop_us; /* how long its end takes */
	bool in_exit, disorder;
	struct guest_regs regs; /* at the last exit */
	uint64_t exit_ip;       /* of the last one that was handled */
};

static struct {
	GMainLoop *loop;
	struct guest *guest;
	struct log_watcher logs[2];
	struct vcpu_watcher *watchers[2];
	unsigned ends;
	uint8_t phases[128];
	size_t n_phases;
} vm;

static struct log_watcher *log_of(struct vcpu_watcher *watcher)
{
	return (struct log_watcher *)watcher;
}

static void on_started(struct vcpu_watcher *watcher, const struct vcpu_port *port)
{
	struct log_watcher *log = log_of(watcher);

	log->started++;
	log->disorder |= port->vcpu_fd < 0 || !port->immediate_exit || log->exited > 0;
}

static void on_exited(struct vcpu_watcher *watcher, const struct guest_regs *regs, bool interrupted)
{
	struct log_watcher *log = log_of(watcher);

	log->disorder |= log->in_exit || !log->started || log->stopped;
	log->in_exit = true;
	log->exited++;
	log->interrupted += interrupted;
	log->regs = *regs;
}

static void on_handled(struct vcpu_watcher *watcher, uint64_t exit_ip)
{
	struct log_watcher *log = log_of(watcher);

	log->disorder |= !log->in_exit;
	log->in_exit = false;
	log->handled++;
	log->exit_ip = exit_ip;
}

static void on_stopped(struct vcpu_watcher *watcher)
{
	struct log_watcher *log = log_of(watcher);

	log->disorder |= log->in_exit;
	g_usleep(log->stop_us);
	log->stopped++;
}

static const struct vcpu_watcher_ops log_ops = {
	.started = on_started, .exited = on_exited, .handled = on_handled, .stopped = on_stopped};

static void on_ended(struct guest *guest, void *data)
{
	(void)data;
	ck_assert_int_eq(guest->state, GUEST_ENDED);
	vm.ends++;
	g_main_loop_quit(vm.loop);
}

static void on_phase(struct guest *guest, unsigned vcpu, uint8_t value, uint64_t time_ns, void *data)
{
	(void)guest;
	(void)data;
	ck_assert_uint_eq(vcpu, 0);
	ck_assert_uint_ne(time_ns, 0);
	ck_assert_uint_lt(vm.n_phases, sizeof(vm.phases));
	vm.phases[vm.n_phases++] = value;
}

/* A launched VM with waiting vCPUs and one of tests/guests. */
static void make(const char *name, unsigned vcpus)
{
	g_autofree char *path = g_strdup_printf("%s/guest-%s.elf", g_getenv("VPROF_BIN"), name);
	const struct vm_config config = {.kernel_path = path,
	                                 .memory_bytes = MEMORY_BYTES_MIN,
	                                 .vcpus = vcpus,
	                                 .quirks = true,
	                                 .serial_fds = {-1, -1}};
	GError *error = NULL;

	vm.loop = g_main_loop_new(NULL, FALSE);
	vm.guest = vm_new(&config, &error);
	ck_assert_msg(vm.guest, "%s", error ? error->message : "");
	for (unsigned i = 0; i < vcpus; i++) {
		vm.logs[i].watcher.ops = &log_ops;
		vm.watchers[i] = &vm.logs[i].watcher;
	}
	vm.guest->watchers = vm.watchers;
	vm.guest->on_ended = on_ended;
	vm.guest->on_phase = on_phase;
	ck_assert(vm_launch(vm.guest, &error));
}

static gboolean out_of_patience(void *data)
{
	(void)data;
	ck_abort_msg("the guest did not end");
	return G_SOURCE_REMOVE;
}

static void run_to_the_end(void)
{
	guint patience = g_timeout_add(PATIENCE_MS, out_of_patience, NULL);

	g_main_loop_run(vm.loop);
	g_source_remove(patience);
	ck_assert_uint_eq(vm.ends, 1);
}

static void start(void)
{
	GError *error = NULL;

	ck_assert_msg(vm.guest->ops->start(vm.guest, &error), "%s", error ? error->message : "");
}

static void drop(unsigned vcpus)
{
	vm_shutdown(vm.guest);
	for (unsigned i = 0; i < vcpus; i++) {
		const struct log_watcher *log = &vm.logs[i];

		ck_assert(!log->disorder);
		ck_assert_uint_eq(log->started, 1);
		ck_assert_uint_eq(log->stopped, 1);
		ck_assert_uint_eq(log->exited, log->handled);
	}
	vm_free(vm.guest);
	g_main_loop_unref(vm.loop);
}

START_TEST(watcher_sees_every_exit)
{
	make("exit_port", 1);
	start();
	run_to_the_end();
	ck_assert_int_eq(vm.guest->end.reason, GUEST_END_EXIT_PORT);
	ck_assert_uint_eq(vm.guest->end.code, 7);
	ck_assert_str_eq(vm.guest->end.message, "the guest wrote 7 to the exit port");
	ck_assert_ptr_null(vm.guest->end.details);
	ck_assert_uint_eq(vm.logs[0].exit_ip, vprof_exit_ip(KVM_EXIT_IO, 0xf4));
	ck_assert_uint_gt(vm.logs[0].exited, 12); /* a character and a status read for each byte of its line */
	drop(1);
}
END_TEST

static void copy_regs(void *data)
{
	*(struct guest_regs *)data = vm.logs[0].regs;
}

static void count(void *data)
{
	(*(unsigned *)data)++;
}

START_TEST(requests_run_whatever_the_vcpu_does)
{
	unsigned runs = 0;
	const struct guest_ops *ops;

	make("hang", 2);
	ops = vm.guest->ops;
	/* Before the start, */
	ck_assert(ops->run_on_vcpu(vm.guest, 0, count, &runs));
	ck_assert(ops->run_on_vcpu(vm.guest, 1, count, &runs));
	ck_assert_uint_eq(runs, 2);
	ck_assert_uint_eq(vm.logs[0].exited, 0);
	/* in the middle of a loop without exits, where the interrupted guest's registers are, */
	start();
	for (unsigned i = 0; i < 1000; i++)
		ck_assert(ops->run_on_vcpu(vm.guest, 0, count, &runs));
	struct guest_regs regs = {0};
	g_usleep(100000);
	ck_assert(ops->run_on_vcpu(vm.guest, 0, count, &runs));
	ck_assert(ops->run_on_vcpu(vm.guest, 0, copy_regs, &regs));
	ck_assert(regs.valid);
	ck_assert_uint_eq(regs.cpl, 0);
	ck_assert_uint_ge(regs.rip, 0x100000);
	ck_assert_uint_lt(regs.rip, 0x200000);
	ck_assert_uint_eq(regs.cpl, 0);
	/* on a vCPU that waits for its first interrupt inside KVM_RUN, */
	ck_assert(ops->run_on_vcpu(vm.guest, 1, count, &runs));
	ck_assert_uint_eq(runs, 1004);
	ck_assert(!ops->run_on_vcpu(vm.guest, 2, count, &runs));
	/* and never after the end. */
	ops->stop(vm.guest, GUEST_END_STOPPED, "enough");
	run_to_the_end();
	ck_assert(!ops->run_on_vcpu(vm.guest, 0, count, &runs));
	ck_assert_uint_eq(runs, 1004);
	ck_assert_uint_gt(vm.logs[0].interrupted, 0);
	drop(2);
}
END_TEST

/* Who is refused may free the watcher. */
START_TEST(requests_are_refused_after_the_watcher_has_stopped)
{
	unsigned runs = 0;

	make("hang", 1);
	vm.logs[0].stop_us = 200000;
	start();
	vm.guest->ops->stop(vm.guest, GUEST_END_STOPPED, "enough");
	while (vm.guest->ops->run_on_vcpu(vm.guest, 0, count, &runs))
		;
	ck_assert_uint_eq(vm.logs[0].stopped, 1);
	run_to_the_end();
	drop(1);
}
END_TEST

START_TEST(first_reason_wins)
{
	make("halt", 2);
	start();
	g_usleep(50000); /* by now it sleeps inside KVM_RUN */
	vm.guest->ops->stop(vm.guest, GUEST_END_STOPPED, "the first");
	vm.guest->ops->stop(vm.guest, GUEST_END_DURATION, "the second");
	run_to_the_end();
	ck_assert_int_eq(vm.guest->end.reason, GUEST_END_STOPPED);
	ck_assert_str_eq(vm.guest->end.message, "the first");
	drop(2);
}
END_TEST

START_TEST(stops_before_it_starts)
{
	make("exit_port", 1);
	vm.guest->ops->stop(vm.guest, GUEST_END_STOPPED, "not today");
	run_to_the_end();
	ck_assert_int_eq(vm.guest->end.reason, GUEST_END_STOPPED);
	ck_assert_uint_eq(vm.logs[0].exited, 0);
	GError *error = NULL;
	ck_assert(!vm.guest->ops->start(vm.guest, &error));
	g_error_free(error);
	drop(1);
}
END_TEST

START_TEST(shuts_down_without_a_main_loop)
{
	make("hang", 2);
	start();
	drop(2);
	ck_assert_uint_eq(vm.ends, 0);
}
END_TEST

START_TEST(phases_arrive_in_order)
{
	static const uint8_t expected[] = {0x20, 0x40, 0x60, 0x80};

	make("phase_marks", 1);
	start();
	run_to_the_end();
	ck_assert_int_eq(vm.guest->end.reason, GUEST_END_POWER_OFF);
	ck_assert_uint_eq(vm.n_phases, sizeof(expected));
	ck_assert_mem_eq(vm.phases, expected, sizeof(expected));
	drop(1);
}
END_TEST

START_TEST(memory_is_ram_only)
{
	uint8_t byte[4] = {0};

	make("halt", 1);
	ck_assert(vm.guest->ops->memory_read(vm.guest, (gpa_t){0x100000}, byte, sizeof(byte)));
	ck_assert(vm.guest->ops->memory_read(vm.guest, (gpa_t){MEMORY_BYTES_MIN - 4}, byte, sizeof(byte)));
	ck_assert(!vm.guest->ops->memory_read(vm.guest, (gpa_t){MEMORY_BYTES_MIN - 3}, byte, sizeof(byte)));
	ck_assert(!vm.guest->ops->memory_read(vm.guest, (gpa_t){BOOT_LAPIC_GPA}, byte, sizeof(byte)));
	drop(1);
}
END_TEST

START_TEST(triple_fault_says_where)
{
	make("triple_fault", 1);
	start();
	run_to_the_end();
	ck_assert_int_eq(vm.guest->end.reason, GUEST_END_TRIPLE_FAULT);
	/* On AMD processors KVM resets the vCPU first; the exit before is that of the console. */
	if (host_kind() == HOST_SVM)
		ck_assert_ptr_nonnull(strstr(vm.guest->end.details, "RIP was last seen in guest_main+"));
	else
		ck_assert_ptr_nonnull(strstr(vm.guest->end.details, "RIP is in fault_here+0x0\n"));
	ck_assert_ptr_nonnull(strstr(vm.guest->end.details, "triple_fault: the last line before the fault\n"));
	drop(1);
}
END_TEST

/* Interrupted at any point, as by samples. */
START_TEST(user_mode_comes_and_goes)
{
	unsigned kicks = 0;

	make("user_mode", 1);
	start();
	while (vm.guest->ops->run_on_vcpu(vm.guest, 0, count, &kicks))
		g_usleep(200);
	run_to_the_end();
	ck_assert_int_eq(vm.guest->end.reason, GUEST_END_EXIT_PORT);
	ck_assert_uint_eq(vm.guest->end.code, 1); /* PASSED */
	ck_assert_uint_gt(kicks, 10);
	drop(1);
}
END_TEST

/* tests/guests/rounds */
#define ROUNDS 100u
#define COUNTDOWN 3u
#define TEST_PORT 0x510u
#define TEST_MMIO 0xd0001000u
#define TEST_MSR 0x174u

/* A breakpoint and what came of it; written by the vCPU's thread, read when that has left. */
struct log_breakpoint {
	struct guest_breakpoint breakpoint;
	unsigned hits;
	uint64_t rdi_sum;
	bool disorder;
};

static void on_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                   const struct guest_gprs *gprs)
{
	struct log_breakpoint *log = (struct log_breakpoint *)breakpoint;

	log->hits++;
	log->rdi_sum += gprs->rdi;
	log->disorder |= vcpu != 0 || regs->rip != breakpoint->at.value || gprs->rip != regs->rip || regs->cpl != 0;
}

static struct log_breakpoint breakpoint_at(const char *symbol)
{
	g_autofree char *path = g_strdup_printf("%s/guest-rounds.elf", g_getenv("VPROF_BIN"));
	struct image *image = image_open(path, NULL);
	struct symtab *symtab = symtab_load(image, NULL);
	const struct symbol *found = symtab_find_name(symtab, symbol);

	ck_assert_ptr_nonnull(found);
	struct log_breakpoint log = {
		.breakpoint = {
			.at = {found->address}, .what = symbol, .kind = GUEST_BREAKPOINT_PROCESSOR, .hit = on_hit}};
	symtab_free(symtab);
	image_free(image);
	return log;
}

static void add(struct log_breakpoint *log)
{
	GError *error = NULL;
	bool added = vm.guest->debug->breakpoint_add(vm.guest, &log->breakpoint, &error);

	ck_assert_msg(added, "%s", error ? error->message : "");
}

START_TEST(breakpoints_are_hit_exactly)
{
	struct log_breakpoint port = breakpoint_at("round_port"), msr = breakpoint_at("round_msr"),
			      msr_too = breakpoint_at("round_msr"), mark = breakpoint_at("round_mark"),
			      countdown = breakpoint_at("countdown"), mmio = breakpoint_at("round_mmio");
	GError *error = NULL;

	make("rounds", 1);
	add(&port);
	add(&msr);
	add(&mark);
	add(&mmio);
	ck_assert(!vm.guest->debug->breakpoint_add(vm.guest, &countdown.breakpoint, &error));
	ck_assert(g_error_matches(error, GUEST_ERROR, GUEST_ERROR_TAKEN));
	ck_assert_str_eq(
		error->message,
		"cannot place countdown: the processor has 4 breakpoints, and they are taken by round_port, round_msr, round_mark, round_mmio; remove one");
	g_clear_error(&error);
	add(&msr_too);
	vm.guest->debug->breakpoint_remove(vm.guest, &mmio.breakpoint);
	add(&countdown);
	start();
	run_to_the_end();
	ck_assert_int_eq(vm.guest->end.reason, GUEST_END_POWER_OFF);
	ck_assert_uint_eq(port.hits, ROUNDS);
	ck_assert_uint_eq(port.rdi_sum, ROUNDS * (ROUNDS - 1) / 2);
	ck_assert_uint_eq(msr.hits, ROUNDS);
	ck_assert_uint_eq(msr_too.hits, ROUNDS);
	ck_assert_uint_eq(mark.hits, ROUNDS);
	ck_assert_uint_eq(countdown.hits, ROUNDS * COUNTDOWN);
	ck_assert_uint_eq(countdown.rdi_sum, ROUNDS * (1 + 2 + 3));
	ck_assert_uint_eq(mmio.hits, 0);
	ck_assert(!port.disorder && !msr.disorder && !mark.disorder && !countdown.disorder);
	ck_assert(!vm.guest->debug->breakpoint_add(vm.guest, &mmio.breakpoint, &error));
	ck_assert(g_error_matches(error, GUEST_ERROR, GUEST_ERROR_ENDED));
	g_clear_error(&error);
	vm.guest->debug->breakpoint_remove(vm.guest, &port.breakpoint);
	drop(1);
}
END_TEST

/* The accesses of one kind and direction to one address. */
struct access_log {
	unsigned n;
	uint64_t value_sum;
	uint8_t bytes;
};

static struct {
	struct guest_observer observer;
	struct access_log port[2], mmio[2], msr[2];
	unsigned others;
} seen;

static void on_access(struct guest_observer *observer, unsigned vcpu, const struct guest_access *access,
                      const struct guest_regs *regs, const struct guest_gprs *gprs)
{
	ck_assert_ptr_eq(observer, &seen.observer);
	ck_assert_uint_eq(vcpu, 0);
	ck_assert_uint_eq(regs->rip, gprs->rip);
	struct access_log *log = NULL;
	if (access->reason == KVM_EXIT_IO && access->address - TEST_PORT < 2)
		log = &seen.port[access->write];
	else if (access->reason == KVM_EXIT_MMIO && access->address - TEST_MMIO <= 4)
		log = &seen.mmio[access->write];
	else if ((access->reason == KVM_EXIT_X86_RDMSR || access->reason == KVM_EXIT_X86_WRMSR) &&
	         access->address == TEST_MSR)
		log = &seen.msr[access->write];
	else
		seen.others++;
	if (log) {
		log->n++;
		log->value_sum += access->value;
		log->bytes = access->bytes;
	}
}

static void check_access(const struct access_log *log, uint64_t value_sum, uint8_t bytes)
{
	ck_assert_uint_eq(log->n, ROUNDS);
	ck_assert_uint_eq(log->value_sum, value_sum);
	ck_assert_uint_eq(log->bytes, bytes);
}

START_TEST(observer_sees_every_access)
{
	const uint64_t sum = ROUNDS * (ROUNDS - 1) / 2;
	const struct guest_msr_range msr = {TEST_MSR, TEST_MSR, true, true};
	const struct guest_msr_range backwards = {TEST_MSR, TEST_MSR - 1, true, true};
	GError *error = NULL;

	make("rounds", 1);
	ck_assert(!vm.guest->debug->msrs_watch(vm.guest, &backwards, 1, &error));
	ck_assert(g_error_matches(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED));
	g_clear_error(&error);
	ck_assert(vm.guest->debug->msrs_watch(vm.guest, &msr, 1, &error));
	memset(&seen, 0, sizeof(seen));
	seen.observer.exited = on_access;
	ck_assert(vm.guest->debug->observer_add(vm.guest, &seen.observer, &error));
	start();
	run_to_the_end();
	ck_assert_int_eq(vm.guest->end.reason, GUEST_END_POWER_OFF);
	check_access(&seen.port[true], sum, 1);
	check_access(&seen.port[false], ROUNDS * UINT64_C(0xff), 1); /* an empty bus */
	check_access(&seen.mmio[true], sum, 4);
	check_access(&seen.mmio[false], ROUNDS * UINT64_C(0xffffffff), 4);
	check_access(&seen.msr[true], sum, 8); /* and the guest gets to read what it wrote: */
	check_access(&seen.msr[false], sum, 8);
	ck_assert_uint_ge(seen.others, ROUNDS); /* port 0x80 */
	drop(1);
}
END_TEST

struct registers_request {
	bool read;
	struct guest_regs regs;
	struct guest_gprs gprs;
};

static void read_registers(void *data)
{
	struct registers_request *request = data;

	request->read = vm.guest->debug->registers_read(vm.guest, 0, &request->regs, &request->gprs);
}

START_TEST(registers_are_read_between_exits)
{
	struct registers_request request = {0};

	make("hang", 1);
	ck_assert(vm.guest->ops->run_on_vcpu(vm.guest, 0, read_registers, &request));
	ck_assert(!request.read);
	start();
	for (unsigned i = 0; i < 1000 && (!request.read || request.regs.cpl != 0); i++)
		ck_assert(vm.guest->ops->run_on_vcpu(vm.guest, 0, read_registers, &request));
	ck_assert(request.read);
	ck_assert_uint_eq(request.regs.rip, request.gprs.rip);
	ck_assert_uint_eq(request.regs.rsp, request.gprs.rsp);
	vm.guest->ops->stop(vm.guest, GUEST_END_STOPPED, "enough");
	run_to_the_end();
	drop(1);
}
END_TEST

int main(void)
{
	g_autoptr(GError) error = NULL;
	int kvm_fd = host_open(&error);

	if (kvm_fd < 0) {
		fprintf(stderr, "skipped: %s\n", error->message);
		return SKIP;
	}
	close(kvm_fd);
	const char *missing = host_feature_missing(HOST_FEATURE_BREAKPOINT);
	Suite *suite = suite_create("vm");
	TCase *test = tcase_create("vm");
	tcase_set_timeout(test, 60);
	tcase_add_test(test, watcher_sees_every_exit);
	tcase_add_test(test, requests_run_whatever_the_vcpu_does);
	tcase_add_test(test, requests_are_refused_after_the_watcher_has_stopped);
	tcase_add_test(test, first_reason_wins);
	tcase_add_test(test, stops_before_it_starts);
	tcase_add_test(test, shuts_down_without_a_main_loop);
	tcase_add_test(test, phases_arrive_in_order);
	tcase_add_test(test, memory_is_ram_only);
	tcase_add_test(test, triple_fault_says_where);
	tcase_add_test(test, user_mode_comes_and_goes);
	if (!missing)
		tcase_add_test(test, breakpoints_are_hit_exactly);
	tcase_add_test(test, observer_sees_every_access);
	tcase_add_test(test, registers_are_read_between_exits);
	suite_add_tcase(suite, test);
	int status = run_suite(suite);
	if (status != 0 || !missing)
		return status;
	printf("breakpoints: this host's KVM %s\n", missing);
	return SKIP;
}
