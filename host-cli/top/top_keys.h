// SPDX-License-Identifier: BSD-2-Clause
/* What the keys of `vprof top` mean. */
#ifndef VPROF_CLI_TOP_TOP_KEYS_H
#define VPROF_CLI_TOP_TOP_KEYS_H

enum top_key {
	TOP_KEY_NONE, /* no key has been pressed */
	TOP_KEY_OTHER,
	TOP_KEY_QUIT,
	TOP_KEY_HELP,
	TOP_KEY_NOW,
	TOP_KEY_INTERVAL,
	TOP_KEY_PAUSE,
	TOP_KEY_ALL,
	TOP_KEY_RESET,
	TOP_KEY_GROUP_NEXT,
	TOP_KEY_GROUP_PREVIOUS,
	TOP_KEY_TREE,
	TOP_KEY_FOLD,
	TOP_KEY_BARS,
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_REDRAW,
	TOP_KEY_RESIZE, /* the terminal has another size */
};

enum top_key top_key_next(void);

#endif
