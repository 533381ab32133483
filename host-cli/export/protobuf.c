// SPDX-License-Identifier: BSD-2-Clause
#include "export/protobuf.h"

void protobuf_append(GByteArray *to, const ProtobufCMessage *message)
{
	const guint at = to->len;

	g_byte_array_set_size(to, at + (guint)protobuf_c_message_get_packed_size(message));
	protobuf_c_message_pack(message, to->data + at);
}
