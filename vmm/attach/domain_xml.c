// SPDX-License-Identifier: BSD-2-Clause
#include "attach/domain_xml.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

static const char *attribute(const char *const *names, const char *const *values, const char *name)
{
	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return values[i];
	return NULL;
}

#define GUEST_CID_MIN 3u /* vsock(7): below are the hypervisor, the local machine and the host */

/* The innermost elements: "cid", "vsock", "devices", "domain". */
static bool is_vsock_cid(const GSList *elements)
{
	static const char *const path[] = {"cid", "vsock", "devices", "domain"};

	for (size_t i = 0; i < G_N_ELEMENTS(path); i++, elements = elements->next)
		if (!elements || strcmp(elements->data, path[i]) != 0)
			return false;
	return !elements;
}

static uint32_t cid_parse(const char *address)
{
	guint64 cid;

	return address && g_ascii_string_to_unsigned(address, 10, GUEST_CID_MIN, UINT32_MAX - 1, &cid, NULL)
	               ? (uint32_t)cid
	               : 0;
}

/* Elements that mean something in one place only: the root, directly below it, and a device's. */
static void on_element(GMarkupParseContext *context, const char *element, const char **names, const char **values,
                       void *data, GError **error G_GNUC_UNUSED)
{
	const char *type = attribute((const char *const *)names, (const char *const *)values, "type");
	const GSList *elements = g_markup_parse_context_get_element_stack(context);
	guint depth = g_slist_length((GSList *)elements);
	struct domain_xml *xml = data;

	if (depth == 1 && !xml->type && strcmp(element, "domain") == 0)
		xml->type = g_strdup(type);
	if (depth == 2 && !xml->security && strcmp(element, "launchSecurity") == 0)
		xml->security = g_strdup(type ? type : "of an unknown type");
	if (xml->vsock_cid == 0 && is_vsock_cid(elements))
		xml->vsock_cid =
			cid_parse(attribute((const char *const *)names, (const char *const *)values, "address"));
}

struct domain_xml domain_xml_parse(const char *text)
{
	static const GMarkupParser parser = {.start_element = on_element};
	struct domain_xml xml = {0};
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
