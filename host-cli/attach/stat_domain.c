// SPDX-License-Identifier: BSD-2-Clause
/* vprof stat DOMAIN: an engine that is attached for a while, for its clocks only. */
#include "attach/stat_domain.h"

#include <signal.h>
#include <unistd.h>

#include "attach/stat_output.h"
#include "engine/attach_engine.h"
#include "engine/engine_process.h"
#include "engine/vcpu_clocks.h"
#include "run/run_loop.h"
#include "ui/message.h"
#include "ui/text.h"

#define ANSWER_TIMEOUT_MS 10000u

static bool execute(struct engine_process *engine, const char *method, GError **error)
{
	json_t *answer = engine_process_execute(engine, method, NULL, error);

	json_decref(answer);
	return answer != NULL;
}

/* From now to the end of the time asked for, the guest's end or a signal. */
static json_t *clocks_follow(struct run_loop *loop, GError **error)
{
	json_t *guest = engine_process_execute(loop->engine, "query-guest", NULL, error), *answers = NULL;

	if (guest != NULL && execute(loop->engine, "vcpu-time-reset", error) &&
	    execute(loop->engine, "guest-start", error)) {
		g_autofree char *name = text_printable(member_text(guest, "name"));

		say("counting %s; Ctrl-C ends it and prints", name);
		loop->terminal = terminal_new(false);
		run_loop_run(loop);
		terminal_free(g_steal_pointer(&loop->terminal));
		if (loop->engine_gone)
			say("the engine is gone, and its clocks with it; %s runs on", name);
		else
			answers =
				vcpu_clocks_query(engine_process_client(loop->engine),
			                          (unsigned)member_number(guest, "vcpus", 0), ANSWER_TIMEOUT_MS, error);
	}
	json_decref(guest);
	return answers;
}

static int clocks_print(struct run_loop *loop, bool json)
{
	g_autoptr(GError) error = NULL;
	json_t *answers = clocks_follow(loop, &error);

	run_loop_signals_release();
	if (error != NULL)
		return failure(error);
	if (answers == NULL)
		return STATUS_FAILED;
	json_decref(engine_process_execute(loop->engine, "quit", NULL, NULL));
	/* Whoever reads no further than this wants silence. */
	signal(SIGPIPE, SIG_DFL);
	stat_print(answers, NULL, loop->end, json, stdout);
	json_decref(answers);
	return STATUS_OK;
}

int stat_domain(const struct attach_engine_options *options, const char *domain, const char *duration, bool json)
{
	g_autoptr(GError) error = NULL;
	struct run_loop loop = {.signalfd = run_loop_signals(false, &error)};
	int status = STATUS_FAILED;

	if (loop.signalfd < 0)
		return failure(error);
	loop.engine = attach_engine_start(options, domain, duration, &status, &error);
	if (loop.engine != NULL)
		status = clocks_print(&loop, json);
	else if (!g_error_matches(error, ENGINE_PROCESS_ERROR, ENGINE_PROCESS_ERROR_REFUSED)) /* else it has said why */
		status = failure(error);
	engine_process_free(loop.engine);
	json_decref(loop.end);
	close(loop.signalfd);
	return status;
}
