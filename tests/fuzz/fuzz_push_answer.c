// SPDX-License-Identifier: BSD-2-Clause
/* Bodies of a server's answers to profiles: of Parca, or, from an odd first byte on, of an OpenTelemetry collector. */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/record/text.h"
#include "push/push_otlp.h"
#include "push/push_parca.h"

#define REQUIRE(condition) ((condition) ? (void)0 : abort())

static void printable_check(const char *text)
{
	REQUIRE(g_utf8_validate(text, -1, NULL));
	for (; *text != '\0'; text++)
		REQUIRE(!g_ascii_iscntrl(*text));
}

static void parca_check(const char *body, size_t n)
{
	unsigned status = UINT_MAX;
	char *message;
	const bool known = push_parca_answer(body, n, &status, &message);
	g_autofree char *shown = message ? text_printable(message) : NULL;

	REQUIRE(known ? status <= UINT16_MAX : !message);
	if (shown)
		printable_check(shown);
	g_free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *body = (const char *)data + 1;
	g_autofree char *refusal = NULL;

	if (size == 0)
		return 0;
	if (data[0] % 2 == 0) {
		parca_check(body, size - 1);
		return 0;
	}
	refusal = push_otlp_refusal(body, size - 1);
	if (refusal)
		printable_check(refusal);
	return 0;
}
