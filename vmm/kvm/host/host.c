// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define KVM_PATH "/dev/kvm"

G_DEFINE_QUARK(vprof_host_error, host_error)

bool host_fail(GError **error, const char *what)
{
	g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot %s: %s", what, g_strerror(errno));
	return false;
}

bool host_has(int kvm_fd, const struct host_capability *capability)
{
	int value = ioctl(kvm_fd, KVM_CHECK_EXTENSION, capability->number);

	return value > 0 && (value & capability->bits) == capability->bits;
}

static bool set_open_error(GError **error, int number)
{
	switch (number) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		g_set_error(error, HOST_ERROR, HOST_ERROR_MISSING, "cannot open " KVM_PATH ": %s; %s",
		            g_strerror(number), host_kvm_missing);
		break;
	case EACCES:
	case EPERM:
		g_set_error(
			error, HOST_ERROR, HOST_ERROR_PERMISSION,
			"cannot open " KVM_PATH
			": %s; add yourself to group kvm (sudo usermod -aG kvm %s, then log in again), or run with sudo",
			g_strerror(number), g_get_user_name());
		break;
	default:
		g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot open " KVM_PATH ": %s", g_strerror(number));
	}
	return false;
}

static bool check(int kvm_fd, GError **error)
{
	int version = ioctl(kvm_fd, KVM_GET_API_VERSION, 0);

	if (version != KVM_API_VERSION) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY, KVM_PATH " has API version %d, not %d", version,
		            KVM_API_VERSION);
		return false;
	}
	for (const struct host_capability *capability = host_capabilities; capability->name; capability++) {
		if (!capability->required || host_has(kvm_fd, capability))
			continue;
		g_set_error(error, HOST_ERROR, HOST_ERROR_CAPABILITY,
		            "this host's KVM lacks %s (%s); it needs Linux %s or later", capability->name,
		            capability->purpose, host_linux_wanted);
		return false;
	}
	return true;
}

int host_open(GError **error)
{
	int fd = open(KVM_PATH, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		set_open_error(error, errno);
		return -1;
	}
	if (!check(fd, error)) {
		close(fd);
		return -1;
	}
	return fd;
}
