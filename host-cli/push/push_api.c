// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "push/push_sender.h"

static const struct {
	const char *name;
	enum push_format format;
} apis[] = {
	[PUSH_API_PYROSCOPE] = {"pyroscope", PUSH_FORMAT_PPROF},
	[PUSH_API_PARCA] = {"parca", PUSH_FORMAT_PPROF},
	[PUSH_API_OTLP] = {"otlp", PUSH_FORMAT_OTLP},
};

bool push_api_parse(const char *name, enum push_api *api)
{
	for (size_t i = 0; i < G_N_ELEMENTS(apis); i++)
		if (strcmp(apis[i].name, name) == 0) {
			*api = (enum push_api)i;
			return true;
		}
	return false;
}

enum push_format push_api_format(enum push_api api)
{
	return apis[api].format;
}

const char *push_api_name(enum push_api api)
{
	return apis[api].name;
}

static bool label_name_is_good(const char *label, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!g_ascii_isalpha(label[i]) && label[i] != '_' && (i == 0 || !g_ascii_isdigit(label[i])))
			return false;
	return n > 0;
}

bool push_labels_check(const char *what, const char *const *labels, GError **error)
{
	for (; labels && *labels; labels++)
		if (!label_name_is_good(*labels, strcspn(*labels, "=")) || !strchr(*labels, '=')) {
			g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			            "%s takes NAME=VALUE with letters, digits and _ in its name, not \"%s\"", what,
			            *labels);
			return false;
		}
	return true;
}
