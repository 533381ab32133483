// SPDX-License-Identifier: BSD-2-Clause
/* Files that the agent in the guest is to read. */
#include "record/jit_symbols.h"
#include "record/recorder_priv.h"

bool recorder_read_next(struct recorder *recorder, struct vprof_agent_read *read)
{
	const struct vprof_agent_read nothing = {.number = recorder->reads + 1};

	*read = nothing;
	if (recorder->made_code && recorder->made_code->len != 0) {
		*read = g_array_index(recorder->made_code, struct vprof_agent_read, recorder->made_code->len - 1);
		read->number = nothing.number;
		g_array_set_size(recorder->made_code, recorder->made_code->len - 1);
	} else if (recorder->made_code || !recorder->tables || !recorder_tables_read_next(recorder->tables, read)) {
		return false;
	}
	recorder->reads = read->number;
	return true;
}

void recorder_read_done(struct recorder *recorder, uint32_t number)
{
	if (recorder->tables)
		recorder_tables_read_done(recorder->tables, number);
}

void recorder_reads_finish(struct recorder *recorder)
{
	static const uint32_t whats[] = {VPROF_AGENT_READ_JIT_DUMP, VPROF_AGENT_READ_PERF_MAP};
	g_autoptr(GArray) pids = jit_symbols_processes(recorder->frames);

	g_clear_pointer(&recorder->made_code, g_array_unref);
	recorder->made_code = g_array_new(FALSE, FALSE, sizeof(struct vprof_agent_read));
	for (guint i = 0; i < pids->len; i++)
		for (size_t k = 0; k < G_N_ELEMENTS(whats); k++) {
			const struct vprof_agent_read read = {.pid = g_array_index(pids, uint32_t, i),
			                                      .what = whats[k]};

			g_array_append_val(recorder->made_code, read);
		}
}
