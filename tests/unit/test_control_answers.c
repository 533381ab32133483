// SPDX-License-Identifier: BSD-2-Clause
/* Every method of the schema succeeds here, and control_fixture.h compares each answer with what the schema declares.
 */
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <vprof/exit.h>

#include "control_fixture.h"
#include "elf_builder.h"
#include "fake_debug.h"
#include "fake_task_look.h"
#include "lib/parser/parser.h"
#include "lib/symbol/image.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "linux/kernel.h"
#include "run_suite.h"
#include "sample/session_modules.h"

#define MS UINT64_C(1000000)
#define TEXT_GVA UINT64_C(0xffffffff81000000)

static struct peer peer;
static GHashTable *answered, *with_descriptors; /* methods */
static char *kernel_path;

/* ---- a guest with a kernel, memory, clocks and modules ---- */

/* These take the place of sample/session_modules.c, as the guest has no kernel with modules to read. */

struct session_modules *session_modules_read(struct session *of G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
	return (struct session_modules *)(void *)kernel_path;
}

const struct module *session_modules_get(const struct session_modules *modules G_GNUC_UNUSED, unsigned i G_GNUC_UNUSED)
{
	return NULL;
}

const struct symtab *session_modules_symtab(struct session_modules *modules G_GNUC_UNUSED, unsigned i G_GNUC_UNUSED)
{
	return NULL;
}

const struct symbol *session_modules_symbol(struct session_modules *modules G_GNUC_UNUSED,
                                            uint64_t address G_GNUC_UNUSED)
{
	return NULL;
}

void session_modules_free(struct session_modules *modules G_GNUC_UNUSED)
{
}

uint64_t session_modules_left_out(const struct session_modules *modules G_GNUC_UNUSED)
{
	return 0;
}

bool session_modules_find(struct session_modules *modules G_GNUC_UNUSED, uint64_t address, struct module_place *place)
{
	*place = (struct module_place){
		.module = "ext4", .symbol = "ext4_read", .file_offset = 0x40, .address = 0x1000, .bytes = 16};
	return address == 0x1000;
}

/* Page tables that map a GiB from guest virtual 0, and from KERNEL, to guest physical 0: a PML4 at 0, a PDPT at 0x1000.
 */
#define KERNEL UINT64_C(0xffffff8000000000)
static uint64_t ram[3 * 512] = {[0] = 0x1007, [511] = 0x1007, [512] = 0x87};

static bool memory_read(struct guest *guest G_GNUC_UNUSED, gpa_t from, void *to, size_t bytes)
{
	if (from.value >= sizeof(ram) || bytes > sizeof(ram) - from.value)
		return false;
	memcpy(to, (const uint8_t *)ram + from.value, bytes);
	return true;
}

static void vcpu_time(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED, bool reset G_GNUC_UNUSED,
                      struct guest_vcpu_time *out)
{
	memset(out, 0, sizeof(*out));
	out->n_exits = 2;
	out->exits[0].ip = vprof_exit_ip(KVM_EXIT_IO, 0x3f8);
	out->exits[1].ip = vprof_exit_ip(KVM_EXIT_MMIO, VPROF_EXIT_DETAIL_MASK);
	out->n_kvm_exits = 1;
	strcpy(out->kvm_exits[0].name, "npf");
	out->kvm_exits[0].histogram[0] = 1;
	out->n_accesses = 2;
	out->accesses[0].mmio = true;
	out->accesses[1].other = true;
	out->n_counters = 1;
	out->counters[0] = (struct guest_counter){"halt_exits", 1};
}

static void vcpus_look(struct guest *guest G_GNUC_UNUSED, void (*look)(void *data, const struct guest_vcpu *vcpu),
                       void *data)
{
	look(data, &(struct guest_vcpu){.whole = true});
}

static const struct guest_ops ops = {
	.start = fixture_guest_start,
	.stop = fixture_guest_stop,
	.run_on_vcpu = fake_run_on_vcpu,
	.memory_read = memory_read,
	.vcpu_time = vcpu_time,
	.vcpus_look = vcpus_look,
};

static void kernel_make(void)
{
	static const uint8_t code[64];
	struct elf_builder elf;
	int fd = g_file_open_tmp("vprof-kernel-XXXXXX", &kernel_path, NULL);

	ck_assert_int_ge(fd, 0);
	close(fd);
	elf_builder_init(&elf);
	elf.entry = 0x200000;
	elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_GVA,
	                                               0x200000, code, sizeof(code), 0});
	g_autoptr(GByteArray) file = elf_builder_finish(&elf);
	ck_assert(g_file_set_contents(kernel_path, (const char *)file->data, file->len, NULL));
	elf_builder_deinit(&elf);

	fake.guest.kernel_path = kernel_path;
	fake.guest.kernel_image = image_open(kernel_path, NULL);
	fake.guest.kernel_fd = open(kernel_path, O_RDONLY | O_CLOEXEC);
	ck_assert_ptr_nonnull(fake.guest.kernel_image);
}

static void setup(void)
{
	memset(&fake_debug, 0, sizeof(fake_debug));
	fixture_setup();
	fake.guest.ops = &ops;
	fake.guest.debug = &fake_debug_ops;
	kernel_make();
	answered = g_hash_table_new(g_str_hash, g_str_equal);
	with_descriptors = g_hash_table_new(g_str_hash, g_str_equal);
	peer_join(&peer);
}

static void teardown(void)
{
	struct image *image = fake.guest.kernel_image;

	peer_deinit(&peer);
	fixture_teardown();
	image_free(image);
	close(fake.guest.kernel_fd);
	unlink(kernel_path);
	g_free(kernel_path);
	g_hash_table_unref(answered);
	g_hash_table_unref(with_descriptors);
}

/* ---- the requests ---- */

/* Executes a method; `arguments` are the members of a JSON object. */
static void done(const char *method, const char *arguments)
{
	g_autofree char *request = g_strdup_printf("{\"execute\":\"%s\",\"arguments\":{%s}}", method, arguments);
	guint fds = peer.fds->len;

	json_decref(peer_return(&peer, request));
	g_hash_table_add(answered, (gpointer)method);
	if (peer.fds->len > fds)
		g_hash_table_add(with_descriptors, (gpointer)method);
}

static void all_done(const char *const *methods)
{
	for (; *methods; methods++)
		done(*methods, "");
}

/* One row: the stack pointer of the caller is rsp + 8. */
static void write_table(void)
{
	static const struct {
		char magic[4];
		uint32_t n_rows, n_cells, n_index;
		struct cfi_row row;
		struct cfi_cell cell;
	} table = {"CFI1", 1, 1, 0, {0x1000, 0}, {CFI_CFA, CFI_VALUE, CFI_RSP, 1, 8, 0}};
	int memory;

	_Static_assert(sizeof(table) == 36, "what unwind-table-new is asked for");
	done("unwind-table-new", "\"bytes\":36");
	memory = g_array_index(peer.fds, int, peer.fds->len - 1);
	ck_assert_int_eq(pwrite(memory, &table, sizeof(table), 0), sizeof(table));
	peer_refused(&peer, "{\"execute\":\"unwind-table-add\",\"arguments\":{\"build-id\":\"0z\"}}", "InvalidArgument",
	             "not a build-id");
	done("unwind-table-add", "\"build-id\":\"0123\"");
	ck_assert_int_eq(pwrite(memory, &table, sizeof(table), 0), -1);
	peer_refused(&peer, "{\"execute\":\"unwind-table-add\",\"arguments\":{\"build-id\":\"0124\"}}", "WrongState",
	             "none was written");
	done("unwind-table-new", "\"bytes\":36");
	peer_refused(&peer, "{\"execute\":\"unwind-table-add\",\"arguments\":{\"build-id\":\"0124\"}}",
	             "InvalidArgument", "is not one");
}

/* A file of one page, which the page at 0x2000 is: it has its own struct address_space, inode and folio. */
static void read_file(void)
{
	static const uint8_t build_id[] = {1, 0x23};
	struct kernel_layout *layout = (struct kernel_layout *)session_kernel(session);
	const struct page_cache_layout cache = {.mapping_root = 8,
	                                        .folio_mapping = 24,
	                                        .folio_index = 32,
	                                        .node_slots = 40,
	                                        .page_bytes = 64,
	                                        .pages = KERNEL + 0x2010};
	const uint64_t mapping = KERNEL + 0x2000, inode = KERNEL + 0x2020, folio = KERNEL + 0x2040;

	peer_refused(&peer, "{\"execute\":\"file-read\",\"arguments\":{\"build-id\":\"0123\"}}", "Unsupported",
	             "page cache");
	layout->has_page_cache = true;
	layout->page_cache = cache;
	layout->os.page_tables = (gva_t){KERNEL};
	kernel_layout_settle(layout);
	peer_refused(&peer, "{\"execute\":\"file-read\",\"arguments\":{\"build-id\":\"0123\"}}", "WrongState",
	             "no process was seen");
	file_places_note(table_store_places(session_tables(session)), build_id, sizeof(build_id), mapping);
	ram[1024] = inode;
	ram[1025] = folio;
	ram[1026] = folio - 2 * 64; /* where the struct pages begin */
	ram[1028] = 5000;           /* its size */
	ram[1032 + 3] = mapping;
	done("file-read", "\"build-id\":\"0123\"");
	int memory = g_array_index(peer.fds, int, peer.fds->len - 1);
	uint64_t words[512];

	ck_assert_int_eq(lseek(memory, 0, SEEK_END), 5000);
	ck_assert_int_eq(lseek(memory, 0, SEEK_HOLE), 4096);
	ck_assert_int_eq(pread(memory, words, sizeof(words), 0), sizeof(words));
	ck_assert_mem_eq(words, ram + 1024, sizeof(words));
	ck_assert_int_eq(pwrite(memory, words, 1, 0), -1);
	done("file-read", "\"build-id\":\"0123\",\"offset\":4096");
	layout->os.page_tables = (gva_t){0};
	peer_refused(&peer, "{\"execute\":\"file-read\",\"arguments\":{\"build-id\":\"0123\"}}", "WrongState",
	             "page tables");
	peer_refused(&peer, "{\"execute\":\"file-read\",\"arguments\":{\"perf-map\":7}}", "WrongState", "page tables");
	peer_refused(&peer, "{\"execute\":\"file-read\"}", "InvalidArgument", "one of build-id");
	peer_refused(&peer, "{\"execute\":\"file-read\",\"arguments\":{\"perf-map\":7,\"jit-dump\":7}}",
	             "InvalidArgument", "one of build-id");
	peer_refused(&peer, "{\"execute\":\"file-read\",\"arguments\":{\"perf-map\":7,\"build-id\":\"0123\"}}",
	             "InvalidArgument", "one of build-id");
	layout->os.page_tables = (gva_t){KERNEL};
	kernel_layout_settle(layout);
	peer_refused(&peer, "{\"execute\":\"file-read\",\"arguments\":{\"perf-map\":7}}", "WrongState",
	             "does not say where its files are");
	peer_refused(&peer, "{\"execute\":\"file-read\",\"arguments\":{\"jit-dump\":7}}", "WrongState",
	             "jitdump: its kernel does not say where its files are");
	layout->has_page_cache = false;
	kernel_layout_settle(layout);
}

/* As many as an answer has room for, until all were read; then that look is over. */
static void read_tasks(void)
{
	unsigned n_tasks = 0, n_answers = 0;
	json_int_t from = 0;

	do {
		g_autofree char *request =
			n_answers == 0 ? g_strdup(REQUEST("query-tasks"))
				       : g_strdup_printf(
						 "{\"execute\":\"query-tasks\",\"arguments\":{\"look\":1,\"from\":%d}}",
						 (int)from);
		json_auto_t *answer = peer_return(&peer, request);

		n_tasks += (unsigned)json_array_size(json_object_get(answer, "tasks"));
		n_answers++;
		from = json_integer_value(json_object_get(answer, "next"));
		ck_assert_int_eq(json_integer_value(json_object_get(answer, "total")), FAKE_TASKS);
	} while (from != 0 && n_answers <= FAKE_TASKS);
	ck_assert_uint_eq(n_tasks, FAKE_TASKS);
	ck_assert_uint_gt(n_answers, 2);
	peer_refused(&peer, "{\"execute\":\"query-tasks\",\"arguments\":{\"look\":1}}", "WrongState", "look again");
	peer_refused(&peer, "{\"execute\":\"query-tasks\",\"arguments\":{\"pid\":1,\"comm\":\"x\"}}", "InvalidArgument",
	             "exclude each other");
	done("query-tasks", "\"pid\":7,\"depth\":3");
}

/* Of the kernel, those that were kept: once. */
static void read_symbols(void)
{
	const guint fds = peer.fds->len;

	image_give_symbols(fake.guest.kernel_image, sealed_copy("symbols", "kept", 4));
	done("kernel-image", "");
	ck_assert_uint_eq(peer.fds->len, fds + 2);
	char kept[4];

	ck_assert_int_eq(pread(g_array_index(peer.fds, int, fds + 1), kept, sizeof(kept), 0), sizeof(kept));
	ck_assert_mem_eq(kept, "kept", sizeof(kept));
	done("kernel-image", "");
	ck_assert_uint_eq(peer.fds->len, fds + 3);
}

static void ask_engine(void)
{
	static const char *const queries[] = {"query-status",    "query-guest",
	                                      "query-clients",   "query-schema",
	                                      "query-host",      "query-configuration",
	                                      "query-counters",  "query-probes",
	                                      "kernel-image",    "control-take",
	                                      "control-release", "control-take",
	                                      "vcpu-time-reset", NULL};

	done("negotiate", "\"protocol\":1");
	all_done(queries);
	done("query-vcpu-time", "\"vcpu\":1");
	done("mapping-read", "\"address\":\"0xffffffff81000010\"");
	done("mapping-read", "\"address\":\"0x2000\",\"bytes\":16");
	read_symbols();
	fake.guest.kernel_unpacked = fake.guest.kernel_fd;
	done("kernel-image", "");
	fake.guest.kernel_unpacked = 0;
	done("module-symbols", "\"addresses\":[\"0x1000\",\"0x9000\"]");
	read_tasks();
	done("trace-set", "\"what\":\"requests\"");
	fake_debug.regs.valid = true;
	done("trace-write", "\"text\":\"x\",\"vcpu\":1");
	done("trace-write", "\"text\":\"x\\ny\",\"vcpu\":1,\"stack\":true");
	done("trace-read", "");
	write_table();
	read_file();
}

static void ask_session(void)
{
	static const char *const running[] = {"guest-start", "query-session", "query-status", "query-stats",
	                                      "rings",       "session-flush", "samples-read", NULL};

	done("session-configure", "\"call-depth\":9,\"trace\":[\"phases\"]");
	done("session-start", "\"events\":[\"task-clock\",\"timer\"],\"period\":1000000");
	fake_guest_burn(&fake, 20 * MS);
	all_done(running);
	done("sample-add", "\"ip\":1");
	done("marker-add", "\"name\":\"phase\",\"kind\":\"begin\"");
	done("reset", "\"what\":\"statistics\"");
}

/* One counter, which has number 0. */
static void ask_counter(const char *allocate, const char *const *more)
{
	done("counter-allocate", allocate);
	done("query-counters", "");
	for (; *more; more++)
		done(*more, "\"counter\":0");
	done("counter-release", "\"counter\":0");
}

static void ask_counters(void)
{
	static const char *const counting[] = {"counter-start", "counter-read", "counter-descriptors", "counter-stop",
	                                       NULL};
	static const char *const estimating[] = {"counter-start", "counter-read", "counter-stop", NULL};
	static const char *const sampling[] = {"counter-start", "counter-read", "counter-rings", "counter-stop", NULL};

	ask_counter("\"event\":\"task-clock\",\"mode\":\"guest-counting\"", counting);
	ask_counter("\"event\":\"task-clock\",\"mode\":\"guest-counting\",\"estimate\":true", estimating);
	ask_counter("\"event\":\"task-clock\",\"mode\":\"guest-sampling\",\"period\":1000000", sampling);

	done("counter-allocate", "\"event\":\"task-clock\",\"mode\":\"guest-counting\"");
	done("counter-write", "\"counter\":0,\"value\":5");
	done("counter-release", "\"counter\":0");
	done("counter-allocate", "\"event\":\"task-clock\",\"mode\":\"task-sampling\"");
	done("counter-set-period", "\"counter\":0,\"frequency-hz\":100");
	done("counter-attach", "\"counter\":0,\"cr3\":\"0x1000\"");
	done("query-counters", "");
	done("counter-detach", "\"counter\":0,\"cr3\":\"0x1000\"");
	done("counter-release", "\"counter\":0");
	done("counter-disable", "\"counter\":0");
	done("query-counters", "");
	done("counter-enable", "\"counter\":0");
}

static void ask_probes(void)
{
	const struct guest_access out = {
		.reason = KVM_EXIT_IO, .write = true, .bytes = 1, .count = 1, .address = 0x3f8};

	done("probe-list", "\"match\":\"syscall:*\"");
	done("probe-args", "\"probe\":\"io:0x3f8\"");
	done("probe-add", "\"probe\":\"io:0x3f8\",\"registers\":[\"rdi\"],\"stack\":true");
	done("probe-add", "\"probe\":\"function:0xffffffff81000000\",\"breakpoint\":\"patch\"");
	done("probe-record", "\"on\":true");
	fake_access(&fake, 1, &out);
	done("probe-read", "");
	done("query-probes", "");
	done("probe-record", "\"on\":false");
	done("probe-record", "\"on\":true");
	done("probe-rings", "");
	done("probe-record", "\"on\":false");
	done("probe-map-add", "\"kind\":\"count\"");
	/* MAP_ADD to its only entry. */
	done("probe-program", "\"id\":1,\"program\":\"24000000000000000000000000000000\"");
	done("probe-record", "\"on\":true");
	fake_access(&fake, 1, &out);
	done("probe-map-read", "\"map\":0");
	done("probe-map-clear", "\"map\":0");
	done("probe-record", "\"on\":false");
	done("probe-remove", "\"id\":1");
}

static void ask_for_the_end(void)
{
	static const char *const last[] = {"session-stop", "query-stats",  "samples-read", "guest-stop",
	                                   "query-status", "query-schema", "quit",         NULL};

	all_done(last);
}

START_TEST(every_method_answers_as_it_declares)
{
	json_auto_t *schema = control_schema();
	const json_t *method;
	size_t i;

	ask_engine();
	ask_session();
	ask_counters();
	ask_probes();
	ask_for_the_end();
	json_array_foreach(json_object_get(schema, "methods"), i, method) {
		const char *name = json_string_value(json_object_get(method, "name"));

		ck_assert_msg(g_hash_table_contains(answered, name), "%s was not executed", name);
		ck_assert_msg(!json_object_get(method, "descriptors") || g_hash_table_contains(with_descriptors, name),
		              "%s gave no descriptors", name);
	}
}
END_TEST

/* The other events are those of unit/control_session. */
START_TEST(another_kernel_is_an_event_as_declared)
{
	fake.guest.release = (char *)"6.1.0";
	control_server_guest_kernel(server);
	json_auto_t *data = peer_event(&peer, "guest-kernel");
	assert_json(data, "{\"release\":\"6.1.0\",\"build-id\":null,\"slide\":\"0x0\"}");
}
END_TEST

START_TEST(a_pause_is_an_event_and_a_state)
{
	static const char *const pauses[] = {"is paused", NULL};

	for (size_t i = 0; i < G_N_ELEMENTS(pauses); i++) {
		fake.guest.pause = pauses[i];
		control_server_guest_pause(server);
		json_auto_t *data = peer_event(&peer, "guest-pause");
		json_auto_t *status = peer_return(&peer, REQUEST("query-status"));

		ck_assert_pstr_eq(json_string_value(json_object_get(data, "pause")), pauses[i]);
		ck_assert_pstr_eq(json_string_value(json_object_get(status, "pause")), pauses[i]);
		ck_assert_int_gt(json_integer_value(json_object_get(data, "time-ns")), 0);
		ck_assert_uint_eq(json_object_size(data), 2);
	}
}
END_TEST

/* That the members of all objects are described. Those of query-schema are rows that have been described. */
static void assert_described(const json_t *rows, const char *where)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const char *name = json_string_value(json_object_get(row, "name"));
		const char *type = json_string_value(json_object_get(row, "type"));
		bool again = g_str_has_prefix(where, "query-schema");
		g_autofree char *inside = g_strdup_printf("%s, %s", where, name);

		ck_assert_msg(json_string_length(json_object_get(row, "summary")) > 0, "%s: no summary", inside);
		ck_assert_msg(again || !strstr(type, "object") || json_object_get(row, "members") ||
		                      json_object_get(row, "members-of"),
		              "%s: no members", inside);
		assert_described(json_object_get(row, "members"), inside);
	}
}

START_TEST(every_object_is_described)
{
	json_auto_t *schema = control_schema();
	const json_t *described;
	size_t i;

	json_array_foreach(json_object_get(schema, "methods"), i, described)
		assert_described(json_object_get(described, "returns"),
		                 json_string_value(json_object_get(described, "name")));
	json_array_foreach(json_object_get(schema, "events"), i, described)
		assert_described(json_object_get(described, "data"),
		                 json_string_value(json_object_get(described, "name")));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("control_answers");
	TCase *test = tcase_create("answers");

	tcase_add_checked_fixture(test, setup, teardown);
	tcase_set_timeout(test, 60);
	tcase_add_test(test, every_method_answers_as_it_declares);
	tcase_add_test(test, another_kernel_is_an_event_as_declared);
	tcase_add_test(test, a_pause_is_an_event_and_a_state);
	tcase_add_test(test, every_object_is_described);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
