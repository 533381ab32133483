# SPDX-License-Identifier: BSD-2-Clause
"""An engine without a guest: a control socket with answers that a test has written down."""
import json
import pathlib
import socketserver
import threading


class FakeEngine:
    """`answers`: by method, what is returned; or a function of the arguments. Other methods do not exist."""

    def __init__(self, path, answers):
        answers = {"negotiate": {"protocol": 1}, **answers}

        class Client(socketserver.StreamRequestHandler):
            def handle(self):
                self.send({"vprof": {"version": "0", "protocol": 1}, "guest": answers.get("query-guest", {}), "capabilities": []})
                for line in self.rfile:
                    request = json.loads(line)
                    answer = answers.get(request["execute"])
                    if callable(answer):
                        answer = answer(request.get("arguments", {}))
                    outcome = {"return": answer}
                    if answer is None:
                        outcome = {"error": {"class": "CommandNotFound", "desc": f"there is no method {request['execute']}"}}
                    self.send({**outcome, "id": request.get("id")})

            def send(self, message):
                self.wfile.write(json.dumps(message).encode() + b"\n")

        pathlib.Path(path).unlink(missing_ok=True)
        self.server = socketserver.ThreadingUnixStreamServer(str(path), Client)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()
