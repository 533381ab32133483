// SPDX-License-Identifier: BSD-2-Clause
#include "reading/symbol_options.h"

const struct option_row symbol_option_rows[] = {
	{"symfs", OPTION_FILE, offsetof(struct symbol_options, symfs),
         "take the guest's programs from the same paths below DIR", "DIR"},
	{"modules", OPTION_FILE, offsetof(struct symbol_options, modules),
         "/lib/modules/VERSION of the guest's kernel: symbols, and disk drivers for run --exec", "DIR"},
	{"debuginfod", OPTION_FLAG, offsetof(struct symbol_options, debuginfod),
         "get symbols of the guest's programs from the servers in $DEBUGINFOD_URLS", NULL},
	{NULL},
};

bool symbol_options_check(const struct symbol_options *options, GError **error)
{
	if (options->symfs && !g_file_test(options->symfs, G_FILE_TEST_IS_DIR)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--symfs: there is no folder %s",
		            options->symfs);
		return false;
	}
	if (options->modules && !g_file_test(options->modules, G_FILE_TEST_IS_DIR)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--modules: there is no folder %s",
		            options->modules);
		return false;
	}
	if (!options->debuginfod || user_symbols_have_debuginfod(error))
		return true;
	g_prefix_error(error, "--debuginfod: ");
	return false;
}

bool symbol_options_given(const struct symbol_options *options)
{
	return options->symfs || options->modules || options->debuginfod;
}

struct user_symbol_sources symbol_options_sources(const struct symbol_options *options, const char *initrd,
                                                  enum arch arch, bool force)
{
	return (struct user_symbol_sources){
		.symfs = options->symfs,
		.modules = options->modules,
		.initrd = initrd,
		.arch = arch,
		.debuginfod = options->debuginfod,
		.force = force,
	};
}
