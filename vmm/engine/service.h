// SPDX-License-Identifier: BSD-2-Clause
/* The two things that a service manager says to and hears from a service: sd_listen_fds(3), sd_notify(3). */
#ifndef VPROF_ENGINE_SERVICE_H
#define VPROF_ENGINE_SERVICE_H

/* The listening socket that we were started with, or -1. The first of several. */
int service_listen_fd(void);
/* Tells the service manager, if there is one, that clients are served from now on. */
void service_ready(void);

#endif
