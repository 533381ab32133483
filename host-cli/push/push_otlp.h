// SPDX-License-Identifier: BSD-2-Clause
/*
 * OpenTelemetry's profiles over HTTP (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP"): POST of an
 * ExportProfilesServiceRequest, which has the fields of the ProfilesData that export_otlp writes
 * (opentelemetry/proto/collector/profiles/v1development/profiles_service.proto).
 */
#ifndef VPROF_CLI_PUSH_PUSH_OTLP_H
#define VPROF_CLI_PUSH_PUSH_OTLP_H

#include <stddef.h>

#define PUSH_OTLP_PATH "/v1development/profiles"
#define PUSH_OTLP_CONTENT_TYPE "application/x-protobuf"

/*
 * What an ExportProfilesServiceResponse says of rejected profiles, printable. New string; NULL: they were accepted, or
 * the answer is none.
 */
char *push_otlp_refusal(const char *answer, size_t n);

#endif
