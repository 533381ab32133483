// SPDX-License-Identifier: BSD-2-Clause
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

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

void device_drain(int fd)
{
	if (isatty(fd))
		tcdrain(fd);
}
