// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/record/hex.h"
#include "lib/record/reader_priv.h"

static bool refuse(const struct recording *recording, enum recording_error code, GError **error, const char *format,
                   ...) G_GNUC_PRINTF(4, 5);

static bool refuse(const struct recording *recording, enum recording_error code, GError **error, const char *format,
                   ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *why = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	g_set_error(error, RECORDING_ERROR, (gint)code, "cannot read %s: %s", recording->path, why);
	return false;
}

static bool in_file(const struct recording *recording, const struct file_section *section)
{
	return section->offset <= recording->n_bytes && section->bytes <= recording->n_bytes - section->offset;
}

static bool file_map(struct recording *recording, GError **error)
{
	struct stat status;
	/* O_NONBLOCK: a FIFO must not hold us up before it is refused. */
	int fd = open(recording->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return refuse(recording, RECORDING_ERROR_IO, error, "%s", g_strerror(errno));
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		close(fd);
		return refuse(recording, RECORDING_ERROR_IO, error, "it is not a regular file");
	}
	recording->file = mapped_file_new(fd, (size_t)status.st_size);
	if (!recording->file)
		refuse(recording, RECORDING_ERROR_IO, error, "%s", g_strerror(errno));
	close(fd);
	if (!recording->file)
		return false;
	recording->bytes = mapped_file_bytes(recording->file);
	recording->n_bytes = (uint64_t)status.st_size;
	if (recording->n_bytes)
		(void)madvise((void *)(uintptr_t)recording->bytes, recording->n_bytes, MADV_SEQUENTIAL);
	return true;
}

static bool magic_check(const struct recording *recording, GError **error)
{
	const enum recording_error code = RECORDING_ERROR_FORMAT;

	if (recording->n_bytes == 0)
		return refuse(recording, code, error, "it is empty; the recording did not start");
	if (recording->n_bytes < FILE_MAGIC_BYTES)
		return refuse(recording, code, error, "it is no perf.data file");
	if (memcmp(recording->bytes, FILE_MAGIC_SWAPPED, FILE_MAGIC_BYTES) == 0)
		return refuse(recording, code, error, "it was recorded on a big-endian machine");
	if (memcmp(recording->bytes, FILE_MAGIC_V1, FILE_MAGIC_BYTES) == 0)
		return refuse(recording, code, error, "it has the first perf.data format (before Linux 3.10)");
	if (memcmp(recording->bytes, FILE_MAGIC, FILE_MAGIC_BYTES) != 0)
		return refuse(recording, code, error, "it is no perf.data file");
	return true;
}

static bool header_read(struct recording *recording, GError **error)
{
	uint64_t size = 0;

	if (!magic_check(recording, error))
		return false;
	if (recording->n_bytes < FILE_MAGIC_BYTES + sizeof(size))
		return refuse(recording, RECORDING_ERROR_TRUNCATED, error, "it ends within its header");
	memcpy(&size, recording->bytes + FILE_MAGIC_BYTES, sizeof(size));
	if (size == FILE_HEADER_BYTES_PIPE)
		return refuse(recording, RECORDING_ERROR_FORMAT, error,
		              "it was recorded into a pipe; convert it with `perf inject -i FILE -o OTHER`");
	if (size != sizeof(recording->header) && size != FILE_HEADER_BYTES_OLD)
		return refuse(recording, RECORDING_ERROR_FORMAT, error,
		              "its header has %" G_GUINT64_FORMAT " bytes, which no version of perf writes", size);
	if (recording->n_bytes < size)
		return refuse(recording, RECORDING_ERROR_TRUNCATED, error, "it ends within its header");
	memcpy(&recording->header, recording->bytes, size);
	return true;
}

/* A longer attr than ours is from a newer kernel, and its additions do not matter; a shorter one ends in zeros. */
static bool event_read(struct recording *recording, size_t i, uint64_t *ids_bytes, GError **error)
{
	const uint64_t entry_bytes = recording->header.attr_size;
	const uint8_t *entry = recording->bytes + recording->header.attrs.offset + i * entry_bytes;
	const uint64_t attr_bytes = entry_bytes - sizeof(struct file_section);
	struct recording_event *event = &recording->events[i];
	struct file_section ids;

	memcpy(&event->attr, entry, MIN(attr_bytes, sizeof(event->attr)));
	memcpy(&ids, entry + attr_bytes, sizeof(ids));
	if (!in_file(recording, &ids))
		return refuse(recording, RECORDING_ERROR_TRUNCATED, error, "it ends within the ids of its events");
	/* Overlapping sections could stand for far more bytes than the file has. */
	*ids_bytes += ids.bytes;
	if (ids.bytes % sizeof(uint64_t) || *ids_bytes > recording->n_bytes)
		return refuse(recording, RECORDING_ERROR_FORMAT, error, "the ids of event %zu are damaged", i);
	event->ids = g_memdup2(recording->bytes + ids.offset, ids.bytes);
	event->n_ids = ids.bytes / sizeof(uint64_t);
	return true;
}

static bool events_read(struct recording *recording, GError **error)
{
	const struct file_section *attrs = &recording->header.attrs;
	const uint64_t entry_bytes = recording->header.attr_size;
	uint64_t ids_bytes = 0;

	if (entry_bytes < PERF_ATTR_SIZE_VER0 + sizeof(struct file_section) || attrs->bytes < entry_bytes ||
	    attrs->bytes % entry_bytes)
		return refuse(recording, RECORDING_ERROR_FORMAT, error, "its list of events is damaged");
	if (!in_file(recording, attrs))
		return refuse(recording, RECORDING_ERROR_TRUNCATED, error, "it ends within its list of events");
	if (attrs->bytes / entry_bytes > RECORDING_EVENTS_MAX)
		return refuse(recording, RECORDING_ERROR_LIMIT, error,
		              "it has %" G_GUINT64_FORMAT " events, and at most %u are read; record fewer at once",
		              attrs->bytes / entry_bytes, RECORDING_EVENTS_MAX);
	recording->n_events = attrs->bytes / entry_bytes;
	recording->events = g_new0(struct recording_event, recording->n_events);
	for (size_t i = 0; i < recording->n_events; i++)
		if (!event_read(recording, i, &ids_bytes, error))
			return false;
	return true;
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t first = ((const struct event_id *)a)->id, second = ((const struct event_id *)b)->id;

	return first < second ? -1 : first > second;
}

static void ids_index(struct recording *recording)
{
	for (size_t i = 0; i < recording->n_events; i++)
		recording->n_ids += recording->events[i].n_ids;
	recording->ids = g_new(struct event_id, recording->n_ids);
	size_t n = 0;
	for (size_t i = 0; i < recording->n_events; i++)
		for (size_t j = 0; j < recording->events[i].n_ids; j++)
			recording->ids[n++] = (struct event_id){recording->events[i].ids[j], (uint32_t)i};
	if (n)
		qsort(recording->ids, n, sizeof(recording->ids[0]), compare_ids);
}

/* The event that has this id, or -1. */
static int event_of_id(const struct recording *recording, uint64_t id)
{
	size_t low = 0, high = recording->n_ids;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (recording->ids[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < recording->n_ids && recording->ids[low].id == id ? (int)recording->ids[low].event : -1;
}

static size_t sample_id_offset(uint64_t sample_type)
{
	const uint64_t ahead = sample_type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);

	if (sample_type & PERF_SAMPLE_IDENTIFIER)
		return 0;
	if (sample_type & PERF_SAMPLE_ID)
		return sizeof(uint64_t) * (size_t)__builtin_popcountll(ahead);
	return ID_OFFSET_NONE;
}

/* With several events the id has to stand at one place in all samples, since it says how to read the rest. */
static bool id_offset_find(struct recording *recording, GError **error)
{
	for (size_t i = 0; i < recording->n_events; i++) {
		size_t offset = sample_id_offset(recording->events[i].attr.sample_type);

		if (i == 0)
			recording->id_offset = offset;
		if (recording->n_events > 1 && (offset == ID_OFFSET_NONE || offset != recording->id_offset))
			return refuse(recording, RECORDING_ERROR_FORMAT, error,
			              "the samples of its %zu events cannot be told apart; record them with ids",
			              recording->n_events);
	}
	return true;
}

static void warn(struct recording *recording, char *sentence)
{
	if (recording->warning)
		g_free(sentence);
	else
		recording->warning = sentence;
}

/*
 * perf leaves a size of 0 when it is killed; we leave no feature sections. Either way all up to the file's end are
 * records.
 */
static bool is_unfinished(const struct file_header *header)
{
	static const uint64_t no_features[4];

	return header->data.bytes == 0 ||
	       (header->size == sizeof(*header) && memcmp(header->features, no_features, sizeof(no_features)) == 0);
}

static bool data_find(struct recording *recording, GError **error)
{
	const struct file_section *data = &recording->header.data;

	if (data->offset > recording->n_bytes)
		return refuse(recording, RECORDING_ERROR_TRUNCATED, error, "it ends before its first record");
	const uint64_t there = recording->n_bytes - data->offset;
	const bool unfinished = is_unfinished(&recording->header);
	recording->cut_off = unfinished || data->bytes > there;
	recording->data_end = data->offset + (recording->cut_off ? there : data->bytes);
	if (unfinished)
		warn(recording, g_strdup("the recording was not finished; it goes as far as was written"));
	else if (recording->cut_off)
		warn(recording, g_strdup_printf("the recording is cut off: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
		                                " bytes of records are there",
		                                there, data->bytes));
	return true;
}

/* The sections stand behind the data, first a table of them. What is missing or damaged there spoils no record. */
static void features_read(struct recording *recording)
{
	uint64_t at = recording->data_end;
	struct file_section section;

	for (unsigned feature = 0; feature < FEATURE_BITS; feature++) {
		if (!(recording->header.features[feature / 64] >> feature % 64 & 1))
			continue;
		if (recording->n_bytes - at < sizeof(section)) {
			recording->cut_off = true;
			break;
		}
		memcpy(&section, recording->bytes + at, sizeof(section));
		at += sizeof(section);
		if (!in_file(recording, &section))
			recording->cut_off = true;
		else if (!feature_decode(&recording->info, feature, recording->bytes + section.offset, section.bytes))
			warn(recording, g_strdup_printf("feature section %u of the recording is damaged", feature));
	}
	if (recording->cut_off)
		warn(recording, g_strdup("the recording is cut off behind its records; names may be missing"));
}

/* Takes what stands in-band before the first sample, for want of feature sections. */
static bool prologue_take(const struct perf_event_header *record, size_t bytes, void *data)
{
	struct recording *recording = data;
	struct record_mmap mapping;
	struct record_event_name named;

	if (record_event_name_decode(record, bytes, &named)) {
		int event = event_of_id(recording, named.event_id);

		if (event >= 0 && !recording->events[event].name)
			recording->events[event].name = untrusted_printable(named.name);
	} else if (!recording->info.kernel_build_id && record_mmap_decode(record, bytes, &mapping) &&
	           mapping.build_id && dso_is_kernel(mapping.file_name.raw)) {
		recording->info.kernel_build_id = hex_encode(mapping.build_id, mapping.build_id_bytes);
	}
	return record->type != PERF_RECORD_SAMPLE;
}

static void names_find(struct recording *recording)
{
	const GPtrArray *names = recording->info.event_names;

	for (size_t i = 0; names && i < MIN(recording->n_events, names->len); i++)
		recording->events[i].name = g_strdup(names->pdata[i]);
	/* A malformed record is reported by the walk over the records. */
	(void)recording_each(recording, prologue_take, recording, NULL);
	for (size_t i = 0; i < recording->n_events; i++) {
		struct recording_event *event = &recording->events[i];

		if (!event->name)
			event->name = g_strdup_printf("type-%" PRIu32 ":0x%" G_GINT64_MODIFIER "x", event->attr.type,
			                              (guint64)event->attr.config);
	}
}

struct recording *recording_open(const char *path, GError **error)
{
	struct recording *recording = g_new0(struct recording, 1);

	recording->path = g_strdup(path);
	if (!file_map(recording, error) || !header_read(recording, error) || !events_read(recording, error) ||
	    !id_offset_find(recording, error) || !data_find(recording, error)) {
		recording_free(recording);
		return NULL;
	}
	ids_index(recording);
	if (!recording->cut_off)
		features_read(recording);
	names_find(recording);
	return recording;
}

void recording_free(struct recording *recording)
{
	if (!recording)
		return;
	for (size_t i = 0; i < recording->n_events; i++) {
		g_free((char *)recording->events[i].name);
		g_free((uint64_t *)recording->events[i].ids);
	}
	g_free(recording->events);
	g_free(recording->ids);
	recording_info_clear(&recording->info);
	mapped_file_free(recording->file);
	g_free(recording->warning);
	g_free(recording->path);
	g_free(recording);
}

size_t recording_n_events(const struct recording *recording)
{
	return recording->n_events;
}

bool recording_event_counts_time(const struct recording_event *event)
{
	return event->attr.type == PERF_TYPE_SOFTWARE &&
	       (event->attr.config == PERF_COUNT_SW_TASK_CLOCK || event->attr.config == PERF_COUNT_SW_CPU_CLOCK);
}

const struct recording_event *recording_event(const struct recording *recording, size_t i)
{
	return &recording->events[i];
}

int recording_event_of(const struct recording *recording, const struct record_sample *sample)
{
	return recording->n_events == 1 ? 0 : event_of_id(recording, sample->id);
}

bool recording_sample(const struct recording *recording, const struct perf_event_header *record, size_t bytes,
                      struct record_sample *sample, int *event_index)
{
	const size_t id_at = sizeof(*record) + recording->id_offset;
	int event = 0;
	uint64_t id;

	if (recording->n_events > 1) {
		if (bytes < id_at + sizeof(id))
			return false;
		memcpy(&id, (const uint8_t *)record + id_at, sizeof(id));
		event = event_of_id(recording, id);
	}
	const struct perf_event_attr *attr = &recording->events[MAX(event, 0)].attr;
	*event_index = event;
	return record_sample_decode_attr(record, bytes, attr, sample);
}

bool recording_cut_off(const struct recording *recording)
{
	return recording->cut_off;
}

const char *recording_warning(const struct recording *recording)
{
	return recording->warning;
}

const char *recording_description(const struct recording *recording)
{
	return recording->info.description;
}

const char *recording_hostname(const struct recording *recording)
{
	return recording->info.hostname;
}

enum arch recording_arch(const struct recording *recording)
{
	return recording->info.arch;
}

const char *recording_release(const struct recording *recording)
{
	return recording->info.release;
}

const char *const *recording_cmdline(const struct recording *recording)
{
	return (const char *const *)recording->info.cmdline;
}

const char *recording_kernel_build_id(const struct recording *recording)
{
	return recording->info.kernel_build_id;
}

size_t recording_n_symbols(const struct recording *recording)
{
	return recording->info.symbols.n;
}

static const struct recording_symbol *find_by_address(const struct recording_symbols *table, uint64_t address)
{
	const struct recording_symbol *symbols = table->symbols;
	size_t low = 0, high = table->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address - symbols[low - 1].address >= symbols[low - 1].size)
		return NULL;
	return &symbols[low - 1];
}

const struct recording_symbol *recording_symbol_find(const struct recording *recording, uint64_t address)
{
	return find_by_address(&recording->info.symbols, address);
}

const struct recording_symbol *recording_host_symbol_find(const struct recording *recording, uint64_t address)
{
	return find_by_address(&recording->info.host_symbols, address);
}

const struct recording_symbol *recording_user_symbol_find(const struct recording *recording, const char *file,
                                                          uint64_t offset)
{
	const struct recording_symbol key = {.address = offset, .module = file};
	const struct recording_symbol *symbols = recording->info.user_symbols.symbols;
	size_t low = 0, high = recording->info.user_symbols.n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (recording_symbol_compare_user(&symbols[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || strcmp(symbols[low - 1].module, file) != 0 ||
	    offset - symbols[low - 1].address >= symbols[low - 1].size)
		return NULL;
	return &symbols[low - 1];
}
