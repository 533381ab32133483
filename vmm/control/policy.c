// SPDX-License-Identifier: BSD-2-Clause
#include "control/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/control_error.h"
#include "control/keeper.h"

struct policy_user {
	uid_t uid;
	enum control_role role;
};

struct policy {
	GArray *users; /* of struct policy_user */
};

const char *control_role_name(enum control_role role)
{
	static const char *const names[] = {
		[ROLE_OBSERVE] = "observe",
		[ROLE_INSTRUMENT] = "instrument",
		[ROLE_CONTROL] = "control",
	};

	return names[role];
}

static bool parse_user(const char *text, uid_t *uid)
{
	guint64 number;

	if (g_ascii_string_to_unsigned(text, 10, 0, (uid_t)-2, &number, NULL)) {
		*uid = (uid_t)number;
		return true;
	}
	const struct passwd *user = getpwnam(text);
	if (user)
		*uid = user->pw_uid;
	return user;
}

static bool parse_role(const char *text, enum control_role *role)
{
	for (unsigned i = ROLE_OBSERVE; i <= ROLE_CONTROL; i++) {
		if (strcmp(text, control_role_name((enum control_role)i)) == 0) {
			*role = (enum control_role)i;
			return true;
		}
	}
	return false;
}

/* "USER ROLE", an empty line, or a comment. On failure, *why is the reason. */
static bool parse_line(struct policy *policy, char *line, const char **why)
{
	char *rest = NULL, *comment = strchr(line, '#');
	struct policy_user user;

	if (comment)
		*comment = '\0';
	const char *name = strtok_r(line, " \t\r", &rest), *role = name ? strtok_r(NULL, " \t\r", &rest) : NULL;
	if (!name)
		return true;
	if (!role || strtok_r(NULL, " \t\r", &rest))
		*why = "it is not USER ROLE";
	else if (!parse_user(name, &user.uid))
		*why = "there is no such user";
	else if (!parse_role(role, &user.role))
		*why = "the role must be observe, instrument or control";
	else if (policy->users->len == POLICY_USERS_MAX)
		*why = "it has too many users";
	else
		g_array_append_val(policy->users, user);
	return !*why;
}

struct policy *policy_parse(const char *name, const char *text, GError **error)
{
	struct policy *policy = g_new(struct policy, 1);

	*policy = (struct policy){.users = g_array_new(FALSE, FALSE, sizeof(struct policy_user))};
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	for (unsigned i = 0; lines[i]; i++) {
		const char *why = NULL;

		if (parse_line(policy, lines[i], &why))
			continue;
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN, "cannot use policy %s: line %u: %s", name,
		            i + 1, why);
		policy_free(policy);
		return NULL;
	}
	return policy;
}

/* Why a file cannot be a policy, or NULL. A user who can write the policy can take over the guest. */
static const char *file_refused(int fd, const struct stat *status)
{
	const uid_t owner = keeper_identify(fd).uid;

	if (!S_ISREG(status->st_mode))
		return "it is not a regular file";
	if (owner != 0 && owner != geteuid())
		return "it belongs to neither root nor the user of the engine; give it to one of them with chown";
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return "users other than its owner may write it; change that with chmod go-w";
	return status->st_size > POLICY_BYTES_MAX ? "it is too large" : NULL;
}

/* The text, or NULL; *why is the reason. */
static char *file_read(int fd, const char **why)
{
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0) {
		*why = g_strerror(errno);
		return NULL;
	}
	*why = file_refused(fd, &status);
	if (*why)
		return NULL;
	g_autofree char *text = g_malloc0((size_t)status.st_size + 1);
	ssize_t got = pread(fd, text, (size_t)status.st_size, 0);
	if (got < 0)
		*why = g_strerror(errno);
	else if (got != status.st_size)
		*why = "it was changed while it was read";
	else if (memchr(text, '\0', (size_t)got))
		*why = "it is not text";
	return *why ? NULL : g_steal_pointer(&text);
}

struct policy *policy_load(const char *path, GError **error)
{
	const char *why = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	g_autofree char *text = file_read(fd, &why);

	if (fd >= 0)
		close(fd);
	if (text)
		return policy_parse(path, text, error);
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN, "cannot read the policy %s: %s", path, why);
	return NULL;
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	g_array_unref(policy->users);
	g_free(policy);
}

int policy_role(const struct policy *policy, uid_t uid)
{
	int role = -1;

	for (guint i = 0; policy && i < policy->users->len; i++) {
		const struct policy_user *user = &g_array_index(policy->users, struct policy_user, i);

		if (user->uid == uid)
			role = (int)user->role; /* the last line counts */
	}
	return role;
}
