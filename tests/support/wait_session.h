// SPDX-License-Identifier: BSD-2-Clause
/* A session of a guest with fake tasks, one vCPU and samples of waits, which a route would count. */
#ifndef VPROF_TEST_SUPPORT_WAIT_SESSION_H
#define VPROF_TEST_SUPPORT_WAIT_SESSION_H

#include <check.h>

#include "fake_tasks.h"
#include "read_ring.h"
#include "sample/session_priv.h"

static struct fake_guest fake;
static struct page_walk walk;
static struct kernel_layout kernel;
static struct sampler sampler;
static struct session session;

/* The event of waits is number 1. */
static inline void wait_session_open(const struct session_config *config)
{
	static const struct counter_route route = {.name = "none"};
	const char *why;

	fake_tasks_init(&fake, &walk);
	fake_processors_init(&fake, &kernel);
	fake.guest.vcpus = 1;
	memset(&session, 0, sizeof(session));
	session.guest = &fake.guest;
	session.samplers = &sampler;
	session.rings = &ring;
	session.route = &route;
	session.running = true;
	session.config = *config;
	session.config.call_graph = SESSION_CALL_GRAPH_FP;
	ck_assert(counter_event_parse("task-clock", &session.config.events[0], NULL));
	session.config.n_events = 1;
	ck_assert(session_config_settle(&session.config, NULL, &why, NULL));
	ck_assert_uint_eq(session_config_n_events(&session.config), 2);
	kernel_layout_settle(&kernel);
	session.kernel.layout = &kernel.os;
	session.kernel.unwind = (struct unwind_config){.depth = 20};
	g_mutex_init(&session.route_lock);
	read_ring_open(64 << 10);
	sampler_init(&sampler, &fake.guest, 0);
	const struct sampler_config of_sampler = {.session = &session.config,
	                                          .unwind = &session.kernel.unwind,
	                                          .kernel = &kernel.os,
	                                          .claims = &session.claims};

	sampler_open_route(&sampler, &of_sampler, ring);
}

static inline void wait_session_close(void)
{
	sampler_close(&sampler);
	read_ring_close();
	g_mutex_clear(&session.route_lock);
}

#endif
