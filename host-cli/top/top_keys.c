// SPDX-License-Identifier: BSD-2-Clause
#include "top/top_keys.h"

#include "terminal/terminal.h"

enum top_key top_key_next(void)
{
	static const struct {
		int code;
		enum top_key key;
	} keys[] = {
		{'q', TOP_KEY_QUIT},
		{TERMINAL_KEY_F10, TOP_KEY_QUIT},
		{TERMINAL_KEY_INTERRUPT, TOP_KEY_QUIT},
		{'h', TOP_KEY_HELP},
		{'?', TOP_KEY_HELP},
		{TERMINAL_KEY_F1, TOP_KEY_HELP},
		{' ', TOP_KEY_NOW},
		{'s', TOP_KEY_INTERVAL},
		{'d', TOP_KEY_INTERVAL},
		{'p', TOP_KEY_PAUSE},
		{'Z', TOP_KEY_PAUSE},
		{'a', TOP_KEY_ALL},
		{'z', TOP_KEY_RESET},
		{'>', TOP_KEY_GROUP_NEXT},
		{'\t', TOP_KEY_GROUP_NEXT},
		{'<', TOP_KEY_GROUP_PREVIOUS},
		{'t', TOP_KEY_TREE},
		{TERMINAL_KEY_F5, TOP_KEY_TREE},
		{TERMINAL_KEY_ENTER, TOP_KEY_FOLD},
		{'1', TOP_KEY_BARS},
		{TERMINAL_KEY_UP, TOP_KEY_UP},
		{'k', TOP_KEY_UP},
		{TERMINAL_KEY_DOWN, TOP_KEY_DOWN},
		{'j', TOP_KEY_DOWN},
		{TERMINAL_KEY_PAGE_UP, TOP_KEY_PAGE_UP},
		{TERMINAL_KEY_PAGE_DOWN, TOP_KEY_PAGE_DOWN},
		{TERMINAL_KEY_HOME, TOP_KEY_HOME},
		{TERMINAL_KEY_END, TOP_KEY_END},
		{TERMINAL_KEY_REDRAW, TOP_KEY_REDRAW},
		{TERMINAL_KEY_RESIZE, TOP_KEY_RESIZE},
		{TERMINAL_KEY_NONE, TOP_KEY_NONE},
	};
	const int code = terminal_key();

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].code == code)
			return keys[i].key;
	return TOP_KEY_OTHER;
}
