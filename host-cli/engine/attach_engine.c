// SPDX-License-Identifier: BSD-2-Clause
#include "engine/attach_engine.h"

#include <string.h>

#include "engine/engine_process.h"
#include "engine/guest_list.h"
#include "lib/process/program_find.h"
#include "ui/text.h"

#define PROGRAM "vprof-attach"

G_DEFINE_QUARK(vprof_attach_engine_error, attach_engine_error)

const struct option_row attach_guest_option_rows[] = {
	{"connect", OPTION_TEXT, offsetof(struct attach_engine_options, connect),
         "URI of libvirt (default: the same as for virsh)", "URI"},
	{"pid", OPTION_NUMBER, offsetof(struct attach_engine_options, pid), "process id of the guest's VMM", "PID",
         .min = 1, .max = INT32_MAX},
	{"qmp", OPTION_FILE, offsetof(struct attach_engine_options, qmp), "QMP socket of that VMM, a QEMU", "SOCKET"},
	{"no-monitor", OPTION_FLAG, offsetof(struct attach_engine_options, no_monitor),
         "send no monitor commands to QEMU, which taint a domain; less is known then", NULL},
	{NULL},
};

const struct option_row attach_engine_option_rows[] = {
	{.rows = attach_guest_option_rows},
	{"kernel", OPTION_FILE, offsetof(struct attach_engine_options, kernel),
         "kernel that the guest runs (default: what its memory holds)", "IMAGE"},
	{"verbose", OPTION_FLAG, offsetof(struct attach_engine_options, verbose),
         "print what is found out about the guest", NULL},
	{NULL},
};

bool attach_engine_check(const struct attach_engine_options *options, const char *domain, GError **error)
{
	if (options->dump && !domain && options->pid == 0 && !options->qmp && !options->connect)
		return true;
	if (options->dump) {
		g_set_error_literal(error, ATTACH_ENGINE_ERROR, ATTACH_ENGINE_ERROR_OPTIONS,
		                    "--dump is the guest; give no other one");
		return false;
	}
	if ((domain != NULL) == (options->pid != 0)) {
		g_set_error_literal(error, ATTACH_ENGINE_ERROR, ATTACH_ENGINE_ERROR_OPTIONS,
		                    "exactly one guest is needed: a GUEST of `vprof attach --list`, or --pid PID");
		return false;
	}
	return true;
}

static GPtrArray *guest_arguments(const struct attach_engine_options *options, const char *domain, uint64_t duration_s)
{
	GPtrArray *arguments = g_ptr_array_new_with_free_func(g_free);

	engine_argument_add(arguments, "--connect", options->connect);
	engine_number_add(arguments, "--pid", options->pid);
	engine_number_add(arguments, "--duration", duration_s);
	engine_argument_add(arguments, "--qmp", options->qmp);
	engine_argument_add(arguments, "--dump", options->dump);
	engine_argument_add(arguments, "--kernel", options->kernel);
	if (options->no_monitor)
		g_ptr_array_add(arguments, g_strdup("--no-monitor"));
	if (options->lean)
		g_ptr_array_add(arguments, g_strdup("--lean"));
	if (options->verbose)
		g_ptr_array_add(arguments, g_strdup("--verbose"));
	if (domain)
		engine_argument_add(arguments, "--", domain);
	return arguments;
}

struct engine_process *attach_engine_start(const struct attach_engine_options *options, const char *domain,
                                           uint64_t duration_s, int *status, GError **error)
{
	struct attach_engine_options resolved = *options;

	if (domain)
		guest_resolve(&resolved, &domain);
	g_autoptr(GPtrArray) arguments = guest_arguments(&resolved, domain, duration_s);

	g_ptr_array_add(arguments, NULL);
	const struct engine_process_config config = {
		.program = PROGRAM,
		.arguments = (const char *const *)arguments->pdata,
	};

	return engine_process_start(&config, status, error);
}

/* The last line that vprof-attach has printed, without its name in front. */
static char *last_words(char *text)
{
	const char *line;

	g_strchomp(text);
	line = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
	if (g_str_has_prefix(line, PROGRAM ": "))
		line += strlen(PROGRAM ": ");
	return line[0] != '\0' ? g_strdup(line) : NULL;
}

json_t *attach_engine_ask(const struct attach_engine_options *options, const char *domain, char **said, GError **error)
{
	g_autofree char *path = program_find(PROGRAM, error);
	g_autoptr(GPtrArray) arguments = guest_arguments(options, domain, 0);
	g_autofree char *text = NULL, *words = NULL;
	json_error_t why;
	int status;

	if (said)
		*said = NULL;
	if (!path)
		return NULL;
	g_ptr_array_insert(arguments, 0, g_strdup(path));
	g_ptr_array_insert(arguments, 1, g_strdup(domain || options->pid != 0 ? "--probe" : "--list"));
	g_ptr_array_add(arguments, NULL);
	if (!g_spawn_sync(NULL, (char **)arguments->pdata, NULL, G_SPAWN_DEFAULT, NULL, NULL, &text,
	                  said ? &words : NULL, &status, error))
		return NULL;
	json_t *answer = json_printable(json_loads(text, 0, &why));

	if (!answer)
		g_set_error(error, ATTACH_ENGINE_ERROR, ATTACH_ENGINE_ERROR_PROGRAM, PROGRAM " could not answer");
	if (!answer && said)
		*said = last_words(words);
	return answer;
}
