// SPDX-License-Identifier: BSD-2-Clause
/*
 * unwinders_agree VMLINUX INITRD: boots a kernel that has frame pointers and ORC tables, stops it again and again, and
 * walks its stack both ways from the same registers over the same memory.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/unwind.h"
#include "kvm/vm.h"
#include "lib/symbol/symtab.h"
#include "linux/orc.h"
#include "linux/os_linux.h"

#define MEMORY_BYTES (UINT64_C(128) << 20)
#define PERIOD_MS 15u
#define PATIENCE_S 280u
#define SAMPLES_MIN 300u
#define AGREEMENT_MIN 0.99 /* of the callers that either finds, the other has to */
#define WHOLE_MIN 0.99
#define SHOWN_MAX 10u /* of the chains that differ most */

/* Written by the vCPU's thread, read when that has gone. */
static struct {
	struct vcpu_watcher watcher;
	struct vcpu_watcher *watchers[1];
	struct guest *guest;
	struct unwind_config orc, frame_pointers;
	const struct symtab *symtab;
	unsigned samples, whole[2];  /* chains that reach the end of their stack, by ORC and by frame pointers */
	uint64_t callers[2], agreed; /* by both: frames but the first, the interrupted instruction */
	unsigned shown;
} compared;

struct chain {
	uint64_t words[UNWIND_CHAIN_MAX];
	unsigned n;
	enum unwind_end end;
};

static void chain_print(const char *name, const struct chain *chain)
{
	printf("    %s:", name);
	for (unsigned i = 1; i < chain->n; i++) {
		const struct symbol *symbol = symtab_find(compared.symtab, chain->words[i]);

		printf(" %s+0x%lx", symbol ? symbol->name : "?",
		       (unsigned long)(symbol ? chain->words[i] - symbol->address : chain->words[i]));
	}
	printf(" (end %d)\n", chain->end);
}

/*
 * How many callers are in both, in the same order (their longest common subsequence). Words 0 and 1 are the context's
 * mark and the instruction.
 */
static unsigned callers_common(const struct chain *a, const struct chain *b)
{
	static unsigned rows[2][UNWIND_CHAIN_MAX + 1];

	memset(rows, 0, sizeof(rows));
	for (unsigned i = 2; i < a->n; i++) {
		const unsigned *above = rows[i % 2];
		unsigned *row = rows[(i + 1) % 2];

		for (unsigned j = 2; j < b->n; j++)
			row[j] = a->words[i] == b->words[j] ? above[j - 1] + 1 : MAX(above[j], row[j - 1]);
	}
	return a->n > 2 && b->n > 2 ? rows[(a->n) % 2][b->n - 1] : 0;
}

static void chains_compare(const struct chain *orc, const struct chain *frame_pointers)
{
	unsigned common = callers_common(orc, frame_pointers);

	compared.callers[0] += orc->n - 2;
	compared.callers[1] += frame_pointers->n - 2;
	compared.agreed += common;
	if ((common + 2 < frame_pointers->n || common + 2 < orc->n) && compared.shown++ < SHOWN_MAX) {
		chain_print("ORC", orc);
		chain_print("frame pointers", frame_pointers);
	}
}

/* Without the marks behind the first. */
static void chain_walk(const struct unwind_config *config, const struct guest_regs *regs, struct chain *chain)
{
	unsigned n = unwind(config, compared.guest, regs, NULL, chain->words, &chain->end);

	chain->n = 1;
	for (unsigned i = 1; i < n; i++)
		if (chain->words[i] != (uint64_t)PERF_CONTEXT_KERNEL)
			chain->words[chain->n++] = chain->words[i];
}

static void on_exited(struct vcpu_watcher *watcher, const struct guest_regs *regs, bool interrupted)
{
	struct chain orc, frame_pointers;

	(void)watcher;
	if (!interrupted || !regs->valid || regs->cpl != 0)
		return;
	chain_walk(&compared.orc, regs, &orc);
	chain_walk(&compared.frame_pointers, regs, &frame_pointers);
	compared.samples++;
	compared.whole[0] += orc.end == UNWIND_END_OF_STACK;
	compared.whole[1] += frame_pointers.end == UNWIND_END_OF_STACK;
	chains_compare(&orc, &frame_pointers);
}

static void on_started(struct vcpu_watcher *watcher, const struct vcpu_port *port)
{
	(void)watcher, (void)port;
}

static void on_handled(struct vcpu_watcher *watcher, uint64_t exit_ip)
{
	(void)watcher, (void)exit_ip;
}

static void on_stopped(struct vcpu_watcher *watcher)
{
	(void)watcher;
}

static void nothing(void *data)
{
	(void)data;
}

/* To run anything on the vCPU's thread, the guest is interrupted. */
static gboolean interrupt(void *data)
{
	struct guest *guest = data;

	return guest->ops->run_on_vcpu(guest, 0, nothing, NULL) ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static gboolean give_up(void *data)
{
	struct guest *guest = data;

	guest->ops->stop(guest, GUEST_END_DURATION, "out of patience");
	return G_SOURCE_REMOVE;
}

static void on_ended(struct guest *guest, void *data)
{
	(void)guest;
	g_main_loop_quit(data);
}

static bool boot(const char *vmlinux, const char *initrd, GError **error)
{
	static const struct vcpu_watcher_ops ops = {
		.started = on_started, .exited = on_exited, .handled = on_handled, .stopped = on_stopped};
	const struct vm_config config = {.kernel_path = vmlinux,
	                                 .initrd_path = initrd,
	                                 .memory_bytes = MEMORY_BYTES,
	                                 .vcpus = 1,
	                                 .quirks = true,
	                                 .serial_fds = {-1, -1}};
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	struct guest *guest = vm_new(&config, error);
	bool started = false;

	if (guest) {
		compared.guest = guest;
		compared.watcher.ops = &ops;
		compared.watchers[0] = &compared.watcher;
		guest->watchers = compared.watchers;
		guest->on_ended = on_ended;
		guest->listener_data = loop;
		started = vm_launch(guest, error) && guest->ops->start(guest, error);
	}
	if (started) {
		g_timeout_add(PERIOD_MS, interrupt, guest);
		g_timeout_add_seconds(PATIENCE_S, give_up, guest);
		g_main_loop_run(loop);
		vm_shutdown(guest);
		printf("  the guest ended: %s\n", guest_end_name(guest->end.reason));
	}
	if (guest)
		vm_free(guest);
	g_main_loop_unref(loop);
	return started;
}

static bool tables_load(const char *vmlinux, struct unwind_tables **orc, struct symtab **symtab, GError **error)
{
	struct image *image = image_open(vmlinux, error);

	*orc = image != NULL ? orc_load(image, error) : NULL;
	*symtab = *orc != NULL ? symtab_load(image, error) : NULL;
	image_free(image);
	return *symtab != NULL;
}

/*
 * Not all: in entry code, frame pointers name the entry where ORC goes on with what was interrupted, and they miss the
 * caller of a function without a frame that was called through a pointer.
 */
static int verdict(void)
{
	double agreed = compared.callers[1] != 0 ? (double)compared.agreed / (double)compared.callers[1] : 0;
	double found = compared.callers[0] != 0 ? (double)compared.agreed / (double)compared.callers[0] : 0;

	printf("  %u samples, %u chains whole by ORC, %u by frame pointers\n", compared.samples, compared.whole[0],
	       compared.whole[1]);
	printf("  of %lu callers by frame pointers, ORC has %.2f %%; of %lu by ORC, frame pointers have %.2f %%\n",
	       (unsigned long)compared.callers[1], 100 * agreed, (unsigned long)compared.callers[0], 100 * found);
	return compared.samples >= SAMPLES_MIN && agreed >= AGREEMENT_MIN && found >= AGREEMENT_MIN &&
	                       compared.whole[0] >= WHOLE_MIN * compared.samples
	               ? EXIT_SUCCESS
	               : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	struct symtab *symtab = NULL;
	struct unwind_tables *orc = NULL;
	int status = EXIT_FAILURE;

	if (argc != 3) {
		fprintf(stderr, "usage: unwinders_agree VMLINUX INITRD\n");
		return EXIT_FAILURE;
	}
	if (tables_load(argv[1], &orc, &symtab, &error)) {
		compared.symtab = symtab;
		compared.orc =
			(struct unwind_config){.system = &linux_unwinding, .tables = orc, .depth = UNWIND_DEPTH_MAX};
		compared.frame_pointers = (struct unwind_config){.system = &linux_unwinding, .depth = UNWIND_DEPTH_MAX};
		if (boot(argv[1], argv[2], &error))
			status = verdict();
	}
	if (error)
		fprintf(stderr, "unwinders_agree: %s\n", error->message);
	symtab_free(symtab);
	orc_free(orc);
	return status;
}
