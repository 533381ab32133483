// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data of the page, as web/src/data.js reads it: JSON that is safe inside <script type="application/json">,
 * whatever the names of a guest's tasks and functions are.
 */
#ifndef VPROF_CLI_EXPORT_PAGE_DATA_H
#define VPROF_CLI_EXPORT_PAGE_DATA_H

#include <stdio.h>

#include "export/page.h"
#include "export/page_profile.h"

/*
 * {"version": 5, "recordings": [{...}, ...], "fates": [...], "standing": [...], "repetitions": [base, now]}: what is
 * compared with the first one behind it; the other members if their first events were compared. fates: of functions
 * that only one of two has, {"fate": "renamed", "inlined" or "split", "mode", "name", "module", "other",
 * "other-module"}, where other is what it is called now, or was made part of or off. standing: functions with a change
 * that is not chance, {"mode", "name", "module"}. Each recording has its texts once ("strings"); all that has a name
 * says its number there. facts: what the head of `vprof report` says, a name and a text each. tasks: name, process or
 * -1, cgroup of each. states, only with waits: {"threads": name, process, thread of each; "cells": how many slices
 * behind the cell above, thread, state, nanoseconds}. Its profiles are lists of whole numbers:
 *
 *   frames   symbol, module, mode (enum profile_mode) for each function
 *   nodes    for each node of the call tree but the root, callers before callees: how far before it its caller stands,
 *            and its frame. Node 1 is the first; the caller of the outermost is 0, the root
 *   rows     how many nodes behind the row above, vCPU, task, phase set, state of the task, its waker, slice of time
 *            since the first one ("first-row-slice", of "row-slice-ns" each), samples, period
 *   cells    of the timeline: how many slices behind the cell above, vCPU, mode, exit reason's name, period
 */
void page_data_write(const struct page_recording *const *recordings, size_t n, const struct page_comparison *compared,
                     FILE *to);

#endif
