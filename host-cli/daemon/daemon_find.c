// SPDX-License-Identifier: BSD-2-Clause
/*
 * Guests as they come and go. KVM tells when a machine is made or ends (kvm_uevent_notify_change in
 * virt/kvm/kvm_main.c, a message of the kernel's to the group of uevents), and libvirt when a domain does; without such
 * messages, as in a container, the list is made anew from time to time.
 */
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/daemon_child.h"
#include "daemon/daemon_parts.h"
#include "engine/guest_watch.h"
#include "ui/message.h"

#define KERNEL_GROUP 1
#define UEVENT_BYTES_MAX 8192
#define LOOK_MS 10000                         /* without a message */
#define SOON_MS 500                           /* after one: a new machine has no vCPUs yet */
#define SOON_US (5 * (int64_t)G_USEC_PER_SEC) /* for so long */

struct finder {
	struct guest_watch watch;
	json_t *said; /* the last list; NULL: none yet */
	char *why;    /* that was printed: why libvirt says nothing */
};

/* -1: there are no messages. */
static int uevents_open(void)
{
	const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Texts that end with NUL bytes, the first of them "change@/devices/virtual/misc/kvm". */
static bool uevents_take(int fd)
{
	char message[UEVENT_BYTES_MAX + 1];
	bool taken = false;
	ssize_t n;

	while ((n = recv(fd, message, UEVENT_BYTES_MAX, 0)) > 0) {
		message[n] = '\0';
		taken |= g_str_has_suffix(message, "/misc/kvm");
	}
	return taken;
}

/* Without a URI in the configuration, a host need not have a libvirt. */
static void libvirt_complain(struct finder *finder)
{
	if (finder->watch.options.connect && finder->watch.why && g_strcmp0(finder->watch.why, finder->why) != 0)
		warn("%s", finder->watch.why);
	g_free(finder->why);
	finder->why = g_strdup(finder->watch.why);
}

/* False: the supervisor is gone. */
static bool finder_look(struct finder *finder, int fd)
{
	json_t *guests = guest_watch_look(&finder->watch);

	libvirt_complain(finder);
	if (json_equal(guests, finder->said)) {
		json_decref(guests);
		return true;
	}
	json_decref(finder->said);
	finder->said = guests;
	return daemon_child_say(fd, json_pack("{s:O}", "guests", guests));
}

int daemon_find(int fd, void *data)
{
	const struct daemon_config *config = data;
	struct finder finder = {.watch.options.connect = config->connect};
	int64_t soon_us = 0; /* until then */
	int uevents = uevents_open();

	while (finder_look(&finder, fd)) {
		struct pollfd entries[] = {
			{.fd = fd, .events = POLLIN},
			{.fd = guest_watch_fd(&finder.watch), .events = POLLIN},
			{.fd = uevents, .events = POLLIN},
		};
		const bool soon = g_get_monotonic_time() < soon_us;

		if (poll(entries, soon ? 2 : 3, soon ? SOON_MS : LOOK_MS) > 0 && entries[0].revents != 0)
			break;
		if (uevents >= 0 && uevents_take(uevents))
			soon_us = g_get_monotonic_time() + SOON_US;
	}
	guest_watch_deinit(&finder.watch);
	json_decref(finder.said);
	g_free(finder.why);
	return 0;
}
