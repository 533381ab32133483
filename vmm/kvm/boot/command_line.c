// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/command_line.h"

#include <string.h>

static const char *const console[] = {"console=ttyS0", NULL}, *const pl011_console[] = {"console=ttyAMA0", NULL};

/* Whether the user's text has an option of this name; what follows " -- " is init's. */
static bool given(char *const *words, const char *option)
{
	size_t n = strcspn(option, "=");

	for (; *words && strcmp(*words, "--") != 0; words++) {
		if (strncmp(*words, option, n) == 0 && ((*words)[n] == '=' || (*words)[n] == '\0'))
			return true;
	}
	return false;
}

static void append_missing(GString *text, const char *const *options, char *const *words)
{
	for (; options && *options; options++) {
		if (!given(words, *options))
			g_string_append_printf(text, "%s%s", text->len ? " " : "", *options);
	}
}

char *command_line_build(bool is_linux, enum boot_uart uart, const char *const *options, unsigned n_virtio,
                         const char *user)
{
	if (!is_linux)
		return g_strdup(user ? user : "");
	g_auto(GStrv) words = g_strsplit_set(user ? user : "", " \t\n", -1);
	GString *text = g_string_new(NULL);
	append_missing(text, uart == BOOT_UART_PL011 ? pl011_console : console, words);
	append_missing(text, boot_linux_defaults, words);
	append_missing(text, options, words);
	boot_append_devices(text, n_virtio);
	if (user && *user)
		g_string_append_printf(text, " %s", user);
	return g_string_free(text, FALSE);
}
