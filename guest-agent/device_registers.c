// SPDX-License-Identifier: BSD-2-Clause
#include "device_registers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/io.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/serial_reg.h>

#define PORT 0x2f8u /* COM2 */
#define REGISTERS 8u
#define POLL_MS 5 /* each is an exit */
#define SCRATCH 0x5a
#define END_MS 2000

static int stream = -1; /* the agent's end */

/* Transmits them; the host takes a byte at a time. */
static void bytes_transmit(const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		while ((inb(PORT + UART_LSR) & UART_LSR_THRE) == 0)
			usleep(1000);
		outb(bytes[i], PORT + UART_TX);
	}
}

static size_t bytes_receive(unsigned char *bytes, size_t max)
{
	size_t n = 0;

	while (n < max && (inb(PORT + UART_LSR) & UART_LSR_DR) != 0)
		bytes[n++] = inb(PORT + UART_RX);
	return n;
}

static bool bytes_hand_over(int fd, const unsigned char *bytes, size_t n)
{
	while (n > 0) {
		const ssize_t written = write(fd, bytes, n);

		if (written < 0)
			return false;
		bytes += written;
		n -= (size_t)written;
	}
	return true;
}

/* Until the agent has ended the stream. */
static void pump(int fd)
{
	unsigned char bytes[4096];

	for (;;) {
		struct pollfd agent = {.fd = fd, .events = POLLIN};
		ssize_t n = 0;

		if (poll(&agent, 1, POLL_MS) > 0)
			n = read(fd, bytes, sizeof(bytes));
		if (n < 0 || (n == 0 && agent.revents != 0))
			return;
		bytes_transmit(bytes, (size_t)n);
		if (!bytes_hand_over(fd, bytes, bytes_receive(bytes, sizeof(bytes))))
			return;
	}
}

/* Whether there is one; it then raises no interrupts, and the host may send. */
static bool port_begin(void)
{
	outb(SCRATCH, PORT + UART_SCR);
	if (inb(PORT + UART_SCR) != SCRATCH)
		return false;
	outb(UART_LCR_WLEN8, PORT + UART_LCR);
	outb(0, PORT + UART_IER);
	outb(UART_FCR_ENABLE_FIFO, PORT + UART_FCR);
	outb(UART_MCR_DTR | UART_MCR_RTS, PORT + UART_MCR);
	return true;
}

int device_open_registers(void)
{
	int ends[2];
	pid_t child;

	if (ioperm(PORT, REGISTERS, 1) != 0)
		return -1;
	if (!port_begin()) {
		errno = ENODEV;
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	child = fork();
	if (child == 0) {
		close(ends[0]);
		pump(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	if (child < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
		close(ends[0]);
		return -1;
	}
	stream = ends[0];
	return stream;
}

void device_end_registers(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	char rest[256];

	if (fd < 0 || fd != stream || shutdown(fd, SHUT_WR) != 0)
		return;
	while (poll(&end, 1, END_MS) > 0 && read(fd, rest, sizeof(rest)) > 0)
		;
	stream = -1;
}
