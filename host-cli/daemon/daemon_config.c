// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/daemon_config.h"

#include <string.h>
#include <unistd.h>

#include "lib/client/client.h"
#include "push/push_headers.h"
#include "ui/units.h"

#define FREQUENCY_MIN_HZ 19
#define FREQUENCY_MAX_HZ 99
#define INTERVAL_S 15
#define INTERVAL_MIN_S 5
#define INTERVAL_MAX_S 600
#define SPOOL_MIB 256
#define SPOOL_MIB_MAX 65536
#define METRICS_ADDRESS "127.0.0.1"
#define METRICS_PORT 10119

G_DEFINE_QUARK(vprof_daemon_config_error, daemon_config_error)

/* ---- kinds of values ---- */

/* Takes the text of a key; *value: the member of the struct. */
typedef bool value_take(const char *text, void *value, GError **error);

static bool refuse(GError **error, const char *expected, const char *text)
{
	g_set_error(error, DAEMON_CONFIG_ERROR, DAEMON_CONFIG_ERROR_VALUE, "expected %s, not \"%s\"", expected, text);
	return false;
}

/* An empty text is none. */
static bool text_take(const char *text, void *value, GError **error)
{
	(void)error;
	g_free(*(char **)value);
	*(char **)value = text[0] != '\0' ? g_strdup(text) : NULL;
	return true;
}

static bool name_take(const char *text, void *value, GError **error)
{
	return text[0] != '\0' ? text_take(text, value, error) : refuse(error, "a text", text);
}

static bool path_take(const char *text, void *value, GError **error)
{
	return g_path_is_absolute(text) ? text_take(text, value, error) : refuse(error, "an absolute path", text);
}

/* Words with ";" between. */
static bool list_take(const char *text, void *value, GError **error)
{
	GPtrArray *kept = g_ptr_array_new();
	g_auto(GStrv) words = g_strsplit(text, ";", -1);

	(void)error;
	for (char **word = words; *word; word++)
		if (*g_strstrip(*word) != '\0')
			g_ptr_array_add(kept, g_strdup(*word));
	g_ptr_array_add(kept, NULL);
	g_strfreev(*(char ***)value);
	*(char ***)value = (char **)g_ptr_array_free(kept, FALSE);
	return true;
}

static bool labels_take(const char *text, void *value, GError **error)
{
	return list_take(text, value, error) && push_labels_check("the key", *(const char *const *const *)value, error);
}

static bool headers_take(const char *text, void *value, GError **error)
{
	return list_take(text, value, error) &&
	       push_headers_check("the key", *(const char *const *const *)value, error);
}

static bool flag_take(const char *text, void *value, GError **error)
{
	const bool yes = strcmp(text, "yes") == 0;

	if (!yes && strcmp(text, "no") != 0)
		return refuse(error, "yes or no", text);
	*(bool *)value = yes;
	return true;
}

static bool frequency_take(const char *text, void *value, GError **error)
{
	return units_parse_number("the key", text, FREQUENCY_MIN_HZ, FREQUENCY_MAX_HZ, value, error);
}

static bool spool_take(const char *text, void *value, GError **error)
{
	uint64_t mib;

	if (!units_parse_number("the key", text, 1, SPOOL_MIB_MAX, &mib, error))
		return false;
	*(uint64_t *)value = mib << 20;
	return true;
}

static bool interval_take(const char *text, void *value, GError **error)
{
	uint64_t seconds;

	if (!units_parse_duration("the key", text, INT64_MAX, &seconds, error))
		return false;
	if (seconds < INTERVAL_MIN_S || seconds > INTERVAL_MAX_S)
		return refuse(error, "5s to 10m", text);
	*(uint64_t *)value = seconds;
	return true;
}

/* A guest without usable ORC tables is sampled all the same, which auto does: it is not for a guest to refuse. */
static bool call_graph_take(const char *text, void *value, GError **error)
{
	static const char *const kinds[] = {"auto", "orc", "fp", "none", NULL};

	if (!g_strv_contains(kinds, text))
		return refuse(error, "auto, orc, fp or none", text);
	return text_take(strcmp(text, "orc") == 0 ? "auto" : text, value, error);
}

static bool api_take(const char *text, void *value, GError **error)
{
	return push_api_parse(text, value) || refuse(error, "pyroscope, parca or otlp", text);
}

static bool url_take(const char *text, void *value, GError **error)
{
	g_autofree char *shown = push_url_shown(text);

	return text[0] == '\0' || g_str_has_prefix(text, "http://") || g_str_has_prefix(text, "https://")
	               ? text_take(text, value, error)
	               : refuse(error, "http:// or https:// and a host", shown);
}

/* ---- keys ---- */

/* Those around an IPv6 address, which has them where a port follows. */
static bool brackets_remove(char *host)
{
	const size_t n = strlen(host);
	const bool has = n >= 2 && host[0] == '[' && host[n - 1] == ']';

	if (has) {
		memmove(host, host + 1, n - 2);
		host[n - 2] = '\0';
	}
	return has == (strchr(host, ':') != NULL);
}

/* "HOST:PORT" or "off". */
static bool address_take(const char *text, void *value, GError **error)
{
	struct daemon_config *config = value;
	const char *port = strrchr(text, ':');
	g_autofree char *host = port ? g_strndup(text, (size_t)(port - text)) : NULL;
	guint64 number = 0;

	if (strcmp(text, "off") == 0) {
		g_clear_pointer(&config->address, g_free);
		config->port = 0;
		return true;
	}
	if (!host || !brackets_remove(host) || !g_hostname_is_ip_address(host) ||
	    !g_ascii_string_to_unsigned(port + 1, 10, 1, UINT16_MAX, &number, NULL))
		return refuse(error, "an IP address and a port, as " METRICS_ADDRESS ":10119, or off", text);
	g_free(config->address);
	config->address = g_steal_pointer(&host);
	config->port = (uint16_t)number;
	return true;
}

static const struct key {
	const char *group, *name;
	value_take *take;
	size_t offset;
} keys[] = {
	{"daemon", "socket", path_take, offsetof(struct daemon_config, socket)},
	{"daemon", "spool", path_take, offsetof(struct daemon_config, spool)},
	{"daemon", "spool-mib", spool_take, offsetof(struct daemon_config, spool_bytes)},
	{"guests", "connect", text_take, offsetof(struct daemon_config, connect)},
	{"guests", "include", list_take, offsetof(struct daemon_config, include)},
	{"guests", "exclude", list_take, offsetof(struct daemon_config, exclude)},
	{"guests", "monitor", flag_take, offsetof(struct daemon_config, monitor)},
	{"sampling", "frequency", frequency_take, offsetof(struct daemon_config, frequency_hz)},
	{"sampling", "call-graph", call_graph_take, offsetof(struct daemon_config, call_graph)},
	{"sampling", "interval", interval_take, offsetof(struct daemon_config, interval_s)},
	{"push", "url", url_take, offsetof(struct daemon_config, url)},
	{"push", "api", api_take, offsetof(struct daemon_config, api)},
	{"push", "name", name_take, offsetof(struct daemon_config, name)},
	{"push", "labels", labels_take, offsetof(struct daemon_config, labels)},
	{"push", "headers", headers_take, offsetof(struct daemon_config, headers)},
	{"push", "header-file", path_take, offsetof(struct daemon_config, header_file)},
	{"metrics", "address", address_take, 0},
};

/* What there is instead: the keys of the group, or without any the groups. */
static bool key_refuse(const char *group, GError **error)
{
	g_autoptr(GString) known = g_string_new(NULL), groups = g_string_new(NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
		if (strcmp(keys[i].group, group) == 0)
			g_string_append_printf(known, "%s%s", known->len > 0 ? ", " : "", keys[i].name);
		if (i == 0 || strcmp(keys[i - 1].group, keys[i].group) != 0)
			g_string_append_printf(groups, "%s[%s]", groups->len > 0 ? ", " : "", keys[i].group);
	}
	const bool is_key = known->len > 0;
	const char *there = is_key ? known->str : groups->str;

	g_set_error(error, DAEMON_CONFIG_ERROR, DAEMON_CONFIG_ERROR_VALUE, "there is no such %s: there %s %s",
	            is_key ? "key" : "group", strchr(there, ',') ? "are" : "is", there);
	return false;
}

static bool key_take(struct daemon_config *config, const char *group, const char *name, const char *text,
                     GError **error)
{
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++)
		if (strcmp(keys[i].group, group) == 0 && strcmp(keys[i].name, name) == 0)
			return keys[i].take(text, (char *)config + keys[i].offset, error);
	return key_refuse(group, error);
}

static bool group_take(struct daemon_config *config, GKeyFile *file, const char *group, GError **error)
{
	g_auto(GStrv) names = g_key_file_get_keys(file, group, NULL, NULL);

	for (char **name = names; name && *name; name++) {
		g_autofree char *text = g_key_file_get_string(file, group, *name, error);

		if (text && key_take(config, group, *name, g_strstrip(text), error))
			continue;
		g_prefix_error(error, "[%s] %s: ", group, *name);
		return false;
	}
	return true;
}

static bool config_fill(struct daemon_config *config, const char *text, GError **error)
{
	g_autoptr(GKeyFile) file = g_key_file_new();
	g_auto(GStrv) groups = NULL;

	if (text[0] == '\0')
		return true;
	if (!g_key_file_load_from_data(file, text, strlen(text), G_KEY_FILE_NONE, error))
		return false;
	groups = g_key_file_get_groups(file, NULL);
	for (char **group = groups; *group; group++)
		if (!group_take(config, file, *group, error))
			return false;
	return true;
}

/* ---- all of it ---- */

/* Root's is /run/vprofd, which a unit of systemd makes. */
static char *default_socket(void)
{
	g_autofree char *engines = client_runtime_dir();
	g_autofree char *folder = g_strconcat(engines, "d", NULL);

	return g_build_filename(folder, "status.sock", NULL);
}

static char *default_spool(void)
{
	return geteuid() == 0 ? g_strdup("/var/lib/vprofd/spool")
	                      : g_build_filename(g_get_user_state_dir(), "vprof", "daemon", NULL);
}

static struct daemon_config *config_new(void)
{
	struct daemon_config *config = g_new0(struct daemon_config, 1);

	config->socket = default_socket();
	config->spool = default_spool();
	config->spool_bytes = (uint64_t)SPOOL_MIB << 20;
	config->include = g_strsplit("*", ";", -1);
	config->exclude = g_new0(char *, 1);
	config->frequency_hz = FREQUENCY_MIN_HZ;
	config->call_graph = g_strdup("auto");
	config->interval_s = INTERVAL_S;
	config->name = g_strdup("vprof");
	config->labels = g_new0(char *, 1);
	config->headers = g_new0(char *, 1);
	config->address = g_strdup(METRICS_ADDRESS);
	config->port = METRICS_PORT;
	return config;
}

void daemon_config_free(struct daemon_config *config)
{
	if (!config)
		return;
	char *const texts[] = {config->socket, config->spool, config->connect, config->call_graph,
	                       config->url,    config->name,  config->address, config->header_file};
	char **const lists[] = {config->include, config->exclude, config->labels, config->headers};

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
		g_free(texts[i]);
	for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
		g_strfreev(lists[i]);
	g_free(config);
}

struct daemon_config *daemon_config_parse(const char *path, const char *text, GError **error)
{
	struct daemon_config *config = config_new();

	if (config_fill(config, text, error))
		return config;
	g_prefix_error(error, "%s: ", path);
	daemon_config_free(config);
	return NULL;
}

static bool has_secret(const struct daemon_config *config)
{
	for (char **header = config->headers; *header; header++)
		if (push_header_is_secret(*header))
			return true;
	return config->url && push_url_has_password(config->url);
}

/* Completes what was read of a file. */
static bool config_complete(struct daemon_config *config, const char *path, bool exposed, GError **error)
{
	char **headers;

	if (exposed && has_secret(config))
		return push_exposed_refuse(path, error);
	headers = push_headers_all((const char *const *)config->headers, config->header_file, error);
	if (!headers)
		return false;
	g_strfreev(config->headers);
	config->headers = headers;
	return true;
}

struct daemon_config *daemon_config_read(const char *path, GError **error)
{
	const char *file = path ? path : DAEMON_CONFIG_PATH;
	g_autoptr(GError) why = NULL;
	bool exposed = false;
	g_autofree char *text = push_text_read(file, &exposed, &why);
	struct daemon_config *config;

	if (!text && (path || !g_error_matches(why, G_FILE_ERROR, G_FILE_ERROR_NOENT))) {
		g_propagate_error(error, g_steal_pointer(&why));
		return NULL;
	}
	config = daemon_config_parse(file, text ? text : "", error);
	if (config && !config_complete(config, file, exposed, error))
		g_clear_pointer(&config, daemon_config_free);
	return config;
}

static bool any_matches(char *const *patterns, const char *name)
{
	for (; *patterns; patterns++)
		if (g_pattern_match_simple(*patterns, name))
			return true;
	return false;
}

bool daemon_config_wants(const struct daemon_config *config, const char *guest)
{
	return any_matches(config->include, guest) && !any_matches(config->exclude, guest);
}
