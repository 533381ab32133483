// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "kvm/boot/boot.h"
#include "kvm/boot/x86/boot_layout.h"
#include "kvm/boot/x86/boot_protocol.h"
#include "run_suite.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

#define KERNEL_GPA MIB(1)
#define PVH_ENTRY (KERNEL_GPA + 0x20)
#define BANNER "Linux version 6.1.0-test (test@nowhere)"

/* A segment with some bytes in the file (a banner makes it a Linux kernel) and zeroes behind them. */
struct fixture_segment {
	uint64_t gpa;
	uint64_t memory_bytes;
};

struct fixture {
	uint64_t entry; /* 0: the first segment's start */
	const char *text;
	bool pvh_note;
	struct fixture_segment segment[4]; /* up to the first without memory_bytes */
};

#define XEN_ELFNOTE_PHYS32_ENTRY 18u

struct pvh_note {
	Elf64_Nhdr header;
	char name[4];
	uint32_t entry;
};

static const struct fixture plain = {.text = "not a penguin", .segment = {{KERNEL_GPA, 0x3000}}};
static const struct fixture with_note = {.text = "unikernel", .pvh_note = true, .segment = {{KERNEL_GPA, 0x3000}}};
static const struct fixture linux_with_note = {.text = BANNER, .pvh_note = true, .segment = {{KERNEL_GPA, 0x3000}}};

static struct memory *memory;

static void memory_make(void)
{
	memory = memory_new(MIB(128), NULL);
	ck_assert_ptr_nonnull(memory);
}

static void memory_drop(void)
{
	memory_free(memory);
}

/* File: ELF header, program headers, the note, the text, which every segment has as its contents. */
static struct image *image_make(const struct fixture *fixture)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr program[5];
		struct pvh_note note;
		char text[64];
	} file = {
		.header =
			{
				.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
				.e_type = ET_EXEC,
				.e_machine = EM_X86_64,
				.e_version = EV_CURRENT,
				.e_ehsize = sizeof(Elf64_Ehdr),
				.e_entry = fixture->entry ? fixture->entry : fixture->segment[0].gpa,
				.e_phoff = sizeof(Elf64_Ehdr),
				.e_phentsize = sizeof(Elf64_Phdr),
			},
		.note = {{.n_namesz = 4, .n_descsz = 4, .n_type = XEN_ELFNOTE_PHYS32_ENTRY}, "Xen", PVH_ENTRY},
	};
	Elf64_Phdr *program = file.program;
	GError *error = NULL;

	g_strlcpy(file.text, fixture->text, sizeof(file.text));
	for (unsigned i = 0; i < G_N_ELEMENTS(fixture->segment) && fixture->segment[i].memory_bytes > 0; i++)
		*program++ = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = offsetof(typeof(file), text),
			.p_paddr = fixture->segment[i].gpa,
			.p_vaddr = fixture->segment[i].gpa,
			.p_filesz = sizeof(file.text),
			.p_memsz = fixture->segment[i].memory_bytes,
		};
	if (fixture->pvh_note)
		*program++ = (Elf64_Phdr){
			.p_type = PT_NOTE,
			.p_offset = offsetof(typeof(file), note),
			.p_filesz = sizeof(file.note),
			.p_align = 4,
		};
	file.header.e_phnum = (Elf64_Half)(program - file.program);

	g_autoptr(GBytes) bytes = g_bytes_new(&file, sizeof(file));
	struct image *image = image_new("test.elf", bytes, &error);

	ck_assert_msg(image != NULL, "%s", error ? error->message : "?");
	return image;
}

static bool load(const struct fixture *fixture, struct boot_config config, struct boot_state *state, GError **error)
{
	struct image *image = image_make(fixture);
	bool loaded;

	config.image = image;
	config.vcpus = config.vcpus ? config.vcpus : 1;
	config.command_line = config.command_line ? config.command_line : "quiet";
	loaded = boot_load(memory, &config, state, error);
	image_free(image);
	return loaded;
}

static struct boot_state load_well(const struct fixture *fixture, struct boot_config config)
{
	struct boot_state state;
	GError *error = NULL;

	ck_assert_msg(load(fixture, config, &state, &error), "%s", error ? error->message : "?");
	return state;
}

/* The message has to have `words` in it. */
static void assert_refused(const struct fixture *fixture, struct boot_config config, enum boot_error code,
                           const char *words)
{
	struct boot_state state = {.rip = 42};
	g_autoptr(GError) error = NULL;

	ck_assert(!load(fixture, config, &state, &error));
	ck_assert_msg(g_error_matches(error, BOOT_ERROR, (int)code), "%s", error->message);
	ck_assert_msg(strstr(error->message, words) != NULL, "\"%s\" lacks \"%s\"", error->message, words);
	ck_assert_uint_eq(state.rip, 42);
}

static const void *guest(uint64_t gpa, uint64_t bytes)
{
	const void *host = memory_at(memory, (gpa_t){gpa}, bytes);

	ck_assert_ptr_nonnull(host);
	return host;
}

static const struct boot_params *boot_params(void)
{
	return guest(BOOT_PARAMS_GPA, sizeof(struct boot_params));
}

/* A file of `bytes` bytes with a pattern at its start and its end, sparse between. */
static char *initrd_make(off_t bytes)
{
	char *path = NULL;
	int fd = g_file_open_tmp("initrd.XXXXXX", &path, NULL);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, bytes), 0);
	if (bytes > 0) {
		ck_assert_int_eq(pwrite(fd, "A", 1, 0), 1);
		ck_assert_int_eq(pwrite(fd, "Z", 1, bytes - 1), 1);
	}
	close(fd);
	return path;
}

START_TEST(segments_lie_where_they_want)
{
	const struct fixture fixture = {.text = "contents", .segment = {{KERNEL_GPA, 0x3000}, {0x10000, 0x1000}}};
	const char *kernel;

	load_well(&fixture, (struct boot_config){0});
	kernel = guest(KERNEL_GPA, 0x3000);
	ck_assert_str_eq(kernel, "contents");
	for (size_t i = 64; i < 0x3000; i++)
		ck_assert_int_eq(kernel[i], 0);
	ck_assert_str_eq(guest(0x10000, 0x1000), "contents");
}
END_TEST

START_TEST(segments_outside_memory_are_refused)
{
	static const struct {
		struct fixture_segment segment;
		const char *words;
	} cases[] = {
		{{MIB(128), 0x1000}, "0x8000000"},
		{{MIB(128) - 0x1000, 0x1001}, "0x0..0x7ffffff"},
		{{GIB(3), 0x1000}, "test.elf"},
		{{GIB(4), 0x1000}, "is not all in the guest's memory"},
		{{MIB(2), UINT64_MAX - MIB(2)}, "is not all in the guest's memory"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const struct fixture fixture = {.text = "", .segment = {{KERNEL_GPA, 0x1000}, cases[i].segment}};

		assert_refused(&fixture, (struct boot_config){0}, BOOT_ERROR_MEMORY, cases[i].words);
	}
}
END_TEST

START_TEST(segments_on_the_loaders_pages_are_refused)
{
	static const struct {
		struct fixture_segment segment;
		const char *words;
	} cases[] = {
		{{0, 0x1001}, "0x0..0x1000 overlaps the boot loader's own range at 0x1000..0xbfff"},
		{{0xbfff, 0x40}, "the boot loader's own range"},
		{{0x20000, 0x60000}, "the host quirk's range at 0x70000..0x73fff"},
		{{0x9e000, 0x1001}, "the BIOS range at 0x9f000..0xfffff"},
		{{0xfffff, 0x1000}, "the BIOS range"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const struct fixture fixture = {.text = "", .segment = {cases[i].segment}};
		const struct boot_config config = {.reserved = {0x70000}, .reserved_bytes = 0x4000};

		assert_refused(&fixture, config, BOOT_ERROR_MEMORY, cases[i].words);
	}
}
END_TEST

START_TEST(segments_may_touch_the_loaders_pages)
{
	const struct fixture fixture = {.text = "", .segment = {{0, 0x1000}, {0xc000, 0x64000}, {0x74000, 0x2b000}}};
	const struct boot_config config = {.reserved = {0x70000}, .reserved_bytes = 0x4000};

	load_well(&fixture, config);
}
END_TEST

START_TEST(reserved_range_may_not_be_ours)
{
	assert_refused(&plain, (struct boot_config){.reserved = {0x9000}, .reserved_bytes = 0x1000}, BOOT_ERROR_MEMORY,
	               "the host quirk's range at 0x9000..0x9fff overlaps the boot loader's own range");
}
END_TEST

static void assert_map_covers(uint64_t bytes, uint64_t reserved, uint64_t reserved_bytes)
{
	struct memory *of_size = memory_new(bytes, NULL);
	struct boot_e820_entry map[BOOT_MEMORY_MAP_MAX];
	unsigned n = boot_memory_map(of_size, reserved, reserved_bytes, map);
	uint64_t sum = 0, next = 0;
	bool reserved_seen = reserved_bytes == 0, bios_seen = false;

	ck_assert_uint_le(n, BOOT_MEMORY_MAP_MAX);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_gt(map[i].size, 0);
		ck_assert(map[i].addr == next || map[i].addr == MEMORY_HIGH_BASE);
		ck_assert(map[i].type == 1 || map[i].type == 2);
		ck_assert_ptr_nonnull(memory_at(of_size, (gpa_t){map[i].addr}, map[i].size));
		next = map[i].addr + map[i].size;
		sum += map[i].size;
		reserved_seen |= map[i].type == 2 && map[i].addr == reserved && map[i].size == reserved_bytes;
		bios_seen |= map[i].type == 2 && map[i].addr == BOOT_BIOS_GPA && next == BOOT_BIOS_END;
	}
	ck_assert_uint_eq(sum, bytes);
	ck_assert(reserved_seen);
	ck_assert(bios_seen);
	memory_free(of_size);
}

START_TEST(memory_map_adds_up)
{
	static const uint64_t sizes[] = {MIB(128), GIB(3), GIB(3) + MIB(2), GIB(4), GIB(64)};

	for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
		assert_map_covers(sizes[i], 0, 0);
		assert_map_covers(sizes[i], 0x90000, 0x4000);
		assert_map_covers(sizes[i], BOOT_BIOS_GPA - 0x1000, 0x1000);
	}
}
END_TEST

START_TEST(linux_gets_its_boot_params)
{
	struct boot_state state = load_well(&linux_with_note, (struct boot_config){.command_line = "console=ttyS0"});
	const struct boot_params *params = boot_params();

	ck_assert_int_eq(state.protocol, BOOT_LINUX);
	ck_assert_uint_eq(state.rip, KERNEL_GPA);
	ck_assert_uint_eq(state.rsi, BOOT_PARAMS_GPA);
	ck_assert_uint_eq(params->sentinel, 0);
	ck_assert_uint_eq(params->hdr.boot_flag, 0xaa55);
	ck_assert_uint_eq(params->hdr.header, 0x53726448);
	ck_assert_uint_eq(params->hdr.type_of_loader, 0xff);
	ck_assert_uint_eq(params->hdr.loadflags, LOADED_HIGH);
	ck_assert_uint_eq(params->hdr.ramdisk_size, 0);
	ck_assert_uint_eq(params->acpi_rsdp_addr, BOOT_ACPI_GPA);
	ck_assert_mem_eq(guest(params->acpi_rsdp_addr, 8), "RSD PTR ", 8);
	ck_assert_mem_eq(guest(BOOT_MPTABLE_GPA, 4), "_MP_", 4);
	ck_assert_str_eq(guest(params->hdr.cmd_line_ptr, 64), "console=ttyS0");
	ck_assert_uint_eq(params->e820_entries, 3);
	ck_assert_uint_eq(params->e820_table[2].addr, MIB(1));
	ck_assert_uint_eq(params->e820_table[2].size, MIB(127));
}
END_TEST

START_TEST(setup_header_of_a_bzimage_is_kept)
{
	struct setup_header header = {
		.boot_flag = 0xaa55,
		.header = 0x53726448,
		.version = 0x20f,
		.loadflags = LOADED_HIGH | KASLR_FLAG,
		.pref_address = 0x1000000,
		.cmd_line_ptr = 0xdeadbeef,
	};
	struct boot_loaded loaded = {.memory = memory, .initrd = {0x7000000, 77}};
	struct boot_state state;
	const struct setup_header *kept = &boot_params()->hdr;

	boot_linux_write(&loaded, (const uint8_t *)&header, offsetof(struct setup_header, init_size), &state);
	ck_assert_uint_eq(kept->version, 0x20f);
	ck_assert_uint_eq(kept->pref_address, 0x1000000);
	ck_assert_uint_eq(kept->loadflags, LOADED_HIGH);
	ck_assert_uint_eq(kept->cmd_line_ptr, BOOT_COMMAND_LINE_GPA);
	ck_assert_uint_eq(kept->ramdisk_image, 0x7000000);
	ck_assert_uint_eq(kept->ramdisk_size, 77);
}
END_TEST

START_TEST(page_tables_map_4_gib_to_itself)
{
	struct boot_state state = load_well(&plain, (struct boot_config){0});

	for (uint64_t address = 0; address < GIB(4); address += MIB(2)) {
		const uint64_t *pml4 = guest(state.cr3, 4096);
		const uint64_t *pdpt = guest(pml4[address >> 39 & 511] & ~UINT64_C(0xfff), 4096);
		const uint64_t *pd = guest(pdpt[address >> 30 & 511] & ~UINT64_C(0xfff), 4096);

		ck_assert_uint_eq(pml4[address >> 39 & 511] & 3, 3);
		ck_assert_uint_eq(pdpt[address >> 30 & 511] & 0x83, 3);
		ck_assert_uint_eq(pd[address >> 21 & 511], address | 0x83);
	}
}
END_TEST

START_TEST(pvh_gets_its_start_info)
{
	g_autofree char *initrd = initrd_make(5000);
	struct boot_state state =
		load_well(&with_note, (struct boot_config){.initrd_path = initrd, .command_line = "hello"});
	const uint32_t *info32 = guest(state.rbx, 56);
	const uint64_t *info64 = guest(state.rbx, 56);
	const uint64_t *module = guest(info64[2], 32);
	const uint64_t *map = guest(info64[5], UINT64_C(24) * info32[12]);

	g_unlink(initrd);
	ck_assert_int_eq(state.protocol, BOOT_PVH);
	ck_assert_uint_eq(state.rip, PVH_ENTRY);
	ck_assert_uint_eq(info32[0], 0x336ec578);
	ck_assert_uint_eq(info32[1], 1);
	ck_assert_uint_eq(info32[3], 1);
	ck_assert_str_eq(guest(info64[3], 6), "hello");
	ck_assert_uint_eq(info64[4], BOOT_ACPI_GPA);
	ck_assert_str_eq(guest(module[0], 5000), "A");
	ck_assert_uint_eq(module[1], 5000);
	ck_assert_uint_eq(info32[12], 3);
	ck_assert_uint_eq(map[6], MIB(1));
	ck_assert_uint_eq(map[7], MIB(127));
	ck_assert_uint_eq(map[8], 1);
}
END_TEST

START_TEST(protocol_follows_kernel_and_wish)
{
	ck_assert_int_eq(load_well(&with_note, (struct boot_config){.protocol = BOOT_AUTO}).protocol, BOOT_PVH);
	ck_assert_int_eq(load_well(&with_note, (struct boot_config){.protocol = BOOT_LINUX}).protocol, BOOT_LINUX);
	ck_assert_int_eq(load_well(&plain, (struct boot_config){.protocol = BOOT_AUTO}).protocol, BOOT_LINUX);
	ck_assert_int_eq(load_well(&linux_with_note, (struct boot_config){.protocol = BOOT_PVH}).protocol, BOOT_PVH);
	assert_refused(&plain, (struct boot_config){.protocol = BOOT_PVH}, BOOT_ERROR_PROTOCOL, "PHYS32_ENTRY");
}
END_TEST

START_TEST(entry_points_outside_segments_are_refused)
{
	static const uint64_t entries[] = {KERNEL_GPA - 1, KERNEL_GPA + 0x3000, UINT64_C(0xffffffff81000000)};

	for (size_t i = 0; i < G_N_ELEMENTS(entries); i++) {
		const struct fixture fixture = {.entry = entries[i], .text = "", .segment = {{KERNEL_GPA, 0x3000}}};

		assert_refused(&fixture, (struct boot_config){0}, BOOT_ERROR_PROTOCOL, "entry point");
	}
}
END_TEST

START_TEST(initramfs_lies_at_the_top)
{
	g_autofree char *path = initrd_make(0x12345);
	const struct boot_params *params = boot_params();
	const char *initrd;

	load_well(&plain, (struct boot_config){.initrd_path = path});
	g_unlink(path);
	ck_assert_uint_eq(params->hdr.ramdisk_image, MIB(128) - 0x13000);
	ck_assert_uint_eq(params->hdr.ramdisk_size, 0x12345);
	initrd = guest(params->hdr.ramdisk_image, 0x13000);
	ck_assert_int_eq(initrd[0], 'A');
	ck_assert_int_eq(initrd[0x12344], 'Z');
	ck_assert_int_eq(initrd[0x12345], 0);
}
END_TEST

START_TEST(initramfs_stays_below_2_gib)
{
	g_autofree char *path = initrd_make(100);

	memory_free(memory);
	memory = memory_new(GIB(4), NULL);
	load_well(&plain, (struct boot_config){.initrd_path = path});
	g_unlink(path);
	ck_assert_uint_eq(boot_params()->hdr.ramdisk_image, GIB(2) - 0x1000);
}
END_TEST

static void assert_initrd_refused(const char *path, enum boot_error code, const char *words)
{
	assert_refused(&plain, (struct boot_config){.initrd_path = path}, code, words);
}

START_TEST(initramfs_that_cannot_be_loaded)
{
	g_autofree char *larger = initrd_make((off_t)MIB(200));
	g_autofree char *too_large = initrd_make((off_t)MIB(127) - 0x2000);
	g_autofree char *empty = initrd_make(0);

	assert_initrd_refused(larger, BOOT_ERROR_MEMORY, "209715200 bytes");
	assert_initrd_refused(too_large, BOOT_ERROR_MEMORY, "overlaps a kernel segment at 0x100000..0x102fff");
	assert_initrd_refused(empty, BOOT_ERROR_IO, "empty");
	assert_initrd_refused("/", BOOT_ERROR_IO, "not a regular file");
	g_unlink(empty);
	ck_assert_int_eq(mkfifo(empty, 0600), 0); /* without a writer: it must not wait */
	assert_initrd_refused(empty, BOOT_ERROR_IO, "not a regular file");
	assert_initrd_refused("/nonexistent/initrd", BOOT_ERROR_IO, "No such file");
	g_unlink(larger);
	g_unlink(too_large);
	g_unlink(empty);
}
END_TEST

START_TEST(command_lines_have_a_limit)
{
	g_autofree char *longest = g_strnfill(BOOT_COMMAND_LINE_BYTES_MAX - 1, 'x');
	g_autofree char *too_long = g_strnfill(BOOT_COMMAND_LINE_BYTES_MAX, 'x');

	load_well(&plain, (struct boot_config){.command_line = longest});
	ck_assert_str_eq(guest(boot_params()->hdr.cmd_line_ptr, 4096), longest);
	assert_refused(&plain, (struct boot_config){.command_line = too_long}, BOOT_ERROR_RANGE, "2048 bytes");
}
END_TEST

START_TEST(vcpus_have_a_limit)
{
	struct image *image = image_make(&plain);
	struct boot_config config = {.image = image, .command_line = ""};
	struct boot_state state;

	for (unsigned vcpus = 0; vcpus <= GUEST_VCPUS_MAX + 1; vcpus++) {
		bool possible = vcpus >= 1 && vcpus <= GUEST_VCPUS_MAX;

		config.vcpus = vcpus;
		ck_assert_int_eq(boot_load(memory, &config, &state, NULL), possible);
	}
	image_free(image);
}
END_TEST

/* Base, limit in bytes and access rights of a descriptor, as the processor takes them apart. */
static void assert_descriptor(const struct boot_state *state, const struct kvm_segment *segment)
{
	uint64_t raw;
	uint64_t limit;

	ck_assert_uint_le(segment->selector + 7u, state->gdt_limit);
	memcpy(&raw, guest(state->gdt_base + segment->selector, 8), sizeof(raw));
	limit = (raw & 0xffff) | (raw >> 32 & 0xf0000);
	ck_assert_uint_eq((raw >> 16 & 0xffffff) | (raw >> 32 & 0xff000000), segment->base);
	ck_assert_uint_eq(segment->g ? limit << 12 | 0xfff : limit, segment->limit);
	ck_assert_uint_eq(raw >> 40 & 0x1f, segment->type | segment->s << 4);
	ck_assert_uint_eq(raw >> 47 & 1, segment->present);
	ck_assert_uint_eq(raw >> 53 & 7, segment->l | segment->db << 1 | segment->g << 2);
}

static void registers_of(const struct boot_state *state, struct kvm_regs *regs, struct kvm_sregs *sregs)
{
	*sregs = (struct kvm_sregs){.apic_base = 0xfee00900};
	boot_registers(state, regs, sregs);
	ck_assert_uint_eq(sregs->apic_base, 0xfee00900);
	ck_assert_uint_eq(regs->rip, state->rip);
	ck_assert_uint_eq(regs->rflags, 2);
	ck_assert_uint_eq(sregs->gdt.base, state->gdt_base);
	assert_descriptor(state, &sregs->cs);
	assert_descriptor(state, &sregs->ds);
	assert_descriptor(state, &sregs->ss);
	assert_descriptor(state, &sregs->tr);
}

START_TEST(linux_starts_in_long_mode)
{
	struct boot_state state = load_well(&plain, (struct boot_config){0});
	struct kvm_sregs sregs;
	struct kvm_regs regs;

	registers_of(&state, &regs, &sregs);
	ck_assert_uint_eq(regs.rsi, BOOT_PARAMS_GPA);
	ck_assert_uint_eq(regs.rsp, 0x5000);
	ck_assert_uint_eq(sregs.cs.selector, 0x10);
	ck_assert_uint_eq(sregs.ss.selector, 0x18);
	ck_assert_uint_eq(sregs.cs.l, 1);
	ck_assert_uint_eq(sregs.cr0 & 0x80000001, 0x80000001);
	ck_assert_uint_eq(sregs.cr4, 0x20);
	ck_assert_uint_eq(sregs.cr3, state.cr3);
	ck_assert_uint_eq(sregs.efer, 0x500);
}
END_TEST

START_TEST(pvh_starts_in_protected_mode)
{
	struct boot_state state = load_well(&with_note, (struct boot_config){0});
	struct kvm_sregs sregs;
	struct kvm_regs regs;

	registers_of(&state, &regs, &sregs);
	ck_assert_uint_eq(regs.rbx, state.rbx);
	ck_assert_uint_eq(sregs.cs.l, 0);
	ck_assert_uint_eq(sregs.cs.db, 1);
	ck_assert_uint_eq(sregs.cs.limit, 0xffffffff);
	ck_assert_uint_eq(sregs.tr.limit, 0x67);
	ck_assert_uint_eq(sregs.cr0 & 0x80000001, 1);
	ck_assert_uint_eq(sregs.cr4, 0);
	ck_assert_uint_eq(sregs.efer, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("boot");
	TCase *tests = tcase_create("boot");

	tcase_add_checked_fixture(tests, memory_make, memory_drop);
	tcase_add_test(tests, segments_lie_where_they_want);
	tcase_add_test(tests, segments_outside_memory_are_refused);
	tcase_add_test(tests, segments_on_the_loaders_pages_are_refused);
	tcase_add_test(tests, segments_may_touch_the_loaders_pages);
	tcase_add_test(tests, reserved_range_may_not_be_ours);
	tcase_add_test(tests, memory_map_adds_up);
	tcase_add_test(tests, linux_gets_its_boot_params);
	tcase_add_test(tests, setup_header_of_a_bzimage_is_kept);
	tcase_add_test(tests, page_tables_map_4_gib_to_itself);
	tcase_add_test(tests, pvh_gets_its_start_info);
	tcase_add_test(tests, protocol_follows_kernel_and_wish);
	tcase_add_test(tests, entry_points_outside_segments_are_refused);
	tcase_add_test(tests, initramfs_lies_at_the_top);
	tcase_add_test(tests, initramfs_stays_below_2_gib);
	tcase_add_test(tests, initramfs_that_cannot_be_loaded);
	tcase_add_test(tests, command_lines_have_a_limit);
	tcase_add_test(tests, vcpus_have_a_limit);
	tcase_add_test(tests, linux_starts_in_long_mode);
	tcase_add_test(tests, pvh_starts_in_protected_mode);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
