// SPDX-License-Identifier: BSD-2-Clause
#include "ui/message.h"

#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/client/client.h"
#include "ui/progress.h"
#include "ui/text.h"
#include "vprof/control.h"

G_GNUC_PRINTF(2, 0)
static void message_print(const char *prefix, const char *format, va_list arguments)
{
	g_autofree char *text = g_strdup_vprintf(format, arguments), *printable = text_printable(text);

	progress_clear();
	fprintf(stderr, "vprof: %s%s\n", prefix, printable);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	message_print("", format, arguments);
	va_end(arguments);
}

void warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	message_print("warning: ", format, arguments);
	va_end(arguments);
}

static void say_left_out(uint64_t n)
{
	if (n > 0)
		warn("%" G_GUINT64_FORMAT " messages left out", n);
}

void warn_at_rate(struct message_rate *rate, const char *format, ...)
{
	uint64_t left_out;
	bool may = message_rate_take(rate, g_get_monotonic_time(), &left_out);
	va_list arguments;

	say_left_out(left_out);
	if (!may)
		return;
	va_start(arguments, format);
	message_print("warning: ", format, arguments);
	va_end(arguments);
}

void warn_rate_end(struct message_rate *rate)
{
	say_left_out(message_rate_end(rate));
}

int usage_error(const char *command, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	message_print("", format, arguments);
	va_end(arguments);
	say("try `vprof %s --help`", command);
	return STATUS_USAGE;
}

const char *failure_text(const GError *error)
{
	const char *text = error->message;
	const char *remote = g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_REMOTE) ? strstr(text, ": ") : NULL;

	/* The engine's answer comes as "CLASS: text"; the class is for programs. */
	return remote ? remote + 2 : text;
}

int failure(const GError *error)
{
	say("%s", failure_text(error));
	return client_refused(error, VPROF_ERROR_INVALID_ARGUMENT) ? STATUS_USAGE : STATUS_FAILED;
}

/* ---- findings ---- */

void finding_print(enum finding verdict, const char *what, const char *text, const char *fix)
{
	static const char *const words[] = {[FINDING_GOOD] = "ok", [FINDING_NOTE] = "note", [FINDING_BAD] = "MISSING"};
	g_autofree char *printable = text_printable(text);

	printf("%-8s %-10s %s\n", words[verdict], what, printable);
	if (fix)
		printf("%-8s %-10s fix: %s\n", "", "", fix);
}
