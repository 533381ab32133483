// SPDX-License-Identifier: BSD-2-Clause
#include "root.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_ROOT "/vprof-root"
#define RETRY_US 100000u
#define RETRIES 100u /* a driver may still be probing its disk */

static const char *const moved[] = {"/dev", "/proc", "/sys"};

static bool root_fail(const char *what, const char *object)
{
	fprintf(stderr, "vprof-agent: cannot %s %s: %s\n", what, object, strerror(errno));
	return false;
}

static bool device_wait(const char *device)
{
	for (unsigned i = 0; i < RETRIES && access(device, F_OK) != 0; i++)
		usleep(RETRY_US);
	return access(device, F_OK) == 0 || root_fail("find the root", device);
}

static bool root_mount(const char *device, const char *type)
{
	if (mkdir(NEW_ROOT, 0755) != 0 && errno != EEXIST)
		return root_fail("make", NEW_ROOT);
	if (mount(device, NEW_ROOT, type, 0, NULL) == 0 ||
	    ((errno == EACCES || errno == EROFS) && mount(device, NEW_ROOT, type, MS_RDONLY, NULL) == 0))
		return true;
	fprintf(stderr, "vprof-agent: cannot mount the root %s as %s: %s%s\n", device, type, strerror(errno),
	        errno == ENODEV ? "; the kernel does not know this file system (--modules, --root DEVICE,TYPE)" : "");
	return false;
}

/* As switch_root(8), but the files of the initramfs stay in memory. */
static bool root_enter(void)
{
	for (size_t i = 0; i < sizeof(moved) / sizeof(*moved); i++) {
		char to[64];

		snprintf(to, sizeof(to), NEW_ROOT "%s", moved[i]);
		if (mount(moved[i], to, NULL, MS_MOVE, NULL) != 0)
			return root_fail("take along to the root", moved[i]);
	}
	if (chdir(NEW_ROOT) != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir("/") != 0)
		return root_fail("change to the root", NEW_ROOT);
	return true;
}

bool root_switch(const char *what)
{
	char device[256];
	const char *comma = strrchr(what, ',');
	int n = comma ? (int)(comma - what) : (int)strlen(what);

	if (!comma || snprintf(device, sizeof(device), "%.*s", n, what) >= (int)sizeof(device)) {
		errno = EINVAL;
		return root_fail("understand the root", what);
	}
	return device_wait(device) && root_mount(device, comma + 1) && root_enter();
}
