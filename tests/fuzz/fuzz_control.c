// SPDX-License-Identifier: BSD-2-Clause
/* What a client may send: any bytes. */
#include "fuzz_server.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_server *server = fuzz_server_open(NULL, NULL);

	fuzz_server_send(server, data, size);
	fuzz_server_close(server);
	return 0;
}
