// SPDX-License-Identifier: BSD-2-Clause
/*
 * vprof-parse: reads files that may be made to do harm, for vprof and its engines (include/vprof/parse.h). The server
 * makes a child for each request, which maps the input, gives up all rights, parses, and writes its answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parse/confine.h"
#include "parse/parse.h"

#define REASON_BYTES_MAX 512u

/* Exit statuses of a child. */
enum { CHILD_DONE, CHILD_REFUSED, CHILD_FAILED };

struct job {
	struct vprof_parse_request request;
	int input, answer; /* -1: not sent */
};

/* ---- a child ---- */

static bool input_map(const struct job *job, struct parse_input *input, uint64_t *all)
{
	const struct vprof_parse_request *request = &job->request;
	struct stat status;

	if (fstat(job->input, &status) != 0 || status.st_size < 0 ||
	    (uint64_t)status.st_size > VPROF_PARSE_INPUT_BYTES_MAX || request->offset > (uint64_t)status.st_size ||
	    request->bytes > (uint64_t)status.st_size - request->offset) {
		errno = EFBIG;
		return false;
	}
	*all = (uint64_t)status.st_size;
	if (status.st_size == 0) {
		*input = (struct parse_input){(uint8_t *)"", 0, job->input};
		return true;
	}
	uint8_t *at =
		mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, job->input, 0);

	if (at == MAP_FAILED)
		return false;
	*input = (struct parse_input){at + request->offset, (size_t)request->bytes, job->input};
	return true;
}

/* Never returns: what a parser has left is not gone through again. */
static G_GNUC_NORETURN void child_run(const struct job *job)
{
	g_autoptr(GError) error = NULL;
	struct parse_input input;
	uint64_t all;
	parse_fn parse;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(VPROF_PARSE_FD);
	if (!input_map(job, &input, &all) || !confine_child(all, MAX(job->request.answer_bytes, REASON_BYTES_MAX)))
		_exit(CHILD_FAILED);
	struct parse_answer answer = {.fd = job->answer, .limit = job->request.answer_bytes};

	parse = parse_find(&job->request, &error);
	if (parse && parse(&input, &job->request, &answer, &error))
		_exit(CHILD_DONE);
	answer = (struct parse_answer){.fd = job->answer, .limit = REASON_BYTES_MAX};
	if (!parse_answer_clear(&answer, NULL) ||
	    !parse_answer_put(&answer, error->message, MIN(strlen(error->message), REASON_BYTES_MAX), NULL))
		_exit(CHILD_FAILED);
	_exit(CHILD_REFUSED);
}

/* ---- the server ---- */

static void descriptors_take(struct msghdr *message, struct job *job)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int fds[2];

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(fds)))
		return;
	memcpy(fds, CMSG_DATA(header), sizeof(fds));
	job->input = fds[0];
	job->answer = fds[1];
}

/* False when the other side has ended. */
static bool job_receive(struct job *job)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr alignment;
	} control;
	struct iovec iov = {&job->request, sizeof(job->request)};
	struct msghdr message = {.msg_iov = &iov,
	                         .msg_iovlen = 1,
	                         .msg_control = control.bytes,
	                         .msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	job->input = job->answer = -1;
	do
		n = recvmsg(VPROF_PARSE_FD, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	descriptors_take(&message, job);
	/* With the wrong size, it is of another version, which parse_find says. */
	if (n != (ssize_t)sizeof(job->request))
		job->request.protocol = 0;
	return true;
}

static struct vprof_parse_reply reply_of(int status)
{
	if (WIFSIGNALED(status))
		return (struct vprof_parse_reply){VPROF_PARSE_KILLED, (uint32_t)WTERMSIG(status)};
	if (WEXITSTATUS(status) == CHILD_DONE)
		return (struct vprof_parse_reply){VPROF_PARSE_DONE, 0};
	if (WEXITSTATUS(status) == CHILD_REFUSED)
		return (struct vprof_parse_reply){VPROF_PARSE_REFUSED, 0};
	return (struct vprof_parse_reply){VPROF_PARSE_FAILED, EPERM};
}

static struct vprof_parse_reply job_run(const struct job *job)
{
	int status;
	pid_t child, ended;

	if (job->answer < 0)
		return (struct vprof_parse_reply){VPROF_PARSE_FAILED, EBADF};
	child = fork();
	if (child == 0)
		child_run(job);
	if (child < 0)
		return (struct vprof_parse_reply){VPROF_PARSE_FAILED, (uint32_t)errno};
	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	return ended == child ? reply_of(status) : (struct vprof_parse_reply){VPROF_PARSE_FAILED, (uint32_t)errno};
}

static void job_close(const struct job *job)
{
	if (job->input >= 0)
		close(job->input);
	if (job->answer >= 0)
		close(job->answer);
}

static void serve(void)
{
	static struct job job;

	while (job_receive(&job)) {
		const struct vprof_parse_reply reply = job_run(&job);

		job_close(&job);
		if (send(VPROF_PARSE_FD, &reply, sizeof(reply), MSG_NOSIGNAL) != (ssize_t)sizeof(reply))
			return;
	}
}

int main(void)
{
	struct stat status;

	if (fstat(VPROF_PARSE_FD, &status) != 0 || !S_ISSOCK(status.st_mode)) {
		fputs("vprof-parse: it is started by vprof and its engines, not by hand; see SECURITY in vprof(1)\n",
		      stderr);
		return EXIT_FAILURE;
	}
	/* What else was inherited is nothing of ours. */
	syscall(SYS_close_range, VPROF_PARSE_FD + 1, ~0u, 0);
	if (!confine_server())
		_exit(EXIT_FAILURE);
	serve();
	_exit(EXIT_SUCCESS); /* in here, nothing can be looked up any more that a library may want at its end */
}
