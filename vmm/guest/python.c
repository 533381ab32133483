// SPDX-License-Identifier: BSD-2-Clause
#include "guest/python.h"

#include <glib.h>
#include <string.h>
#include <vprof/recording.h>

#define NAME_MAX_BYTES 160u
#define STACK_BYTES_MAX (UINT64_C(256) << 20) /* between a stack pointer and the _PyCFrame that belongs to it */
#define CODE_UNITS_MAX (1u << 20)
#define UNIT_BYTES 2u

/* struct PyVarObject and PyASCIIObject, which are the same in both versions. */
#define OBJECT_SIZE 16u
#define TEXT_LENGTH 16u
#define TEXT_STATE 32u
#define STATE_COMPACT_ASCII (UINT32_C(3) << 5)

/* What is read of a _PyInterpreterFrame and a PyCodeObject at once. */
#define FRAME_BYTES 72u
#define CODE_BYTES 144u

/* Offsets of CPython's members, by its headers (Include/internal/pycore_*.h, Include/cpython). */
struct python_layout {
	uint32_t interpreters; /* _PyRuntimeState.interpreters.head */
	uint32_t threads;      /* PyInterpreterState.threads.head */
	uint32_t next, cframe; /* in PyThreadState */
	uint32_t current_frame, previous_cframe;
	uint32_t code, previous, instruction, owner; /* in _PyInterpreterFrame */
	uint32_t is_entry;                           /* there; 0: a frame of `owner_entry` ends those of a _PyCFrame */
	uint32_t name, file, line, instructions;     /* in PyCodeObject */
	uint32_t text;                               /* the characters behind a PyASCIIObject */
};

#define OWNER_C_STACK 3u /* FRAME_OWNED_BY_CSTACK */

static const struct python_layout python_3_11 = {
	.interpreters = 40,
	.threads = 16,
	.next = 8,
	.cframe = 56,
	.current_frame = 8,
	.previous_cframe = 16,
	.code = 32,
	.previous = 48,
	.instruction = 56,
	.owner = 69,
	.is_entry = 68,
	.name = 128,
	.file = 112,
	.line = 72,
	.instructions = 184,
	.text = 48,
};

static const struct python_layout python_3_12 = {
	.interpreters = 40,
	.threads = 72,
	.next = 8,
	.cframe = 56,
	.current_frame = 0,
	.previous_cframe = 8,
	.code = 0,
	.previous = 8,
	.instruction = 56,
	.owner = 70,
	.name = 128,
	.file = 112,
	.line = 68,
	.instructions = 192,
	.text = 40,
};

const struct python_layout *python_layout_find(uint32_t version)
{
	switch (version >> 16) {
	case 0x030b:
		return &python_3_11;
	case 0x030c:
		return &python_3_12;
	default:
		return NULL;
	}
}

static uint64_t word_read(struct page_walk *memory, uint64_t from)
{
	uint64_t word;

	return page_walk_read(memory, (gva_t){from}, &word, sizeof(word)) ? word : 0;
}

void python_walk_init(struct python_walk *walk, const struct python_process *process, struct page_walk *memory,
                      uint64_t sp)
{
	const struct python_layout *layout = process->layout;
	uint64_t nearest = STACK_BYTES_MAX, thread;

	*walk = (struct python_walk){.layout = layout};
	if (!layout)
		return;
	thread = word_read(memory, process->runtime + layout->interpreters);
	thread = thread != 0 ? word_read(memory, thread + layout->threads) : 0;
	for (unsigned i = 0; thread != 0 && i < PYTHON_THREADS_MAX; i++) {
		const uint64_t cframe = word_read(memory, thread + layout->cframe);

		if (cframe - sp < nearest) {
			nearest = cframe - sp;
			walk->cframe = cframe;
		}
		thread = word_read(memory, thread + layout->next);
	}
}

static uint64_t word_at(const uint8_t *bytes, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static bool code_read(const struct python_layout *layout, struct page_walk *memory, uint64_t instruction,
                      struct python_frame *frame)
{
	uint8_t code[CODE_BYTES];

	if (!page_walk_read(memory, (gva_t){frame->code}, code, sizeof(code)))
		return false;
	const uint64_t units = word_at(code, OBJECT_SIZE);

	frame->name = word_at(code, layout->name);
	frame->file = word_at(code, layout->file);
	memcpy(&frame->line, code + layout->line, sizeof(frame->line));
	frame->start = frame->code + layout->instructions;
	if (units == 0 || units > CODE_UNITS_MAX || frame->start >> 47 != 0)
		return false;
	frame->end = frame->start + units * UNIT_BYTES;
	/* A frame that has not begun is before its first instruction. */
	frame->ip = instruction >= frame->start && instruction < frame->end ? instruction + 1 : frame->start + 1;
	return true;
}

bool python_walk_next(struct python_walk *walk, struct page_walk *memory, uint64_t from, uint64_t to,
                      struct python_frame *frame)
{
	const struct python_layout *layout = walk->layout;
	uint8_t bytes[FRAME_BYTES];
	bool last;

	if (walk->frame == 0 && (walk->cframe == 0 || walk->cframe < from || walk->cframe >= to))
		return false;
	if (walk->frame == 0) {
		walk->frame = word_read(memory, walk->cframe + layout->current_frame);
		/* Stacks grow down. */
		const uint64_t outer = word_read(memory, walk->cframe + layout->previous_cframe);

		walk->cframe = outer > walk->cframe ? outer : 0;
	}
	if (walk->frame == 0 || !page_walk_read(memory, (gva_t){walk->frame}, bytes, sizeof(bytes))) {
		walk->frame = 0;
		return false;
	}
	if (layout->is_entry == 0 && bytes[layout->owner] == OWNER_C_STACK) {
		walk->frame = 0;
		return false;
	}
	last = layout->is_entry != 0 && bytes[layout->is_entry] != 0;
	walk->frame = last ? 0 : word_at(bytes, layout->previous);
	frame->code = word_at(bytes, layout->code);
	if (code_read(layout, memory, word_at(bytes, layout->instruction), frame))
		return true;
	walk->frame = 0;
	return false;
}

/* Returns where it ends. */
static char *text_read(const struct python_layout *layout, struct page_walk *memory, uint64_t text, char *to)
{
	uint8_t head[TEXT_STATE + sizeof(uint32_t)];
	uint32_t state;
	uint64_t length;

	if (!page_walk_read(memory, (gva_t){text}, head, sizeof(head)))
		return g_stpcpy(to, "?");
	length = word_at(head, TEXT_LENGTH);
	memcpy(&state, head + TEXT_STATE, sizeof(state));
	if ((state & STATE_COMPACT_ASCII) != STATE_COMPACT_ASCII)
		return g_stpcpy(to, "?");
	length = MIN(length, NAME_MAX_BYTES);
	if (length == 0 || !page_walk_read(memory, (gva_t){text + layout->text}, to, length))
		return g_stpcpy(to, "?");
	for (uint64_t i = 0; i < length; i++)
		if (!g_ascii_isprint(to[i]))
			to[i] = '?';
	to[length] = '\0';
	return to + length;
}

void python_frame_name(const struct python_frame *frame, const struct python_process *process, struct page_walk *memory,
                       char name[PYTHON_NAME_BYTES])
{
	_Static_assert(sizeof(VPROF_PYTHON ":") + 2 * (NAME_MAX_BYTES + 1) <= PYTHON_NAME_BYTES, "both texts fit");
	char *end = g_stpcpy(name, VPROF_PYTHON);

	end = text_read(process->layout, memory, frame->name, end);
	*end++ = ':';
	text_read(process->layout, memory, frame->file, end);
}
