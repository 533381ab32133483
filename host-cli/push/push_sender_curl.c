// SPDX-License-Identifier: BSD-2-Clause
/* The macros that check arguments call functions by name, which are in a table here. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <string.h>

#include "lib/process/shared_library.h"
#include "push/push_headers.h"
#include "push/push_otlp.h"
#include "push/push_parca.h"
#include "push/push_sender.h"
#include "ui/text.h"

#define CONNECT_MS 10000
#define ANSWER_BYTES_MAX 65536 /* of a body, for its message */

/*
 * Pyroscope's words for a profile that is older than the limit reject_older_than, by default an hour, or too far in
 * the future (grafana/pyroscope, pkg/validation/validate.go, NotInIngestionWindowErrorMsg).
 */
#define NOT_IN_WINDOW "outside of ingestion window"

/* clang-format off */
#define CURL_FUNCTIONS(F) \
	F(curl_easy_cleanup) F(curl_easy_escape) F(curl_easy_getinfo) F(curl_easy_header) F(curl_easy_init) \
	F(curl_easy_perform) F(curl_easy_setopt) F(curl_easy_strerror) \
	F(curl_free) F(curl_global_cleanup) F(curl_global_init) F(curl_slist_append) F(curl_slist_free_all) \
	F(curl_url) F(curl_url_cleanup) F(curl_url_get) F(curl_url_set) F(curl_url_strerror)
/* clang-format on */

static struct {
	CURL_FUNCTIONS(SHARED_LIBRARY_POINTER)
} libcurl;
SHARED_LIBRARY_NOTE(CURL_SONAME, "push");

G_DEFINE_QUARK(push - sender - error - quark, push_sender_error)

static const struct {
	const char *path, *content_type;
} apis[] = {
	[PUSH_API_PYROSCOPE] = {"/ingest", "Content-Type: binary/octet-stream"},
	[PUSH_API_PARCA] = {PUSH_PARCA_PATH, "Content-Type: " PUSH_PARCA_CONTENT_TYPE},
	[PUSH_API_OTLP] = {PUSH_OTLP_PATH, "Content-Type: " PUSH_OTLP_CONTENT_TYPE},
};

struct push_sender {
	enum push_api api;
	CURL *curl;
	struct curl_slist *headers;
	bool borrows;    /* the headers, of another sender */
	char *url;       /* with the API's path */
	char *shown;     /* without credentials */
	GString *answer; /* of the request under way */
	char problem[CURL_ERROR_SIZE];
};

/* NULL if it is invalid. New string. */
static char *part_of(CURLU *url, CURLUPart part)
{
	char *text = NULL, *copy;

	if (libcurl.curl_url_get(url, part, &text, 0) != CURLUE_OK)
		return NULL;
	copy = g_strdup(text);
	libcurl.curl_free(text);
	return copy;
}

static bool url_take(struct push_sender *sender, const char *text, GError **error)
{
	CURLU *url = libcurl.curl_url();
	g_autofree char *scheme = NULL, *path = NULL, *whole = NULL;
	CURLUcode code = libcurl.curl_url_set(url, CURLUPART_URL, text, 0);

	if (code == CURLUE_OK) {
		scheme = part_of(url, CURLUPART_SCHEME);
		path = part_of(url, CURLUPART_PATH);
		if (path[strlen(path) - 1] == '/')
			path[strlen(path) - 1] = '\0';
		whole = g_str_has_suffix(path, apis[sender->api].path)
		                ? g_steal_pointer(&path)
		                : g_strconcat(path, apis[sender->api].path, NULL);
		libcurl.curl_url_set(url, CURLUPART_PATH, whole, 0);
		libcurl.curl_url_set(url, CURLUPART_QUERY, NULL, 0);
		libcurl.curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0);
		sender->url = part_of(url, CURLUPART_URL);
		libcurl.curl_url_set(url, CURLUPART_USER, NULL, 0);
		libcurl.curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
		sender->shown = part_of(url, CURLUPART_URL);
	}
	libcurl.curl_url_cleanup(url);
	if (scheme && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0))
		return true;
	g_autofree char *shown = push_url_shown(text);

	g_set_error(error, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_URL, "%s is not the URL of a server: %s", shown,
	            code != CURLUE_OK ? libcurl.curl_url_strerror(code) : "http:// or https:// is wanted");
	return false;
}

/* Keeps the beginning; a longer body does not abort the transfer. */
static size_t answer_take(char *bytes, size_t size, size_t n, void *data)
{
	GString *answer = data;

	g_string_append_len(answer, bytes, (gssize)MIN(size * n, ANSWER_BYTES_MAX - answer->len));
	return size * n;
}

static void options_set(struct push_sender *sender)
{
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_ERRORBUFFER, sender->problem);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_NOSIGNAL, 1L);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_USERAGENT, "vprof/" VPROF_VERSION);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_HTTPHEADER, sender->headers);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_WRITEFUNCTION, answer_take);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_WRITEDATA, sender->answer);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_POST, 1L);
}

static bool libcurl_load(GError **error)
{
	static const char *const names[] = {CURL_FUNCTIONS(SHARED_LIBRARY_NAME)};
	g_autoptr(GError) why = NULL;

	if (shared_library_load(CURL_SONAME, names, G_N_ELEMENTS(names), &libcurl, sizeof(libcurl), &why))
		return true;
	g_set_error(error, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_UNAVAILABLE, "push: %s", why->message);
	return false;
}

struct push_sender *push_sender_new(enum push_api api, const char *url, const char *const *headers, GError **error)
{
	struct push_sender *sender;

	if (!libcurl_load(error))
		return NULL;
	sender = g_new0(struct push_sender, 1);
	sender->api = api;
	sender->answer = g_string_new(NULL);
	libcurl.curl_global_init(CURL_GLOBAL_DEFAULT);
	sender->curl = libcurl.curl_easy_init();
	/* Avoids the extra round trip of "Expect: 100-continue". */
	sender->headers = libcurl.curl_slist_append(NULL, "Expect:");
	sender->headers = libcurl.curl_slist_append(sender->headers, apis[api].content_type);
	for (; headers && *headers; headers++)
		sender->headers = libcurl.curl_slist_append(sender->headers, *headers);
	if (!url_take(sender, url, error)) {
		push_sender_free(sender);
		return NULL;
	}
	options_set(sender);
	return sender;
}

struct push_sender *push_sender_another(const struct push_sender *sender)
{
	struct push_sender *another = g_new0(struct push_sender, 1);

	libcurl.curl_global_init(CURL_GLOBAL_DEFAULT);
	*another = (struct push_sender){
		.api = sender->api,
		.curl = libcurl.curl_easy_init(),
		.headers = sender->headers,
		.borrows = true,
		.url = g_strdup(sender->url),
		.shown = g_strdup(sender->shown),
		.answer = g_string_new(NULL),
	};
	options_set(another);
	return another;
}

void push_sender_free(struct push_sender *sender)
{
	if (!sender)
		return;
	libcurl.curl_easy_cleanup(sender->curl);
	if (!sender->borrows)
		libcurl.curl_slist_free_all(sender->headers);
	libcurl.curl_global_cleanup();
	g_string_free(sender->answer, TRUE);
	g_free(sender->url);
	g_free(sender->shown);
	g_free(sender);
}

static char *request_url(const struct push_sender *sender, const struct push_profile *profile)
{
	if (sender->api != PUSH_API_PYROSCOPE)
		return g_strdup(sender->url);

	char *name = libcurl.curl_easy_escape(sender->curl, profile->name, 0);
	char *url = g_strdup_printf("%s?name=%s&from=%" G_GUINT64_FORMAT "&until=%" G_GUINT64_FORMAT
	                            "&format=pprof&spyName=vprof",
	                            sender->url, name, profile->from_s, profile->until_s);

	libcurl.curl_free(name);
	return url;
}

static enum push_sender_error error_of_status(long status)
{
	switch (status) {
	case 400: /* Bad Request */
	case 413: /* Content Too Large */
	case 415: /* Unsupported Media Type */
	case 422: /* Unprocessable Content */
		return PUSH_SENDER_ERROR_REFUSED;
	case 408: /* Request Timeout */
	case 425: /* Too Early */
	case 429: /* Too Many Requests */
		return PUSH_SENDER_ERROR_LATER;
	default:
		return status >= 500 ? PUSH_SENDER_ERROR_LATER : PUSH_SENDER_ERROR_SERVER;
	}
}

static enum push_sender_error error_of_parca(unsigned status)
{
	switch (status) {
	case PUSH_PARCA_UNKNOWN: /* a type that is not a metric's name (writeSeries) */
	case PUSH_PARCA_INVALID_ARGUMENT:
	case PUSH_PARCA_FAILED_PRECONDITION:
	case PUSH_PARCA_OUT_OF_RANGE:
		return PUSH_SENDER_ERROR_REFUSED;
	case PUSH_PARCA_DEADLINE_EXCEEDED:
	case PUSH_PARCA_RESOURCE_EXHAUSTED:
	case PUSH_PARCA_ABORTED:
	case PUSH_PARCA_INTERNAL:
	case PUSH_PARCA_UNAVAILABLE:
		return PUSH_SENDER_ERROR_LATER;
	default:
		return PUSH_SENDER_ERROR_SERVER;
	}
}

/* NULL if there is no header of this name. */
static const char *header_value(const struct push_sender *sender, const char *name)
{
	struct curl_header *header;

	return libcurl.curl_easy_header(sender->curl, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK ? header->value
	                                                                                               : NULL;
}

/* Sent with HTTP status 200; in an answer without a body, the status is among the headers. */
static bool parca_answered(const struct push_sender *sender, GError **error)
{
	const char *header = header_value(sender, "grpc-status"), *said = header_value(sender, "grpc-message");
	g_autofree char *message = NULL;
	guint64 number = 0;
	unsigned status;
	bool known;

	if (header) {
		known = g_ascii_string_to_unsigned(header, 10, 0, UINT16_MAX, &number, NULL);
		status = (unsigned)number;
		message = g_strdup(said);
	} else {
		known = push_parca_answer(sender->answer->str, sender->answer->len, &status, &message);
	}
	if (known && status == PUSH_PARCA_OK)
		return true;
	if (!known) {
		g_set_error(error, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_SERVER, "%s does not answer as Parca does",
		            sender->shown);
		return false;
	}
	g_autofree char *shown = message ? text_printable(message) : g_strdup("");

	g_set_error(error, PUSH_SENDER_ERROR, (gint)error_of_parca(status), "%s answers with gRPC status %u%s%s",
	            sender->shown, status, *shown != '\0' ? ": " : "", shown);
	return false;
}

/* A collector may accept a request and drop the profiles in it; it must not be asked again then. */
static bool otlp_answered(const struct push_sender *sender, GError **error)
{
	g_autofree char *message = push_otlp_refusal(sender->answer->str, sender->answer->len);

	if (!message)
		return true;
	g_set_error(error, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_REFUSED, "%s drops it: %s", sender->shown, message);
	return false;
}

static enum push_sender_error error_of_answer(const struct push_sender *sender, long status,
                                              const struct push_profile *profile)
{
	const enum push_sender_error found = error_of_status(status);

	if (found == PUSH_SENDER_ERROR_REFUSED && strstr(sender->answer->str, NOT_IN_WINDOW) &&
	    profile->from_s < (uint64_t)g_get_real_time() / G_USEC_PER_SEC)
		return PUSH_SENDER_ERROR_TOO_OLD;
	return found;
}

static bool answered(struct push_sender *sender, const struct push_profile *profile, uint64_t *wait_s, GError **error)
{
	curl_off_t wait = 0;
	long status = 0;

	libcurl.curl_easy_getinfo(sender->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300) {
		if (sender->api == PUSH_API_PARCA)
			return parca_answered(sender, error);
		return sender->api != PUSH_API_OTLP || otlp_answered(sender, error);
	}

	g_autofree char *answer = text_printable(g_strstrip(sender->answer->str));

	libcurl.curl_easy_getinfo(sender->curl, CURLINFO_RETRY_AFTER, &wait);
	*wait_s = (uint64_t)MAX(wait, 0);
	g_set_error(error, PUSH_SENDER_ERROR, (gint)error_of_answer(sender, status, profile),
	            "%s answers with status %ld%s%s", sender->shown, status, *answer != '\0' ? ": " : "", answer);
	return false;
}

bool push_sender_send(struct push_sender *sender, const struct push_profile *profile, int64_t timeout_ms,
                      uint64_t *wait_s, GError **error)
{
	g_autofree char *url = request_url(sender, profile);
	g_autoptr(GByteArray) request = sender->api == PUSH_API_PARCA ? push_parca_request(profile) : NULL;
	gsize n;

	const void *bytes = g_bytes_get_data(profile->bytes, &n);
	CURLcode code;

	if (request) {
		bytes = request->data;
		n = request->len;
	}

	*wait_s = 0;
	g_string_truncate(sender->answer, 0);
	sender->problem[0] = '\0';
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_URL, url);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_POSTFIELDS, n > 0 ? bytes : "");
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	libcurl.curl_easy_setopt(sender->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)MIN(timeout_ms, CONNECT_MS));
	code = libcurl.curl_easy_perform(sender->curl);
	if (code == CURLE_OK)
		return answered(sender, profile, wait_s, error);
	g_set_error(error, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_LATER, "cannot reach %s: %s", sender->shown,
	            sender->problem[0] != '\0' ? sender->problem : libcurl.curl_easy_strerror(code));
	return false;
}
