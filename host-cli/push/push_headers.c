// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_headers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_BYTES_MAX ((size_t)1 << 20)
#define TOKEN_MARKS "!#$%&'*+-.^_`|~" /* and letters and digits: RFC 9110, 5.6.2 */

G_DEFINE_QUARK(push - headers - error - quark, push_headers_error)

/* ---- secrets ---- */

bool push_header_is_secret(const char *header)
{
	static const char *const names[] = {"authorization", "proxy-authorization", "cookie", NULL};
	static const char *const parts[] = {"key", "token", "secret", "password"};
	g_autofree char *text = g_strndup(header, strcspn(header, ":;"));
	g_autofree char *name = g_ascii_strdown(g_strstrip(text), -1);

	for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
		if (strstr(name, parts[i]))
			return true;
	return g_strv_contains(names, name);
}

/* "USER:PASSWORD@HOST:PORT". libcurl takes a URL with any number of slashes, too. */
static const char *url_authority(const char *url, size_t *n)
{
	const char *colon = strstr(url, ":/");

	if (colon)
		url = colon + 1 + strspn(colon + 1, "/");
	*n = strcspn(url, "/?#");
	return url;
}

/* Behind its last "@"; 0: there is none. */
static size_t user_bytes(const char *authority, size_t n)
{
	const char *at = g_strrstr_len(authority, (gssize)n, "@");

	return at ? (size_t)(at - authority) + 1 : 0;
}

bool push_url_has_password(const char *url)
{
	size_t n;
	const char *authority = url_authority(url, &n);

	return memchr(authority, ':', user_bytes(authority, n)) != NULL;
}

char *push_url_shown(const char *url)
{
	size_t n;
	const char *authority = url_authority(url, &n), *host = authority + user_bytes(authority, n);

	return g_strdup_printf("%.*s%.*s", (int)(authority - url), url, (int)strcspn(host, "?#"), host);
}

bool push_arguments_check(const char *url, const char *const *headers, GError **error)
{
	if (push_url_has_password(url)) {
		g_set_error(error, PUSH_HEADERS_ERROR, PUSH_HEADERS_ERROR_EXPOSED,
		            "every user of this host can read the password in the URL; write a header \"Authorization: "
		            "Basic ...\" to a file for --header-file, or to " PUSH_HEADERS_VARIABLE);
		return false;
	}
	for (; headers && *headers; headers++)
		if (push_header_is_secret(*headers)) {
			g_set_error(error, PUSH_HEADERS_ERROR, PUSH_HEADERS_ERROR_EXPOSED,
			            "every user of this host can read the --header \"%.*s\"; write it to a file for "
			            "--header-file, or to " PUSH_HEADERS_VARIABLE,
			            (int)strcspn(*headers, ":;"), *headers);
			return false;
		}
	return true;
}

/* ---- headers ---- */

/* Only those of HTTP/1.1 pass: a line break in a value would begin another header. */
static bool header_is_good(const char *header)
{
	size_t n = 0;

	while (g_ascii_isalnum(header[n]) || (header[n] != '\0' && strchr(TOKEN_MARKS, header[n])))
		n++;
	if (n == 0 || header[n] != ':')
		return false;
	header += n + 1;
	for (const char *at = header; *at != '\0'; at++)
		if (g_ascii_iscntrl(*at) && *at != '\t')
			return false;
	return header[strspn(header, " \t")] != '\0';
}

bool push_headers_check(const char *what, const char *const *headers, GError **error)
{
	for (unsigned i = 0; headers && headers[i]; i++)
		if (!header_is_good(headers[i])) {
			g_set_error(error, PUSH_HEADERS_ERROR, PUSH_HEADERS_ERROR_FORMAT,
			            "%s takes NAME: VALUE, without control characters; number %u differs", what, i + 1);
			return false;
		}
	return true;
}

static bool lines_take(GPtrArray *headers, const char *what, const char *text, bool exposed, GError **error)
{
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

	for (unsigned i = 0; lines[i]; i++) {
		const char *line = g_strstrip(lines[i]);

		if (*line == '\0' || *line == '#')
			continue;
		if (!header_is_good(line)) {
			g_set_error(error, PUSH_HEADERS_ERROR, PUSH_HEADERS_ERROR_FORMAT,
			            "%s: line %u is not NAME: VALUE without control characters", what, i + 1);
			return false;
		}
		if (exposed && push_header_is_secret(line))
			return push_exposed_refuse(what, error);
		g_ptr_array_add(headers, g_strdup(line));
	}
	return true;
}

static bool file_take(GPtrArray *headers, const char *path, GError **error)
{
	bool exposed;
	g_autofree char *text = push_text_read(path, &exposed, error);

	return text && lines_take(headers, path, text, exposed, error);
}

char **push_headers_all(const char *const *given, const char *file, GError **error)
{
	g_autoptr(GPtrArray) headers = g_ptr_array_new_with_free_func(g_free);
	const char *environment = g_getenv(PUSH_HEADERS_VARIABLE);

	for (; given && *given; given++)
		g_ptr_array_add(headers, g_strdup(*given));
	if ((file && !file_take(headers, file, error)) ||
	    (environment && !lines_take(headers, PUSH_HEADERS_VARIABLE, environment, false, error)))
		return NULL;
	g_ptr_array_add(headers, NULL);
	return (char **)g_ptr_array_steal(headers, NULL);
}

/* ---- files ---- */

bool push_exposed_refuse(const char *path, GError **error)
{
	g_autofree char *quoted = g_shell_quote(path);

	g_set_error(error, PUSH_HEADERS_ERROR, PUSH_HEADERS_ERROR_EXPOSED,
	            "%s has a secret, and other users can read it; run: chmod 600 %s", path, quoted);
	return false;
}

/* Until its end. */
static bool text_fill(GByteArray *text, int fd, const char *path, GError **error)
{
	guint8 part[4096];
	ssize_t n;

	while (text->len <= TEXT_BYTES_MAX) {
		n = read(fd, part, sizeof(part));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot read %s: %s",
			            path, g_strerror(errno));
			return false;
		}
		if (n == 0)
			break;
		g_byte_array_append(text, part, (guint)n);
	}
	if (text->len > TEXT_BYTES_MAX || memchr(text->data ? (const void *)text->data : "", '\0', text->len)) {
		g_set_error(error, PUSH_HEADERS_ERROR, PUSH_HEADERS_ERROR_FORMAT, "%s is not a text of at most %zu KiB",
		            path, TEXT_BYTES_MAX >> 10);
		return false;
	}
	g_byte_array_append(text, (const guint8 *)"", 1);
	return true;
}

char *push_text_read(const char *path, bool *exposed, GError **error)
{
	g_autoptr(GByteArray) text = g_byte_array_new();
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat status;
	bool filled;

	if (fd < 0 || fstat(fd, &status) != 0) {
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot read %s: %s", path,
		            g_strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	filled = text_fill(text, fd, path, error);
	close(fd);
	if (!filled)
		return NULL;
	*exposed = S_ISREG(status.st_mode) && (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
	return (char *)g_byte_array_free(g_steal_pointer(&text), FALSE);
}
