// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_otlp.h"

#include <export/proto/otlp.pb-c.h>
#include <glib.h>

#include "ui/text.h"

char *push_otlp_refusal(const char *answer, size_t n)
{
	Otlp__ExportProfilesServiceResponse *response =
		otlp__export_profiles_service_response__unpack(NULL, n, (const uint8_t *)answer);
	const Otlp__ExportProfilesPartialSuccess *partial = response ? response->partial_success : NULL;
	char *text = NULL;

	/* A message without rejected profiles is a warning. */
	if (partial && partial->rejected_profiles != 0)
		text = text_printable(*partial->error_message ? partial->error_message : "it does not say why");
	if (response)
		otlp__export_profiles_service_response__free_unpacked(response, NULL);
	return text;
}
