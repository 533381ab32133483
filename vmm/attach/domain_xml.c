// SPDX-License-Identifier: BSD-2-Clause
#include "attach/domain_xml.h"

#include <glib.h>
#include <string.h>

static const char *attribute(const char *const *names, const char *const *values, const char *name)
{
	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return values[i];
	return NULL;
}

/* Elements that mean something in one place only: the root, and directly below it. */
static void on_element(GMarkupParseContext *context, const char *element, const char **names, const char **values,
                       void *data, GError **error G_GNUC_UNUSED)
{
	const char *type = attribute((const char *const *)names, (const char *const *)values, "type");
	guint depth = g_slist_length((GSList *)g_markup_parse_context_get_element_stack(context));
	struct domain_xml *xml = data;

	if (depth == 1 && !xml->type && strcmp(element, "domain") == 0)
		xml->type = g_strdup(type);
	if (depth == 2 && !xml->security && strcmp(element, "launchSecurity") == 0)
		xml->security = g_strdup(type ? type : "of an unknown type");
}

struct domain_xml domain_xml_parse(const char *text)
{
	static const GMarkupParser parser = {.start_element = on_element};
	struct domain_xml xml = {NULL, NULL};
	GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &xml, NULL);

	if (text)
		g_markup_parse_context_parse(context, text, -1, NULL);
	g_markup_parse_context_free(context);
	return xml;
}

void domain_xml_clear(struct domain_xml *xml)
{
	g_clear_pointer(&xml->type, g_free);
	g_clear_pointer(&xml->security, g_free);
}
