// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/attach.h"
#include "cmd/command.h"
#include "engine/attach_engine.h"
#include "engine/guest_list.h"
#include "lib/process/privilege.h"
#include "lib/process/program_find.h"
#include "lib/record/processor.h"
#include "run/exec_plan.h"
#include "ui/message.h"
#include "ui/text.h"

#define KVM_PATH "/dev/kvm"
#define PARANOID_MAX \
	1 /* guest samples need exclude_kernel=0, which above 1 requires CAP_PERFMON (perf_event_open(2)) */

/* A self-built vprof or a package, of whatever distribution. */
#define INSTALL_FIX "install vprof again: its package, or sudo cmake --install build/release"

struct doctor_values {
	struct attach_engine_options engine;
	char *kernel;
	gboolean json;
};

static const struct option_row options[] = {
	{"kernel", OPTION_FILE, offsetof(struct doctor_values, kernel),
         "also show what can be known of a guest with this kernel (vmlinux, bzImage)", "IMAGE"},
	OPTION_ROWS(attach_guest_option_rows, struct doctor_values, engine),
	{"json", OPTION_FLAG, offsetof(struct doctor_values, json), "print the engine's probe as JSON", NULL},
	{NULL},
};

/* The command that makes /dev/kvm usable, chosen by the reason why it is not. */
static const char *kvm_fix(void)
{
	if (access(KVM_PATH, R_OK | W_OK) == 0)
		return NULL;
	if (errno == EACCES)
		return "sudo usermod -aG kvm \"$USER\"   (then log in again)";
	if (errno != ENOENT)
		return NULL;
	if (processor_has("vmx"))
		return "sudo modprobe kvm_intel";
	if (processor_has("svm"))
		return "sudo modprobe kvm_amd";
	return "enable virtualization (VT-x, AMD-V) in the firmware; in a virtual machine, nested virtualization";
}

static bool check_kvm(const json_t *probe)
{
	const json_t *kvm = json_object_get(probe, "kvm");
	const char *host = member_text(probe, "host"), *error = member_text(kvm, "error");
	g_autofree char *text = NULL;

	if (!json_is_true(json_object_get(kvm, "usable"))) {
		finding_print(FINDING_BAD, "kvm", error ? error : "cannot be used", kvm_fix());
		return false;
	}
	text = g_strdup_printf("%s, kind %s, up to %" G_GUINT64_FORMAT " vCPUs", KVM_PATH, host ? host : "?",
	                       member_number(kvm, "vcpus-max", 0));
	finding_print(FINDING_GOOD, "kvm", text, NULL);
	return true;
}

static bool check_capabilities(const json_t *probe)
{
	const json_t *list = json_object_get(json_object_get(probe, "kvm"), "capabilities"), *one;
	bool complete = true;
	size_t i;

	json_array_foreach(list, i, one) {
		bool required = json_is_true(json_object_get(one, "required"));
		const char *name = member_text(one, "name"), *purpose = member_text(one, "purpose");
		g_autofree char *text = g_strdup_printf("%s: %s", name ? name : "?", purpose ? purpose : "");

		if (json_is_true(json_object_get(one, "present")))
			continue;
		finding_print(required ? FINDING_BAD : FINDING_NOTE, "kvm", text,
		              required ? "run a newer Linux kernel" : NULL);
		complete = complete && !required;
	}
	return complete;
}

static void check_quirks(const json_t *probe)
{
	const json_t *list = json_object_get(probe, "quirks"), *quirk;
	size_t i;

	json_array_foreach(list, i, quirk)
		finding_print(FINDING_NOTE, "quirk", json_string_value(quirk), NULL);
}

/* Which PMUs a guest can have, and what the emulated one counts here. */
static void check_guest_pmu(const json_t *probe)
{
	const json_t *pmu = json_object_get(probe, "pmu"), *kvm = json_object_get(pmu, "kvm"), *event;
	const json_t *events = json_object_get(json_object_get(pmu, "emulated"), "events");
	const char *why = member_text(kvm, "why");
	g_autofree char *refused = g_strdup_printf("--pmu kvm: %s", why ? why : "KVM shares the host's PMU");
	GString *text = g_string_new("--pmu emulated counts");
	size_t i;

	finding_print(json_is_true(json_object_get(kvm, "usable")) ? FINDING_GOOD : FINDING_NOTE, "guest pmu", refused,
	              NULL);
	json_array_foreach(events, i, event)
		g_string_append_printf(text, "%s %s", i > 0 ? "," : "", json_string_value(event));
	if (json_array_size(events) > 0)
		finding_print(FINDING_GOOD, "guest pmu", text->str, NULL);
	else
		finding_print(FINDING_NOTE, "guest pmu", "--pmu emulated: for guests of x86-64 only", NULL);
	g_string_free(text, TRUE);
}

/* Whether an engine can time KVM's exits (vprof-stat(1), EXITS). */
static void check_exits(const json_t *probe)
{
	const json_t *exits = json_object_get(probe, "exits");
	const bool usable = json_is_true(json_object_get(exits, "usable"));
	const char *why = member_text(exits, "why"), *without_bpf = member_text(exits, "without-bpf");
	g_autofree char *text =
		without_bpf
			? g_strdup_printf("KVM's time by reason: perf events of KVM's trace points; %s", without_bpf)
			: g_strdup_printf("KVM's time by reason: %s", usable ? "a BPF program at KVM's trace points"
	                                                              : why  ? why
	                                                                     : "unknown");

	finding_print(usable && !without_bpf ? FINDING_GOOD : FINDING_NOTE, "exits", text, NULL);
}

/* The first usable entry of a list, or NULL. Entries are in the engine's order of preference. */
static const json_t *first_usable(const json_t *list)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (json_is_true(json_object_get(one, "usable")))
			return one;
	return NULL;
}

static const char *perf_fix(const json_t *probe)
{
	const json_t *paranoid = json_object_get(probe, "perf-event-paranoid");

	if (!json_is_integer(paranoid))
		return "run a Linux kernel with CONFIG_PERF_EVENTS";
	if (json_integer_value(paranoid) > PARANOID_MAX && geteuid() != 0)
		return "sudo sysctl kernel.perf_event_paranoid=1";
	return NULL;
}

static bool check_backends(const json_t *probe)
{
	const json_t *list = json_object_get(probe, "backends"), *one;
	size_t i;

	json_array_foreach(list, i, one) {
		bool usable = json_is_true(json_object_get(one, "usable"));
		const char *why = member_text(one, "why"), *name = member_text(one, "name");
		g_autofree char *text = g_strdup_printf("%s%s%s", name ? name : "?", why ? ": " : "", why ? why : "");

		finding_print(usable ? FINDING_GOOD : FINDING_NOTE, "counter", text, usable ? NULL : perf_fix(probe));
	}
	if (first_usable(list))
		return true;
	finding_print(FINDING_BAD, "counter", "no event can be sampled on this host", perf_fix(probe));
	return false;
}

static bool check_deliveries(const json_t *probe)
{
	const json_t *list = json_object_get(probe, "deliveries"), *one;
	size_t i;

	json_array_foreach(list, i, one) {
		bool usable = json_is_true(json_object_get(one, "usable"));
		const char *name = member_text(one, "name"), *why = member_text(one, usable ? "summary" : "why");
		g_autofree char *text = g_strdup_printf("%s: %s", name ? name : "?", why ? why : "");

		finding_print(usable ? FINDING_GOOD : FINDING_NOTE, "delivery", text, NULL);
	}
	if (first_usable(list))
		return true;
	finding_print(FINDING_BAD, "delivery", "counter overflows cannot cause exits on this host", perf_fix(probe));
	return false;
}

/* What holds back a guest that has broken out of its VM (vprof-vmm(8), SANDBOX), or a file its parser. */
static void check_sandbox(void)
{
	const bool root = geteuid() == 0;
	g_autofree char *lacks = privilege_lack_text(privilege_lacks());
	g_autofree char *text = lacks ? g_strdup_printf("lists of system calls; the host refuses %s", lacks) : NULL;

	if (lacks)
		finding_print(
			FINDING_NOTE, "sandbox", text,
			root ? "in a container, give it CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SETUID and CAP_SETGID"
			     : "let users without capabilities make user namespaces: user.max_user_namespaces, on Debian kernel.unprivileged_userns_clone, on Ubuntu kernel.apparmor_restrict_unprivileged_userns");
	else
		finding_print(
			FINDING_GOOD, "sandbox",
			root ? "lists of system calls; a user id, an empty root and a network of its own; no capability"
			     : "lists of system calls; an empty root and a network of its own, in a user namespace; the user is yours, and one of its own when root starts the guest",
			NULL);
}

/* From Linux 6.20 on, a mediated vPMU and host events that count guests exclude each other. */
static void check_mediated_vpmu(void)
{
	g_autofree char *value = NULL;

	if (!g_file_get_contents("/sys/module/kvm_intel/parameters/enable_mediated_pmu", &value, NULL, NULL) &&
	    !g_file_get_contents("/sys/module/kvm_amd/parameters/enable_mediated_pmu", &value, NULL, NULL))
		return;
	if (value[0] == 'Y' || value[0] == '1')
		finding_print(
			FINDING_NOTE, "vpmu",
			"mediated: hardware events cannot be sampled while another guest has a vPMU (EOPNOTSUPP), and no such guest can be created while they are (EBUSY); clocks always work",
			NULL);
}

/* Reports files of vprof that commands start, boot or copy into a guest; true if all are there. vprof-vmm answered the
 * probe. */
static bool check_installation(void)
{
	static const char *const names[] = {"vprof-attach", "vprof-parse", "demo-guest.elf"};
	g_autoptr(GError) agent_error = NULL;
	g_autofree char *agent = exec_agent_find(&agent_error);
	g_autofree char *text = agent ? g_strdup_printf("%s, for run --exec", agent) : NULL;
	bool complete = agent != NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		g_autoptr(GError) error = NULL;
		g_autofree char *path = program_find(names[i], &error);

		if (!path)
			finding_print(FINDING_BAD, "program", error->message, INSTALL_FIX);
		complete = complete && path;
	}
	finding_print(agent ? FINDING_GOOD : FINDING_BAD, "agent", agent ? text : agent_error->message,
	              agent ? NULL : INSTALL_FIX);
	return complete;
}

/* What tells of a part, or the reason why nothing does. */
static const char *part_text(const json_t *part)
{
	const char *text = member_text(part, json_is_true(json_object_get(part, "known")) ? "how" : "why");

	return text ? text : "?";
}

/* Parts that follow each other and have the same reason, or the same source, are one line. */
static size_t parts_print(const json_t *list, size_t from)
{
	const json_t *first = json_array_get(list, from), *one = first;
	const bool known = json_is_true(json_object_get(first, "known"));
	GString *line = g_string_new(NULL);
	size_t i = from;

	for (; one && known == json_is_true(json_object_get(one, "known")) &&
	       g_str_equal(part_text(one), part_text(first));
	     one = json_array_get(list, ++i)) {
		const char *name = member_text(one, "name");

		g_string_append_printf(line, "%s%s", i > from ? ", " : "", name ? name : "?");
	}
	g_string_append_printf(line, ": %s%s", known ? "by " : "", part_text(first));
	finding_print(known ? FINDING_GOOD : FINDING_NOTE, "kernel", line->str, NULL);
	g_string_free(line, TRUE);
	return i;
}

/* What a profile of a guest with this kernel can contain; all of it is optional. */
static void check_kernel(const json_t *kernel)
{
	const json_t *list = json_object_get(kernel, "parts");
	const char *release = member_text(kernel, "release");

	if (!kernel)
		return;
	finding_print(json_is_true(json_object_get(kernel, "linux")) ? FINDING_GOOD : FINDING_NOTE, "kernel",
	              release ? release : "not Linux: tasks and mapped files are not known", NULL);
	for (size_t i = 0; i < json_array_size(list);)
		i = parts_print(list, i);
}

static void print_choice(const json_t *probe)
{
	const char *why = member_text(json_object_get(probe, "default-event"), "why");
	const char *delivery = member_text(first_usable(json_object_get(probe, "deliveries")), "name");
	g_autofree char *text = g_strdup_printf("%s; delivered by %s", why ? why : "?", delivery);

	finding_print(FINDING_GOOD, "default", text, NULL);
}

static int diagnose(const json_t *probe)
{
	bool kvm = check_kvm(probe);
	bool capable = kvm && check_capabilities(probe);
	bool counts = check_backends(probe);
	bool delivers = check_deliveries(probe);
	bool installed = check_installation();

	check_quirks(probe);
	check_exits(probe);
	check_guest_pmu(probe);
	check_mediated_vpmu();
	check_sandbox();
	check_kernel(json_object_get(probe, "kernel"));
	if (!capable || !counts || !delivers) {
		puts("This host cannot profile a guest.");
		return STATUS_FAILED;
	}
	print_choice(probe);
	if (!installed) {
		puts("This host can profile guests; vprof is not completely installed on it.");
		return STATUS_FAILED;
	}
	puts("This host can profile guests.");
	return STATUS_OK;
}

/* What `vprof-vmm --probe` prints. New reference. */
static json_t *probe_read(const struct doctor_values *given, GError **error)
{
	g_autofree char *engine = program_find("vprof-vmm", error);
	g_autofree char *text = NULL;
	char *argv[] = {engine, (char *)"--probe", given->kernel ? (char *)"--kernel" : NULL, given->kernel, NULL};
	json_error_t why;
	json_t *probe;
	int status;

	if (!engine || !g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &text, NULL, &status, error) ||
	    !g_spawn_check_wait_status(status, error)) {
		g_prefix_error(error, "cannot probe this host: ");
		return NULL;
	}
	probe = json_printable(json_loads(text, 0, &why));
	if (!probe)
		g_set_error(error, G_SPAWN_ERROR, G_SPAWN_ERROR_FAILED,
		            "%s --probe printed no JSON: %s; check that it belongs to the same installation as vprof",
		            engine, why.text);
	return probe;
}

static int doctor_host(const struct doctor_values *given)
{
	g_autoptr(GError) error = NULL;
	json_t *probe = probe_read(given, &error);
	int status = STATUS_OK;

	if (!probe)
		return failure(error);
	if (given->json) {
		text_print_json(probe, 0, stdout);
	} else {
		status = diagnose(probe);
	}
	json_decref(probe);
	return status;
}

static int doctor_run(void *values, unsigned n, char **arguments)
{
	const struct doctor_values *given = values;
	struct attach_engine_options engine = given->engine;
	g_autoptr(GError) error = NULL;
	const char *domain = n > 0 ? arguments[0] : NULL;

	if (!domain && engine.pid == 0)
		return doctor_host(given);
	guest_resolve(&engine, &domain);
	if (!attach_engine_check(&engine, domain, &error))
		return usage_error(command_doctor.name, "%s", error->message);
	return attach_doctor(&engine, domain, given->json);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "Show what this host can do, what is missing and how to get it",
	.arguments = "[GUEST]",
	.max_arguments = 1,
	.argument_words = {"@guests"},
	.manual = "vprof-doctor",
	.description =

		"With GUEST, a name of `vprof attach --list`, or --pid, shows what can be found out about that\n"
		"running guest, and by which route.\n"
		"The exit status is 1 if this host cannot profile guests, if a program of vprof is missing, or if\n"
		"the guest cannot be profiled.\n"
		"\n"
		"Examples:\n"
		"  vprof doctor\n"
		"  vprof doctor --kernel /boot/vmlinuz\n"
		"  vprof doctor web01\n"
		"  vprof doctor --json | jq '.deliveries[] | select(.usable) | .name'",
	.options = options,
	.values_bytes = sizeof(struct doctor_values),
	.run = doctor_run,
};
