// SPDX-License-Identifier: BSD-2-Clause
/* What the parts of the compiler share. */
#ifndef VPROF_SCRIPT_SCRIPT_COMPILE_H
#define VPROF_SCRIPT_SCRIPT_COMPILE_H

#include "lib/script/script_priv.h"

/* Where a value is in the frame. */
struct value {
	enum script_type type;
	unsigned at;
};

struct variable {
	const char *name; /* of the tree */
	struct value value;
};

/* The program of one probe. */
struct compiler {
	struct script *script;
	const struct script_probe *probe;
	size_t number; /* of the probe */
	GArray *code;
	GArray *variables;                /* of the clause */
	unsigned temporary, variables_at; /* the frame is free between them */
	unsigned steps;
	bool guesses; /* what the maps keep is not known yet; the code is thrown away */
	bool unknown; /* the value that is being compiled is of such a map */
	GArray *ends; /* size_t: jumps to the end of the clause */
	GError **error;
};

/* All return false after an error. Those with `want` put the value there, or, if it is -1, where they like. */
bool compile_fail(struct compiler *compiler, const struct script_node *node, enum script_error code, const char *why);
bool is_number(enum script_type type);
bool compile_emit(struct compiler *compiler, const struct script_node *node, struct vprof_instruction instruction);
bool compile_allocate(struct compiler *compiler, const struct script_node *node, unsigned words, unsigned *at);
bool compile_copy(struct compiler *compiler, const struct script_node *node, enum script_type type, unsigned dst,
                  unsigned a);
/* If the condition is 0; NULL: always. compile_land says where `at` leads: here. */
bool compile_jump(struct compiler *compiler, const struct script_node *node, const struct value *condition, size_t *at);
void compile_land(struct compiler *compiler, size_t at);
bool compile_value(struct compiler *compiler, const struct script_node *node, int want, struct value *out);
bool compile_number(struct compiler *compiler, const struct script_node *node, struct value *out);
/* Its type, without code. */
bool compile_measure(struct compiler *compiler, const struct script_node *node, enum script_type *type);
/* One behind the other. */
bool compile_several(struct compiler *compiler, const struct script_node *first, unsigned n, enum script_type *types,
                     unsigned *at, unsigned *words);
bool compile_operator(struct compiler *compiler, const struct script_node *node, const char *sign,
                      const struct value *a, const struct value *b, unsigned dst, enum script_type *type);
/* The variable, new or of that kind. */
struct variable *compile_variable(struct compiler *compiler, const struct script_node *node, enum script_type type);
bool compile_takes(struct compiler *compiler, const struct script_node *call, unsigned least, unsigned most,
                   const char *how);
bool compile_literal(struct compiler *compiler, const struct script_node *node, int64_t least, int64_t most,
                     int64_t *number);

/* script_maps.c */
bool compile_map_get(struct compiler *compiler, const struct script_node *node, int want, struct value *out);
/* The number of the map, without its keys. */
bool compile_map_find(struct compiler *compiler, const struct script_node *node, size_t *number);
bool compile_map_assign(struct compiler *compiler, const struct script_node *node);
bool compile_map_step(struct compiler *compiler, const struct script_node *node);
bool compile_map_delete(struct compiler *compiler, const struct script_node *call);

#endif
