// SPDX-License-Identifier: BSD-2-Clause
/*
 * Between vprof-parse, which reads files that may be made to do harm, and the programs that ask it (vmm/lib/parser).
 *
 * The asking program starts vprof-parse with one end of a SOCK_SEQPACKET pair as descriptor VPROF_PARSE_FD, and sends
 * one struct vprof_parse_request at a time, with two descriptors (SCM_RIGHTS): a sealed memfd with the file's bytes,
 * and an empty memfd for the answer. Each request is worked on by a process of its own, which ends with it. Then one
 * struct vprof_parse_reply comes back. The answer is untrusted: it is sealed first, and checked before it is used.
 *
 * Numbers are little-endian; both sides run on one machine.
 */
#ifndef VPROF_PARSE_H
#define VPROF_PARSE_H

#include <stdint.h>

#define VPROF_PARSE_PROTOCOL 5u
#define VPROF_PARSE_FD 3
#define VPROF_PARSE_TEXT_BYTES 4096u

/* What a request may take. A limit that is reached ends its process, and nothing else. */
#define VPROF_PARSE_CPU_SECONDS 20u
#define VPROF_PARSE_SECONDS 120u
#define VPROF_PARSE_MEMORY_BYTES (UINT64_C(1) << 30) /* address space, beside the input's */
#define VPROF_PARSE_INPUT_BYTES_MAX (UINT64_C(2) << 30)
#define VPROF_PARSE_ANSWER_BYTES_MAX (UINT64_C(1) << 30)

enum vprof_parse_what {
	VPROF_PARSE_UNPACK = 1, /* what is packed in the input; the answer is its bytes */
	VPROF_PARSE_MEMBER,     /* file `text` of an initramfs (cpio archives); its bytes, or none */
	VPROF_PARSE_LINES,      /* source lines of addresses start to start + length; tables */
	VPROF_PARSE_TYPES,      /* members of structures; their names follow each other in `text`; tables */
	VPROF_PARSE_PAGES,   /* `start` pages of `length` bytes: the size of each, packed, in 32 bits, and what they are
	                        packed to, one behind the other. The answer is a byte for each, 1: it is whole, and the
	                        pages */
	VPROF_PARSE_SYMBOLS, /* symbols of image `image`, where it was linked; tables, none when it has none. What is
	                        beyond `answer_bytes` is left out and counted */
	VPROF_PARSE_FRAMES,  /* its call frame information; tables, none when it describes no code */
	VPROF_PARSE_NOTES,   /* the static probes (USDT) of program `image`; tables, none when it has none */
	VPROF_PARSE_PROGRAMS,  /* the files of an initramfs, as one cpio archive that is not packed: programs and
	                          libraries, and the names of the others without their bytes */
	VPROF_PARSE_MAP,       /* functions of the text /tmp/perf-PID.map; tables. Left out and counted as SYMBOLS */
	VPROF_PARSE_LAYOUT,    /* what image `image` is made of; tables. `packing` is not 0: it was packed */
	VPROF_PARSE_PLACES,    /* where statements of a source file begin that is called `text`, or the path of which
	                          ends in that; tables */
	VPROF_PARSE_DEMANGLED, /* as VPROF_PARSE_SYMBOLS, with names of C++ and Rust as they are written in the source,
	                          if the build has libiberty */
};

enum vprof_parse_image {
	VPROF_PARSE_KERNEL, /* unpacked */
	VPROF_PARSE_PROGRAM,
	VPROF_PARSE_PROGRAM_PART, /* the holes of the input are not known */
	VPROF_PARSE_MODULE,
	VPROF_PARSE_IMAGES,
};

enum vprof_parse_packing {
	VPROF_PARSE_ANY, /* by its first bytes, packed once or not at all */
	VPROF_PARSE_GZIP,
	VPROF_PARSE_BZIP2,
	VPROF_PARSE_LZMA,
	VPROF_PARSE_XZ,
	VPROF_PARSE_LZ4,
	VPROF_PARSE_ZSTD,
	VPROF_PARSE_PACKINGS,
};

/* Of VPROF_PARSE_PAGES. */
enum vprof_parse_page_packing {
	VPROF_PARSE_PAGE_ZLIB = 1,
	VPROF_PARSE_PAGE_LZO,
	VPROF_PARSE_PAGE_SNAPPY,
};
#define VPROF_PARSE_PAGES_MAX 1024u
#define VPROF_PARSE_PAGE_BYTES_MAX 65536u

struct vprof_parse_request {
	uint32_t protocol;
	uint32_t what;
	uint64_t offset, bytes; /* the part of the input that is meant */
	uint64_t answer_bytes;  /* no answer may be larger */
	uint64_t start, length; /* VPROF_PARSE_LINES, VPROF_PARSE_PAGES */
	uint32_t packing;       /* VPROF_PARSE_UNPACK, VPROF_PARSE_PAGES */
	uint32_t image;         /* enum vprof_parse_image, where the input is one */
	uint32_t text_bytes;    /* with the NUL behind each name */
	uint32_t with_release;  /* VPROF_PARSE_LAYOUT: that of Linux is looked for */
	char text[VPROF_PARSE_TEXT_BYTES];
};

enum vprof_parse_end {
	VPROF_PARSE_DONE,    /* the answer is in its memfd */
	VPROF_PARSE_REFUSED, /* a sentence is in there: why not */
	VPROF_PARSE_KILLED,  /* by signal `number` */
	VPROF_PARSE_FAILED,  /* no process could be made, or confined: errno `number` */
};

struct vprof_parse_reply {
	uint32_t end;
	uint32_t number;
};

/* ---- tables: each is this head and its rows, padded to 8 bytes, and the next one follows ---- */

enum vprof_parse_table_kind {
	VPROF_PARSE_TABLE_TEXT = 1, /* of 1 byte: names, each with its NUL */
	VPROF_PARSE_TABLE_SYMBOLS,  /* struct vprof_parse_symbol, by address */
	VPROF_PARSE_TABLE_SECTIONS, /* the same, of sections of code that have no symbols */
	VPROF_PARSE_TABLE_RANGES,   /* struct vprof_parse_range, by start; no two are equal */
	VPROF_PARSE_TABLE_FRAMES,   /* of 1 byte: a table of vmm/lib/symbol/cfi.h */
	VPROF_PARSE_TABLE_COUNTS, /* of 8 bytes: its struct cfi_statistics; SYMBOLS, MAP: one, how many were left out */
	VPROF_PARSE_TABLE_LINES,  /* struct vprof_parse_line: LINES by address, no two equal; PLACES by file,
	                             line and address */
	VPROF_PARSE_TABLE_STRUCTURES, /* struct vprof_parse_structure, of those that were found */
	VPROF_PARSE_TABLE_MEMBERS,    /* struct vprof_parse_member, of all of them */
	VPROF_PARSE_TABLE_FUNCTIONS,  /* struct vprof_parse_function, by address */
	VPROF_PARSE_TABLE_LAYOUT,     /* struct vprof_parse_layout, one */
	VPROF_PARSE_TABLE_SEGMENTS,   /* struct vprof_parse_segment, by gpa, not overlapping */
	VPROF_PARSE_TABLE_HEADERS,    /* Elf64_Shdr of all sections, with names in the text */
	VPROF_PARSE_TABLE_NOTES,      /* struct vprof_parse_note, in the order of the file */
};

struct vprof_parse_table {
	uint32_t kind;
	uint32_t row_bytes;
	uint64_t n;
};

/* With VPROF_PARSE_SYMBOLS, the first name in the text says where they come from. */
struct vprof_parse_symbol {
	uint64_t address;
	uint64_t size; /* not 0 */
	uint32_t name; /* where it begins in the text */
	uint32_t type; /* nm(1)'s letter */
};

/* Up to the start of the next one, addresses are in this symbol. */
struct vprof_parse_range {
	uint64_t start;
	uint32_t symbol; /* its number; UINT32_MAX: in none */
	uint32_t reserved;
};

/* LINES: from `address` to that of the next, or to the end that was asked for. */
struct vprof_parse_line {
	uint64_t address;
	uint32_t file; /* where its name begins in the text */
	uint32_t line; /* 0: not known */
};

struct vprof_parse_structure {
	uint32_t name; /* where it begins in the text */
	uint32_t bytes;
};

/* Members of anonymous members are among them, by their offset in the outermost structure. No bit-fields. */
struct vprof_parse_member {
	uint32_t structure; /* its number */
	uint32_t name;
	uint32_t offset;
	uint32_t bytes; /* 0: not known */
};

struct vprof_parse_function {
	uint64_t address;
	uint64_t size;   /* not 0 */
	uint32_t name;   /* where it begins in the text */
	uint32_t number; /* of several at an address, the one with the highest counts */
};

/* Of the image's bytes. */
struct vprof_parse_part {
	uint64_t offset, bytes;
};

struct vprof_parse_layout {
	uint32_t machine; /* e_machine of the ELF header, or what it would be */
	uint32_t is_linux;
	uint32_t release; /* where it begins in the text, in which an empty one is the first */
	uint32_t has_pvh_entry;
	uint64_t entry;
	uint32_t pvh_entry;
	uint32_t reserved;
	struct vprof_parse_part build_id, frame_header;
	uint64_t frame_header_gva;
};

struct vprof_parse_segment {
	uint64_t gpa, gva, memory_bytes;
	struct vprof_parse_part file;
	uint32_t flags; /* PF_R, PF_W, PF_X */
	uint32_t reserved;
};

/* Its texts: where they begin in the text. */
struct vprof_parse_note {
	uint64_t address;
	uint32_t provider, name, operands;
	uint32_t has_semaphore;
};

_Static_assert(sizeof(struct vprof_parse_layout) == 72 && sizeof(struct vprof_parse_segment) == 48, "as described");
_Static_assert(sizeof(struct vprof_parse_function) == 24, "as described");
_Static_assert(sizeof(struct vprof_parse_note) == 24, "as described");
_Static_assert(sizeof(struct vprof_parse_table) == 16 && sizeof(struct vprof_parse_symbol) == 24, "as described");
_Static_assert(sizeof(struct vprof_parse_range) == 16, "as described");
_Static_assert(sizeof(struct vprof_parse_request) == 64 + VPROF_PARSE_TEXT_BYTES, "as described");
_Static_assert(sizeof(struct vprof_parse_reply) == 8, "as described");
_Static_assert(sizeof(struct vprof_parse_line) == 16 && sizeof(struct vprof_parse_structure) == 8, "as described");
_Static_assert(sizeof(struct vprof_parse_member) == 16, "as described");

#endif
