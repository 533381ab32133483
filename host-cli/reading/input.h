// SPDX-License-Identifier: BSD-2-Clause
/* A recording as `report` and `script` read it: opened, with its symbols, its description and its warnings. */
#ifndef VPROF_CLI_READING_INPUT_H
#define VPROF_CLI_READING_INPUT_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/profile/names.h"
#include "lib/profile/resolver.h"
#include "lib/record/reader.h"
#include "reading/filter.h"
#include "reading/kernel_place.h"

#define INPUT_ERROR input_error_quark()
GQuark input_error_quark(void);
enum input_error { INPUT_ERROR_BUILD_ID };

#define INPUT_DEFAULT_PATH "vprof.data"

struct input {
	char *path;
	char *image_path; /* of the kernel that input_open was given; NULL */
	struct recording *recording;
	struct kernel_place kernel;
	struct symtab *symtab; /* of --kernel, with addresses as the guest had them; NULL without */
	uint64_t slide;        /* from the addresses of that image to those */
	struct resolver *resolver;
	struct names *names;               /* of tasks, cgroups and mapped files */
	struct user_symbols *user_symbols; /* of input_take_symbol_options; NULL without */
	json_t *description;               /* VPROF_FEATURE_DESCRIPTION; an empty object when the recording has none */
	GPtrArray *warnings;               /* sentences (char *), owned */
	char *phase;                       /* samples of other phases are left out; NULL: all phases */
	struct filter *filter;             /* samples that do not pass are left out; NULL: all pass */
	GArray *spans;                     /* of that phase, from phases_find; NULL: all time */
	struct record_losses losses;       /* counted by input_walk; of the whole recording, whatever is left out */
};

/*
 * path: NULL for INPUT_DEFAULT_PATH. kernel: an image to take the symbols from, or NULL for the recording's own. An
 * image with another build-id than the recording's is refused (INPUT_ERROR_BUILD_ID) unless `force`.
 */
struct input *input_open(const char *path, const char *kernel, bool force, GError **error);
void input_free(struct input *input);

/* The permissions of a file that is made of the recording: those of the recording itself. */
mode_t input_mode(const struct input *input);

/* Sets *path, the value of --input or NULL, to `argument` unless that is NULL. Both: G_OPTION_ERROR_BAD_VALUE. */
bool input_choose(const char **path, const char *argument, GError **error);

/* Whether `image` is the kernel that ran: INPUT_ERROR_BUILD_ID if not. With `force`, or if unknown, only warns. */
bool input_check_kernel(struct input *input, const struct image *image, bool force, GError **error);

struct symbol_options;

/* Takes symbols of user space from what `options` names, too, ahead of those in the recording. */
void input_take_symbol_options(struct input *input, const struct symbol_options *options, bool force);
/* Leaves out all samples outside the phases that match `pattern`. PHASES_ERROR_NONE: no phase matches. */
bool input_select_phase(struct input *input, const char *pattern, GError **error);

/* Leaves out all samples that `options`, borrowed and checked, do not name. As filter_new. */
bool input_select(struct input *input, const struct filter_options *options, GError **error);

/* The number of the event of that name (NULL: the first); -1 and G_OPTION_ERROR_BAD_VALUE: no such event. */
int input_event_number(const struct input *input, const char *name, GError **error);
/*
 * The event of the waits of tasks: of each wait, or else of looks at those that wait; -1: it has neither. beside: for a
 * profile of that event, which must then be of the time that tasks run; -1: any.
 */
int input_waits_number(const struct input *input, int beside);

/* Returns false to end the walk. */
struct input_visitor {
	/* `event`: 0..recording_n_events-1. The period is never 0 where the recording says anything about it. */
	bool (*sample)(const struct record_sample *sample, unsigned event, void *data);
	/* A context switch: of the task that `id` is. May be NULL. */
	bool (*switched)(const struct record_switch *change, const struct record_id *id, void *data);
	/* What `event` had counted of a task that has ended. May be NULL. */
	bool (*counted)(const struct record_read *read, unsigned event, const struct record_id *id, void *data);
	/* No later record is older than those before the previous call (PERF_RECORD_FINISHED_ROUND); may be NULL. */
	bool (*round)(void *data);
};

/*
 * Walks the records. A damaged end and samples of unknown events become warnings; everything before them is good.
 */
void input_walk(struct input *input, const struct input_visitor *visitor, void *data);
/* One more warning, unless `samples`, call_tree_room.cut of its call trees, is 0. */
void input_warn_cut(struct input *input, uint64_t samples);

/* What is at `ip` in that mode, for the task of a sample and at its time. */
void input_find_place(const struct input *input, const struct record_sample *sample, enum profile_mode mode,
                      uint64_t ip, struct place *place);

/* Prints the warnings on stderr. */
void input_say_warnings(const struct input *input);

#endif
