// SPDX-License-Identifier: BSD-2-Clause
/* What a service manager gives a service: sd_listen_fds(3). */
#ifndef VPROF_ENGINE_SERVICE_H
#define VPROF_ENGINE_SERVICE_H

/* The listening socket that we were started with, or -1. The first of several. */
int service_listen_fd(void);

#endif
