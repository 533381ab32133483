// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_TEST_FUZZ_FUZZ_TARGET_H
#define VPROF_TEST_FUZZ_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry: feeds one input to the parser under test, returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
