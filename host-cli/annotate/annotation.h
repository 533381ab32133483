// SPDX-License-Identifier: BSD-2-Clause
/* The samples of one function by instruction, its code, and where the code comes from. */
#ifndef VPROF_CLI_ANNOTATE_ANNOTATION_H
#define VPROF_CLI_ANNOTATE_ANNOTATION_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "annotate/disassembler.h"
#include "lib/symbol/source_lines.h"
#include "reading/input.h"

#define ANNOTATION_ERROR annotation_error_quark()
GQuark annotation_error_quark(void);
enum annotation_error {
	ANNOTATION_ERROR_SYMBOL, /* no sample fell into a function of that name */
	ANNOTATION_ERROR_CODE,   /* its code cannot be had */
};

#define ANNOTATION_JSON_VERSION 1

struct annotation_options {
	const struct symbol_options *symbols;
	const char *symbol; /* or a copy of it, as symbol.part.0, where no sample fell into a function of that name */
	const char *module; /* NULL: any */
	const char *kernel; /* the image; NULL: the one that the recording names */
	bool force;
	bool intel;
};

/* Samples with the instruction pointer `offset` bytes after the function's start. */
struct annotation_hit {
	uint64_t offset;
	uint64_t samples, period;
};

struct annotation {
	struct input *input; /* borrowed */
	const char *event;
	char *symbol;
	const char *module; /* lives as long as the input */
	enum profile_mode mode;
	const struct mapping *mapping; /* of a program, library or kernel module, where it is known; NULL */
	GArray *hits;                  /* of struct annotation_hit, by offset */
	guint n_others;                /* other functions of that name, or copies of it, with fewer samples */
	bool is_copy;                  /* by a compiler, of the function that was asked for */
	uint64_t samples, period;      /* of the function */
	uint64_t all_samples, all_period;
	struct image *image;
	struct symtab *symtab;
	struct source_lines *lines; /* NULL: no debug information */
	uint64_t address;           /* of the function in the image */
	uint64_t bytes;
	GArray *instructions; /* of struct instruction */
};

/* Reads the recording's first event, finds the function and its code. */
struct annotation *annotation_new(struct input *input, const struct annotation_options *options, GError **error);
void annotation_free(struct annotation *annotation);

/* annotation_code.c: fills in image, symtab, lines, address, bytes and instructions. */
bool annotation_find_code(struct annotation *annotation, const struct annotation_options *options, GError **error);

/* The samples of instruction i, those within it included. */
struct annotation_hit annotation_hit_of(const struct annotation *annotation, guint i);
/* "memcpy+0x10", where a jump leads or what is called; NULL: nothing is known there. New string. */
char *annotation_target(const struct annotation *annotation, const struct instruction *instruction);

void annotation_print_text(const struct annotation *annotation, FILE *to);
void annotation_print_json(const struct annotation *annotation, FILE *to);

#endif
