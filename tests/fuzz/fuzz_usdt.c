// SPDX-License-Identifier: BSD-2-Clause
/*
 * Static probes: after a first byte that is even, a program's file with notes, and else what a vprof-parse that was
 * taken over may say of them. What it says of a file is sound; operands may be any text.
 */
#include "fuzz_target.h"
#include "guest/operand.h"
#include "lib/symbol/image_priv.h"
#include "lib/symbol/usdt.h"

static void read_operands(const struct usdt_note *note)
{
	const struct guest_gprs gprs = {.processor = GUEST_X86_64, .rbp = 0x1000};
	const struct snapshot snapshot = {0};
	struct page_walk walk = {.snapshot = &snapshot};
	struct guest_operand operands[GUEST_OPERANDS_MAX];
	const size_t n = guest_operands_parse(GUEST_X86_64, note->operands, operands);

	g_assert(n <= GUEST_OPERANDS_MAX);
	for (size_t i = 0; i < n; i++) {
		uint64_t value;

		if (guest_operand_read(&operands[i], &walk, &gprs, &value))
			g_assert(operands[i].kind == GUEST_OPERAND_CONSTANT ||
			         operands[i].kind == GUEST_OPERAND_REGISTER);
	}
}

static GBytes *answer_of(GBytes *file)
{
	struct image *image = image_new_unpacked(IMAGE_PROGRAM, file, false, NULL);
	GByteArray *answer = image ? usdt_notes_encode(image) : g_byte_array_new();

	image_free(image);
	return g_byte_array_free_to_bytes(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const bool is_file = size > 0 && data[0] % 2 == 0;
	g_autoptr(GBytes) input = g_bytes_new(size > 0 ? data + 1 : NULL, size > 0 ? size - 1 : 0);
	g_autoptr(GBytes) answer = is_file ? answer_of(input) : g_bytes_ref(input);
	struct usdt_notes *notes = usdt_notes_decode(answer);

	g_assert(!is_file || notes);
	for (size_t i = 0; notes && i < notes->n; i++) {
		g_assert(notes->all[i].provider && notes->all[i].name);
		read_operands(&notes->all[i]);
	}
	usdt_notes_free(notes);
	return 0;
}
