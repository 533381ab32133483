// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_recording.h"

#include <string.h>
#include <sys/stat.h>

#include "export/export.h"
#include "ui/text.h"

/* The server's syntax has no quotes, so a value cannot contain the characters that end it. */
static char *label_value(const char *text)
{
	g_autofree char *printable = text_printable(text);

	g_strdelimit(printable, ",{}=\"", '_');
	return g_steal_pointer(&printable);
}

static void label_add(GString *name, const char *label, const char *text)
{
	g_autofree char *value = NULL;

	if (!text || *text == '\0')
		return;
	value = label_value(text);
	g_string_append_printf(name, "%s%s=%s", g_str_has_suffix(name->str, "{") ? "" : ",", label, value);
}

static char *server_name(const struct push_naming *naming, const struct export_profile *profile)
{
	const struct input *input = profile->input;
	g_autofree char *application = label_value(naming->application ? naming->application : PUSH_DEFAULT_NAME);
	GString *name = g_string_new(NULL);

	g_string_append_printf(name, "%s{", application);
	label_add(name, "domain", member_text(json_object_get(input->description, "guest"), "name"));
	label_add(name, "event", profile->event);
	label_add(name, "host", g_get_host_name());
	label_add(name, "kernel_build_id", recording_kernel_build_id(input->recording));
	label_add(name, "kernel_release", recording_release(input->recording));
	for (const char *const *label = naming->labels; label && *label; label++) {
		g_autofree char *key = g_strndup(*label, strcspn(*label, "="));

		label_add(name, key, *label + strlen(key) + 1);
	}
	g_string_append_c(name, '}');
	return g_string_free(name, FALSE);
}

/* Older recordings do not contain their start time: their end is taken from the time stamp of the file. */
static void start_guess(struct export_profile *profile)
{
	const uint64_t duration_ns = profile->last_ns - profile->first_ns;
	struct stat status;
	uint64_t end_ns;

	if (profile->start_unix_ns != 0 || stat(profile->path, &status) != 0 || status.st_mtim.tv_sec < 0)
		return;
	end_ns = (uint64_t)status.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)status.st_mtim.tv_nsec;
	profile->start_unix_ns = end_ns > duration_ns ? end_ns - duration_ns : 0;
}

static GBytes *profile_bytes(const struct export_profile *profile, const struct exporter *exporter, GError **error)
{
	char *bytes = NULL;
	size_t n = 0;
	FILE *file = open_memstream(&bytes, &n);
	bool written = exporter->write(profile, file, error);

	fclose(file);
	if (written && n > PUSH_PROFILE_BYTES_MAX) {
		g_set_error(error, PUSH_SPOOL_ERROR, PUSH_SPOOL_ERROR_FORMAT,
		            "the profile has %zu bytes; the maximum is %u", n, PUSH_PROFILE_BYTES_MAX);
		written = false;
	}
	if (written)
		return g_bytes_new_with_free_func(bytes, n, free, bytes);
	free(bytes);
	return NULL;
}

/*
 * For OpenTelemetry, where the resource is the guest: the application and the host, as its semantic conventions call
 * them (opentelemetry.io/docs/specs/semconv, "Service"), and the user's labels.
 */
static GPtrArray *resource_labels(const struct push_naming *naming, const char *event)
{
	GPtrArray *labels = g_ptr_array_new_with_free_func(g_free);

	g_ptr_array_add(labels, g_strdup("service.name"));
	g_ptr_array_add(labels, g_strdup(naming->application ? naming->application : PUSH_DEFAULT_NAME));
	g_ptr_array_add(labels, g_strdup("hypervisor.host.name"));
	g_ptr_array_add(labels, g_strdup(g_get_host_name()));
	g_ptr_array_add(labels, g_strdup("event"));
	g_ptr_array_add(labels, g_strdup(event));
	for (const char *const *label = naming->labels; label && *label; label++) {
		const size_t n = strcspn(*label, "=");

		g_ptr_array_add(labels, g_strndup(*label, n));
		g_ptr_array_add(labels, g_strdup(*label + n + 1));
	}
	return labels;
}

bool push_profile_make(struct input *input, const char *event, enum push_format format,
                       const struct push_naming *naming, struct push_profile *made, GError **error)
{
	const struct exporter *exporter = format == PUSH_FORMAT_OTLP ? &export_otlp : &export_pprof;
	const int number = input_event_number(input, event, error);
	g_autoptr(GPtrArray) labels = NULL;
	struct export_profile profile;

	if (number < 0)
		return false;
	export_profile_read(&profile, exporter, input, (unsigned)number, -1);
	start_guess(&profile);
	made->from_s = profile.start_unix_ns / 1000000000;
	made->until_s = made->from_s + (profile.last_ns - profile.first_ns) / 1000000000 + 1;
	made->name = server_name(naming, &profile);
	labels = resource_labels(naming, profile.event);
	profile.labels = labels;
	made->format = format;
	made->bytes = profile_bytes(&profile, exporter, error);
	export_profile_clear(&profile);
	if (!made->bytes)
		push_profile_clear(made);
	return made->bytes != NULL;
}
