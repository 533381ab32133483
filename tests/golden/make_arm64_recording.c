// SPDX-License-Identifier: BSD-2-Clause
/* An arm64 guest with KASLR: its recording, and its kernel as it was linked. */
#include "make_recordings.h"

#include "../support/elf_builder.h"

#define LINKED UINT64_C(0xffff800080000000)
#define SLIDE UINT64_C(0x2ac4c3a10000) /* beyond what an x86-64 kernel can slide */
#define PLACE (LINKED + SLIDE)
#define CALLER UINT64_C(0x100)
#define CALLEE UINT64_C(0x200)

static const struct recording_symbol names[] = {
	{PLACE + CALLER, 0x100, "do_idle", ""},
	{PLACE + CALLEE, 0x20, "memcpy", ""},
};
static const uint8_t build_id[20] = {0xa6, 0x64};

/* At CALLEE. A CPU profile of it tells the instructions apart. */
static const uint32_t code[] = {
	0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
	0x910003fd, /* mov x29, sp */
	0xb4000042, /* cbz x2, CALLEE + 0x10 */
	0x97ffffbd, /* bl CALLER */
	0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
	0x37000000, /* tbnz w0, #0, itself */
	0xd65f03c0, /* ret */
	0x00000000, /* data */
};

static void kernel_make(const char *path)
{
	static uint8_t text[0x1000];
	g_autoptr(GByteArray) notes = g_byte_array_new(), file = NULL;
	struct elf_builder elf;
	GError *error = NULL;
	uint16_t section;

	memcpy(text + CALLEE, code, sizeof(code));
	elf_builder_init(&elf);
	elf.machine = EM_AARCH64;
	section = elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
	                                                         LINKED, LINKED, text, sizeof(text), 0});
	elf_builder_note(notes, "GNU", NT_GNU_BUILD_ID, build_id, sizeof(build_id));
	elf_builder_section(&elf, (struct elf_section){".notes", SHT_NOTE, SHF_ALLOC, LINKED + 0x2000, LINKED + 0x2000,
	                                               notes->data, notes->len, 0});
	elf_builder_symbol(&elf, "_text", LINKED, 0, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), section);
	elf_builder_symbol(&elf, "do_idle", LINKED + CALLER, 0x100, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), section);
	/* Mapping symbols (ELF for the Arm 64-bit Architecture, 4.5.4) stand beside functions and name nothing. */
	elf_builder_symbol(&elf, "$x", LINKED + CALLEE, 0, ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), section);
	elf_builder_symbol(&elf, "memcpy", LINKED + CALLEE, sizeof(code), ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), section);
	elf_builder_symbol(&elf, "$d", LINKED + CALLEE + 0x1c, 0, ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), section);
	file = elf_builder_finish(&elf);
	must(g_file_set_contents(path, (const char *)file->data, file->len, &error), error);
	elf_builder_deinit(&elf);
}

/* Eight samples in the callee, one of them in its data, and two in the caller. */
static void samples_write(struct recording_writer *writer, const uint64_t *periods)
{
	static const uint64_t offsets[] = {0, 4, 4, 0xc, 0x10, 0x18, 0x18, 0x1c};

	for (unsigned i = 0; i < G_N_ELEMENTS(offsets) + 2; i++) {
		const bool in_callee = i < G_N_ELEMENTS(offsets);
		const uint64_t ip = PLACE + (in_callee ? CALLEE + offsets[i] : CALLER + 4);
		const uint64_t chain[] = {PERF_CONTEXT_KERNEL, ip, PLACE + CALLER + 8};

		sample_write(writer,
		             &(struct record_sample){
				     .id = clock_ids[0],
				     .ip = ip,
				     .time_ns = START_NS + i,
				     .period = periods ? periods[i] : 1000000,
				     .misc = PERF_RECORD_MISC_KERNEL | VPROF_CHAIN_WHOLE << VPROF_CHAIN_END_SHIFT,
				     .chain = chain,
				     .n_chain = in_callee ? 3 : 2,
			     });
	}
}

/* The description may be NULL: the usual one, and `periods`: the one of the event. */
static void recording_make(const char *path, const char *description, const uint64_t *periods)
{
	struct recording_event event = event_make("cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, clock_ids);
	struct recording_features features = features_make(names, G_N_ELEMENTS(names));
	struct recording_writer *writer;

	features.arch = ARCH_ARM64;
	features.release = "6.12.0-arm64";
	features.kernel_build_id = build_id;
	if (description)
		features.description = description;
	event.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	writer = writer_open(path, &event, 1);
	kernel_mapping_write(writer, PLACE);
	samples_write(writer, periods);
	writer_finish(writer, &features);
}

void arm64_make(const char *path, const char *kernel)
{
	recording_make(path, NULL, NULL);
	kernel_make(kernel);
}

void late_make(const char *path)
{
	static const char description[] =
		"{\"version\": 1, \"guest\": {\"name\": \"golden\", \"kind\": \"kvm\", \"vcpus\": 2},"
		" \"rate\": {\"period\": 1000000}}";
	static const uint64_t periods[] = {980000,  1010000, 990000,  1020000, 1010000,
	                                   1000000, 990000,  1250000, 1010000, 2740000};

	recording_make(path, description, periods);
}
