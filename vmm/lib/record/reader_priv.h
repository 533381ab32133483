// SPDX-License-Identifier: BSD-2-Clause
/* What the reader's files share. */
#ifndef VPROF_RECORD_READER_PRIV_H
#define VPROF_RECORD_READER_PRIV_H

#include "lib/record/mapped_file.h"
#include "lib/record/reader.h"
#include "lib/record/recording_priv.h"

/* Where the id of a sample stands (bytes behind the header), when there are several events. */
#define ID_OFFSET_NONE SIZE_MAX

struct event_id {
	uint64_t id;
	uint32_t event;
};

struct recording_symbols {
	struct recording_symbol *symbols;
	size_t n;
	char *text; /* that their names are in */
};

/* What the feature sections say; members are NULL or 0 when absent. */
struct recording_info {
	char *hostname;
	char *release;
	enum arch arch;
	char **cmdline;
	char *description;
	char *kernel_build_id;
	GPtrArray *event_names;
	struct recording_symbols symbols, user_symbols, host_symbols;
};

/* Immutable once open. */
struct recording {
	char *path;
	struct mapped_file *file;
	const uint8_t *bytes;
	uint64_t n_bytes;
	struct file_header header;
	struct recording_event *events; /* name and ids are owned */
	size_t n_events;
	struct event_id *ids; /* of all events, sorted by id */
	size_t n_ids;
	size_t id_offset;
	uint64_t data_end; /* file offset; never beyond n_bytes */
	bool cut_off;
	char *warning;
	struct recording_info info;
};

/* One feature section. False: malformed, *info is as before. A feature that is not known is left alone. */
bool feature_decode(struct recording_info *info, unsigned feature, const uint8_t *bytes, size_t n);
void recording_info_clear(struct recording_info *info);

/* The order of VPROF_FEATURE_USER_SYMBOLS. */
int recording_symbol_compare_user(const struct recording_symbol *a, const struct recording_symbol *b);

/* "[kernel.kallsyms]..." or a vmlinux: what perf calls the kernel. */
bool dso_is_kernel(const char *name);

#endif
