// SPDX-License-Identifier: BSD-2-Clause
#include "export/export.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

const struct exporter *const exporters[] = {&export_folded, &export_pprof, &export_speedscope, &export_svg, NULL};

const struct exporter *exporter_find(const char *name)
{
	for (size_t i = 0; exporters[i] != NULL; i++)
		if (strcmp(exporters[i]->name, name) == 0)
			return exporters[i];
	return NULL;
}

struct reading {
	struct export_profile *profile;
	struct stacks *stacks;
	unsigned event;
};

static bool read_sample(const struct record_sample *sample, unsigned event, void *data)
{
	struct reading *reading = data;
	struct export_profile *profile = reading->profile;

	if (event != reading->event)
		return true;
	stacks_add(reading->stacks, sample);
	if (profile->samples == 0 || sample->time_ns < profile->first_ns)
		profile->first_ns = sample->time_ns;
	profile->last_ns = MAX(profile->last_ns, sample->time_ns);
	profile->period += sample->period;
	profile->samples++;
	return true;
}

void export_profile_read(struct export_profile *profile, struct input *input, unsigned event)
{
	static const struct input_visitor visitor = {.sample = read_sample};
	const struct recording_event *of = recording_event(input->recording, event);
	struct comms *comms = input_comms(input);
	struct reading reading = {.profile = profile, .stacks = stacks_new(comms, input->mappings), .event = event};

	*profile = (struct export_profile){
		.path = input->path,
		.event = of->name,
		.unit = of->attr.type == PERF_TYPE_SOFTWARE ? "nanoseconds" : "count",
	};
	input_walk(input, &visitor, &reading);
	profile->tasks = stacks_resolve(reading.stacks, input->resolver, &profile->n_tasks);
	profile->comms = comms;
	stacks_free(reading.stacks);
}

void export_profile_clear(struct export_profile *profile)
{
	task_stacks_free(profile->tasks, profile->n_tasks);
	comms_free(profile->comms);
}

static bool write_failed(const char *path, int number, GError **error)
{
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(number), "cannot write %s: %s", path,
	            g_strerror(number));
	return false;
}

/* Where fclose is what finds a full disk. */
static bool write_and_close(const struct exporter *exporter, const struct export_profile *profile, FILE *file,
                            const char *path, GError **error)
{
	bool written = exporter->write(profile, file, error);
	bool lost = fflush(file) != 0 || ferror(file) != 0;
	int number = errno;

	fclose(file);
	return written && (!lost || write_failed(path, number, error));
}

static bool write_file(const struct exporter *exporter, const struct export_profile *profile, const char *path,
                       GError **error)
{
	g_autofree char *temporary = g_strconcat(path, ".XXXXXX", NULL);
	int fd = g_mkstemp_full(temporary, O_WRONLY | O_CLOEXEC, 0666);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (file == NULL)
		return write_failed(path, errno, error);
	if (write_and_close(exporter, profile, file, path, error)) {
		if (g_rename(temporary, path) == 0)
			return true;
		write_failed(path, errno, error);
	}
	g_unlink(temporary);
	return false;
}

bool export_write(const struct exporter *exporter, const struct export_profile *profile, const char *path,
                  GError **error)
{
	if (strcmp(path, "-") == 0)
		return exporter->write(profile, stdout, error);
	return write_file(exporter, profile, path, error);
}
