// SPDX-License-Identifier: BSD-2-Clause
#include "export/page_template.h"

const char page_template[] = "";
