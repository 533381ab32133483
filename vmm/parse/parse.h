// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parsers themselves. Each is given the input and puts out its answer (include/vprof/parse.h). False with
 * a reason, as a clause without a subject. They run in a process of their own, so they neither free what libraries keep
 * nor fear what these do.
 */
#ifndef VPROF_PARSE_PARSE_H
#define VPROF_PARSE_PARSE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/parse.h>

#define PARSE_ERROR parse_error_quark()
GQuark parse_error_quark(void);
enum parse_error { PARSE_ERROR_INPUT };

struct parse_input {
	uint8_t *bytes; /* may be written to: libelf unpacks sections by changing their headers */
	size_t n;
	int fd; /* of all of it, to look for holes */
};

/* Where the answer goes: a memfd, which is written as it comes. */
struct parse_answer {
	int fd;
	uint64_t bytes, limit;
};

/* False with a reason when it would be more than the limit. */
bool parse_answer_put(struct parse_answer *answer, const void *bytes, size_t n, GError **error);
/* Begins anew. */
bool parse_answer_clear(struct parse_answer *answer, GError **error);

typedef bool (*parse_fn)(const struct parse_input *input, const struct vprof_parse_request *request,
                         struct parse_answer *answer, GError **error);

bool parse_unpack(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error);
bool parse_member(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error);
bool parse_programs(const struct parse_input *input, const struct vprof_parse_request *request,
                    struct parse_answer *answer, GError **error);
bool parse_lines(const struct parse_input *input, const struct vprof_parse_request *request,
                 struct parse_answer *answer, GError **error);
bool parse_places(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error);
bool parse_pages(const struct parse_input *input, const struct vprof_parse_request *request,
                 struct parse_answer *answer, GError **error);
bool parse_types(const struct parse_input *input, const struct vprof_parse_request *request,
                 struct parse_answer *answer, GError **error);
bool parse_symbols(const struct parse_input *input, const struct vprof_parse_request *request,
                   struct parse_answer *answer, GError **error);
bool parse_layout(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error);
bool parse_map(const struct parse_input *input, const struct vprof_parse_request *request, struct parse_answer *answer,
               GError **error);
bool parse_notes(const struct parse_input *input, const struct vprof_parse_request *request,
                 struct parse_answer *answer, GError **error);
bool parse_frames(const struct parse_input *input, const struct vprof_parse_request *request,
                  struct parse_answer *answer, GError **error);

/* A name of C++ or Rust as it is written in the source, until the next call; any other is given back. */
const char *parse_demangled(const char *name);

/* A page that is packed by snappy; false when it is not whole. */
bool parse_snappy_page(const uint8_t *packed, uint32_t n, uint8_t *page, size_t page_bytes);

/* Sets PARSE_ERROR_INPUT; returns false. */
G_GNUC_PRINTF(2, 3) bool parse_fail(GError **error, const char *format, ...);

/* The one that the request names, after its own fields are checked. NULL with a reason. */
parse_fn parse_find(const struct vprof_parse_request *request, GError **error);

#endif
