// SPDX-License-Identifier: BSD-2-Clause
/* The daemon's configuration, and headers as in the environment: another user may have written the values. */
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon_config.h"
#include "fuzz_target.h"
#include "push/push_headers.h"

#define REQUIRE(condition) ((condition) ? (void)0 : abort())

/* Each is one header: a line break would begin another. */
static void headers_check(char *const *headers)
{
	REQUIRE(push_headers_check("a header", (const char *const *)headers, NULL));
	for (; *headers; headers++)
		REQUIRE(strchr(*headers, ':') && !strpbrk(*headers, "\r\n"));
}

static void config_check(const struct daemon_config *config)
{
	REQUIRE(g_path_is_absolute(config->socket) && g_path_is_absolute(config->spool));
	REQUIRE(config->spool_bytes >= 1 << 20 && config->spool_bytes <= UINT64_C(65536) << 20);
	REQUIRE(config->frequency_hz >= 19 && config->frequency_hz <= 99);
	REQUIRE(config->interval_s >= 5 && config->interval_s <= 600);
	REQUIRE(!config->address || (g_hostname_is_ip_address(config->address) && config->port != 0));
	REQUIRE(!config->header_file || g_path_is_absolute(config->header_file));
	REQUIRE(push_labels_check("the key", (const char *const *)config->labels, NULL));
	headers_check(config->headers);
	(void)daemon_config_wants(config, "web01");
	if (!config->url)
		return;

	g_autofree char *shown = push_url_shown(config->url);

	REQUIRE(!push_url_has_password(shown) && strlen(shown) <= strlen(config->url));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *text = g_strndup((const char *)data, size);
	g_autoptr(GError) error = NULL, refused = NULL;
	struct daemon_config *config = daemon_config_parse("daemon.conf", text, &error);
	g_auto(GStrv) headers = NULL;

	REQUIRE(!config == (error && g_str_has_prefix(error->message, "daemon.conf: ")));
	if (config)
		config_check(config);
	daemon_config_free(config);

	REQUIRE(g_setenv(PUSH_HEADERS_VARIABLE, text, TRUE));
	headers = push_headers_all(NULL, NULL, &refused);
	REQUIRE(!headers == (refused && refused->domain == PUSH_HEADERS_ERROR));
	if (headers)
		headers_check(headers);
	g_unsetenv(PUSH_HEADERS_VARIABLE);
	return 0;
}
