// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parca's ProfileStoreService.WriteRaw (parca/profilestore/v1alpha1/profilestore.proto) as a POST of gRPC-Web
 * (github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md), which that server takes over HTTP/1.1 at any path.
 */
#ifndef VPROF_CLI_PUSH_PUSH_PARCA_H
#define VPROF_CLI_PUSH_PUSH_PARCA_H

#include "push/push_spool.h"

#define PUSH_PARCA_PATH "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
#define PUSH_PARCA_CONTENT_TYPE "application/grpc-web+proto"

/* gRPC status codes, sent with an HTTP status of 200 (github.com/grpc/grpc/blob/master/doc/statuscodes.md). */
enum push_parca_status {
	PUSH_PARCA_OK = 0,
	PUSH_PARCA_UNKNOWN = 2,
	PUSH_PARCA_INVALID_ARGUMENT = 3,
	PUSH_PARCA_DEADLINE_EXCEEDED = 4,
	PUSH_PARCA_RESOURCE_EXHAUSTED = 8,
	PUSH_PARCA_FAILED_PRECONDITION = 9,
	PUSH_PARCA_ABORTED = 10,
	PUSH_PARCA_OUT_OF_RANGE = 11,
	PUSH_PARCA_INTERNAL = 13,
	PUSH_PARCA_UNAVAILABLE = 14,
};

/* The request's body. */
GByteArray *push_parca_request(const struct push_profile *profile);

/*
 * Reads the trailers in the body of an answer: n bytes, which may be truncated. *message: the raw value of
 * "grpc-message", or NULL; for g_free. False if they contain no status.
 */
bool push_parca_answer(const char *body, size_t n, unsigned *status, char **message);

#endif
