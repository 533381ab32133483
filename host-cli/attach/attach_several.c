// SPDX-License-Identifier: BSD-2-Clause
#include "attach/attach.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/capture.h"
#include "ui/message.h"
#include "ui/text.h"

#define FOLDER_MODE 0777 /* minus the umask */

struct job {
	const char *domain;
	char *output;
	pid_t pid; /* 0: not started, or already reaped */
	int status;
};

/* Domain names contain no slash, but the user may have typed one. New string. */
static char *output_name(const char *folder, const char *domain)
{
	g_autofree char *name = g_strdelimit(g_strconcat(domain, ".data", NULL), "/", '_');

	if (name[0] == '.')
		name[0] = '_';
	return folder ? g_build_filename(folder, name, NULL) : g_steal_pointer(&name);
}

static GArray *jobs_new(const char *const *domains, const char *folder)
{
	GArray *jobs = g_array_new(FALSE, TRUE, sizeof(struct job));

	for (; *domains; domains++) {
		const struct job job = {.domain = *domains, .output = output_name(folder, *domains)};

		g_array_append_val(jobs, job);
	}
	return jobs;
}

static struct job *job_at(GArray *jobs, guint i)
{
	return &g_array_index(jobs, struct job, i);
}

/* Ctrl-C reaches every foreground process; signals for this process alone are forwarded. */
static void signals_block(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, before);
}

static bool job_start(struct job *job, const sigset_t *signals, attach_one one, void *data)
{
	const pid_t parent = getpid();

	fflush(NULL);
	job->pid = fork();
	if (job->pid < 0) {
		say("cannot start a process for %s: %s", job->domain, g_strerror(errno));
		job->pid = 0;
		job->status = STATUS_FAILED;
		return false;
	}
	if (job->pid > 0)
		return true;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, signals, NULL);
	if (getppid() == parent)
		exit(one(job->domain, job->output, data));
	exit(STATUS_FAILED);
}

static void jobs_tell(GArray *jobs, int number)
{
	for (guint i = 0; i < jobs->len; i++)
		if (job_at(jobs, i)->pid != 0)
			kill(job_at(jobs, i)->pid, number);
}

/* Reaps the processes that have ended; returns the number of the others. */
static unsigned jobs_reap(GArray *jobs)
{
	unsigned n = 0;

	for (guint i = 0; i < jobs->len; i++) {
		struct job *job = job_at(jobs, i);
		int status;

		if (job->pid == 0 || waitpid(job->pid, &status, WNOHANG) == 0) {
			n += job->pid != 0;
			continue;
		}
		job->pid = 0;
		job->status = WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_FAILED;
	}
	return n;
}

static void jobs_wait(GArray *jobs)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	while (jobs_reap(jobs) > 0) {
		int number = sigwaitinfo(&set, NULL);

		if (number == SIGTERM || number == SIGHUP)
			jobs_tell(jobs, number);
	}
}

/* Prints the reports; returns the worst exit status. */
static int jobs_report(GArray *jobs, bool report)
{
	int status = STATUS_OK;

	for (guint i = 0; i < jobs->len; i++) {
		const struct job *job = job_at(jobs, i);
		g_autofree char *domain = text_printable(job->domain);
		g_autoptr(GError) error = NULL;

		status = MAX(status, job->status);
		if (job->status != STATUS_OK || !report)
			continue;
		printf("%s==> %s <==\n", i > 0 ? "\n" : "", domain);
		if (!recording_print_top(job->output, stdout, &error))
			status = MAX(status, failure(error));
	}
	return status;
}

int attach_several(const char *const *domains, const char *folder, bool report, attach_one one, void *data)
{
	sigset_t signals;
	GArray *jobs;
	int status;

	if (folder && g_mkdir_with_parents(folder, FOLDER_MODE) != 0) {
		say("cannot make the folder %s for recordings: %s", folder, g_strerror(errno));
		return STATUS_FAILED;
	}
	jobs = jobs_new(domains, folder);
	signals_block(&signals);
	for (guint i = 0; i < jobs->len; i++)
		if (!job_start(job_at(jobs, i), &signals, one, data))
			break;
	jobs_wait(jobs);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	status = jobs_report(jobs, report);
	for (guint i = 0; i < jobs->len; i++)
		g_free(job_at(jobs, i)->output);
	g_array_unref(jobs);
	return status;
}

char **attach_all_domains(const struct attach_engine_options *options)
{
	g_autoptr(GError) error = NULL;
	json_t *domains = attach_engine_ask(options, NULL, &error), *domain;
	GPtrArray *names = g_ptr_array_new();
	size_t i;

	json_array_foreach(domains, i, domain)
		g_ptr_array_add(names, g_strdup(member_text(domain, "name")));
	if (!domains && !g_error_matches(error, ATTACH_ENGINE_ERROR, ATTACH_ENGINE_ERROR_PROGRAM))
		failure(error); /* otherwise vprof-attach has printed the reason */
	else if (domains && names->len == 0)
		say("no domain is running; --connect says which libvirt to ask");
	json_decref(domains);
	if (names->len == 0) {
		g_ptr_array_free(names, TRUE);
		return NULL;
	}
	g_ptr_array_add(names, NULL);
	return (char **)g_ptr_array_free(names, FALSE);
}
