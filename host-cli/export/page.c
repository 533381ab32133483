// SPDX-License-Identifier: BSD-2-Clause
#include "export/page.h"

#include <string.h>

#include "export/page_data.h"
#include "export/page_template.h"
#include "ui/output_file.h"

G_DEFINE_QUARK(vprof_page_error, page_error)

struct page {
	const struct page_recording *recordings[2];
	size_t n;
	const struct page_comparison *compared;
};

bool page_check(GError **error)
{
	if (page_template[0] != '\0')
		return true;
	g_set_error_literal(
		error, PAGE_ERROR, PAGE_ERROR_ABSENT,
		"this vprof was built without the HTML page; install node 18 or newer and npm, then build again with -DVPROF_WITH_HTML=ON (`vprof export --to svg` needs neither)");
	return false;
}

static bool page_print(FILE *to, const void *data, GError **error)
{
	const struct page *page = data;
	const char *mark = strstr(page_template, PAGE_TEMPLATE_MARK);

	if (!mark)
		return page_check(error);
	fwrite(page_template, 1, (size_t)(mark - page_template), to);
	page_data_write(page->recordings, page->n, page->compared, to);
	fputs(mark + strlen(PAGE_TEMPLATE_MARK), to);
	return true;
}

bool page_write(struct input *base, struct input *now, const struct page_comparison *compared, const char *path,
                GError **error)
{
	struct page_recording *first = NULL, *second = NULL;
	const mode_t mode = now ? input_mode(base) & input_mode(now) : input_mode(base);
	bool written;

	if (!page_check(error))
		return false;
	first = page_recording_read(base);
	second = now ? page_recording_read(now) : NULL;
	written = output_file_write(path, mode, page_print, &(struct page){{first, second}, now ? 2 : 1, compared},
	                            error);
	page_recording_free(first);
	page_recording_free(second);
	return written;
}
