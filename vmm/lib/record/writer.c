// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/record/output.h"
#include "lib/record/record.h"
#include "lib/record/recording_priv.h"

#define BUFFER_BYTES ((size_t)4 * (RECORD_BYTES_MAX + 8))

_Static_assert(sizeof(struct perf_event_attr) >= VPROF_ATTR_BYTES, "linux/perf_event.h is of Linux 5.13 or later");

struct recording_writer {
	char *path;
	struct output file;
	struct recording_event *events; /* own copies */
	size_t n_events;
	struct file_header header;
	uint64_t end; /* of the file's whole records: where the buffer goes */
	int failure;  /* errno of the first write that failed; nothing is written after it */
	struct recording_span span;
	size_t buffered;
	uint8_t buffer[BUFFER_BYTES];
};

G_DEFINE_QUARK(vprof_recording_error, recording_error)

static bool fail(const struct recording_writer *writer, const char *what, int error_number, GError **error)
{
	const char *advice = error_number == ENOSPC || error_number == EDQUOT
	                             ? "; make room or write elsewhere (-o), what is in the file can be read"
	                             : "";

	g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_IO, "cannot %s %s: %s%s", what, writer->path,
	            g_strerror(error_number), advice);
	return false;
}

/* *written: how much went out, also on failure. Returns 0 or an errno. */
static int write_at(int fd, const void *bytes, size_t n, uint64_t offset, size_t *written)
{
	for (*written = 0; *written < n;) {
		ssize_t done = pwrite(fd, (const uint8_t *)bytes + *written, n - *written, (off_t)(offset + *written));

		if (done > 0)
			*written += (size_t)done;
		else if (done == 0)
			return ENOSPC;
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

/* The bytes of the whole records among the first n of the buffer. */
static size_t whole_records(const uint8_t *bytes, size_t n)
{
	const struct perf_event_header *record;
	size_t at = 0;

	while ((record = record_check(bytes + at, n - at)))
		at += record->size;
	return at;
}

/* Updates the size of the records in the header, so that perf can read a recording that was not finished. */
static int size_write(struct recording_writer *writer)
{
	size_t written;

	writer->header.data.bytes = writer->end - writer->header.data.offset;
	return write_at(writer->file.fd, &writer->header.data.bytes, sizeof(writer->header.data.bytes),
	                offsetof(struct file_header, data.bytes), &written);
}

/* Ends the file behind its last whole record. Best effort: what cannot be cut away the reader leaves alone. */
static void writer_give_up(struct recording_writer *writer, int failure)
{
	writer->failure = failure;
	writer->buffered = 0;
	(void)!ftruncate(writer->file.fd, (off_t)writer->end);
	(void)size_write(writer);
}

static bool writer_flush(struct recording_writer *writer, GError **error)
{
	size_t written;

	if (writer->failure)
		return fail(writer, "write", writer->failure, error);
	int failure = write_at(writer->file.fd, writer->buffer, writer->buffered, writer->end, &written);
	writer->end += whole_records(writer->buffer, written);
	writer->buffered = 0;
	if (!failure)
		failure = size_write(writer);
	if (failure) {
		writer_give_up(writer, failure);
		return fail(writer, "write", failure, error);
	}
	return true;
}

static bool writer_append(struct recording_writer *writer, const void *bytes, size_t n, GError **error)
{
	if (n > sizeof(writer->buffer) - writer->buffered && !writer_flush(writer, error))
		return false;
	memcpy(writer->buffer + writer->buffered, bytes, n);
	writer->buffered += n;
	return true;
}

/* Header, attrs and ids: everything before the data. */
static GByteArray *head_encode(const struct recording_writer *writer)
{
	GByteArray *head = g_byte_array_new();
	uint64_t ids_offset = sizeof(writer->header) + writer->n_events * sizeof(struct file_attr);

	g_byte_array_append(head, (const guint8 *)&writer->header, sizeof(writer->header));
	for (size_t i = 0; i < writer->n_events; i++) {
		const struct recording_event *event = &writer->events[i];
		struct file_attr entry = {.ids = {ids_offset, event->n_ids * sizeof(uint64_t)}};

		memcpy(entry.attr, &event->attr, sizeof(entry.attr));
		g_byte_array_append(head, (const guint8 *)&entry, sizeof(entry));
		ids_offset += entry.ids.bytes;
	}
	for (size_t i = 0; i < writer->n_events; i++)
		g_byte_array_append(head, (const guint8 *)writer->events[i].ids,
		                    (guint)(writer->events[i].n_ids * sizeof(uint64_t)));
	return head;
}

/* Names are also written as records: a recording that is cut off has no feature sections. */
static bool names_append(struct recording_writer *writer, GError **error)
{
	uint64_t buffer[64];

	for (size_t i = 0; i < writer->n_events; i++) {
		const struct recording_event *event = &writer->events[i];

		if (event->n_ids == 0)
			continue;
		const struct record_event_name named = {event->ids[0], untrusted(event->name)};
		size_t bytes = record_event_name_encode(&named, buffer, sizeof(buffer));

		if (bytes && !writer_append(writer, buffer, bytes, error))
			return false;
	}
	return true;
}

static bool head_write(struct recording_writer *writer, GError **error)
{
	size_t n_ids = 0, written;

	for (size_t i = 0; i < writer->n_events; i++)
		n_ids += writer->events[i].n_ids;
	const uint64_t attrs_bytes = writer->n_events * sizeof(struct file_attr);
	writer->header = (struct file_header){
		.size = sizeof(struct file_header),
		.attr_size = sizeof(struct file_attr),
		.attrs = {sizeof(struct file_header), attrs_bytes},
		.data = {sizeof(struct file_header) + attrs_bytes + n_ids * sizeof(uint64_t), 0},
	};
	memcpy(writer->header.magic, FILE_MAGIC, FILE_MAGIC_BYTES);
	writer->end = writer->header.data.offset;

	g_autoptr(GByteArray) head = head_encode(writer);
	int failure = write_at(writer->file.fd, head->data, head->len, 0, &written);
	if (failure)
		return fail(writer, "write", failure, error);
	return names_append(writer, error) && writer_flush(writer, error);
}

static void events_copy(struct recording_writer *writer, const struct recording_event *events, size_t n_events)
{
	writer->events = g_new0(struct recording_event, n_events);
	writer->n_events = n_events;
	for (size_t i = 0; i < n_events; i++) {
		writer->events[i] = (struct recording_event){
			.attr = events[i].attr,
			.name = g_strdup(events[i].name),
			.ids = g_memdup2(events[i].ids, events[i].n_ids * sizeof(uint64_t)),
			.n_ids = events[i].n_ids,
		};
		writer->events[i].attr.size = VPROF_ATTR_BYTES;
	}
}

/* The errors of lib/record/output.h as ours. */
static bool take_over(GError *why, GError **error)
{
	g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_IO, "%s", why->message);
	g_error_free(why);
	return false;
}

/* O_NONBLOCK: a FIFO without a reader must not hold us up. */
static bool file_open(struct recording_writer *writer, GError **error)
{
	GError *why = NULL;

	if (!output_create(&writer->file, writer->path, O_NONBLOCK, 0600, &why))
		return take_over(why, error);
	if (lseek(writer->file.fd, 0, SEEK_SET) >= 0)
		return true;
	g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_IO,
	            "cannot write a recording to %s: %s; its header is completed at the end, so it must be a file",
	            writer->path, g_strerror(errno));
	return false;
}

static bool file_publish(struct recording_writer *writer, GError **error)
{
	GError *why = NULL;

	return output_publish(&writer->file, true, &why) || take_over(why, error);
}

struct recording_writer *recording_writer_open(const char *path, const struct recording_event *events, size_t n_events,
                                               GError **error)
{
	struct recording_writer *writer = g_new0(struct recording_writer, 1);

	writer->path = g_strdup(path);
	writer->file.fd = -1;
	events_copy(writer, events, n_events);
	if (!file_open(writer, error) || !head_write(writer, error) || !file_publish(writer, error)) {
		recording_writer_free(writer);
		return NULL;
	}
	return writer;
}

bool recording_writer_record(struct recording_writer *writer, const struct perf_event_header *record, GError **error)
{
	uint64_t time_ns;

	if (!record_check(record, record->size)) {
		g_set_error(error, RECORDING_ERROR, RECORDING_ERROR_FORMAT, "cannot write %s: a record of %u bytes",
		            writer->path, record->size);
		return false;
	}
	if (record->type == PERF_RECORD_SAMPLE && writer->n_events &&
	    record_time(record, record->size, writer->events[0].attr.sample_type, &time_ns)) {
		if (!writer->span.first_ns || time_ns < writer->span.first_ns)
			writer->span.first_ns = time_ns;
		writer->span.last_ns = MAX(writer->span.last_ns, time_ns);
	}
	return writer_append(writer, record, record->size, error);
}

bool recording_writer_round(struct recording_writer *writer, GError **error)
{
	const struct perf_event_header round = {.type = RECORD_FINISHED_ROUND, .size = sizeof(round)};

	return writer_append(writer, &round, sizeof(round), error) && writer_flush(writer, error);
}

/* Writes the features after the data, then the header that refers to them. */
static bool writer_seal(struct recording_writer *writer, const struct recording_features *features, GError **error)
{
	struct file_header header = writer->header;
	size_t written;

	g_autoptr(GByteArray) sections = features_encode(features, writer->events, writer->n_events, &writer->span,
	                                                 writer->end, header.features);
	int failure = write_at(writer->file.fd, sections->data, sections->len, writer->end, &written);
	if (!failure)
		failure = write_at(writer->file.fd, &header, sizeof(header), 0, &written);
	if (failure) {
		writer_give_up(writer, failure);
		return fail(writer, "complete", failure, error);
	}
	return true;
}

bool recording_writer_finish(struct recording_writer *writer, const struct recording_features *features, GError **error)
{
	/* At least one round is in the data: perf takes a size of 0 for a recording that was never finished. */
	if (!recording_writer_round(writer, error) || !writer_seal(writer, features, error))
		return false;
	int failure = close(writer->file.fd) == 0 ? 0 : errno;
	writer->file.fd = -1;
	writer->failure = EBADF;
	return failure ? fail(writer, "close", failure, error) : true;
}

void recording_writer_free(struct recording_writer *writer)
{
	if (!writer)
		return;
	if (writer->file.fd >= 0)
		(void)writer_flush(writer, NULL);
	output_clear(&writer->file);
	for (size_t i = 0; i < writer->n_events; i++) {
		g_free((char *)writer->events[i].name);
		g_free((uint64_t *)writer->events[i].ids);
	}
	g_free(writer->events);
	g_free(writer->path);
	g_free(writer);
}
