// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/options.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <vprof/control.h>

#include "kvm/pmu_filter.h"

#define DEFAULT_MEMORY "256M"

static const char description[] =
	"The kernel is an ELF vmlinux, a bzImage or an ELF with the PVH note; on arm64, a boot image of Linux (vmlinuz,\n"
	"Image, Image.gz) or an ELF that is not Linux. A Linux kernel gets \"console=ttyS0 panic=-1 reboot=k\", on arm64\n"
	"\"nokaslr\" instead of the last, and \"console=ttyAMA0\" with a PL011 (output here; a panic or a reboot ends the\n"
	"guest), then what this host's quirks add (-v prints it), then the text of --append; an option that --append names\n"
	"is left out of the first two.\n"
	"\n"
	"The first interrupt (Ctrl-C) stops the guest, the second leaves at once. Exit status: 0 power-off; 90 reboot;\n"
	"(value << 1) | 1 exit port; 92 triple fault; 94 panic (--on-panic); 96 the VMM could not go on; 124\n"
	"--duration is over; 130 stopped; 1 an error before the guest ran; 2 usage.\n"
	"\n"
	"The guest ends itself by ACPI power-off, by a keyboard controller reset (0xfe to port 0x64), or by writing to\n"
	"the exit port 0xf4; on arm64 by PSCI or the register \"vprof,exit\" of the device tree. What it writes to port 0x80,\n"
	"or there to \"vprof,phase\", is recorded as a phase mark.";

bool options_parse_size(const char *text, uint64_t *bytes)
{
	char *end;
	guint64 value;
	unsigned shift;

	if (!g_ascii_isdigit(text[0]))
		return false;
	value = g_ascii_strtoull(text, &end, 10);
	switch (end[0]) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	default:
		return false;
	}
	if (end[1] != '\0' || value > G_MAXUINT64 >> shift)
		return false;
	*bytes = value << shift;
	return true;
}

static bool usage(GError **error, const char *option, const char *value, const char *expected)
{
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s %s: expected %s", option, value, expected);
	return false;
}

static bool parse_memory(const char *text, uint64_t *bytes, GError **error)
{
	uint64_t value;

	if (!options_parse_size(text, &value) || value < MEMORY_BYTES_MIN || value > MEMORY_BYTES_MAX ||
	    value % (UINT64_C(2) << 20) != 0)
		return usage(error, "--memory", text, "128M to 64G, an even number of MiB");
	*bytes = value;
	return true;
}

static bool parse_boot(const char *text, enum boot_protocol *boot, GError **error)
{
	static const char *const names[] = {[BOOT_AUTO] = "auto", [BOOT_LINUX] = "linux", [BOOT_PVH] = "pvh"};

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*boot = (enum boot_protocol)i;
		return true;
	}
	return usage(error, "--boot", text, "auto, linux or pvh");
}

static bool parse_uart(const char *text, enum boot_uart *uart, GError **error)
{
	static const char *const names[] = {
		[BOOT_UART_AUTO] = "auto", [BOOT_UART_16550] = "16550", [BOOT_UART_PL011] = "pl011"};

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*uart = (enum boot_uart)i;
		return true;
	}
	return usage(error, "--uart", text, "auto, 16550 or pl011");
}

static bool parse_quirks(const char *text, bool *quirks, GError **error)
{
	*quirks = strcmp(text, "auto") == 0;
	return *quirks || strcmp(text, "off") == 0 || usage(error, "--quirks", text, "auto or off");
}

static bool parse_sandbox(const char *text, bool *sandbox, GError **error)
{
	*sandbox = strcmp(text, "on") == 0;
	return *sandbox || strcmp(text, "off") == 0 || usage(error, "--sandbox", text, "on or off");
}

/* IMAGE or IMAGE,ro; the paths go over. */
static bool parse_disks(char *const *given, struct vmm_options *options, GError **error)
{
	for (; given && *given; given++) {
		bool read_only = g_str_has_suffix(*given, ",ro");
		size_t length = strlen(*given) - (read_only ? strlen(",ro") : 0);

		if (length == 0)
			return usage(error, "--disk", *given, "IMAGE or IMAGE,ro");
		if (options->n_disks == VM_DISKS_MAX)
			return usage(error, "--disk", *given, "6 disks at most");
		options->disks[options->n_disks++] = (struct vm_disk){g_strndup(*given, length), read_only};
	}
	return true;
}

bool options_parse_pmu(const char *text, enum vm_pmu_kind *kind)
{
	static const char *const names[] = {[VM_PMU_OFF] = "off", [VM_PMU_EMULATED] = "emulated", [VM_PMU_KVM] = "kvm"};

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*kind = (enum vm_pmu_kind)i;
		return true;
	}
	return false;
}

static bool parse_pmu(const char *text, const char *filter, struct vmm_options *options, GError **error)
{
	if (!options_parse_pmu(text, &options->pmu))
		return usage(error, "--pmu", text, "off, emulated or kvm");
	if (!filter)
		return true;
	if (options->pmu != VM_PMU_KVM)
		return usage(error, "--pmu-filter", filter, "--pmu kvm beside it: it is KVM's filter");
	options->pmu_filter = pmu_filter_parse(filter, error);
	return options->pmu_filter != NULL;
}

/* stops: --stop-on-panic, the older name of --on-panic end. */
static bool parse_on_panic(const char *text, bool stops, struct vmm_options *options, GError **error)
{
	if (!text && stops)
		options->on_panic = VM_PANIC_END;
	else if (!text)
		options->on_panic = VM_PANIC_IGNORED;
	else if (strcmp(text, "end") == 0)
		options->on_panic = VM_PANIC_END;
	else if (strcmp(text, "keep") == 0 && !stops)
		options->on_panic = VM_PANIC_KEEP;
	else
		return usage(error, "--on-panic", text, stops ? "end, beside --stop-on-panic" : "end or keep");
	return true;
}

static bool check(const struct vmm_options *options, int vcpus, GError **error)
{
	g_autofree char *vcpus_text = g_strdup_printf("%d", vcpus);
	g_autofree char *duration_text = g_strdup_printf("%g", options->duration_s);
	g_autofree char *client_fd_text = g_strdup_printf("%d", options->client_fd);
	struct stat status;

	if (!options->kernel) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "no --kernel given; see --help");
		return false;
	}
	if (vcpus < 1 || vcpus > (int)GUEST_VCPUS_MAX)
		return usage(error, "--vcpus", vcpus_text, "1 to 64");
	if (options->client_fd >= 0 && (fstat(options->client_fd, &status) != 0 || !S_ISSOCK(status.st_mode)))
		return usage(error, "--client-fd", client_fd_text, "the number of a connected socket");
	if (!isfinite(options->duration_s) || options->duration_s < 0 || options->duration_s > VPROF_DURATION_S_MAX)
		return usage(error, "--duration", duration_text, "seconds, 0 to 4000000");
	return true;
}

bool options_parse(int *argc, char ***argv, struct vmm_options *options, GError **error)
{
	*options = (struct vmm_options){.client_fd = -1, .quirks = true, .sandbox = true};
	g_autofree char *memory = NULL, *boot = NULL, *quirks = NULL, *sandbox = NULL, *pmu = NULL, *pmu_filter = NULL;
	g_autofree char *on_panic = NULL, *uart = NULL;
	g_auto(GStrv) disks = NULL;
	gboolean paused = FALSE, stop_on_panic = FALSE, verbose = FALSE, probe = FALSE, list = FALSE, version = FALSE;
	int vcpus = 1;
	const GOptionEntry entries[] = {
		{"kernel", 'k', 0, G_OPTION_ARG_FILENAME, &options->kernel, "The kernel to boot", "PATH"},
		{"initrd", 'i', 0, G_OPTION_ARG_FILENAME, &options->initrd, "Its initramfs", "PATH"},
		{"disk", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &disks,
	         "A disk, /dev/vda and on in this order; IMAGE,ro is read-only", "IMAGE[,ro]"},
		{"append", 'a', 0, G_OPTION_ARG_STRING, &options->append, "Add to its command line", "TEXT"},
		{"memory", 'm', 0, G_OPTION_ARG_STRING, &memory, "RAM, 128M to 64G (" DEFAULT_MEMORY ")", "SIZE"},
		{"vcpus", 0, 0, G_OPTION_ARG_INT, &vcpus, "vCPUs, 1 to 64 (1)", "N"},
		{"name", 0, 0, G_OPTION_ARG_STRING, &options->name, "The guest's name (KERNEL-PID)", "NAME"},
		{"boot", 0, 0, G_OPTION_ARG_STRING, &boot, "Boot protocol: auto, linux or pvh", "PROTOCOL"},
		{"client-fd", 0, 0, G_OPTION_ARG_INT, &options->client_fd,
	         "Serve this connected socket; the guest ends when it closes, and not by SIGINT", "N"},
		{"control", 0, 0, G_OPTION_ARG_FILENAME, &options->control,
	         "Control socket (NAME.sock in the runtime folder), or none", "PATH"},
		{"policy", 0, 0, G_OPTION_ARG_FILENAME, &options->policy,
	         "File with other users of the control socket, one USER ROLE a line", "PATH"},
		{"paused", 0, 0, G_OPTION_ARG_NONE, &paused, "Wait for guest-start on the control socket", NULL},
		{"console", 0, 0, G_OPTION_ARG_FILENAME, &options->console,
	         "First serial port: stdio (default), stderr, none or a file", "WHERE"},
		{"serial2", 0, 0, G_OPTION_ARG_FILENAME, &options->serial2,
	         "Second serial port: a file, or the number of a connected descriptor", "WHERE"},
		{"uart", 0, 0, G_OPTION_ARG_STRING, &uart,
	         "What the serial ports are: 16550, pl011 (arm64) or auto (default): what the kernel has a driver for",
	         "WHICH"},
		{"duration", 0, 0, G_OPTION_ARG_DOUBLE, &options->duration_s, "End the guest after this time",
	         "SECONDS"},
		{"on-panic", 0, 0, G_OPTION_ARG_STRING, &on_panic,
	         "At a Linux panic on the console: end the guest with status 94, or keep it", "WHAT"},
		{"stop-on-panic", 0, 0, G_OPTION_ARG_NONE, &stop_on_panic, "As --on-panic end", NULL},
		{"quirks", 0, 0, G_OPTION_ARG_STRING, &quirks, "Work around what this host's KVM lacks: auto or off",
	         "WHICH"},
		{"pmu", 0, 0, G_OPTION_ARG_STRING, &pmu, "The guest's own PMU: off (default), emulated or kvm",
	         "WHICH"},
		{"pmu-filter", 0, 0, G_OPTION_ARG_STRING, &pmu_filter,
	         "With --pmu kvm: events the guest may count, or deny:LIST", "LIST"},
		{"sandbox", 0, 0, G_OPTION_ARG_STRING, &sandbox,
	         "Restrict system calls once the guest is made: on or off", "WHICH"},
		{"delivery", 0, 0, G_OPTION_ARG_STRING, &options->delivery,
	         "How counter overflows become exits (the first way that works)", "NAME"},
		{"verbose", 'v', 0, G_OPTION_ARG_NONE, &verbose,
	         "Print the quirks, the PMU and the command line of the guest", NULL},
		{"probe", 0, 0, G_OPTION_ARG_NONE, &probe, "Print what this host can do, as JSON", NULL},
		{"list-events", 0, 0, G_OPTION_ARG_NONE, &list, "Print the events that can be sampled, as JSON", NULL},
		{"version", 0, 0, G_OPTION_ARG_NONE, &version, "Print the version", NULL},
		{NULL},
	};
	g_autoptr(GOptionContext) context = g_option_context_new("- run a guest that can be profiled");
	g_option_context_set_description(context, description);
	g_option_context_add_main_entries(context, entries, NULL);
	if (!g_option_context_parse(context, argc, argv, error))
		return false;
	if (*argc > 1)
		return usage(error, "argument", (*argv)[1], "options only; see --help");
	options->paused = paused;
	options->verbose = verbose;
	options->probe = probe;
	options->list_events = list;
	options->version = version;
	options->vcpus = (unsigned)vcpus;
	if (!options->console)
		options->console = g_strdup("stdio");
	if (probe || list || version)
		return true;
	return check(options, vcpus, error) && parse_disks(disks, options, error) &&
	       parse_memory(memory ? memory : DEFAULT_MEMORY, &options->memory_bytes, error) &&
	       parse_boot(boot ? boot : "auto", &options->boot, error) &&
	       parse_uart(uart ? uart : "auto", &options->uart, error) &&
	       parse_quirks(quirks ? quirks : "auto", &options->quirks, error) &&
	       parse_on_panic(on_panic, stop_on_panic, options, error) &&
	       parse_pmu(pmu ? pmu : "off", pmu_filter, options, error) &&
	       parse_sandbox(sandbox ? sandbox : "on", &options->sandbox, error);
}

void options_clear(struct vmm_options *options)
{
	g_free(options->kernel);
	g_free(options->initrd);
	g_free(options->append);
	g_free(options->name);
	g_free(options->control);
	g_free(options->policy);
	g_free(options->console);
	g_free(options->serial2);
	g_free(options->delivery);
	for (unsigned i = 0; i < options->n_disks; i++)
		g_free(options->disks[i].path);
	g_free(options->pmu_filter);
}
