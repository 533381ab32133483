# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP server of a test's own."""
import http.server
import threading


def serve(test, respond):
    """The URL of a server that lives as long as the test, and has each request answered by respond(handler)."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            respond(self)

        do_POST = do_GET

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    test.addCleanup(thread.join)
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return f"http://127.0.0.1:{server.server_address[1]}"
