#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof push, against servers that take what they get, refuse, do not answer, or are not there."""
import collections
import fcntl
import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

import harness
import profile_servers
import web_server
from harness import BIN, VPROF

# START_NS and realtime-offset-ns of make_recordings.c; 100 samples, a millisecond apart
START_S = 1700000000 + 5
FILES = 40  # that wait in a spool


class Server:
    """Answers as `statuses` says, in turn and then as the last of them, with `answer`; None: not at all. With `rules`,
    as that function of the query and the body does: a status and an answer."""

    def __init__(self, test, *statuses, headers=(), answer=b"as the test \x1b[31mwants it\n", rules=None):
        self.statuses, self.headers, self.answer, self.rules = statuses, headers, answer, rules
        self.requests, self.closing, self.arrived = [], threading.Event(), threading.Event()
        self.url = web_server.serve(test, self.respond)
        test.addCleanup(self.closing.set)

    def respond(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        query = dict(urllib.parse.parse_qsl(url.query))
        if self.rules:
            status, answer = self.rules(query, body)
        else:
            status, answer = self.statuses[min(len(self.requests), len(self.statuses) - 1)], self.answer
        self.requests.append((url.path, query, handler.headers, body))
        self.arrived.set()
        if status is None:
            self.closing.wait()
            return
        handler.send_response(status)
        for name, value in self.headers:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(answer)


class Push(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need(harness.built_with("libcurl"), "vprof was built without libcurl")
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)
        self.spool = self.folder / "spool"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "no_proxy": "*", "LC_ALL": "C.UTF-8"}

    def server(self, *statuses, **options):
        return Server(self, *statuses, **options)

    def pyroscope(self, now_s=START_S + 60):
        """A server with the rules of Pyroscope, at that time; and what it has accepted."""
        harness.need_program("protoc", "protobuf-compiler")
        accepted = []

        def rules(query, body):
            pprof = profile_servers.Pprof(self.folder, body)
            try:
                profile_servers.pyroscope(pprof, query["name"], now_s)
            except profile_servers.Refused as refused:
                status, words = refused.args
                return status, json.dumps({"code": "unknown", "message": words}).encode()
            accepted.append(pprof)
            return 200, b""

        return self.server(rules=rules), accepted

    def parca(self):
        """A server with the rules of Parca; and what it has accepted."""
        harness.need_program("protoc", "protobuf-compiler")
        accepted = []

        def rules(_, body):
            try:
                accepted.append(profile_servers.parca(self.folder, body[5:]))
            except profile_servers.Refused as refused:
                return 200, profile_servers.grpc_trailers("grpc-status: {}".format(refused.args[0]), f"grpc-message: {refused.args[1]}")
            return 200, bytes(5) + profile_servers.grpc_trailers("grpc-status: 0")

        return self.server(rules=rules), accepted

    def dead_server(self):
        """The URL of a port without a listener, which no other process gets."""
        bound = socket.socket()
        self.addCleanup(bound.close)
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}"

    def push(self, *arguments, recording="clock.data", status=0):
        source = ("-i", recording) if recording else ("--spooled",)
        return self.run_program(VPROF, "push", *arguments, *source, "--spool", self.spool, status=status, cwd=self.folder,
                                env=self.environment, timeout=120)[1]

    def left(self):
        return sorted(file for file in self.spool.iterdir() if file.suffix == ".push")

    def test_what_is_sent(self):
        server = self.server(200)
        err = self.push(server.url + "/", "--label", "rack=b7", "--label", "odd=a,b={c}", "-H", "X-Scope-OrgID: kernel")
        self.assertRegex(err, r"\Avprof: sent 1 profile \([\d.]+ \w+\)\n\Z")
        [(path, query, headers, body)] = server.requests
        self.assertEqual(path, "/ingest")
        name = query.pop("name")
        self.assertEqual(query, {"from": str(START_S), "until": str(START_S + 1), "format": "pprof", "spyName": "vprof"})
        self.assertEqual(name, f"vprof{{domain=golden,event=task-clock,host={socket.gethostname()},"
                               "kernel_build_id=deadbeef" + 32 * "0" + ",kernel_release=6.1.0-golden,rack=b7,odd=a_b__c_}")
        self.assertEqual([headers["X-Scope-OrgID"], headers["Expect"]], ["kernel", None])
        self.run_program(VPROF, "export", "-t", "pprof", "-i", "clock.data", "-o", "export.pb.gz", cwd=self.folder)
        self.assertEqual(gzip.decompress(body), gzip.decompress((self.folder / "export.pb.gz").read_bytes()))
        self.assertEqual(self.left(), [])

    def check_pprof(self, pprof, event, kind, unit):
        self.assertEqual(pprof.types, [("samples", "count"), (kind, unit)])
        self.assertEqual((pprof.period_type, pprof.period, pprof.default), ((kind, unit), 1000000, kind))
        self.assertGreater(len(pprof.samples), 0)
        for sample in pprof.samples:
            self.assertEqual(pprof.labels(sample)["event"], event)

    def test_pyroscope_accepts_it(self):
        server, accepted = self.pyroscope()
        self.push(server.url)
        self.push(server.url, "-e", "cycles:k", "--label", "rack=b7", recording="events.data")
        self.check_pprof(accepted[0], "task-clock", "cpu", "nanoseconds")
        self.check_pprof(accepted[1], "cycles:k", "cycles_k", "count")

    def test_parca_accepts_it(self):
        server, accepted = self.parca()
        self.push("--api=parca", server.url, "--name", "web-01", "--label", "rack=b7", "--label", "host=other")
        self.push("--api=parca", server.url, "--name", "7up", "-e", "cycles:k", recording="events.data")
        (labels, clock), (_, cycles) = accepted
        self.check_pprof(clock, "task-clock", "cpu", "nanoseconds")
        self.check_pprof(cycles, "cycles:k", "cycles_k", "count")
        self.assertEqual([labels[name] for name in ("__name__", "service_name", "event", "rack", "host")],
                         ["web_01", "web-01", "task-clock", "b7", "other"])

    def test_cgroups(self):
        """The task's cgroup is a label of the sample, where it is known."""
        server, accepted = self.pyroscope()
        self.push(server.url, recording="cgroups.data")
        [pprof] = accepted
        found = collections.Counter()
        for sample in pprof.samples:
            found[pprof.labels(sample).get("cgroup")] += sample["value"][0]
        self.assertEqual(found, {"/": 2, "/system.slice": 2, "/user.slice": 2, "/system.slice/web.service": 2, '/=?[31m?,"x"': 2,
                                 "[unknown]": 2, None: 2})

    def test_too_old(self):
        """What waited longer than the server accepts is counted, and does not wait any longer."""
        for recording in "clock.data", "calls.data":
            self.push(self.dead_server(), "--time-limit", "1s", recording=recording, status=1)
        server, accepted = self.pyroscope(START_S + 2 * profile_servers.HOUR_S)
        err = self.push(server.url, recording=None, status=1)
        self.assertEqual(err.count("is outside of ingestion window"), 2, err)
        self.assertIn("vprof: 2 profiles are lost: older than the server accepts\n", err)
        self.assertEqual([len(server.requests), accepted, self.left()], [2, [], []])
        # Of any other refusal, age is no reason.
        self.assertNotIn("older than", self.push(self.server(422).url, status=1))

    def test_parca(self):
        """Its service takes one message in a frame; protoc reads it."""
        server, [] = self.parca()
        self.push("--api", "parca", server.url, "--label", "rack=b7")
        [(path, query, headers, body)] = server.requests
        self.assertEqual((path, query), ("/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", {}))
        self.assertEqual(headers["Content-Type"], "application/grpc-web+proto")
        self.assertEqual(body[:5], b"\0" + (len(body) - 5).to_bytes(4, "big"))
        text = subprocess.run(["protoc", "--decode=WriteRawRequest", "messages.proto"], cwd=self.folder,
                              input=body[5:], capture_output=True, check=True).stdout
        labels = dict(re.findall(rb'labels {\s+name: "(.*)"\s+value: "(.*)"', text))
        self.assertEqual(labels, {name.encode(): value.encode() for name, value in {
            "__name__": "vprof", "domain": "golden", "event": "task-clock", "host": socket.gethostname(),
            "kernel_build_id": "deadbeef" + 32 * "0", "kernel_release": "6.1.0-golden", "rack": "b7",
            "service_name": "vprof"}.items()})
        self.assertIn(b"normalized: true", text)
        self.run_program(VPROF, "export", "-t", "pprof", "-i", "clock.data", "-o", "export.pb.gz", cwd=self.folder)
        self.assertIn(gzip.decompress((self.folder / "export.pb.gz").read_bytes()),
                      gzip.decompress(body[body.index(b"\x1f\x8b"):-2]))
        self.assertEqual(self.left(), [])

    def test_parca_that_does_not_take_it(self):
        for answer, headers, said, kept in (
                (profile_servers.grpc_trailers("grpc-status: 3", "grpc-message: no \x1b name"), (), r"gRPC status 3: no \? name; vprof.* is discarded", 0),
                (profile_servers.grpc_trailers("grpc-status: 2", "grpc-message: bad type"), (), r"gRPC status 2: bad type; vprof.* is discarded", 0),
                (profile_servers.grpc_trailers("grpc-status: 16"), (), r"gRPC status 16\n.*1 profile is kept", 1),
                (b"", [("grpc-status", "7"), ("grpc-message", "not you")], r"gRPC status 7: not you\n", 1),
                (profile_servers.grpc_trailers("grpc-status: 8", "grpc-message: later"), (), r"gRPC status 8: later", 1),
                (b"", (), "does not answer as Parca does", 1), (b"<html>", (), "does not answer as Parca does", 1),
                (b"\x80\xff\xff\xff\xffgrpc-status", (), "does not answer as Parca does", 1),
                (profile_servers.grpc_trailers("grpc-status: -1"), (), "does not answer as Parca does", 1)):
            server = self.server(200, headers=headers, answer=answer)
            self.assertRegex(self.push("--api=parca", server.url, "--time-limit", "1s", status=1), said)
            self.assertEqual(len(self.left()), kept, answer)
            self.assertTrue(kept or len(server.requests) == 1, answer)
            for file in self.left():
                file.unlink()
        server = self.server(200, answer=profile_servers.grpc_trailers("grpc-status: 14"))
        self.assertIn("; retrying in ", self.push("--api=parca", server.url, "--time-limit", "2s", status=1))
        self.assertGreater(len(server.requests), 1)
        server = self.server(200, answer=profile_servers.grpc_trailers("grpc-status: 0"))
        self.assertIn("sent 1 profile", self.push("--api=parca", server.url, recording=None))

    def test_otlp(self):
        """What the collector's receiver takes: an export, with the labels in its resource."""
        server = self.server(200, answer=b"")
        self.push("--api=otlp", server.url, "--name", "web", "--label", "rack=b7")
        [(path, query, headers, body)] = server.requests
        self.assertEqual((path, query, headers["Content-Type"]), ("/v1development/profiles", {}, "application/x-protobuf"))
        resource = profile_servers.otlp_resource(self.folder, body)
        self.assertEqual(resource, {"service.name": "web", "host.name": "golden", "hypervisor.host.name": socket.gethostname(),
                                    "event": "task-clock", "rack": "b7", "host.arch": "amd64", "os.version": "6.1.0-golden",
                                    "os.build_id": "deadbeef" + 32 * "0"})
        self.run_program(VPROF, "export", "-t", "otlp", "-i", "clock.data", "-o", "export", cwd=self.folder)
        exported = (self.folder / "export").read_bytes()
        self.assertEqual(len(profile_servers.otlp_resource(self.folder, exported)), 4)
        # The dictionary, which comes last and refers to nothing in the resource.
        self.assertEqual(body[-len(exported) // 2:], exported[-len(exported) // 2:])
        self.assertEqual(self.left(), [])

    def test_otlp_that_does_not_take_it(self):
        """ExportProfilesServiceResponse.partial_success: rejected_profiles and error_message."""
        for answer, said in ((b"\x0a\x0b\x08\x02\x12\x07no\x1broom", "drops it: no\\?room; vprof.* is discarded"),
                             (b"\x0a\x02\x08\x01", "drops it: it does not say why; vprof.* is discarded")):
            server = self.server(200, answer=answer)
            self.assertRegex(self.push("--api=otlp", server.url, status=1), said)
            self.assertEqual([len(server.requests), self.left()], [1, []])
        # A warning, what is no answer at all, and lengths that lead nowhere.
        for answer in (b"\x0a\x04\x12\x02hm", b"<html>", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0a\x7f\x08", b"\xff" * 40):
            self.assertIn("sent 1 profile", self.push("--api=otlp", self.server(200, answer=answer).url))

    def test_two_formats_in_one_spool(self):
        for api in "otlp", "parca":
            self.push(f"--api={api}", self.dead_server(), "--time-limit", "1s", status=1)
        server = self.server(200)
        err = self.push("--api=otlp", server.url, recording=None)
        self.assertRegex(err, f"sent 1 profile .*\nvprof: 1 profile is kept in {self.spool} for a server with another --api\n\\Z")
        self.assertEqual([len(server.requests), len(self.left())], [1, 1])
        self.assertIn("sent 1 profile", self.push(server.url, recording=None))
        self.assertEqual([server.requests[1][0], self.left()], ["/ingest", []])

    def test_it_asks_again(self):
        server = self.server(503, 429, 200)
        err = self.push(server.url)
        self.assertEqual(err.count("; retrying in "), 2, err)
        self.assertIn(f"{server.url}/ingest answers with status 503: as the test ?[31mwants it; retrying in", err)
        self.assertEqual(len({body for _, _, _, body in server.requests}), 1)
        self.assertEqual([len(server.requests), self.left()], [3, []])

    def test_it_waits_as_long_as_it_is_told(self):
        """The server's hour is longer than the time limit: there is nothing to wait for."""
        server = self.server(503, headers=[("Retry-After", "3600")])
        self.assertNotIn("again in", self.push(server.url, "--time-limit", "30m", status=1))
        self.assertEqual([len(server.requests), len(self.left())], [1, 1])

    def test_dead_server_and_the_next_push(self):
        dead = self.dead_server()
        for recording, n in ("clock.data", 1), ("calls.data", 2):
            err = self.push(dead, "--time-limit", "1s", recording=recording, status=1)
            self.assertRegex(err, f"cannot reach {dead}/ingest: .*\nvprof: {n} profiles? (is|are) kept in {self.spool} for the next push\n")
            self.assertEqual(len(self.left()), n)
        server = self.server(500, 200)
        self.assertRegex(self.push(server.url, recording="tasks.data"), r"sent 3 profiles")
        bodies = [body for _, _, _, body in server.requests]
        self.assertEqual(len(bodies), 4)
        self.assertEqual(bodies[0], bodies[1])
        self.assertEqual(self.left(), [])
        # The oldest first.
        for body, recording in zip(bodies[1:], ("clock.data", "calls.data", "tasks.data")):
            self.run_program(VPROF, "export", "-t", "pprof", "-i", recording, "-o", "export.pb.gz", cwd=self.folder)
            self.assertEqual(gzip.decompress(body), gzip.decompress((self.folder / "export.pb.gz").read_bytes()), recording)

    def test_server_that_does_not_answer(self):
        server = self.server(None)
        err = self.push(server.url, "--time-limit", "1s", status=1)
        self.assertIn("cannot reach", err)
        self.assertEqual(len(self.left()), 1)
        server = self.server(200)
        self.push(server.url, recording=None)
        self.assertEqual([len(server.requests), self.left()], [1, []])
        self.assertEqual(self.push(server.url, recording=None), "")

    def test_killed_while_it_sends(self):
        server = self.server(None)
        process = self.start(VPROF, "push", server.url, "-i", "clock.data", "--spool", self.spool, cwd=self.folder,
                             env=self.environment)
        self.assertTrue(server.arrived.wait(60))
        process.terminate()
        self.finish(process, status=-15)
        self.assertEqual(len(self.left()), 1)
        server = self.server(200)
        self.push(server.url, recording=None)
        self.assertEqual([len(server.requests), self.left()], [1, []])

    def test_what_is_given_up_and_what_is_not(self):
        for status in 400, 413, 422:
            server = self.server(status)
            self.assertRegex(self.push(server.url, status=1), rf"status {status}: as the .*; vprof\{{domain=golden.*\}} is discarded")
            self.assertEqual([len(server.requests), self.left()], [1, []])
        for recording in "clock.data", "calls.data":
            self.push(self.dead_server(), "--time-limit", "1s", recording=recording, status=1)
        server = self.server(422, 200)
        self.assertIn("sent 1 profile", self.push(server.url, recording=None, status=1))
        self.assertEqual([len(server.requests), self.left()], [2, []])
        server = self.server(401)
        self.assertRegex(self.push(server.url, status=1), "status 401: .*\n.*1 profile is kept")
        self.assertEqual([len(server.requests), len(self.left())], [1, 1])

    def test_two_at_once(self):
        """While another sends, ours waits and then leaves its profile there."""
        self.spool.mkdir()
        with open(self.spool / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            server = self.server(200)
            err = self.push(server.url, "--time-limit", "1s", status=1)
            self.assertIn(f"another push is sending from {self.spool}", err)
            self.assertEqual([len(server.requests), len(self.left())], [0, 1])
        self.push(server.url, recording=None)
        self.assertEqual(len(server.requests), 1)

    def test_many_files_at_once(self):
        """By a server that takes its time, and fails once: what was under way then, and the rest, is sent in another pass."""
        self.push(self.dead_server(), "--time-limit", "1s", status=1)
        [file] = self.left()
        for i in range(1, FILES):
            shutil.copy(file, self.spool / f"{i:016x}-1.push")
        lock, under_way, done, most = threading.Lock(), set(), [], []

        def respond(handler):
            handler.rfile.read(int(handler.headers["Content-Length"]))
            with lock:
                under_way.add(threading.get_ident())
                most.append(len(under_way))
            time.sleep(0.05)
            with lock:
                under_way.remove(threading.get_ident())
                done.append(503 if len(done) == FILES // 2 else 200)
                handler.send_response(done[-1])
            handler.end_headers()
        self.assertIn(f"sent {FILES} profiles", self.push(web_server.serve(self, respond), recording=None))
        self.assertEqual((done.count(200), done.count(503), self.left()), (FILES, 1, []))
        self.assertGreater(max(most), 1)
        self.assertLessEqual(max(most), 8)

    def test_spool_is_limited(self):
        self.spool.mkdir()
        for i in range(3):
            with open(self.spool / f"{i:016x}-1.push", "wb") as file:
                file.write(b'{"format":"vprof-push","version":1,"name":"old{}","from":1,"until":2}\nold')
                file.truncate(100 << 20)
        err = self.push(self.dead_server(), "--time-limit", "1s", status=1)
        self.assertIn("is full: its oldest 1 profiles are dropped", err)
        self.assertEqual([file.name for file in self.left()][:2], [f"{i:016x}-1.push" for i in (1, 2)])

    def test_foreign_files_in_the_spool(self):
        self.spool.mkdir()
        files = {"0-a": b"", "0-b": b"{}\nbytes", "0-c": b"\xff" * 100000, "0-d": b'{"format":"vprof-push","version":2,"name":"x"}\n',
                 "0-e": b'{"format":"vprof-push","version":1,"name":3}\n',
                 "0-h": b'{"format":"vprof-push","version":1,"name":"x","profile":"gif"}\n',
                 "0-i": b'{"format":"vprof-push","version":1,"name":"x","from":-1,"until":2}\n'}
        for name, content in files.items():
            (self.spool / f"{name}.push").write_bytes(content)
        (self.spool / "0-f.push").mkdir()
        os.mkfifo(self.spool / "0-g.push")
        server = self.server(200)
        err = self.push(server.url)
        self.assertEqual(err.count("it is skipped"), 9, err)
        self.assertEqual([len(server.requests), len(self.left())], [1, 9])

    def test_refusals(self):
        for url in "ftp://example.org", "nonsense", "file:///etc/passwd", "":
            self.assertIn("is not the URL of a server", self.push(url, status=2))
        self.assertIn('--api is pyroscope, parca or otlp, not "polar"', self.push("http://127.0.0.1:1", "--api=polar", status=2))
        self.assertIn("cannot make the folder", self.run_program(
            VPROF, "push", "http://127.0.0.1:1", "-i", "clock.data", "--spool", "clock.data/x", status=1, cwd=self.folder)[1])
        self.assertIn("missing.data: No such file", self.push(self.dead_server(), recording="missing.data", status=1))
        self.assertIn('has no event "cycles"', self.push(self.dead_server(), "-e", "cycles", status=1))
        self.assertEqual(self.left(), [])

    def test_secrets_are_not_arguments(self):
        """Every user can read those of a command."""
        server = self.server(200)
        for name in ("Authorization", "authorization", "Proxy-Authorization", "COOKIE", "X-API-Key", "apikey", "X-Auth-Token", "client-secret",
                     " Authorization "):
            err = self.push(server.url, "--header", f"{name}: s3cr3t", status=2)
            self.assertIn("--header-file", err)
            self.assertNotIn("s3cr3t", err)
        for url in "http://me:s3cr3t@host", "https:/me:s3cr3t@host", "me:s3cr3t@host", "http://a@b:s3cr3t@host/x":
            err = self.push(url, status=2)
            self.assertIn("--header-file", err)
            self.assertNotIn("s3cr3t", err)
        for header in "X-Scope-OrgID", "X-Scope-OrgID:", ": x", "X Y: z", "X: a\r\nY: b":
            self.assertIn("--header takes NAME: VALUE", self.push(server.url, "-H", header, status=2))
        self.assertEqual((server.requests, self.spool.exists()), ([], False))

    def test_secrets_in_a_file(self):
        server, headers = self.server(200), self.folder / "headers"
        headers.write_text("# of the server\n\n  Authorization: Bearer s3cr3t\r\nX-Scope-OrgID: kernel\n")
        headers.chmod(0o644)
        err = self.push(server.url, "--header-file", headers, status=1)
        self.assertIn("has a secret, and other users can read it; run: chmod 600 ", err)
        headers.chmod(0o600)
        self.push(server.url, "--header-file", headers, "-H", "X-Other: 1")
        [(_, _, sent, _)] = server.requests
        self.assertEqual([sent["Authorization"], sent["X-Scope-OrgID"], sent["X-Other"]], ["Bearer s3cr3t", "kernel", "1"])
        for text, message in (("X-Scope-OrgID: a\nnonsense s3cr3t\n", "headers: line 2 is not NAME: VALUE"), ("X: \0", "is not a text"),
                              ("#" * (1 << 20) + "\n", "is not a text of at most 1024 KiB")):
            headers.write_text(text)
            err = self.push(server.url, "--header-file", headers, status=1)
            self.assertIn(message, err)
            self.assertNotIn("s3cr3t", err)
        self.assertIn("cannot read none: No such file", self.push(server.url, "--header-file", "none", status=1))

    def test_secrets_in_the_environment(self):
        server = self.server(200)
        self.environment["VPROF_PUSH_HEADERS"] = "Authorization: Basic s3cr3t\nX-Api-Key: 7"
        self.push(server.url)
        [(_, _, sent, _)] = server.requests
        self.assertEqual([sent["Authorization"], sent["X-Api-Key"]], ["Basic s3cr3t", "7"])


if __name__ == "__main__":
    harness.main()
