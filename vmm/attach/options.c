// SPDX-License-Identifier: BSD-2-Clause
#include "attach/options.h"

#include <math.h>
#include <vprof/control.h>

static const char description[] =
	"The guest is not stopped, changed or slowed beyond what sampling costs, and does not notice when this program\n"
	"comes or goes. Interrupt it (Ctrl-C) to detach. Where BPF is not allowed, and for guests without KVM, QEMU's\n"
	"monitor is asked. Its commands mark a libvirt domain as tainted (\"custom-monitor\"), unless --no-monitor is\n"
	"given; nothing else is left behind.\n"
	"\n"
	"Exit status: 0 the guest ended, or the profile did; 1 an error; 2 usage.";

static bool usage(GError **error, const char *text)
{
	g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, text);
	return false;
}

static bool check(const struct attach_options *options, GError **error)
{
	if (options->follow && !options->list)
		return usage(error, "--follow goes with --list");
	if (options->list || options->version)
		return true;
	if (options->dump && (options->domain || options->pid != 0 || options->qmp_path || options->probe))
		return usage(error, "--dump goes without another guest, and without --probe");
	if (options->dump)
		return true;
	if ((options->domain != NULL) == (options->pid != 0))
		return usage(error, "which guest? give a DOMAIN, or --pid PID");
	if (options->pid < 0)
		return usage(error, "--pid: expected the process id of a VMM");
	if (options->qmp_path && options->domain)
		return usage(error, "--qmp goes with --pid; a domain's monitor is libvirt's");
	if (options->no_monitor && options->qmp_path)
		return usage(error, "--no-monitor goes without --qmp");
	if (!isfinite(options->duration_s) || options->duration_s < 0 || options->duration_s > VPROF_DURATION_S_MAX)
		return usage(error, "--duration: expected 0 to 4000000 seconds");
	return true;
}

bool options_parse(int *argc, char ***argv, struct attach_options *options, GError **error)
{
	gboolean paused = FALSE, list = FALSE, follow = FALSE, no_monitor = FALSE, lean = FALSE, probe = FALSE,
		 version = FALSE, verbose = FALSE;

	g_autofree char *sandbox = NULL;

	*options = (struct attach_options){.client_fd = -1, .sandbox = true};
	const GOptionEntry entries[] = {
		{"connect", 0, 0, G_OPTION_ARG_STRING, &options->connect_uri, "Where libvirt is (its default)", "URI"},
		{"pid", 0, 0, G_OPTION_ARG_INT, &options->pid, "Any VMM that uses KVM, or a QEMU", "PID"},
		{"qmp", 0, 0, G_OPTION_ARG_FILENAME, &options->qmp_path, "Its QMP socket", "PATH"},
		{"no-monitor", 0, 0, G_OPTION_ARG_NONE, &no_monitor,
	         "Send a domain's QEMU no commands, even if less is known then", NULL},
		{"lean", 0, 0, G_OPTION_ARG_NONE, &lean,
	         "For one client: give up libvirt and the kernel's image once they are used", NULL},
		{"dump", 0, 0, G_OPTION_ARG_FILENAME, &options->dump,
	         "Instead of a guest that runs: its memory in a file, of `virsh dump --memory-only`", "FILE"},
		{"kernel", 'k', 0, G_OPTION_ARG_FILENAME, &options->kernel_path,
	         "The kernel that it runs (what the guest's memory holds)", "IMAGE"},
		{"route", 0, 0, G_OPTION_ARG_STRING, &options->route, "How to sample (the best that works)", "NAME"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &options->duration_s, "Detach after this time", "SECONDS"},
		{"client-fd", 0, 0, G_OPTION_ARG_INT, &options->client_fd,
	         "Serve this connected socket; detach when it closes, and not by SIGINT", "N"},
		{"control", 0, 0, G_OPTION_ARG_FILENAME, &options->control,
	         "Control socket (NAME.sock in the runtime folder), or none", "PATH"},
		{"paused", 0, 0, G_OPTION_ARG_NONE, &paused, "--duration begins with guest-start on the control socket",
	         NULL},
		{"sandbox", 0, 0, G_OPTION_ARG_STRING, &sandbox,
	         "Give up rights before the guest's memory is read: on or off", "WHICH"},
		{"verbose", 'v', 0, G_OPTION_ARG_NONE, &verbose, "Say what was found out about the guest", NULL},
		{"list", 0, 0, G_OPTION_ARG_NONE, &list, "Print libvirt's running domains, as JSON", NULL},
		{"follow", 0, 0, G_OPTION_ARG_NONE, &follow,
	         "With --list: again whenever a domain starts or ends, until standard input ends", NULL},
		{"probe", 0, 0, G_OPTION_ARG_NONE, &probe, "Print what can be done with the guest, as JSON", NULL},
		{"version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version", NULL},
		{NULL},
	};
	g_autoptr(GOptionContext) context = g_option_context_new("[DOMAIN] - profile a guest that runs already");

	g_option_context_set_description(context, description);
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, argc, argv, error))
		return false;
	if (*argc > 2)
		return usage(error, "one DOMAIN at a time; see --help");
	options->domain = *argc == 2 ? g_strdup((*argv)[1]) : NULL;
	options->paused = paused;
	options->list = list;
	options->follow = follow;
	options->no_monitor = no_monitor;
	options->lean = lean;
	options->probe = probe;
	options->version = version;
	options->verbose = verbose;
	if (sandbox && !g_str_equal(sandbox, "on") && !g_str_equal(sandbox, "off"))
		return usage(error, "--sandbox takes on or off");
	options->sandbox = !sandbox || g_str_equal(sandbox, "on");
	return check(options, error);
}

void options_clear(struct attach_options *options)
{
	g_free(options->domain);
	g_free(options->connect_uri);
	g_free(options->qmp_path);
	g_free(options->kernel_path);
	g_free(options->route);
	g_free(options->control);
	g_free(options->dump);
}
