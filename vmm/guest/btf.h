// SPDX-License-Identifier: BSD-2-Clause
/*
 * BTF, the kernel's description of its own types (Linux, Documentation/bpf/btf.rst): only the parts that give the
 * offset of a member in a structure. The bytes come from an image and are hostile.
 */
#ifndef VPROF_GUEST_BTF_H
#define VPROF_GUEST_BTF_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BTF_ERROR btf_error_quark()
GQuark btf_error_quark(void);
enum btf_error {
	BTF_ERROR_FORMAT,  /* no BTF, or of an unknown byte order or version */
	BTF_ERROR_CORRUPT, /* it contradicts itself */
};

struct btf;

/* `bytes` (of the section .BTF) are borrowed and must outlive the result. Errors: BTF_ERROR. */
struct btf *btf_new(const void *bytes, size_t n, GError **error);
void btf_free(struct btf *btf);

/*
 * Where `member` of struct `structure` starts, in bytes; members of anonymous structs and unions count as the outer
 * structure's own. False when there is none, or it is a bit-field. Looks at every structure: not for the sampling path.
 */
bool btf_member(const struct btf *btf, const char *structure, const char *member, uint32_t *offset);
/* The size of struct `structure` in bytes; false when no struct has this name. */
bool btf_size(const struct btf *btf, const char *structure, uint32_t *bytes);

#endif
