// SPDX-License-Identifier: BSD-2-Clause
#include "attach/route.h"

#include "attach/qemu_guest.h"

const struct counter_route *const qemu_routes[] = {&route_bpf, &route_perf, &route_monitor, NULL};
