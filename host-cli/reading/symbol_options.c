// SPDX-License-Identifier: BSD-2-Clause
#include "reading/symbol_options.h"

struct symbol_options symbol_options;

bool symbol_options_check(GError **error)
{
	if (symbol_options.symfs != NULL && !g_file_test(symbol_options.symfs, G_FILE_TEST_IS_DIR)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--symfs: there is no folder %s",
		            symbol_options.symfs);
		return false;
	}
	if (symbol_options.modules != NULL && !g_file_test(symbol_options.modules, G_FILE_TEST_IS_DIR)) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--modules: there is no folder %s",
		            symbol_options.modules);
		return false;
	}
	if (!symbol_options.debuginfod || user_symbols_have_debuginfod())
		return true;
	g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
	                    "--debuginfod: this vprof was built without libdebuginfod");
	return false;
}

bool symbol_options_given(void)
{
	return symbol_options.symfs != NULL || symbol_options.modules != NULL || symbol_options.debuginfod;
}

struct user_symbol_sources symbol_options_sources(const char *initrd, bool force)
{
	return (struct user_symbol_sources){
		.symfs = symbol_options.symfs,
		.modules = symbol_options.modules,
		.initrd = initrd,
		.debuginfod = symbol_options.debuginfod,
		.force = force,
	};
}
