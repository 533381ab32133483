// SPDX-License-Identifier: BSD-2-Clause
	.section .rodata
	.globl page_template
	.type page_template, @object
page_template:
	.incbin "page.html"
	.byte 0
	.size page_template, . - page_template

	.section .note.GNU-stack, "", @progbits
