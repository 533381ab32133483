// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fields of the structures that a function's arguments point to: "file->f_path.dentry", as C writes it, by the kernel's
 * BTF; and "str(file->f_path.dentry->d_name.name)", the text that is at such an address. Characters of a member are a
 * text by themselves. An argument may be taken for another: "((struct path *)arg0)->mnt". "[2]" is an element of an
 * array.
 */
#ifndef VPROF_GUEST_FIELD_PATH_H
#define VPROF_GUEST_FIELD_PATH_H

#include "guest/btf.h"
#include "guest/page_walk.h"

#define FIELD_ERROR field_error_quark()
GQuark field_error_quark(void);
enum field_error {
	FIELD_ERROR_SYNTAX, /* not written like that, or too long */
	FIELD_ERROR_TYPE,   /* no such member, or nothing that can be read */
};

#define FIELD_LOADS_MAX 8u
#define FIELD_TEXT_BYTES 64u /* with the 0 at its end */

/* What a path may begin with. */
struct field_argument {
	const char *name;
	uint32_t type;      /* by BTF; 0: a number of 64 bits */
	uint32_t structure; /* it is a pointer to this structure, of `type` 0; 0: none */
};

struct field_path {
	unsigned argument;               /* that it begins with */
	bool is_argument;                /* and that is all of it */
	unsigned n_loads;                /* pointers on the way */
	uint32_t loads[FIELD_LOADS_MAX]; /* where they are, from the one before on */
	uint32_t offset;                 /* from the last one on */
	bool is_text;
	struct btf_value value; /* of a number */
	uint32_t bytes;         /* of a text: how many there may be, at most FIELD_TEXT_BYTES - 1 */
};

/* The number of the argument that the path begins with; -1: none of these. Says nothing of the rest. */
int field_path_argument(const char *text, const struct field_argument *arguments, size_t n);
/* `btf` NULL: only an argument itself, and the text at it. To be cleared. Errors: FIELD_ERROR. */
bool field_path_parse(const char *text, const struct btf *btf, const struct field_argument *arguments, size_t n,
                      struct field_path *path, GError **error);
void field_path_clear(struct field_path *path);

/* False when memory on the way cannot be read. No lock and no allocation. */
bool field_path_number(const struct field_path *path, struct page_walk *walk, const uint64_t *arguments,
                       uint64_t *number);
/* The bytes behind the text's end are 0. */
bool field_path_text(const struct field_path *path, struct page_walk *walk, const uint64_t *arguments,
                     char text[FIELD_TEXT_BYTES]);

#endif
