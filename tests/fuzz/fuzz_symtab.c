// SPDX-License-Identifier: BSD-2-Clause
/* What a vprof-parse that was taken over may say of symbols. */
#include "fuzz_target.h"
#include "lib/symbol/symtab.h"

static void look_up(const struct symtab *symtab)
{
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++) {
		const struct symbol *code = symtab_find(symtab, symbols[i].address + symbols[i].size / 2);
		const struct symbol *data = symtab_find_data(symtab, symbols[i].address);

		if (symbols[i].size == 0 || (i > 0 && symbols[i].address < symbols[i - 1].address) ||
		    !g_utf8_validate(symbols[i].name, -1, NULL) || (code && code->size == 0) ||
		    (data && symbols[i].address - data->address >= data->size))
			g_error("symbol %zu (%s) breaks a promise", i, symbols[i].name);
	}
	if (!g_utf8_validate(symtab_source(symtab), -1, NULL))
		g_error("the source is no text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* An answer begins at a page. */
	g_autoptr(GBytes) answer = g_bytes_new(data, size);
	struct symtab *symtab = symtab_decode(answer, 0);

	if (!symtab)
		return 0;
	look_up(symtab);
	symtab_keep_code(symtab);
	look_up(symtab);
	for (uint64_t address = 0xfc0; address < 0x1200; address += 0x40) {
		const struct symbol *found = symtab_find(symtab, address);

		if (found && (found->size == 0 || !g_utf8_validate(found->name, -1, NULL)))
			g_error("%s breaks a promise", found->name);
	}
	symtab_free(symtab);
	return 0;
}
