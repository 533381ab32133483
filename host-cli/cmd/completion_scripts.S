// SPDX-License-Identifier: BSD-2-Clause
/* The scripts in shells/ as strings of the program. */
	.section .rodata
	.macro script name, file
	.globl \name
	.type \name, @object
\name:
	.incbin "\file"
	.byte 0
	.size \name, . - \name
	.endm

	script completion_bash, "shells/vprof.bash"
	script completion_zsh, "shells/vprof.zsh"
	script completion_fish, "shells/vprof.fish"

	.section .note.GNU-stack, "", @progbits
