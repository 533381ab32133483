// SPDX-License-Identifier: BSD-2-Clause
#include "attach/attach.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/recorder.h"
#include "ui/message.h"
#include "ui/text.h"

#define FOLDER_MODE 0777 /* minus the umask */

struct job {
	const json_t *guest;
	char *output;
	pid_t pid; /* 0: not started, or already reaped */
	int status;
};

static struct job *job_at(GArray *jobs, guint i)
{
	return &g_array_index(jobs, struct job, i);
}

static const char *guest_name(const struct job *job)
{
	return member_text(job->guest, "name");
}

static bool output_taken(GArray *jobs, const char *output)
{
	for (guint i = 0; i < jobs->len; i++)
		if (strcmp(job_at(jobs, i)->output, output) == 0)
			return true;
	return false;
}

/* A name may have any characters: slashes and a first dot are replaced, and with them names may be the same. */
static char *output_name(GArray *jobs, const char *folder, const char *guest)
{
	g_autofree char *base = g_strdelimit(g_strdup(guest), "/", '_');
	char *output = NULL;

	if (base[0] == '.')
		base[0] = '_';
	for (unsigned i = 1; !output || output_taken(jobs, output); i++) {
		g_autofree char *number = i > 1 ? g_strdup_printf("-%u", i) : g_strdup("");
		g_autofree char *name = g_strconcat(base, number, ".data", NULL);

		g_free(output);
		output = g_build_filename(folder ? folder : "", name, NULL);
	}
	return output;
}

static GArray *jobs_new(const json_t *guests, const char *folder)
{
	GArray *jobs = g_array_new(FALSE, TRUE, sizeof(struct job));
	const json_t *guest;
	size_t i;

	json_array_foreach(guests, i, guest) {
		const struct job job = {
			.guest = guest,
			.output = output_name(jobs, folder, member_text(guest, "name")),
		};

		g_array_append_val(jobs, job);
	}
	return jobs;
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
		say("cannot start a process for %s: %s", guest_name(job), g_strerror(errno));
		job->pid = 0;
		job->status = STATUS_FAILED;
		return false;
	}
	if (job->pid > 0)
		return true;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, signals, NULL);
	if (getppid() == parent)
		exit(one(job->guest, job->output, data));
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
		g_autofree char *name = text_printable(guest_name(job));
		g_autoptr(GError) error = NULL;

		status = MAX(status, job->status);
		if (job->status != STATUS_OK || !report)
			continue;
		printf("%s==> %s <==\n", i > 0 ? "\n" : "", name);
		if (!recording_print_top(job->output, NULL, stdout, &error))
			status = MAX(status, failure(error));
	}
	return status;
}

int attach_several(const json_t *guests, const char *folder, bool report, attach_one one, void *data)
{
	sigset_t signals;
	GArray *jobs;
	int status;

	if (folder && g_mkdir_with_parents(folder, FOLDER_MODE) != 0) {
		say("cannot make the folder %s for recordings: %s", folder, g_strerror(errno));
		return STATUS_FAILED;
	}
	jobs = jobs_new(guests, folder);
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
