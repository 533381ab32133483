// SPDX-License-Identifier: BSD-2-Clause
/* The texts of QEMU's human monitor, as versions 7.2 and 9.2 print them. */
#include <check.h>
#include <string.h>

#include "attach/hmp.h"
#include "run_suite.h"

/* By TCG, the views of system management mode come first. */
static const char mtree[] = "FlatView #0\n"
			    " AS \"PIIX3\", root: bus master container\n"
			    " Root memory region: (none)\n"
			    "  No rendered FlatView\n"
			    "\n"
			    "FlatView #1\n"
			    " AS \"cpu-smm-0\", root: memory\n"
			    " Root memory region: memory\n"
			    "  0000000000000000-00000000000bffff (prio 0, ram): smram\n"
			    "\n"
			    "FlatView #2\n"
			    " AS \"I/O\", root: io\n"
			    " Root memory region: io\n"
			    "  0000000000000000-0000000000000007 (prio 0, i/o): dma-chan\n"
			    "\n"
			    "FlatView #3\n"
			    " AS \"memory\", root: system\n"
			    " AS \"cpu-memory-0\", root: system\n"
			    " Root memory region: system\n"
			    "  0000000000000000-000000000009ffff (prio 0, ram): pc.ram KVM\n"
			    "  00000000000a0000-00000000000bffff (prio 1, i/o): vga-lowmem\n"
			    "  00000000000c0000-00000000000cafff (prio 0, rom): pc.ram @00000000000c0000 KVM\n"
			    "  0000000000100000-00000000bfffffff (prio 0, ram): pc.ram @0000000000100000 KVM\n"
			    "  00000000fd000000-00000000fdffffff (prio 1, ram): vga.vram KVM\n"
			    "  0000000100000000-000000013fffffff (prio 0, ram): pc.ram @00000000c0000000 KVM\n"
			    "\n"
			    "FlatView #4\n"
			    " AS \"memory\", root: other\n"
			    "  0000000000000000-ffffffffffffffff (prio 0, ram): more\n";

static const char two_vcpus[] =
	"\r\nCPU#0\r\n"
	"RAX=0000000000000001 RBX=0000000000000000 RCX=00000000000003fd RDX=00000000000003f8\r\n"
	"RSI=000000000000000a RDI=ffffffff80100cb6 RBP=ffffffff80107fb8 RSP=ffffffff80107fb0\r\n"
	"R8 =00000000000003f8 R9 =000000000000000d R10=ffffffff80107fc8 R11=0000000000000246\r\n"
	"R12=0000000000000000 R13=0000000000401fbb R14=0000000000279d32 R15=0000000000000000\r\n"
	"RIP=ffffffff80100c72 RFL=00000046 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\n"
	"ES =0018 0000000000000000 ffffffff 00c09300 DPL=0 DS   [-WA]\r\n"
	"GS =0010 ffff88807dc00000 ffffffff 00c09300 DPL=0 DS   [-WA]\r\n"
	"GDT=     ffffffff80101000 0000043f\r\n"
	"IDT=     ffffffff80147040 000001ff\r\n"
	"CR0=80010033 CR2=ffffffff801000cb CR3=0000000000102000 CR4=00001020\r\n"
	"DR6=00000000ffff0ff0 DR7=0000000000000400\r\n"
	"EFER=0000000000000d01\r\n"
	"FCW=037f FSW=0000 [ST=0] FTW=00 MXCSR=00001f80\r\n"
	"\r\nCPU#1\r\n"
	"EAX=000f49f6 EBX=00000000 ECX=000002ff EDX=00000001\r\n"
	"ESI=00000000 EDI=00000000 EBP=00000000 ESP=00006c5c\r\n"
	"EIP=000fd09a EFL=00000002 [-------] CPL=3 II=0 A20=1 SMM=0 HLT=0\r\n"
	"CS =f000 000f0000 0000ffff 00009b00 DPL=0 CS16 [-RA]\r\n"
	"GS =0010 00000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n"
	"IDT=     000f61be 00000000\r\n"
	"CR0=00000010 CR2=00000000 CR3=00000000 CR4=00000000\r\n"
	"EFER=0000000000000000\r\n";

START_TEST(ram_is_what_the_vcpus_see)
{
	static const struct hmp_ram_range expected[] = {
		{0, 0xa0000, "pc.ram", 0},
		{0xc0000, 0xb000, "pc.ram", 0xc0000},
		{0x100000, 0xbff00000, "pc.ram", 0x100000},
		{0xfd000000, 0x1000000, "vga.vram", 0},
		{UINT64_C(0x100000000), 0x40000000, "pc.ram", 0xc0000000},
	};
	static struct hmp_ram_range ranges[HMP_RAM_RANGES_MAX];

	ck_assert_uint_eq(hmp_parse_mtree(mtree, ranges), G_N_ELEMENTS(expected));
	for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
		ck_assert_uint_eq(ranges[i].gpa, expected[i].gpa);
		ck_assert_uint_eq(ranges[i].bytes, expected[i].bytes);
		ck_assert_str_eq(ranges[i].block, expected[i].block);
		ck_assert_uint_eq(ranges[i].offset, expected[i].offset);
	}
}
END_TEST

/* Each line is left out for one reason. */
START_TEST(wrong_ranges_are_left_out)
{
	static const char wrong[] =
		"FlatView #0\n"
		" AS \"memory\", root: system\n"
		"  0000000000001000-0000000000000fff (prio 0, ram): backwards\n"
		"  0000000000000000-ffffffffffffffff (prio 0, ram): everything\n"
		"  00000000000000000000-0000000000000fff (prio 0, ram): digits\n"
		"  0000000000000000-0000000000000fff (prio 0, ram): \n"
		"  0000000000002000-0000000000002fff (prio 0, ram): good\n"
		"  0000000000002800-0000000000003fff (prio 0, ram): overlaps\n"
		"  0000000000001000-0000000000001fff (prio 0, ram): disorder\n"
		"  0000000000004000-0000000000004fff (prio 0, ram): a-name-that-is-longer-than-sixty-three-characters-is-nobodys-name\n"
		"  0000000000005000-0000000000005fff (prio 0, ram): block @nonsense\n";
	static struct hmp_ram_range ranges[HMP_RAM_RANGES_MAX];

	ck_assert_uint_eq(hmp_parse_mtree(wrong, ranges), 1);
	ck_assert_str_eq(ranges[0].block, "good");
	ck_assert_uint_eq(hmp_parse_mtree("", ranges), 0);
}
END_TEST

START_TEST(host_addresses)
{
	uint64_t hva;

	ck_assert(hmp_parse_gpa2hva("Host virtual address for 0x0 (pc.ram) is 0x7f3027e00000\r\n", &hva));
	ck_assert_uint_eq(hva, UINT64_C(0x7f3027e00000));
	ck_assert(!hmp_parse_gpa2hva("No memory is mapped at address 0x7000000000\r\n", &hva));
	ck_assert(!hmp_parse_gpa2hva("Host virtual address for 0x0 (pc.ram) is 0x11111111111111111\r\n", &hva));
}
END_TEST

START_TEST(registers_of_each_vcpu)
{
	struct seen_vcpu registers[GUEST_VCPUS_MAX];
	const struct guest_regs *regs = &registers[0].regs;

	ck_assert_uint_eq(hmp_parse_registers(two_vcpus, registers, 2), 2);
	ck_assert_uint_eq(regs->rip, UINT64_C(0xffffffff80100c72));
	ck_assert_uint_eq(regs->rsp, UINT64_C(0xffffffff80107fb0));
	ck_assert_uint_eq(regs->rbp, UINT64_C(0xffffffff80107fb8));
	ck_assert_uint_eq(regs->rdx, 0x3f8);
	ck_assert_uint_eq(regs->r10, UINT64_C(0xffffffff80107fc8));
	ck_assert_uint_eq(regs->r13, 0x401fbb);
	ck_assert_uint_eq(regs->cr3, 0x102000);
	ck_assert_uint_eq(regs->gs_base, UINT64_C(0xffff88807dc00000));
	ck_assert_uint_eq(regs->cpl, 0);
	ck_assert(regs->la57 && regs->valid);
	ck_assert_uint_eq(registers[0].vectors, UINT64_C(0xffffffff80147040));
	ck_assert(registers[0].halted && registers[0].long_mode);
	ck_assert_uint_eq(registers[1].vcpu, 1);
	ck_assert_uint_eq(registers[1].regs.rip, 0xfd09a);
	ck_assert_uint_eq(registers[1].regs.cpl, 3);
	ck_assert(!registers[1].halted && !registers[1].long_mode);
	ck_assert(!regs->real_mode && registers[1].regs.real_mode);
	ck_assert_uint_eq(registers[1].regs.cs_base, 0xf0000);
	/* A vCPU that was plugged in since is left out, and so is one with a truncated dump. */
	ck_assert_uint_eq(hmp_parse_registers(two_vcpus, registers, 1), 1);
	g_autofree char *cut = g_strndup(two_vcpus, strlen(two_vcpus) - 40);

	ck_assert_uint_eq(hmp_parse_registers(cut, registers, 2), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hmp");
	TCase *tc = tcase_create("hmp");

	tcase_add_test(tc, ram_is_what_the_vcpus_see);
	tcase_add_test(tc, wrong_ranges_are_left_out);
	tcase_add_test(tc, host_addresses);
	tcase_add_test(tc, registers_of_each_vcpu);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
