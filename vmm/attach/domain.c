// SPDX-License-Identifier: BSD-2-Clause
#include "attach/domain.h"

#include <glib-unix.h>
#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/domain_xml.h"
#include "lib/process/shared_library.h"

/* Only the process that asks libvirt loads it, with some fifty libraries that it needs itself. */
/* clang-format off */
#define LIBVIRT_FUNCTIONS(F) \
	F(virConnectClose) F(virConnectDomainEventDeregisterAny) F(virConnectDomainEventRegisterAny) \
	F(virConnectIsAlive) F(virConnectListAllDomains) F(virConnectOpen) F(virConnectOpenReadOnly) \
	F(virConnectRegisterCloseCallback) F(virConnectSetKeepAlive) F(virConnectUnregisterCloseCallback) \
	F(virDomainFree) F(virDomainGetID) F(virDomainGetInfo) F(virDomainGetMaxVcpus) F(virDomainGetName) \
	F(virDomainGetUUIDString) F(virDomainGetXMLDesc) F(virDomainIsActive) F(virDomainLookupByID) \
	F(virDomainLookupByName) F(virDomainLookupByUUIDString) F(virEventRegisterDefaultImpl) \
	F(virGetLastErrorMessage) F(virInitialize) F(virSetErrorFunc)
#define LIBVIRT_QEMU_FUNCTIONS(F) F(virDomainQemuMonitorCommand)
/* clang-format on */

static struct {
	LIBVIRT_FUNCTIONS(SHARED_LIBRARY_POINTER)
} libvirt;
SHARED_LIBRARY_NOTE(LIBVIRT_SONAME, "libvirt");

static struct {
	LIBVIRT_QEMU_FUNCTIONS(SHARED_LIBRARY_POINTER)
} libvirt_qemu;
SHARED_LIBRARY_NOTE(LIBVIRT_QEMU_SONAME, "libvirt");

G_DEFINE_QUARK(vprof_domain_error, domain_error)

/* So that a libvirtd that hangs is noticed: seconds between questions, and questions without an answer. */
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_COUNT 3

/* How long until a libvirtd that went away is looked for again. */
#define RECONNECT_MS 1000

/* From an event to the list of domains, which is then that of several events. */
#define SETTLE_MS 50

/* [I] immutable after domain_open, [L] under monitor.lock, [M] main thread only. */
struct domain {
	struct monitor monitor;            /* first */
	char *uri;                         /* [I] */
	bool read_only;                    /* [I] */
	char *name;                        /* [I] */
	struct domain_xml xml;             /* [I] */
	guint reconnect_source;            /* [M] 0: connected, or the end */
	char uuid[VIR_UUID_STRING_BUFLEN]; /* [I] */
	virConnectPtr connection;          /* [L] */
	virDomainPtr handle;               /* [L] */
	int callbacks[2];                  /* [L] */
	domain_event event;                /* [I] */
	void *data;                        /* [I] */
};

/* The last error of this thread, which libvirt's functions leave there. */
static bool libvirt_error(enum domain_error code, const char *what, const char *on, const char *next, GError **error)
{
	const char *why = libvirt.virGetLastErrorMessage();

	g_set_error(error, DOMAIN_ERROR, (int)code, "cannot %s %s: %s%s%s", what, on ? on : "libvirt", why,
	            next ? "; " : "", next ? next : "");
	return false;
}

/* libvirt prints what goes wrong; we say it ourselves. */
static void libvirt_quiet(void *data G_GNUC_UNUSED, virErrorPtr why G_GNUC_UNUSED)
{
}

static bool libvirt_load(GError **error)
{
	static const char *const names[] = {LIBVIRT_FUNCTIONS(SHARED_LIBRARY_NAME)};
	static const char *const qemu_names[] = {LIBVIRT_QEMU_FUNCTIONS(SHARED_LIBRARY_NAME)};
	g_autoptr(GError) why = NULL;

	if (shared_library_load(LIBVIRT_SONAME, names, G_N_ELEMENTS(names), &libvirt, sizeof(libvirt), &why) &&
	    shared_library_load(LIBVIRT_QEMU_SONAME, qemu_names, G_N_ELEMENTS(qemu_names), &libvirt_qemu,
	                        sizeof(libvirt_qemu), &why))
		return true;
	g_set_error(error, DOMAIN_ERROR, DOMAIN_ERROR_ABSENT, "libvirt: %s; or attach by --pid PID --qmp SOCKET",
	            why->message);
	return false;
}

/* Its default loop is GLib's default context, which our main loop runs (since 6.1, src/util/vireventglib.c). */
static bool libvirt_init(GError **error)
{
	static bool done;

	if (done)
		return true;
	if (!libvirt_load(error))
		return false;
	libvirt.virSetErrorFunc(NULL, libvirt_quiet);
	libvirt.virInitialize();
	libvirt.virEventRegisterDefaultImpl();
	done = true;
	return true;
}

static virConnectPtr libvirt_connect(const char *uri, bool read_only, GError **error)
{
	if (!libvirt_init(error))
		return NULL;
	virConnectPtr connection = read_only ? libvirt.virConnectOpenReadOnly(uri) : libvirt.virConnectOpen(uri);

	if (!connection)
		libvirt_error(DOMAIN_ERROR_CONNECT, "connect to", uri,
		              "is libvirtd running, and are you in the group libvirt? --connect takes another URI",
		              error);
	return connection;
}

/* ---- events ---- */

static const char *const lifecycle_words[] = {
	[VIR_DOMAIN_EVENT_DEFINED] = "defined",   [VIR_DOMAIN_EVENT_UNDEFINED] = "undefined",
	[VIR_DOMAIN_EVENT_STARTED] = "started",   [VIR_DOMAIN_EVENT_SUSPENDED] = "suspended",
	[VIR_DOMAIN_EVENT_RESUMED] = "resumed",   [VIR_DOMAIN_EVENT_STOPPED] = "stopped",
	[VIR_DOMAIN_EVENT_SHUTDOWN] = "shutdown", [VIR_DOMAIN_EVENT_PMSUSPENDED] = "pmsuspended",
	[VIR_DOMAIN_EVENT_CRASHED] = "crashed",
};

static const char *const stopped_words[] = {
	[VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN] = "shutdown",
	[VIR_DOMAIN_EVENT_STOPPED_DESTROYED] = "destroyed",
	[VIR_DOMAIN_EVENT_STOPPED_CRASHED] = "crashed",
	[VIR_DOMAIN_EVENT_STOPPED_MIGRATED] = "migrated",
	[VIR_DOMAIN_EVENT_STOPPED_SAVED] = "saved",
	[VIR_DOMAIN_EVENT_STOPPED_FAILED] = "failed",
	[VIR_DOMAIN_EVENT_STOPPED_FROM_SNAPSHOT] = "reverted to a snapshot",
};

static int on_lifecycle(virConnectPtr connection G_GNUC_UNUSED, virDomainPtr handle G_GNUC_UNUSED, int event,
                        int detail, void *data)
{
	const struct domain *domain = data;

	if (event == VIR_DOMAIN_EVENT_STOPPED && detail >= 0 && (size_t)detail < G_N_ELEMENTS(stopped_words))
		domain->event(stopped_words[detail], domain->data);
	else if (event >= 0 && (size_t)event < G_N_ELEMENTS(lifecycle_words))
		domain->event(lifecycle_words[event], domain->data);
	return 0;
}

static void on_reboot(virConnectPtr connection G_GNUC_UNUSED, virDomainPtr handle G_GNUC_UNUSED, void *data)
{
	const struct domain *domain = data;

	domain->event("reset", domain->data);
}

static gboolean reconnect(void *data);

/* libvirtd ends, is restarted, or hangs. The domain does not care. */
static void on_closed(virConnectPtr connection G_GNUC_UNUSED, int reason G_GNUC_UNUSED, void *data)
{
	struct domain *domain = data;

	if (domain->reconnect_source == 0)
		domain->reconnect_source = g_timeout_add(RECONNECT_MS, reconnect, domain);
}

static void events_watch(struct domain *domain)
{
	libvirt.virConnectRegisterCloseCallback(domain->connection, on_closed, domain, NULL);
	libvirt.virConnectSetKeepAlive(domain->connection, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT);
	domain->callbacks[0] = libvirt.virConnectDomainEventRegisterAny(
		domain->connection, domain->handle, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
		VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), domain, NULL);
	domain->callbacks[1] =
		libvirt.virConnectDomainEventRegisterAny(domain->connection, domain->handle, VIR_DOMAIN_EVENT_ID_REBOOT,
	                                                 VIR_DOMAIN_EVENT_CALLBACK(on_reboot), domain, NULL);
}

static void disconnect(struct domain *domain)
{
	for (size_t i = 0; domain->connection && i < G_N_ELEMENTS(domain->callbacks); i++)
		if (domain->callbacks[i] >= 0)
			libvirt.virConnectDomainEventDeregisterAny(domain->connection, domain->callbacks[i]);
	if (domain->connection)
		libvirt.virConnectUnregisterCloseCallback(domain->connection, on_closed);
	domain->callbacks[0] = domain->callbacks[1] = -1;
	if (domain->handle)
		libvirt.virDomainFree(g_steal_pointer(&domain->handle));
	if (domain->connection)
		libvirt.virConnectClose(g_steal_pointer(&domain->connection));
}

/* A domain that is not there any more has told its own end: QEMU's process has gone. */
static bool connect_again(struct domain *domain)
{
	disconnect(domain);
	domain->connection = libvirt_connect(domain->uri, domain->read_only, NULL);
	/* By now we may be a user that may not send commands, and events are all that is wanted of it then. */
	if (!domain->connection && !domain->read_only)
		domain->connection = libvirt_connect(domain->uri, true, NULL);
	domain->handle =
		domain->connection ? libvirt.virDomainLookupByUUIDString(domain->connection, domain->uuid) : NULL;
	if (domain->handle)
		events_watch(domain);
	return domain->handle != NULL;
}

static gboolean reconnect(void *data)
{
	struct domain *domain = data;

	g_mutex_lock(&domain->monitor.lock);
	bool connected = connect_again(domain);
	g_mutex_unlock(&domain->monitor.lock);
	if (!connected)
		return G_SOURCE_CONTINUE;
	domain->reconnect_source = 0;
	domain->event("reconnected", domain->data);
	return G_SOURCE_REMOVE;
}

/* ---- the monitor ---- */

static char *domain_transact(struct monitor *monitor, const struct monitor_request *request, GError **error)
{
	struct domain *domain = (struct domain *)monitor;
	char *answer = NULL;

	if (!domain->handle || libvirt.virConnectIsAlive(domain->connection) != 1) {
		g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_GONE, "libvirtd, which has the monitor of %s, is away",
		            domain->name);
		return NULL;
	}
	g_autofree char *line = monitor_request_text(request);

	if (libvirt_qemu.virDomainQemuMonitorCommand(domain->handle, line, &answer,
	                                             VIR_DOMAIN_QEMU_MONITOR_COMMAND_DEFAULT) == 0) {
		char *copy = g_strdup(answer);

		free(answer);
		return copy;
	}
	g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_GONE, "domain %s does not take monitor commands: %s",
	            domain->name, libvirt.virGetLastErrorMessage());
	return NULL;
}

static void domain_free(struct monitor *monitor)
{
	struct domain *domain = (struct domain *)monitor;

	if (domain->reconnect_source)
		g_source_remove(domain->reconnect_source);
	disconnect(domain);
	g_free(domain->uri);
	g_free(domain->name);
	domain_xml_clear(&domain->xml);
	g_free(domain);
}

static const struct monitor_transport domain_transport = {.transact = domain_transact, .close = domain_free};

/* ---- finding ---- */

static bool is_id(const char *name, int *id)
{
	guint64 number;

	if (!g_ascii_string_to_unsigned(name, 10, 0, G_MAXINT, &number, NULL))
		return false;
	*id = (int)number;
	return true;
}

/* As virsh takes them: id, UUID, name. */
static virDomainPtr lookup(virConnectPtr connection, const char *name)
{
	virDomainPtr handle = NULL;
	int id;

	if (is_id(name, &id))
		handle = libvirt.virDomainLookupByID(connection, id);
	if (!handle && g_uuid_string_is_valid(name))
		handle = libvirt.virDomainLookupByUUIDString(connection, name);
	return handle ? handle : libvirt.virDomainLookupByName(connection, name);
}

static struct domain_xml xml_of(virDomainPtr handle)
{
	char *text = libvirt.virDomainGetXMLDesc(handle, 0);
	struct domain_xml xml = domain_xml_parse(text);

	free(text);
	return xml;
}

static bool describe(struct domain *domain, GError **error)
{
	virDomainInfo info;

	domain->name = g_strdup(libvirt.virDomainGetName(domain->handle));
	if (libvirt.virDomainGetUUIDString(domain->handle, domain->uuid) != 0 ||
	    libvirt.virDomainGetInfo(domain->handle, &info) != 0)
		return libvirt_error(DOMAIN_ERROR_LIBVIRT, "ask about domain", domain->name, NULL, error);
	if (libvirt.virDomainIsActive(domain->handle) != 1) {
		g_set_error(error, DOMAIN_ERROR, DOMAIN_ERROR_STATE,
		            "domain %s is not running; start it with `virsh start %s`", domain->name, domain->name);
		return false;
	}
	domain->xml = xml_of(domain->handle);
	return true;
}

struct domain *domain_open(const char *uri, const char *name, bool monitor, domain_event event, void *data,
                           GError **error)
{
	struct domain *domain = g_new0(struct domain, 1);

	monitor_init(&domain->monitor, &domain_transport);
	domain->uri = g_strdup(uri);
	domain->event = event;
	domain->data = data;
	domain->callbacks[0] = domain->callbacks[1] = -1;
	domain->read_only = !monitor;
	domain->connection = libvirt_connect(uri, domain->read_only, error);
	if (domain->connection && !(domain->handle = lookup(domain->connection, name)))
		libvirt_error(DOMAIN_ERROR_NAME, "find domain", name, "`vprof attach --list` shows what is there",
		              error);
	if (domain->handle && describe(domain, error)) {
		events_watch(domain);
		return domain;
	}
	domain_close(domain);
	return NULL;
}

void domain_close(struct domain *domain)
{
	if (domain)
		monitor_free(&domain->monitor);
}

const char *domain_name(const struct domain *domain)
{
	return domain->name;
}

const char *domain_uuid(const struct domain *domain)
{
	return domain->uuid;
}

const char *domain_type(const struct domain *domain)
{
	return domain->xml.type;
}

const char *domain_security(const struct domain *domain)
{
	return domain->xml.security;
}

uint32_t domain_vsock_cid(const struct domain *domain)
{
	return domain->xml.vsock_cid;
}

unsigned domain_vcpus_max(const struct domain *domain)
{
	int n = libvirt.virDomainGetMaxVcpus(domain->handle);

	return n > 0 ? (unsigned)n : 0;
}

struct monitor *domain_monitor(struct domain *domain)
{
	return &domain->monitor;
}

/* ---- the list ---- */

static const char *state_word(int state)
{
	static const char *const words[] = {
		[VIR_DOMAIN_NOSTATE] = "no state",       [VIR_DOMAIN_RUNNING] = "running",
		[VIR_DOMAIN_BLOCKED] = "running",        [VIR_DOMAIN_PAUSED] = "paused",
		[VIR_DOMAIN_SHUTDOWN] = "shutting down", [VIR_DOMAIN_SHUTOFF] = "shut off",
		[VIR_DOMAIN_CRASHED] = "crashed",        [VIR_DOMAIN_PMSUSPENDED] = "pmsuspended",
	};

	return state >= 0 && (size_t)state < G_N_ELEMENTS(words) ? words[state] : "?";
}

static json_t *domain_json(virDomainPtr handle)
{
	char uuid[VIR_UUID_STRING_BUFLEN] = "";

	virDomainInfo info;

	if (libvirt.virDomainGetInfo(handle, &info) != 0 || libvirt.virDomainGetUUIDString(handle, uuid) != 0)
		return NULL; /* it went away meanwhile */
	struct domain_xml xml = xml_of(handle);
	json_t *one =
		json_pack("{s:i, s:s, s:s, s:s, s:s*, s:i, s:I}", "id", (int)libvirt.virDomainGetID(handle), "name",
	                  libvirt.virDomainGetName(handle), "uuid", uuid, "state", state_word(info.state), "type",
	                  xml.type, "vcpus", (int)info.nrVirtCpu, "memory-bytes", (json_int_t)info.memory * 1024);

	domain_xml_clear(&xml);
	return one;
}

static json_t *list_of(virConnectPtr connection, const char *uri, GError **error)
{
	virDomainPtr *handles = NULL;
	int n = libvirt.virConnectListAllDomains(connection, &handles, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	json_t *list = n < 0 ? NULL : json_array();

	if (!list)
		libvirt_error(DOMAIN_ERROR_LIBVIRT, "list the domains of", uri, NULL, error);
	for (int i = 0; i < n; i++) {
		json_t *one = domain_json(handles[i]);

		if (one)
			json_array_append_new(list, one);
		libvirt.virDomainFree(handles[i]);
	}
	free(handles);
	return list;
}

json_t *domain_list(const char *uri, GError **error)
{
	virConnectPtr connection = libvirt_connect(uri, true, error);
	json_t *list = connection ? list_of(connection, uri, error) : NULL;

	if (connection)
		libvirt.virConnectClose(connection);
	return list;
}

/* ---- the list as it changes ---- */

struct following {
	const char *uri;
	virConnectPtr connection;
	domain_list_take *take;
	void *data;
	GMainLoop *loop;
	guint source;  /* 0: the list was told since the last event */
	GError *error; /* why it has to end; NULL: it was asked to */
};

static gboolean list_tell(void *data)
{
	struct following *following = data;
	json_t *list = list_of(following->connection, following->uri, &following->error);

	following->source = 0;
	if (!list || !following->take(list, following->data))
		g_main_loop_quit(following->loop);
	return G_SOURCE_REMOVE;
}

/* A domain that starts or ends has several events. */
static int on_any(virConnectPtr connection G_GNUC_UNUSED, virDomainPtr handle G_GNUC_UNUSED, int event G_GNUC_UNUSED,
                  int detail G_GNUC_UNUSED, void *data)
{
	struct following *following = data;

	if (following->source == 0)
		following->source = g_timeout_add(SETTLE_MS, list_tell, following);
	return 0;
}

static void on_lost(virConnectPtr connection G_GNUC_UNUSED, int reason G_GNUC_UNUSED, void *data)
{
	struct following *following = data;

	if (!following->error)
		g_set_error(&following->error, DOMAIN_ERROR, DOMAIN_ERROR_LIBVIRT, "libvirt at %s has gone away",
		            following->uri ? following->uri : "its usual place");
	g_main_loop_quit(following->loop);
}

static gboolean on_asked(int fd, GIOCondition condition G_GNUC_UNUSED, void *data)
{
	struct following *following = data;
	char bytes[64];

	if (read(fd, bytes, sizeof(bytes)) <= 0) {
		g_main_loop_quit(following->loop);
		return G_SOURCE_REMOVE;
	}
	if (following->source != 0)
		g_source_remove(following->source);
	list_tell(following);
	return G_SOURCE_CONTINUE;
}

bool domain_list_follow(const char *uri, int fd, domain_list_take *take, void *data, GError **error)
{
	struct following following = {.uri = uri, .take = take, .data = data};

	following.connection = libvirt_connect(uri, true, error);
	if (!following.connection)
		return false;
	following.loop = g_main_loop_new(NULL, FALSE);
	libvirt.virConnectRegisterCloseCallback(following.connection, on_lost, &following, NULL);
	libvirt.virConnectSetKeepAlive(following.connection, KEEPALIVE_INTERVAL_S, KEEPALIVE_COUNT);
	const int callback =
		libvirt.virConnectDomainEventRegisterAny(following.connection, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
	                                                 VIR_DOMAIN_EVENT_CALLBACK(on_any), &following, NULL);
	const guint asked = g_unix_fd_add(fd, G_IO_IN | G_IO_HUP, on_asked, &following);

	following.source = g_idle_add(list_tell, &following);
	g_main_loop_run(following.loop);
	if (following.source != 0)
		g_source_remove(following.source);
	if (g_main_context_find_source_by_id(NULL, asked))
		g_source_remove(asked);
	if (callback >= 0)
		libvirt.virConnectDomainEventDeregisterAny(following.connection, callback);
	libvirt.virConnectUnregisterCloseCallback(following.connection, on_lost);
	libvirt.virConnectClose(following.connection);
	g_main_loop_unref(following.loop);
	if (following.error)
		g_propagate_error(error, following.error);
	return !following.error;
}
