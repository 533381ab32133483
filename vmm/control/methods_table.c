// SPDX-License-Identifier: BSD-2-Clause
/*
 * unwind-table-new, unwind-table-add: tables that a client has made of the files of the guest's programs. The engine
 * opens none of these files.
 */
#include "control/method_priv.h"
#include "guest/elf_note.h"
#include "lib/record/hex.h"

static json_t *method_unwind_table_new(struct control_call *call, GError **error)
{
	uint64_t bytes = (uint64_t)json_integer_value(json_object_get(call->arguments, "bytes"));
	int memory = table_store_prepare(session_tables(call->server->session), bytes, error);

	if (memory < 0)
		return NULL;
	call->fds[call->n_fds++] = memory;
	return json_object();
}

static json_t *method_unwind_table_add(struct control_call *call, GError **error)
{
	const char *text = json_string_value(json_object_get(call->arguments, "build-id"));
	struct table_store *store = session_tables(call->server->session);
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	size_t n = hex_decode(text, build_id, sizeof(build_id));

	if (n == 0) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "\"%s\" is not a build-id: give pairs of hexadecimal digits, at most %u", text,
		            ELF_NOTE_BUILD_ID_BYTES_MAX);
		return NULL;
	}
	const struct python_file python = {
		.version = (uint32_t)json_integer_value(json_object_get(call->arguments, "python-version")),
		.runtime = (uint64_t)json_integer_value(json_object_get(call->arguments, "python-runtime")),
	};

	if (!table_store_add(store, build_id, n, &python, error))
		return NULL;
	return json_pack("{s:I}", "tables", (json_int_t)table_store_count(store));
}

static const struct method_argument new_arguments[] = {
	{"bytes", "size of the table", ARGUMENT_INTEGER, .min = 1, .max = (int64_t)CFI_TABLE_BYTES_MAX},
	{0},
};

static const struct method_argument add_arguments[] = {
	{"build-id", "build-id of the file, in hexadecimal digits; of a longer one, the first 20 bytes",
         ARGUMENT_STRING, .min = 2, .max = 2 * ELF_NOTE_BUILD_ID_BYTES_MAX},
	{"python-version", "PY_VERSION_HEX, where the file is CPython: of 3.11 and 3.12, samples have Python's frames",
         ARGUMENT_INTEGER, .optional = true, .max = UINT32_MAX},
	{"python-runtime",
         "how far the address of its _PyRuntime is above that of a byte of code, beyond that byte's offset in the file",
         ARGUMENT_INTEGER, .optional = true, .max = INT64_MAX},
	{0},
};

static const struct method_member add_members[] = {
	{"tables", "how many tables the engine holds", MEMBER_INTEGER},
	{0},
};

const struct control_method table_methods[] = {
	{
		.name = "unwind-table-new",
		.summary =
			"returns memory for an unwind table (vmm/lib/symbol/cfi.h), which the client writes with pwrite(2)",
		.descriptors = "the memory",
		.role = ROLE_CONTROL,
		.arguments = new_arguments,
		.run = method_unwind_table_new,
	},
	{
		.name = "unwind-table-add",
		.summary = "unwinds files of this build by the table that was written; the memory becomes read-only",
		.returns = add_members,
		.role = ROLE_CONTROL,
		.arguments = add_arguments,
		.run = method_unwind_table_add,
	},
	{0},
};
