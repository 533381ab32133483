// SPDX-License-Identifier: BSD-2-Clause
/*
 * What it costs that vprof-parse is a process of its own: the same parse in there, from its start to the answer, and in
 * a process that is there already.
 *
 *   bench_parse [-n RUNS] FILE                 unpacks FILE
 *   bench_parse [-n RUNS] -s FILE              reads the symbols of FILE, a kernel that is not packed
 *   bench_parse [-n RUNS] -f FILE              reads the call frame information of FILE, a program
 *   bench_parse [-n RUNS] FILE START LENGTH    reads the source lines of these addresses in FILE, an ELF file
 *
 * Each run has a new vprof-parse. Runs alternate; the figures are medians.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/symtab.h"
#include "parse/parse.h"

#define RUNS_MAX 101u
#define START_MS 5.0
#define TIMES 1.2

enum { START, ASK, APART, HERE, KINDS };

struct job {
	struct vprof_parse_request request;
	char *bytes;
	gsize n;
	int sealed; /* the same; -1 */
};

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void fail(const GError *error)
{
	fprintf(stderr, "bench_parse: %s\n", error ? error->message : "no answer");
	_exit(EXIT_FAILURE);
}

/* Of an image that is open, there is a copy. */
static int input_of(const struct job *job)
{
	return job->sealed >= 0 ? job->sealed : sealed_copy("input", job->bytes, job->n);
}

/* As the programs do it: the file is copied, and what comes back is mapped. */
static void parse_apart(const struct job *job, double *ms)
{
	g_autoptr(GError) error = NULL;
	double begin = now_ms();

	if (!parser_start(&error))
		fail(error);
	ms[START] = now_ms() - begin;
	int input = input_of(job);
	int answer = parser_ask(&job->request, input, &error);
	GBytes *bytes = answer >= 0 ? sealed_map(answer) : NULL;

	if (!bytes)
		fail(error);
	if (job->request.what == VPROF_PARSE_SYMBOLS && !symtab_decode(bytes, 0))
		fail(NULL);
	ms[APART] = now_ms() - begin;
	/* Once more, as it is for every file but the first. */
	begin = now_ms();
	input = input_of(job);
	answer = parser_ask(&job->request, input, &error);
	bytes = answer >= 0 ? sealed_map(answer) : NULL;
	if (!bytes)
		fail(error);
	if (job->request.what == VPROF_PARSE_SYMBOLS && !symtab_decode(bytes, 0))
		fail(NULL);
	ms[ASK] = now_ms() - begin;
}

static void parse_here(const struct job *job, double *ms)
{
	g_autoptr(GError) error = NULL;
	struct vprof_parse_request request = job->request;
	struct parse_input input = {(uint8_t *)job->bytes, job->n};
	struct parse_answer answer = {.fd = sealed_new("answer"), .limit = request.answer_bytes};
	double begin = now_ms();

	request.protocol = VPROF_PARSE_PROTOCOL;
	parse_fn parse = parse_find(&request, &error);

	if (!parse || !parse(&input, &request, &answer, &error))
		fail(error);
	ms[HERE] = now_ms() - begin;
}

/* In a process of its own, which leaves nothing to the next run. */
static void run(const struct job *job, void (*parse)(const struct job *job, double *ms), double *ms)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		parse(job, ms);
		_exit(EXIT_SUCCESS);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		exit(EXIT_FAILURE);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double (*ms)[KINDS], unsigned runs, unsigned kind)
{
	double values[RUNS_MAX];

	for (unsigned i = 0; i < runs; i++)
		values[i] = ms[i][kind];
	qsort(values, runs, sizeof(values[0]), compare);
	return values[runs / 2];
}

static void measure(const struct job *job, unsigned runs)
{
	double(*ms)[KINDS] =
		mmap(NULL, RUNS_MAX * sizeof(*ms), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (ms == MAP_FAILED)
		fail(NULL);
	for (unsigned i = 0; i < runs; i++) {
		run(job, parse_apart, ms[i]);
		run(job, parse_here, ms[i]);
	}
	const double here = median(ms, runs, HERE), apart = median(ms, runs, APART), limit = START_MS + TIMES * here;

	printf("%-44s %8.2f ms   (medians of %u)\n", "in a process that is there", here, runs);
	printf("%-44s %8.2f ms\n", "in vprof-parse: until it is started", median(ms, runs, START));
	printf("%-44s %8.2f ms\n", "in vprof-parse: with its start", apart);
	printf("%-44s %8.2f ms\n", "in vprof-parse: of a second file", median(ms, runs, ASK));
	printf("%-44s %8.2f ms   %s\n", "the bar, 5 ms and 1.2 times the parse", limit,
	       apart <= limit ? "kept" : "missed");
}

int main(int argc, char **argv)
{
	unsigned runs = 21;
	int i = 1;

	if (argc > 2 && strcmp(argv[1], "-n") == 0) {
		runs = (unsigned)strtoul(argv[2], NULL, 10);
		i = 3;
	}
	const bool symbols = i < argc && strcmp(argv[i], "-s") == 0, frames = i < argc && strcmp(argv[i], "-f") == 0;

	i += symbols || frames;
	if (runs < 1 || runs > RUNS_MAX || (argc - i != 1 && (symbols || frames || argc - i != 3))) {
		fprintf(stderr, "usage: bench_parse [-n RUNS (1..%u)] [-s | -f] FILE [START LENGTH]\n", RUNS_MAX);
		return 2;
	}
	g_autoptr(GError) error = NULL;
	struct job job = {.request = {.what = VPROF_PARSE_UNPACK, .answer_bytes = VPROF_PARSE_ANSWER_BYTES_MAX},
	                  .sealed = -1};

	if (!g_file_get_contents(argv[i], &job.bytes, &job.n, &error))
		fail(error);
	job.request.bytes = job.n;
	if (symbols || frames)
		job.sealed = sealed_copy("input", job.bytes, job.n);
	if (symbols)
		job.request.what = VPROF_PARSE_SYMBOLS;
	if (frames) {
		job.request.what = VPROF_PARSE_FRAMES;
		job.request.image = VPROF_PARSE_PROGRAM;
	}
	if (argc - i == 3) {
		job.request.what = VPROF_PARSE_LINES;
		job.request.start = strtoull(argv[i + 1], NULL, 0);
		job.request.length = strtoull(argv[i + 2], NULL, 0);
	}
	measure(&job, runs);
	return EXIT_SUCCESS;
}
