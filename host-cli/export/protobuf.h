// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages in Protocol Buffers' encoding (protobuf.dev/programming-guides/encoding): a field is its number and wire
 * type, then a varint, eight bytes, or a length and as many bytes. A repeated field is put once for each element.
 */
#ifndef VPROF_CLI_EXPORT_PROTOBUF_H
#define VPROF_CLI_EXPORT_PROTOBUF_H

#include <glib.h>
#include <stdint.h>

void protobuf_varint(GByteArray *to, uint64_t value);
void protobuf_number(GByteArray *to, unsigned field, uint64_t value);
void protobuf_fixed64(GByteArray *to, unsigned field, uint64_t value);
void protobuf_bytes(GByteArray *to, unsigned field, const void *bytes, size_t n);
/* As UTF-8, which strings must be: what is not becomes U+FFFD. */
void protobuf_string(GByteArray *to, unsigned field, const char *text);
/* And frees the message. */
void protobuf_message(GByteArray *to, unsigned field, GByteArray *message);

#endif
