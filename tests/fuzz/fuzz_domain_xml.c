// SPDX-License-Identifier: BSD-2-Clause
/* The XML of a domain. */
#include <glib.h>

#include "attach/domain_xml.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *text = g_strndup((const char *)data, size);
	struct domain_xml xml = domain_xml_parse(text);

	if (xml.vsock_cid != 0 && xml.vsock_cid < 3)
		g_error("a guest has no vsock address %u", xml.vsock_cid);
	domain_xml_clear(&xml);
	return 0;
}
