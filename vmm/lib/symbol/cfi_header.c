// SPDX-License-Identifier: BSD-2-Clause
/* .eh_frame_hdr (LSB Core, 10.6.2): where each FDE of .eh_frame is, so that some can be found without the others. */
#include "lib/symbol/cfi_priv.h"

#define VERSION 1u
#define ENCODING_FRAME 0x1bu /* all linkers write these: 4 bytes with a sign, from where they are */
#define ENCODING_COUNT 0x03u /* 4 bytes */
#define ENCODING_TABLE 0x3bu /* 4 bytes with a sign, from the start of the header */

bool cfi_header_open(const struct cfi_section *section, struct cfi_header *header)
{
	struct cfi_cursor cursor = {.span = {section->bytes, section->bytes ? section->n : 0}};
	const uint64_t version = cfi_fixed(&cursor, 1), frame = cfi_fixed(&cursor, 1), count = cfi_fixed(&cursor, 1);
	const uint64_t table = cfi_fixed(&cursor, 1);

	if (version != VERSION || frame != ENCODING_FRAME || count != ENCODING_COUNT || table != ENCODING_TABLE ||
	    !cfi_pointer(&cursor, ENCODING_FRAME, section->address, &header->eh_frame))
		return false;
	header->address = section->address;
	header->n = cfi_fixed(&cursor, 4);
	header->table = cfi_slice(&cursor, header->n * CFI_HEADER_ENTRY_BYTES);
	return !cursor.failed;
}

const uint8_t *cfi_header_entry(const struct cfi_header *header, uint64_t i, uint64_t *fde)
{
	int32_t offset = 0;

	span_read(header->table, i * CFI_HEADER_ENTRY_BYTES + sizeof(offset), &offset, sizeof(offset));
	*fde = header->address + (uint64_t)(int64_t)offset;
	return header->table.data + i * CFI_HEADER_ENTRY_BYTES;
}
