// SPDX-License-Identifier: BSD-2-Clause
/* vprof-agent: as a guest's init, as a service, or as a command that marks phases. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "device.h"
#include "device_registers.h"
#include "machine.h"
#include "marker.h"
#include "modules.h"
#include "root.h"

#define INIT_DEVICE "/dev/ttyS1"
/* Of a PL011: Linux has it only where there is one. */
#define INIT_DEVICE_PL011 "/dev/ttyAMA1"
#define PL011_PORT "/sys/class/tty/ttyAMA1"
#define INIT_DEVICE_VARIABLE "VPROF_DEVICE"   /* the kernel passes unknown options to init as variables */
#define INIT_ROOT_VARIABLE "VPROF_ROOT"       /* an option, too: "DEVICE,TYPE" */
#define INIT_MODULES_VARIABLE "VPROF_MODULES" /* an option, too: "bare", or not set */
#define RETRY_US 200000u
#define SERVE_RETRY_MS 1000u
#define INIT_RETRIES 50u /* drivers may still be probing their devices */

static const char help[] =
	"Usage:\n"
	"  vprof-agent --device PATH    talk to the host over a serial port or a virtio-serial port\n"
	"  vprof-agent --vsock PORT     talk to the host over vsock\n"
	"  vprof-agent mark NAME begin|end\n"
	"                               mark the begin or the end of a phase in the host's recording\n"
	"  vprof-agent --help | --version\n"
	"\n"
	"As process 1, vprof-agent mounts what programs expect, runs what the host tells it to, and ends the machine.\n"
	"Manual: man vprof-agent\n";

static int usage(void)
{
	fputs(help, stderr);
	return 2;
}

/* Without /dev/console, /init has no standard streams; other descriptors must not take their numbers. */
static void fill_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int device_open_patiently(const char *path)
{
	int fd = device_open(path);

	for (unsigned i = 0; fd < 0 && i < INIT_RETRIES; i++) {
		usleep(RETRY_US);
		fd = device_open(path);
	}
	return fd;
}

/* Prepares the machine for programs, as the initramfs and the environment ask for. */
static bool machine_set_up(void)
{
	const char *root = getenv(INIT_ROOT_VARIABLE), *modules = getenv(INIT_MODULES_VARIABLE);

	machine_prepare();
	fill_standard_fds();
	modules_load(modules && strcmp(modules, "bare") == 0);
	unsetenv(INIT_MODULES_VARIABLE);
	if (!root)
		return true;
	if (!root_switch(root))
		return false;
	machine_prepare_disk();
	unsetenv(INIT_ROOT_VARIABLE);
	return true;
}

/* The one that was asked for, or else the fastest that the kernel has. */
static int init_device_open(void)
{
	const char *path = getenv(INIT_DEVICE_VARIABLE);
	int fd = -1;

	if (!path)
		path = device_find_port();
	if (!path) {
		path = access(PL011_PORT, F_OK) == 0 ? INIT_DEVICE_PL011 : INIT_DEVICE;
		fd = device_open(path);
		if (fd < 0)
			fd = device_open_registers();
	}
	if (fd < 0)
		fd = device_open_patiently(path);
	if (fd < 0)
		fprintf(stderr, "vprof-agent: cannot open %s: %s\n", path, strerror(errno));
	return fd;
}

static void talk_as_init(void)
{
	int fd = init_device_open();

	unsetenv(INIT_DEVICE_VARIABLE);
	if (fd >= 0 && agent_talk(fd, true) == AGENT_BROKEN)
		fprintf(stderr, "vprof-agent: what came from the host is no frame\n");
}

/* Does not return: the kernel panics when its init ends. */
static void run_as_init(void)
{
	agent_signals(true);
	if (machine_set_up())
		talk_as_init();
	machine_end();
}

/*
 * As a service: talks to the host each time that its end of the stream is open. Before that, there is no pipe for
 * marks, which would be lost.
 */
static int serve(const char *path, uint32_t port)
{
	agent_signals(false);
	do {
		int fd = path ? device_open(path) : device_open_vsock(port);

		if (fd < 0 && path && errno != ENXIO && errno != EBUSY) {
			fprintf(stderr, "vprof-agent: cannot open %s: %s\n", path, strerror(errno));
			return 1;
		}
		if (fd >= 0 && device_has_host(fd))
			agent_talk(fd, false);
		else if (fd >= 0)
			close(fd);
	} while (agent_pause(SERVE_RETRY_MS));
	return 0;
}

static bool port_parse(const char *text, uint32_t *port)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	*port = (uint32_t)number;
	return errno == 0 && end != text && *end == '\0' && number < UINT32_MAX;
}

int main(int argc, char **argv)
{
	uint32_t port;

	if (getpid() == 1)
		run_as_init();
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return fputs(help, stdout) < 0;
	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return puts("vprof-agent " VPROF_VERSION) < 0;
	if (argc == 4 && strcmp(argv[1], "mark") == 0)
		return marker_command(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "--device") == 0)
		return serve(argv[2], 0);
	if (argc == 3 && strcmp(argv[1], "--vsock") == 0 && port_parse(argv[2], &port))
		return serve(NULL, port);
	return usage();
}
