// SPDX-License-Identifier: BSD-2-Clause
/* The page without its data, as web/build.mjs has made it. */
#ifndef VPROF_CLI_EXPORT_PAGE_TEMPLATE_H
#define VPROF_CLI_EXPORT_PAGE_TEMPLATE_H

/* Where the data goes. */
#define PAGE_TEMPLATE_MARK "@vprof-data@"

/* NUL-terminated; empty when vprof was built without it. */
#ifdef VPROF_HAVE_HTML
extern const char page_template[];
#else
static const char page_template[] = "";
#endif

#endif
