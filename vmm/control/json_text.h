// SPDX-License-Identifier: BSD-2-Clause
/* Whether bytes are JSON, also where a value is one that this engine cannot hold. */
#ifndef VPROF_CONTROL_JSON_TEXT_H
#define VPROF_CONTROL_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The part of a text that is a string or a number; bytes 0: there is none. */
struct json_part {
	const char *text;
	size_t bytes;
};

/*
 * True when `text` is one JSON value (RFC 8259) in UTF-8, however deep it is nested and however large its numbers are.
 * *id is then the value of member "id" of the outermost object, the last one if there are several, where that is a
 * string or a number.
 */
bool json_text_check(const char *text, size_t bytes, struct json_part *id);

#endif
