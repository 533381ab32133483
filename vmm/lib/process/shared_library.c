// SPDX-License-Identifier: BSD-2-Clause
#include "lib/process/shared_library.h"

#include <dlfcn.h>
#include <string.h>

G_DEFINE_QUARK(vprof_shared_library_error, shared_library_error)

static bool symbols_take(void *library, const char *const *names, size_t n, void **found)
{
	for (size_t i = 0; i < n; i++) {
		found[i] = dlsym(library, names[i]);
		if (!found[i])
			return false;
	}
	return true;
}

bool shared_library_load(const char *soname, const char *const *names, size_t n, void *table, size_t bytes,
                         GError **error)
{
	void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	g_autofree void **found = g_new0(void *, n);

	g_assert(bytes == n * sizeof(*found));
	if (library && symbols_take(library, names, n, found)) {
		memcpy(table, found, bytes);
		return true;
	}
	g_set_error(error, SHARED_LIBRARY_ERROR, SHARED_LIBRARY_ERROR_MISSING,
	            "cannot load a library: %s; install the package that has it, as vprof was built for it", dlerror());
	if (library)
		dlclose(library);
	return false;
}
