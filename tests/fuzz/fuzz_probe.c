// SPDX-License-Identifier: BSD-2-Clause
/* What a client or a script may write as a probe: it is refused, or has a name that means the same probe. */
#include <string.h>

#include "fuzz_target.h"
#include "lib/probe_name/probe_name.h"
#include "lib/probe_name/probe_spec.h"

static void check_parts(const char *text)
{
	struct probe_in_program program;
	const char *line = probe_name_line(text);

	g_assert(!line || (line > text && line[-1] == ':' && probe_name_is_pattern(text)));
	if (!probe_in_program_parse(text, &program))
		return;
	g_autofree char *again =
		g_strconcat(program.is_note ? PROBE_NAME_NOTE : PROBE_NAME_PROGRAM, program.path, ":", program.name,
	                    program.offset ? "+" : "", program.offset ? program.offset : "",
	                    program.returns ? PROBE_NAME_RETURN : "", NULL);
	g_assert(probe_name_is_of_program(text) && program.is_note == probe_name_is_note(text));
	g_assert(strcmp(again, text) == 0);
	probe_in_program_clear(&program);
}

static void check_written(const char *text)
{
	const size_t n = probe_written_length(text);
	struct probe_written written;

	g_assert(n <= strlen(text));
	probe_written_parse(text, n, &written);
	g_assert(g_str_has_suffix(written.name, written.end));
	g_assert(n == 0 || written.name[0] != '\0');
	probe_written_clear(&written);
}

static void check_spec(const char *text)
{
	struct probe_spec spec, again;
	struct probe_in_program program;
	g_autoptr(GError) error = NULL;

	if (!probe_spec_parse(text, &spec, &error)) {
		g_assert(error && error->domain == PROBE_ERROR);
		return;
	}
	/* A marker of clients has a name and no numbers. */
	g_assert(strlen(spec.name) < PROBE_NAME_BYTES && (spec.first <= spec.last || spec.symbol[0] != '\0'));
	g_assert(probe_spec_parse(spec.name, &again, NULL));
	g_assert(strcmp(spec.name, again.name) == 0 && spec.first == again.first && spec.last == again.last);
	g_assert(spec.read == again.read && spec.write == again.write && spec.offset == again.offset);
	g_assert(spec.kind == again.kind && spec.path_bytes == again.path_bytes);
	g_assert(probe_in_program_parse(spec.name, &program) == (spec.path_bytes > 0));
	if (spec.path_bytes == 0)
		return;
	g_assert(strlen(program.path) == spec.path_bytes && program.returns == (spec.kind == PROBE_PROGRAM_RETURN));
	probe_in_program_clear(&program);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	g_autofree char *text = g_strndup((const char *)bytes, n);

	check_parts(text);
	check_written(text);
	check_spec(text);
	return 0;
}
