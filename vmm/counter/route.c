// SPDX-License-Identifier: BSD-2-Clause
#include "counter/route.h"

static void route_refuse(GString *reasons, const struct counter_route *route, const char *why)
{
	g_string_append_printf(reasons, "%s%s: %s", reasons->len > 0 ? "; " : "", route->name, why);
}

const struct counter_route *counter_route_choose(struct guest *guest, const char *name, bool registers, char **why_not,
                                                 GError **error)
{
	g_autoptr(GString) reasons = g_string_new(NULL);
	g_autofree char *best = NULL;
	bool known = false;

	for (size_t i = 0; guest->routes[i]; i++) {
		if (name ? !g_str_equal(guest->routes[i]->name, name) : registers && !guest->routes[i]->registers)
			continue;
		known = true;
		g_autofree char *why = guest->routes[i]->unavailable(guest);

		if (!why) {
			*why_not = g_steal_pointer(&best);
			return guest->routes[i];
		}
		route_refuse(reasons, guest->routes[i], why);
		if (!best && !(guest->routes[i]->impossible && guest->routes[i]->impossible(guest)))
			best = g_strdup_printf("%s: %s", guest->routes[i]->name, why);
	}
	for (size_t i = 0; !known && guest->routes[i]; i++)
		route_refuse(reasons, guest->routes[i], guest->routes[i]->summary);
	if (!guest->routes[0])
		g_string_append(reasons, "none, because nothing runs in it: it is a dump");
	g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
	            known ? "cannot sample %s: %s" : "cannot sample %s: there is no such route, but %s", guest->name,
	            reasons->str);
	return NULL;
}
