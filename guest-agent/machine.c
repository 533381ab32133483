// SPDX-License-Identifier: BSD-2-Clause
#include "machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

static const struct {
	const char *type, *where;
	unsigned long flags;
	const char *data;
	bool on_disk; /* only on a root on disk: in an initramfs, it would hide files */
} mounts[] = {
	{"devtmpfs", "/dev", MS_NOSUID, "mode=755", false},
	{"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, false},
	{"sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, false},
	{"tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755", true},
	{"tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777", true},
	{"devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "mode=620,ptmxmode=666", false},
	{"tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777", false},
};

/* For a kernel without devtmpfs (Documentation/admin-guide/devices.txt). */
static const struct {
	const char *path;
	mode_t mode;
	unsigned major, minor;
} nodes[] = {
	{"/dev/null", 0666, 1, 3},    {"/dev/zero", 0666, 1, 5},       {"/dev/full", 0666, 1, 7},
	{"/dev/random", 0666, 1, 8},  {"/dev/urandom", 0666, 1, 9},    {"/dev/tty", 0666, 5, 0},
	{"/dev/console", 0600, 5, 1}, {"/dev/ptmx", 0666, 5, 2},       {"/dev/ttyS0", 0600, 4, 64},
	{"/dev/ttyS1", 0600, 4, 65},  {"/dev/ttyAMA0", 0600, 204, 64}, {"/dev/ttyAMA1", 0600, 204, 65},
};

static const struct {
	const char *path, *target;
} links[] = {
	{"/dev/fd", "/proc/self/fd"},
	{"/dev/stdin", "/proc/self/fd/0"},
	{"/dev/stdout", "/proc/self/fd/1"},
	{"/dev/stderr", "/proc/self/fd/2"},
};

static void complain(const char *what, const char *path)
{
	if (errno != EEXIST && errno != EBUSY)
		fprintf(stderr, "vprof-agent: cannot %s %s: %s\n", what, path, strerror(errno));
}

/* Creates the devices in /dev by hand, in the folder or on a tmpfs. */
static void devices_make(void)
{
	if (mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=755") != 0)
		complain("mount a tmpfs on", "/dev");
	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
		if (mknod(nodes[i].path, S_IFCHR | nodes[i].mode, makedev(nodes[i].major, nodes[i].minor)) != 0)
			complain("make", nodes[i].path);
}

static bool root_is_in_memory(void)
{
	struct statfs root;

	return statfs("/", &root) == 0 && (root.f_type == RAMFS_MAGIC || root.f_type == TMPFS_MAGIC);
}

static void mount_one(size_t i)
{
	if (mkdir(mounts[i].where, 0755) != 0)
		complain("make", mounts[i].where);
	if (mount(mounts[i].type, mounts[i].where, mounts[i].type, mounts[i].flags, mounts[i].data) == 0)
		return;
	if (errno == ENODEV && strcmp(mounts[i].type, "devtmpfs") == 0)
		devices_make();
	else if (errno != ENODEV) /* ENODEV: a kernel without it */
		complain("mount", mounts[i].where);
}

void machine_prepare_disk(void)
{
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++)
		if (mounts[i].on_disk)
			mount_one(i);
}

void machine_prepare(void)
{
	bool in_memory = root_is_in_memory();

	umask(0);
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		if (!mounts[i].on_disk)
			mount_one(i);
		else if (in_memory && mkdir(mounts[i].where, 0755) != 0)
			complain("make", mounts[i].where);
	}
	if (!in_memory)
		machine_prepare_disk();
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (symlink(links[i].target, links[i].path) != 0)
			complain("make", links[i].path);
	if (in_memory && chmod("/tmp", 01777) != 0)
		complain("open to everybody", "/tmp");
	umask(022);
}

/* Without ACPI a PC cannot power off, and Linux would only halt. */
static bool can_power_off(void)
{
	return access("/sys/firmware/acpi", F_OK) == 0;
}

void machine_end(void)
{
	sync();
	/* Leaves the root on a disk clean, if no process writes to it any more. */
	mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	reboot(can_power_off() ? RB_POWER_OFF : RB_AUTOBOOT);
	complain("end the machine by", "reboot(2)");
	for (;;)
		pause();
}
