// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages in Protocol Buffers' encoding (protobuf.dev/programming-guides/encoding), by what protobuf-c generates from
 * the descriptions in export/proto. Encodings that follow each other are one message, with the elements of all: so a
 * large one is written in parts.
 */
#ifndef VPROF_CLI_EXPORT_PROTOBUF_H
#define VPROF_CLI_EXPORT_PROTOBUF_H

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

/* The first initializer of a message: MESSAGE(pprof__line). What is not initialized is not written. */
#define MESSAGE(type) .base = PROTOBUF_C_MESSAGE_INIT(&type##__descriptor)
/* Of a repeated field that has one element. */
#define ONE(element) ((__typeof__(element)[]){element})

void protobuf_append(GByteArray *to, const ProtobufCMessage *message);

#endif
