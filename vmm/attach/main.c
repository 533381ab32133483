// SPDX-License-Identifier: BSD-2-Clause
/* vprof-attach: one guest that another process runs, its session and its control socket. */
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/asker.h"
#include "attach/domain.h"
#include "attach/dump_guest.h"
#include "attach/options.h"
#include "attach/probe.h"
#include "attach/qemu_guest.h"
#include "attach/qemu_process.h"
#include "attach/vcpu_event.h"
#include "control/host_json.h"
#include "control/keeper.h"
#include "control/sandbox.h"
#include "engine/engine.h"
#include "lib/parser/parser.h"
#include "lib/process/privilege.h"
#include "linux/os_linux.h"
#include "linux/search_linux.h"

/* The systems that guests may run, the likeliest first. */
static const struct guest_os *const systems[] = {&os_linux, NULL};
static const struct os_search *const searches[] = {&search_linux, NULL};

struct attachment {
	struct attach_options options;
	struct asker *asker; /* until the guest takes it */
	struct qemu_guest *qemu;
	struct guest *dump;
	void (*looked)(void *engine, const GError *why); /* of the engine */
	void *engine;
};

static void print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(value);
}

/* ---- the guest ---- */

static struct qemu_guest *make_guest(const struct attach_options *options, struct asker *asker, GError **error)
{
	const struct qemu_guest_config config = {
		.asker = asker,
		.pid = options->pid,
		.no_monitor = options->no_monitor,
		.lean = options->lean,
		.searches = searches,
		.kernel_path = options->kernel_path,
		.duration_s = options->duration_s,
	};

	return qemu_guest_new(&config, error);
}

/* ---- what is given up ---- */

/* perf events and programs on QEMU's threads, its descriptors in /proc, and rings of more than perf_event_mlock_kb. */
static const uint64_t kept =
	PRIVILEGE(CAP_PERFMON) | PRIVILEGE(CAP_BPF) | PRIVILEGE(CAP_SYS_PTRACE) | PRIVILEGE(CAP_IPC_LOCK);

static bool events_work(void *qemu)
{
	g_autofree char *why = vcpu_event_unavailable(qemu);

	return !why;
}

static bool drop(uint64_t keep, struct qemu_guest *qemu, GError **error)
{
	if (privilege_drop(keep, events_work, qemu))
		return true;
	g_set_error(error, SANDBOX_ERROR, SANDBOX_ERROR_UNAVAILABLE, "cannot drop capabilities: %s", g_strerror(errno));
	return false;
}

static bool keeper_fail(GError **error)
{
	g_set_error(error, SANDBOX_ERROR, SANDBOX_ERROR_UNAVAILABLE,
	            "cannot start the process that keeps its rights: %s; --sandbox off goes on without one",
	            g_strerror(errno));
	return false;
}

/* While there is one thread. A user's process can look into no other of that user's from a user namespace. */
static bool become_another(bool root)
{
	return root ? privilege_user_take(privilege_own_id()) : privilege_user_namespace(PRIVILEGE_ROOT_KERNEL);
}

/* Then, by a process that ends then: KVM's view and what /proc says of the VMM can still be read. */
static bool works_as_another(struct qemu_guest *qemu, bool root)
{
	int status = 1;
	pid_t child = fork();

	if (child == 0) {
		struct kvm_machine *machine = g_new(struct kvm_machine, 1);

		_exit(become_another(root) && qemu_process_of_thread(qemu->pid) == qemu->pid &&
		                      (!qemu->view || kvm_view_read(qemu->view, machine, NULL))
		              ? 0
		              : 1);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0;
}

/*
 * Root's: its keeper opens events from now on, its asker has libvirt and the monitor, the rest is open. Linux before
 * 5.19 asks for CAP_BPF whenever a program is used, and a /proc with hidepid for CAP_SYS_PTRACE.
 */
static bool root_leave(struct qemu_guest *qemu, GError **error)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	counter_perf_event_open = keeper_event_open;
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* rings, in place of CAP_IPC_LOCK */
	(void)privilege_namespaces(0);
	(void)privilege_root_kernel();
	if (works_as_another(qemu, true) && become_another(true))
		return true;
	return drop(qemu->view ? PRIVILEGE(CAP_BPF) | PRIVILEGE(CAP_PERFMON) | PRIVILEGE(CAP_SYS_PTRACE) : 0, qemu,
	            error);
}

/* A user's: the same where the host allows that user a user namespace, and what the user may open elsewhere. */
static bool user_leave(struct qemu_guest *qemu, GError **error)
{
	if (!works_as_another(qemu, false) || !become_another(false))
		return drop(kept, qemu, error);
	counter_perf_event_open = keeper_event_open;
	(void)privilege_root_kernel();
	return drop(0, qemu, error);
}

/* Once all is open, and before the first byte of the guest's memory is read. */
static bool confine(struct qemu_guest *qemu, bool sandbox, GError **error)
{
	counter_settings_open();
	/* Where KVM is a module, loading the BPF program takes more than is kept. */
	g_free(qemu->guest.routes[0]->unavailable(&qemu->guest));
	if (!sandbox)
		return drop(kept, qemu, error);
	if (!keeper_ready() || !keeper_target(qemu->pid) || !keeper_settle())
		return keeper_fail(error);
	return (geteuid() == 0 ? root_leave(qemu, error) : user_leave(qemu, error)) &&
	       sandbox_enter_attach(counter_perf_event_open != keeper_event_open, error);
}

/* Of the process that has libvirt and the monitor. libvirt asks for root's user id when it is connected to again. */
static bool asker_confine(void)
{
	errno = 0;
	return privilege_drop(0, NULL, NULL) && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && sandbox_enter_asker(NULL);
}

static bool keeper_begin(const struct attach_options *options)
{
	if (!options->sandbox || keeper_start(KEEPER_OF_ATTACH, privilege_own_id()))
		return true;
	fprintf(stderr, "vprof-attach: cannot start the process that keeps its rights: %s\n", g_strerror(errno));
	return false;
}

static bool asker_begin(struct attachment *attachment)
{
	const struct attach_options *options = &attachment->options;
	const struct asker_config config = {
		.domain = options->domain,
		.connect_uri = options->connect_uri,
		.qmp_path = options->qmp_path,
		.no_monitor = options->no_monitor,
		.confine = options->sandbox ? asker_confine : NULL,
	};

	if (!options->domain && !options->qmp_path)
		return true;
	attachment->asker = asker_start(&config);
	if (!attachment->asker)
		fprintf(stderr, "vprof-attach: cannot start the process that asks libvirt and QEMU: %s\n",
		        g_strerror(errno));
	return attachment->asker;
}

/* While there is one thread. */
static bool processes_begin(struct attachment *attachment)
{
	return asker_begin(attachment) && keeper_begin(&attachment->options);
}

/* ---- the engine's part ---- */

static struct guest *make(void *data, GError **error)
{
	struct attachment *attachment = data;

	attachment->qemu = make_guest(&attachment->options, g_steal_pointer(&attachment->asker), error);
	if (!attachment->qemu)
		return NULL;
	qemu_clocks_prepare(attachment->qemu);
	return &attachment->qemu->guest;
}

static bool ready(void *data, GError **error)
{
	const struct attachment *attachment = data;

	return confine(attachment->qemu, attachment->options.sandbox, error);
}

static void on_looked(void *data)
{
	const struct attachment *attachment = data;
	g_autoptr(GError) why = NULL;

	if (qemu_guest_looked(attachment->qemu, &why) && attachment->options.verbose)
		probe_describe(attachment->qemu, stderr);
	attachment->looked(attachment->engine, why);
}

static void look(void *data, void (*looked)(void *engine, const GError *why), void *engine)
{
	struct attachment *attachment = data;

	attachment->looked = looked;
	attachment->engine = engine;
	qemu_guest_begin(attachment->qemu, on_looked, attachment);
}

static void release(void *data)
{
	struct attachment *attachment = data;

	qemu_guest_detach(attachment->qemu);
}

static void free_guest(struct guest *guest)
{
	qemu_guest_free((struct qemu_guest *)guest);
}

/* ---- a dump ---- */

static struct guest *dump_make(void *data, GError **error)
{
	struct attachment *attachment = data;

	attachment->dump = dump_guest_new(attachment->options.dump, attachment->options.kernel_path, searches, error);
	return attachment->dump;
}

static bool dump_leave(GError **error)
{
	const bool root = geteuid() == 0;

	if (!keeper_settle())
		return keeper_fail(error);
	(void)(root ? privilege_namespaces(0) : privilege_user_namespace(PRIVILEGE_ROOT_EMPTY));
	(void)privilege_root_empty();
	if (root && !privilege_user_take(privilege_own_id()))
		fprintf(stderr, "vprof-attach: goes on as root, without another user: %s\n", g_strerror(errno));
	return true;
}

/* The dump is open, and nothing else is needed. */
static bool dump_ready(void *data, GError **error)
{
	const struct attachment *attachment = data;

	if (attachment->options.sandbox && !dump_leave(error))
		return false;
	return drop(0, NULL, error) && (!attachment->options.sandbox || sandbox_enter_attach(false, error));
}

static void dump_look(void *data, void (*looked)(void *engine, const GError *why), void *engine)
{
	const struct attachment *attachment = data;

	dump_guest_begin(attachment->dump, looked, engine);
}

static const struct engine_ops dump_ops = {
	.name = "vprof-attach",
	.stopped = "ended by a signal",
	.make = dump_make,
	.ready = dump_ready,
	.look = dump_look,
	.free = dump_guest_free,
};

/* ---- either ---- */

static const struct engine_ops engine_ops = {
	.name = "vprof-attach",
	.stopped = "detached by a signal; the guest runs on",
	.make = make,
	.ready = ready,
	.look = look,
	.release = release,
	.free = free_guest,
};

static int run(struct attachment *attachment)
{
	const struct attach_options *options = &attachment->options;
	const struct engine_config config = {
		.client_fd = options->client_fd,
		.control = options->control,
		.delivery = options->route,
		.paused = options->paused,
		.systems = systems,
	};

	if (!processes_begin(attachment))
		return EXIT_FAILURE;
	return engine_run(options->dump ? &dump_ops : &engine_ops, &config, attachment);
}

static int print(json_t *value, const GError *error)
{
	if (value)
		print_json(value);
	else
		engine_complain(&engine_ops, error);
	return value ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_list(const struct attach_options *options)
{
	g_autoptr(GError) error = NULL;
	json_t *list = domain_list(options->connect_uri, &error);

	return print(list, error);
}

static bool follow_print(json_t *list, void *data G_GNUC_UNUSED)
{
	json_dumpf(list, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(list);
	return fflush(stdout) == 0;
}

static int follow_list(const struct attach_options *options)
{
	g_autoptr(GError) error = NULL;

	signal(SIGPIPE, SIG_IGN);
	if (domain_list_follow(options->connect_uri, STDIN_FILENO, follow_print, NULL, &error))
		return EXIT_SUCCESS;
	follow_print(json_pack("{s:s}", "why", error->message), NULL);
	engine_complain(&engine_ops, error);
	return EXIT_FAILURE;
}

static int print_probe(struct attachment *attachment)
{
	const struct attach_options *options = &attachment->options;
	g_autoptr(GError) error = NULL;

	if (!processes_begin(attachment))
		return EXIT_FAILURE;
	(void)parser_start(NULL); /* without one, what needs it says so */
	struct qemu_guest *qemu = make_guest(options, g_steal_pointer(&attachment->asker), &error);
	g_autofree char *user = qemu ? probe_user(qemu) : NULL; /* from a file that cannot be read then */
	/* What is said of the routes must hold for the engine. */
	bool looked = qemu && confine(qemu, options->sandbox, &error) && qemu_guest_look(qemu, &error);
	int status = print(looked ? probe_json(qemu, user, control_host_routes(&qemu->guest)) : NULL, error);

	qemu_guest_free(qemu);
	return status;
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	struct attachment attachment = {0};
	int status = EXIT_SUCCESS;

	setlocale(LC_CTYPE, "");
	g_set_prgname("vprof-attach");
	/* What the search for a kernel needs on its thread, and gives back, is the main thread's next: megabytes for
	 * each guest. */
	mallopt(M_ARENA_MAX, 1);
	/* By default GLib makes a socket to the journal where stderr leads there, which a sandbox does not allow. */
	g_log_set_writer_func(g_log_writer_standard_streams, NULL, NULL);
	if (!options_parse(&argc, &argv, &attachment.options, &error)) {
		engine_complain(&engine_ops, error);
		status = OPTIONS_ERROR_STATUS;
	} else if (attachment.options.version) {
		puts("vprof-attach " VPROF_VERSION);
	} else if (attachment.options.list) {
		status = attachment.options.follow ? follow_list(&attachment.options) : print_list(&attachment.options);
	} else if (attachment.options.probe) {
		status = print_probe(&attachment);
	} else {
		status = run(&attachment);
	}
	asker_free(attachment.asker);
	options_clear(&attachment.options);
	return status;
}
