// SPDX-License-Identifier: BSD-2-Clause
/*
 * What can be known of a guest by its kernel's image, a row for each capability. The reason for what is missing is that
 * of the part with its symbols, members and sizes, which has found the first that the kernel lacks.
 */
#include "linux/needs.h"

#include "linux/kernel.h"

static const char *why_of(const struct os_kernel *kernel, enum os_part part)
{
	return kernel->why[OS_TASKS] ? kernel->why[OS_TASKS] : kernel->why[part];
}

static const char *tasks(const struct os_kernel *kernel)
{
	return why_of(kernel, OS_TASKS);
}

static const char *list(const struct os_kernel *kernel)
{
	return why_of(kernel, OS_LIST);
}

static const char *queue(const struct os_kernel *kernel)
{
	const char *why = list(kernel);

	return why || layout_of(kernel)->list.queued != 0
	               ? why
	               : "the kernel's struct task_struct has no sched_info; build Linux with CONFIG_SCHED_INFO";
}

static const char *mappings(const struct os_kernel *kernel)
{
	return why_of(kernel, OS_MAPPINGS);
}

static const char *groups(const struct os_kernel *kernel)
{
	return why_of(kernel, OS_GROUPS);
}

static const char *modules(const struct os_kernel *kernel)
{
	const char *why = why_of(kernel, OS_MODULES);

	return why || layout_of(kernel)->has_modules ? why : "the kernel has no loadable modules";
}

static const char *build_ids(const struct os_kernel *kernel)
{
	const struct module_layout *layout = &layout_of(kernel)->modules;
	const char *why = modules(kernel);

	return why || layout->build_id != 0 || layout->notes.attributes != 0
	               ? why
	               : "the kernel keeps neither build-ids nor notes of modules; build Linux with CONFIG_KALLSYMS";
}

static const char *module_tables(const struct os_kernel *kernel)
{
	const char *why = modules(kernel);

	return why || layout_of(kernel)->modules.has_orc ? why
	                                                 : "the kernel's modules have no ORC tables; build Linux with "
	                                                   "CONFIG_UNWINDER_ORC";
}

static const char *module_symbols(const struct os_kernel *kernel)
{
	const char *why = modules(kernel);

	return why || layout_of(kernel)->modules.has_kallsyms
	               ? why
	               : "the kernel keeps no symbols of modules; build Linux with CONFIG_KALLSYMS";
}

static const char *switches(const struct os_kernel *kernel)
{
	return why_of(kernel, OS_SWITCHES);
}

static const char *lock(const struct os_kernel *kernel, enum vprof_lock kind, const char *missing)
{
	const char *why = why_of(kernel, OS_WAITS);

	return why || lock_layout_has(&layout_of(kernel)->locks, kind) ? why : missing;
}

static const char *mutexes(const struct os_kernel *kernel)
{
	return lock(kernel, VPROF_LOCK_MUTEX, "the kernel's struct mutex has no list of waiters that this vprof knows");
}

static const char *rwsems(const struct os_kernel *kernel)
{
	return lock(kernel, VPROF_LOCK_RWSEM,
	            "the kernel's struct rw_semaphore has no list of waiters that this vprof knows");
}

static const char *futexes(const struct os_kernel *kernel)
{
	return lock(kernel, VPROF_LOCK_FUTEX, "the kernel has no symbol of a function that waits for a futex");
}

static const char *files(const struct os_kernel *kernel)
{
	return why_of(kernel, OS_FILES);
}

static const char *file_names(const struct os_kernel *kernel)
{
	const char *why = files(kernel);

	return why ? why : why_of(kernel, OS_FILE_NAMES);
}

static const char *file_code(const struct os_kernel *kernel)
{
	return why_of(kernel, OS_FILE_CODE);
}

static const char *areas(const struct os_kernel *kernel)
{
	return why_of(kernel, OS_AREAS);
}

const struct os_need linux_needs[] = {
	{"tasks", "types and symbols", tasks},
	{"states, CPU times and stacks of all tasks", "types and symbols", list},
	{"times in the run queue", "types", queue},
	{"context switches and wake-ups", "symbols", switches},
	{"mutexes that tasks wait for", "types and symbols", mutexes},
	{"rwsems that tasks wait for", "types and symbols", rwsems},
	{"futexes that tasks wait for", "symbols", futexes},
	{"mapped files", "types", mappings},
	{"cgroups", "types", groups},
	{"modules", "types and symbols", modules},
	{"build-ids of modules", "types", build_ids},
	{"unwind tables of modules", "types", module_tables},
	{"symbols of modules", "types", module_symbols},
	{"files in memory", "types and symbols", files},
	{"files in memory by name", "types and symbols", file_names},
	{"probes in programs before they run", "types and symbols", file_code},
	{"registers that a host withholds", "types and symbols", areas},
	{NULL, NULL, NULL},
};
