// SPDX-License-Identifier: BSD-2-Clause
#include "device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "device_registers.h"

#define PORT_NAME "org.vprof.agent.0"
#define PORTS "/sys/class/virtio-ports"
#define CONSOLES "/sys/bus/virtio/drivers/virtio_console"
#define RETRY_US 20000u
#define RETRIES 100u /* the driver queries the host for the ports, which takes time */

/* Whether a port has the agent's name. */
static bool port_is_ours(const char *port)
{
	char path[320], name[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), PORTS "/%s/name", port);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
	return strcmp(name, PORT_NAME) == 0;
}

/* The first entry of a folder that `wanted` takes; false when there is none. */
static bool folder_search(const char *path, bool (*wanted)(const char *name), char found[static NAME_MAX + 1])
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool done = false;

	while (folder && !done && (entry = readdir(folder)) != NULL) {
		done = wanted(entry->d_name);
		if (done)
			strcpy(found, entry->d_name);
	}
	if (folder)
		closedir(folder);
	return done;
}

/* A device of the driver: "virtio2". */
static bool is_device(const char *name)
{
	return strncmp(name, "virtio", strlen("virtio")) == 0;
}

const char *device_find_port(void)
{
	static char path[sizeof("/dev/") + NAME_MAX];
	char name[NAME_MAX + 1];
	unsigned retries = folder_search(CONSOLES, is_device, name) ? RETRIES : 0;

	while (!folder_search(PORTS, port_is_ours, name)) {
		if (retries-- == 0)
			return NULL;
		usleep(RETRY_US);
	}
	snprintf(path, sizeof(path), "/dev/%s", name);
	return path;
}

/* Flow control by RTS: bytes wait at the host while the driver's buffer is full. */
static int terminal_make_raw(int fd)
{
	struct termios modes;

	if (tcgetattr(fd, &modes) != 0)
		return -1;
	cfmakeraw(&modes);
	modes.c_cflag |= CLOCAL | CREAD | CRTSCTS;
	cfsetspeed(&modes, B115200);
	return tcsetattr(fd, TCSANOW, &modes);
}

int device_open(const char *path)
{
	int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC), error;

	if (fd < 0 || !isatty(fd) || terminal_make_raw(fd) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int device_open_vsock(uint32_t port)
{
	const struct sockaddr_vm host = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = port};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&host, sizeof(host)) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

bool device_has_host(int fd)
{
	struct pollfd end = {.fd = fd};

	return poll(&end, 1, 0) == 0 || !(end.revents & POLLHUP);
}

void device_drain(int fd)
{
	if (isatty(fd))
		tcdrain(fd);
	device_end_registers(fd);
}
