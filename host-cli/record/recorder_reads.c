// SPDX-License-Identifier: BSD-2-Clause
/* Files that the agent in the guest is to read. */
#include "record/jit_symbols.h"
#include "record/recorder_priv.h"

bool capture_read_next(struct capture *capture, struct vprof_agent_read *read)
{
	const struct vprof_agent_read nothing = {.number = capture->reads + 1};

	*read = nothing;
	if (capture->made_code && capture->made_code->len != 0) {
		*read = g_array_index(capture->made_code, struct vprof_agent_read, capture->made_code->len - 1);
		read->number = nothing.number;
		g_array_set_size(capture->made_code, capture->made_code->len - 1);
	} else if (capture->made_code || !capture->tables || !capture_tables_read_next(capture->tables, read)) {
		return false;
	}
	capture->reads = read->number;
	return true;
}

void capture_read_done(struct capture *capture, uint32_t number)
{
	if (capture->tables)
		capture_tables_read_done(capture->tables, number);
}

void capture_reads_finish(struct capture *capture)
{
	static const uint32_t whats[] = {VPROF_AGENT_READ_JIT_DUMP, VPROF_AGENT_READ_PERF_MAP};
	g_autoptr(GArray) pids = jit_symbols_processes(capture->frames);

	g_clear_pointer(&capture->made_code, g_array_unref);
	capture->made_code = g_array_new(FALSE, FALSE, sizeof(struct vprof_agent_read));
	for (guint i = 0; i < pids->len; i++)
		for (size_t k = 0; k < G_N_ELEMENTS(whats); k++) {
			const struct vprof_agent_read read = {.pid = g_array_index(pids, uint32_t, i),
			                                      .what = whats[k]};

			g_array_append_val(capture->made_code, read);
		}
}
