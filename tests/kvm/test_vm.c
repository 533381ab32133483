// SPDX-License-Identifier: BSD-2-Clause
/* The VM as a struct guest: what its run loop tells a watcher, requests to a vCPU, and the ways it stops. */
#include <check.h>
#include <linux/kvm.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <vprof/exit.h>

#include "kvm/host.h"
#include "kvm/vm.h"

#define SKIP 77
#define PATIENCE_MS 20000

/* Written by the vCPU's thread only, read when that has left, or by a request that runs on it. */
struct log_watcher {
	struct vcpu_watcher watcher;
	unsigned started, exited, handled, stopped, interrupted;
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
	uint8_t phases[16];
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

/* A launched VM whose vCPUs wait, with one of tests/guests. */
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

int main(void)
{
	g_autoptr(GError) error = NULL;
	int kvm_fd = host_open(&error);
	if (kvm_fd < 0) {
		fprintf(stderr, "skipped: %s\n", error->message);
		return SKIP;
	}
	close(kvm_fd);
	Suite *suite = suite_create("vm");
	TCase *test = tcase_create("vm");
	tcase_set_timeout(test, 60);
	tcase_add_test(test, watcher_sees_every_exit);
	tcase_add_test(test, requests_run_whatever_the_vcpu_does);
	tcase_add_test(test, first_reason_wins);
	tcase_add_test(test, stops_before_it_starts);
	tcase_add_test(test, shuts_down_without_a_main_loop);
	tcase_add_test(test, phases_arrive_in_order);
	tcase_add_test(test, memory_is_ram_only);
	tcase_add_test(test, triple_fault_says_where);
	tcase_add_test(test, user_mode_comes_and_goes);
	suite_add_tcase(suite, test);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
