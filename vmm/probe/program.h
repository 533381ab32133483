// SPDX-License-Identifier: BSD-2-Clause
/* Checks and runs the programs of probes (vprof/program.h). They come from a client, and may be anything. */
#ifndef VPROF_PROBE_PROGRAM_H
#define VPROF_PROBE_PROGRAM_H

#include "probe/program_map.h"

/* What a program may use. */
struct program_facts {
	unsigned n_arguments, n_fields; /* registers are arguments here */
	uint32_t texts;                 /* bit i: field i is a text */
	struct program_map *const *maps;
	unsigned n_maps;
};

/* Whether it keeps to the rules, so that program_run is safe. Errors: PROGRAM_ERROR. */
bool program_check(const struct vprof_instruction *instructions, size_t n, const struct program_facts *facts,
                   GError **error);
/* Whether it asks for stacks, or for addresses of user space with what is mapped there. */
bool program_needs_mappings(const struct vprof_instruction *instructions, size_t n);

/* What surrounds a program where it runs. Those that return false leave the words as they are, as zeros. */
struct program_place {
	const struct program_place_calls *calls;
	const uint64_t *arguments;
	struct program_map *const *maps;
	bool bare;       /* the arguments are not known */
	uint64_t faults; /* so far */
};
struct program_place_calls {
	uint64_t (*number)(struct program_place *place, enum vprof_program_number which);
	void (*comm)(struct program_place *place, uint64_t *words);
	void (*stack)(struct program_place *place, bool user, unsigned frames, uint64_t *words);
	bool (*field)(struct program_place *place, unsigned field, uint64_t *words);
	bool (*read)(struct program_place *place, uint64_t address, void *bytes, unsigned n);
	void (*send)(struct program_place *place, uint32_t action, const uint64_t *words, size_t n);
	void (*exit)(struct program_place *place);
	void (*event)(struct program_place *place);
};

/* A program that was checked. No lock, no allocation; at most `n` instructions. */
void program_run(const struct vprof_instruction *instructions, size_t n, struct program_place *place);

#endif
