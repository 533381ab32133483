// SPDX-License-Identifier: BSD-2-Clause
/* What others say about a domain: its XML, its threads' files in /proc, QEMU's answers about its vCPUs. */
#include <check.h>
#include <sys/syscall.h>

#include "attach/domain_xml.h"
#include "attach/qemu_process.h"
#include "attach/thread_clock.h"
#include "attach/vcpu_calls.h"
#include "attach/vcpu_statistics.h"
#include "run_suite.h"

START_TEST(xml_has_type_and_launch_security)
{
	struct domain_xml xml =
		domain_xml_parse("<?xml version='1.0'?>\n<!-- made by virsh -->\n"
	                         "<domain type=\"kvm\" id='3'><name>a &amp; b</name>"
	                         "<launchSecurity type='sev-snp'><policy>3</policy></launchSecurity></domain>");

	ck_assert_str_eq(xml.type, "kvm");
	ck_assert_str_eq(xml.security, "sev-snp");
	domain_xml_clear(&xml);
}
END_TEST

/* A description, or metadata, may hold the same words. */
START_TEST(only_the_domains_own_launch_security_counts)
{
	struct domain_xml xml =
		domain_xml_parse("<domain type='qemu'><description>launchSecurity type='sev'</description>"
	                         "<metadata><launchSecurity type='sev'/></metadata></domain>");

	ck_assert_str_eq(xml.type, "qemu");
	ck_assert_ptr_null(xml.security);
	domain_xml_clear(&xml);
}
END_TEST

START_TEST(broken_xml_says_what_could_be_read)
{
	struct domain_xml xml = domain_xml_parse("<domain type='kvm'><launchSecurity type='tdx'/><devices>");

	ck_assert_str_eq(xml.type, "kvm");
	ck_assert_str_eq(xml.security, "tdx");
	domain_xml_clear(&xml);
	xml = domain_xml_parse("<<<>");
	ck_assert_ptr_null(xml.type);
	xml = domain_xml_parse(NULL);
	ck_assert_ptr_null(xml.security);
}
END_TEST

static uint32_t cid_of(const char *text)
{
	struct domain_xml xml = domain_xml_parse(text);
	uint32_t cid = xml.vsock_cid;

	domain_xml_clear(&xml);
	return cid;
}

START_TEST(the_address_of_its_vsock_device_counts)
{
	ck_assert_uint_eq(cid_of("<domain type='kvm'><devices><disk><cid address='9'/></disk>"
	                         "<vsock model='virtio'><cid auto='yes' address='7'/></vsock></devices></domain>"),
	                  7);
	ck_assert_uint_eq(cid_of("<domain><devices><vsock><cid address='4294967294'/></vsock></devices></domain>"),
	                  UINT32_MAX - 1);
	ck_assert_uint_eq(cid_of("<domain><metadata><devices><vsock><cid address='7'/></vsock></devices></metadata>"
	                         "</domain>"),
	                  0);
	ck_assert_uint_eq(cid_of("<domain><vsock><cid address='7'/></vsock></domain>"), 0);
}
END_TEST

/* The host's own addresses, the wildcard, and what is not a number. */
START_TEST(no_guest_has_such_an_address)
{
	static const char *const addresses[] = {"address='2'",  "address='0'", "address='4294967295'",
	                                        "address='-5'", "address=''",  "address='7x'",
	                                        "auto='yes'"};

	for (size_t i = 0; i < G_N_ELEMENTS(addresses); i++) {
		g_autofree char *text =
			g_strdup_printf("<domain><devices><vsock><cid %s/></vsock></devices></domain>", addresses[i]);

		ck_assert_uint_eq(cid_of(text), 0);
	}
}
END_TEST

#define STAT_HEAD "4711 (CPU 0/KVM (a) b) S 1 2 3 4 5 6 7 8 9 10 "
#define STAT_TAIL " 120 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 100 44 45"

START_TEST(clocks_come_out_of_proc)
{
	struct thread_clock clock;

	ck_assert(thread_clock_parse("5000000000 70000000 99\n", STAT_HEAD "250" STAT_TAIL, 100, &clock));
	ck_assert_uint_eq(clock.cpu_ns, 5000000000);
	ck_assert_uint_eq(clock.runnable_ns, 70000000);
	ck_assert_uint_eq(clock.user_ns, 2500000000);
	ck_assert_uint_eq(clock.guest_ns, 1000000000);
	clock.cpu_ns = 1;
	ck_assert(!thread_clock_parse("", STAT_HEAD "250" STAT_TAIL, 100, &clock));
	ck_assert(!thread_clock_parse("1 2 3", "4711 (CPU 0/KVM) S 1 2 3", 100, &clock));
	ck_assert(!thread_clock_parse("1 2 3", "4711", 100, &clock));
	ck_assert_uint_eq(clock.cpu_ns, 1);
}
END_TEST

static json_t *parsed(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(value);
	return value;
}

START_TEST(totals_are_told_from_present_values)
{
	json_t *schemas =
		parsed("[{\"provider\":\"kvm\",\"target\":\"vm\",\"stats\":[{\"name\":\"pages_4k\",\"type\":"
	               "\"cumulative\"}]},{\"provider\":\"kvm\",\"target\":\"vcpu\",\"stats\":[{\"name\":\"exits\","
	               "\"type\":\"cumulative\"},{\"name\":\"guest_mode\",\"type\":\"instant\"},{\"name\":"
	               "\"halt_wait_hist\",\"type\":\"log2-histogram\"}]}]");
	json_t *answer =
		parsed("[{\"provider\":\"kvm\",\"qom-path\":\"/machine/unattached/device[0]\",\"stats\":[{\"name\":"
	               "\"guest_mode\",\"value\":false},{\"name\":\"exits\",\"value\":77},{\"name\":\"halt_wait_"
	               "hist\",\"value\":[1,2]},{\"name\":7,\"value\":7},{\"value\":8}]}]");
	struct guest_counter counters[GUEST_COUNTERS_MAX];
	GHashTable *totals = vcpu_statistics_totals(schemas);

	ck_assert_uint_eq(g_hash_table_size(totals), 1);
	ck_assert_uint_eq(vcpu_statistics_parse(answer, totals, counters), 1);
	ck_assert_str_eq(counters[0].name, "exits");
	ck_assert_uint_eq(counters[0].value, 77);
	ck_assert_uint_eq(vcpu_statistics_parse(NULL, totals, counters), 0);
	g_hash_table_unref(totals);
	json_decref(schemas);
	json_decref(answer);
}
END_TEST

START_TEST(vcpus_have_threads_and_paths_by_index)
{
	json_t *cpus =
		parsed("[{\"cpu-index\":2,\"thread-id\":12,\"qom-path\":\"/c\"},{\"cpu-index\":0,\"thread-id\":10,"
	               "\"qom-path\":\"/a\"}]");
	json_t *many = parsed("[{\"cpu-index\":64,\"thread-id\":12}]");
	char *paths[GUEST_VCPUS_MAX] = {NULL};
	pid_t threads[GUEST_VCPUS_MAX];

	ck_assert_uint_eq(qemu_threads_from_qmp(cpus, threads), 3);
	ck_assert_int_eq(threads[0], 10);
	ck_assert_int_eq(threads[1], 0);
	ck_assert_int_eq(threads[2], 12);
	qemu_paths_from_qmp(cpus, paths);
	ck_assert_str_eq(paths[2], "/c");
	ck_assert_ptr_null(paths[1]);
	ck_assert_uint_eq(qemu_threads_from_qmp(many, threads), 0);
	qemu_paths_from_qmp(many, paths);
	ck_assert_ptr_null(paths[2]);
	json_decref(cpus);
	json_decref(many);
}
END_TEST

static int call_of(long number, const char *arguments)
{
	g_autofree char *text = g_strdup_printf("%ld %s\n", number, arguments);

	return vcpu_calls_parse(text);
}

START_TEST(a_call_that_runs_a_vcpu_is_one)
{
	ck_assert_int_eq(call_of(SYS_ioctl, "0x1b 0xae80 0x0 0x0 0x0 0x0 0x7ffe 0x7f12"), 0x1b);
	ck_assert_int_eq(call_of(SYS_ioctl, "0x1b 0xae81 0x0 0x0 0x0 0x0 0x7ffe 0x7f12"), -1); /* another request */
	ck_assert_int_eq(call_of(SYS_futex, "0x1b 0xae80 0x0 0x0 0x0 0x0 0x7ffe 0x7f12"), -1);
	ck_assert_int_eq(call_of(SYS_ioctl, "0xffffffffffffffff 0xae80 0x0"), -1);
	ck_assert_int_eq(vcpu_calls_parse("running\n"), -1);
	ck_assert_int_eq(vcpu_calls_parse("-1 0x7ffe 0x7f12\n"), -1);
	ck_assert_int_eq(vcpu_calls_parse(""), -1);
}
END_TEST

START_TEST(vcpus_have_the_numbers_of_kvm_if_all_fit)
{
	ck_assert_uint_eq(vcpu_number(5, 1, 63), 5);
	ck_assert_uint_eq(vcpu_number(5, 1, 64), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("domain_words");
	TCase *tc = tcase_create("words");

	tcase_add_test(tc, xml_has_type_and_launch_security);
	tcase_add_test(tc, only_the_domains_own_launch_security_counts);
	tcase_add_test(tc, the_address_of_its_vsock_device_counts);
	tcase_add_test(tc, no_guest_has_such_an_address);
	tcase_add_test(tc, broken_xml_says_what_could_be_read);
	tcase_add_test(tc, clocks_come_out_of_proc);
	tcase_add_test(tc, totals_are_told_from_present_values);
	tcase_add_test(tc, vcpus_have_threads_and_paths_by_index);
	tcase_add_test(tc, a_call_that_runs_a_vcpu_is_one);
	tcase_add_test(tc, vcpus_have_the_numbers_of_kvm_if_all_fit);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
