// SPDX-License-Identifier: BSD-2-Clause
#include "attach/kvm_view.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "attach/bpf/kvm_view.h"
#include "attach/bpf_load.h"
#include "attach/guest_program.h"
#include "attach/kvm_vendor.h"
#include "kvm_view.skel.h"

/* Reads of a machine of which the memory changes meanwhile. */
#define TRIES 8u
/* Each file of 64 vCPUs a few times with its statistics, and the slots. */
#define BYTES_MAX (1u << 20)
/* The statistics of all vCPUs are read at once, and asked for one after the other. */
#define STATISTICS_AGE_US 1000

/* A member of struct kvm_vcpu_stat that is one number. */
struct counter {
	char name[GUEST_COUNTER_NAME_BYTES];
	size_t offset; /* bytes */
};

struct kvm_view {
	struct kvm_view_bpf *object;
	struct bpf_link *link; /* of the iterator, over this process */
	GArray *counters;      /* of struct counter */
	uint8_t *records;      /* what the last pass wrote */
	size_t bytes;
	gint64 statistics_us; /* when it had statistics; 0: it had none */
};

/* ---- what KVM counts ---- */

/* Present values: of them no difference can be told. */
static bool is_total(const char *name)
{
	return strcmp(name, "blocking") != 0 && strcmp(name, "guest_mode") != 0;
}

static void counters_add(GArray *counters, const struct btf *btf, const struct btf_type *type, size_t offset)
{
	const struct btf_member *members = btf_members(type);

	for (unsigned i = 0; i < btf_vlen(type); i++) {
		const struct btf_type *member = btf__type_by_id(btf, (__u32)btf__resolve_type(btf, members[i].type));
		const char *name = btf__name_by_offset(btf, members[i].name_off);
		size_t at = offset + btf_member_bit_offset(type, i) / 8;

		if (!member || !name)
			continue;
		/* "generic", what all architectures count; histograms are arrays. */
		if (btf_is_struct(member))
			counters_add(counters, btf, member, at);
		if (!btf_is_int(member) || member->size != sizeof(uint64_t) || !is_total(name))
			continue;
		struct counter counter = {.offset = at};

		g_strlcpy(counter.name, name, sizeof(counter.name));
		g_array_append_val(counters, counter);
	}
}

/* KVM is a module, or a part of the kernel. */
static GArray *counters_find(void)
{
	GArray *counters = g_array_new(FALSE, FALSE, sizeof(struct counter));
	struct btf *kernel = btf__load_vmlinux_btf();
	struct btf *module = kernel ? btf__load_module_btf("kvm", kernel) : NULL;
	const struct btf *btf = module ? module : kernel;
	__s32 id = btf ? btf__find_by_name_kind(btf, "kvm_vcpu_stat", BTF_KIND_STRUCT) : -1;

	if (id > 0)
		counters_add(counters, btf, btf__type_by_id(btf, (__u32)id), 0);
	btf__free(module);
	btf__free(kernel);
	return counters;
}

/* ---- open and close ---- */

static struct bpf_link *iterate(struct kvm_view_bpf *object, pid_t pid)
{
	union bpf_iter_link_info which = {.task.pid = (__u32)pid};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &which, .link_info_len = sizeof(which));

	return bpf_program__attach_iter(object->progs.view, &options);
}

static struct kvm_view_bpf *load(void)
{
	struct kvm_view_bpf *object = kvm_view_bpf__open_and_load();
	enum guest_sample_vendor vendor;

	if (!object)
		return NULL;
	object->bss->page_shift = (unsigned)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	if (kvm_vendor_find(&vendor))
		object->bss->vendor = vendor;
	return object;
}

struct kvm_view *kvm_view_open(pid_t pid, GError **error)
{
	struct kvm_view view = {0};

	bpf_load_begin();
	view.object = load();
	view.link = view.object ? iterate(view.object, pid) : NULL;
	bpf_load_end(view.link ? 0 : errno, error);
	if (view.link) {
		view.counters = counters_find();
		view.records = g_malloc(BYTES_MAX);
		return g_memdup2(&view, sizeof(view));
	}
	kvm_view_bpf__destroy(view.object);
	return NULL;
}

void kvm_view_close(struct kvm_view *view)
{
	if (!view)
		return;
	bpf_link__destroy(view->link);
	kvm_view_bpf__destroy(view->object);
	g_array_unref(view->counters);
	g_free(view->records);
	g_free(view);
}

/* ---- read ---- */

static bool read_failed(GError **error, int number)
{
	g_set_error(error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_KERNEL, "cannot read KVM's machine: %s",
	            g_strerror(number));
	return false;
}

/* All that the iterator writes in one pass. */
static bool pass(struct kvm_view *view, bool statistics, GError **error)
{
	memset(view->object->bss->written, 0, sizeof(view->object->bss->written));
	view->object->bss->wants_statistics = statistics;
	int fd = bpf_iter_create(bpf_link__fd(view->link));
	ssize_t n = fd < 0 ? -1 : 0;

	for (view->bytes = 0; fd >= 0 && view->bytes < BYTES_MAX; view->bytes += (size_t)n) {
		n = read(fd, view->records + view->bytes, BYTES_MAX - view->bytes);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			n = 0;
		else if (n <= 0)
			break;
	}
	int number = n < 0 ? errno : view->bytes == BYTES_MAX ? EMSGSIZE : 0;

	if (fd >= 0)
		close(fd);
	view->statistics_us = statistics && number == 0 ? g_get_monotonic_time() : 0;
	return number == 0 || read_failed(error, number);
}

bool kvm_view_read(struct kvm_view *view, struct kvm_machine *machine, GError **error)
{
	for (unsigned i = 0; i < TRIES; i++) {
		g_autoptr(GError) why = NULL;

		if (!pass(view, false, error))
			return false;
		if (kvm_machine_decode(view->records, view->bytes, machine, &why))
			return true;
		if (!g_error_matches(why, KVM_MACHINE_ERROR, KVM_MACHINE_ERROR_CHANGED) || i == TRIES - 1) {
			g_propagate_error(error, g_steal_pointer(&why));
			return false;
		}
	}
	return false;
}

/* ---- statistics ---- */

size_t kvm_view_counters(struct kvm_view *view, unsigned id, struct guest_counter counters[GUEST_COUNTERS_MAX])
{
	size_t bytes, n = 0;

	if (g_get_monotonic_time() - view->statistics_us > STATISTICS_AGE_US && !pass(view, true, NULL))
		return 0;
	const uint8_t *raw = kvm_machine_statistics(view->records, view->bytes, id, &bytes);

	for (guint i = 0; raw && i < view->counters->len && n < GUEST_COUNTERS_MAX; i++) {
		const struct counter *counter = &g_array_index(view->counters, struct counter, i);

		if (counter->offset + sizeof(counters[n].value) > bytes)
			continue;
		g_strlcpy(counters[n].name, counter->name, sizeof(counters[n].name));
		memcpy(&counters[n++].value, raw + counter->offset, sizeof(counters[0].value));
	}
	return n;
}
