#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof daemon: a guest that comes and goes, a server that fails and takes, Prometheus's view of it, and its manager's."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import harness
import host_daemon
from harness import VMM, VPROF

MODES = {"kernel", "user", "guest", "kvm", "vmm", "halted", "offline", "waiting", "other"}
DASHBOARD = harness.SOURCE / "host-cli" / "examples" / "grafana-dashboard.json"
# Files of 200 kB that wait when the daemon starts, and how many of them are too many for 1 MiB.
FILLERS, DROPPED = 8, 3
MANY_GUESTS = int(os.environ.get("VPROF_TEST_GUESTS", "6"))  # at once; 64 by hand


def families(text):
    """{name: [({label: value}, number)]} of prometheus.io's text format, which is checked: each family has its help and its type
    in front, and counters are called so."""
    found, name = {}, None
    for line in text.splitlines():
        if head := re.fullmatch(r"# HELP (\w+) (\S.*\.)", line):
            name, kind = head[1], None
            assert name not in found, line
            found[name] = []
        elif head := re.fullmatch(r"# TYPE (\w+) (counter|gauge)", line):
            kind = head[2]
            assert head[1] == name and name.endswith("_total") == (kind == "counter"), line
        else:
            sample = re.fullmatch(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)+)\})? ([0-9.e+-]+)', line)
            assert sample and sample[1] == name and kind, line
            found[name].append((dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2] or "")), float(sample[3])))
    return found


class Prometheus:
    """Debian's, which scrapes one address each second."""

    def __init__(self, test, target):
        self.programs = pathlib.Path(harness.script("prometheus.sh"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        folder = test.folder / "prometheus"
        folder.mkdir()
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "1s"},
                                      "scrape_configs": [{"job_name": "vprof", "static_configs": [{"targets": [target]}]}]}))
        subprocess.run([self.programs / "promtool", "check", "config", config], check=True)
        server = test.start(self.programs / "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
                            f"--web.listen-address={self.address}", "--log.level=error", env=os.environ | {"GOMAXPROCS": "1"})
        test.addCleanup(test.finish, server, status=None)
        test.addCleanup(server.terminate)

    def query(self, expression):
        """[({label: value}, number)]; None while it starts."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/api/v1/query?" + urllib.parse.urlencode({"query": expression}),
                                        timeout=60) as answer:
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        except OSError:
            return None
        assert document["status"] == "success", document
        return [(each["metric"], float(each["value"][1])) for each in document["data"]["result"]]

    def check_metrics(self, text):
        """(exit status, output) of promtool."""
        checked = subprocess.run([self.programs / "promtool", "check", "metrics"], input=text, text=True, check=False,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return checked.returncode, checked.stdout


def dashboard_expressions():
    """What the panels and the variables of the dashboard ask, with its variables as Grafana fills them in when all is chosen."""
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    asked += [re.fullmatch(r"label_values\((.*), \w+\)", variable["definition"])[1]
              for variable in dashboard["templating"]["list"] if "definition" in variable]
    return [re.sub(r"\$(job|instance|domain)\b", ".*", expression).replace("$__rate_interval", "1m") for expression in asked]


class Daemon(host_daemon.DaemonTest):
    def guest(self, image="one_in_five", number=""):
        guest = self.start(VMM, "--kernel", harness.guest(image), "--control", "none", "--name", f"{self.name}{number}",
                           stdout=subprocess.DEVNULL)
        self.addCleanup(self.finish, guest, status=None)
        self.addCleanup(guest.terminate)
        return guest

    def scrape(self, path="/metrics"):
        with urllib.request.urlopen(f"http://{self.metrics}{path}", timeout=60) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            return answer.read().decode()

    def check_metrics(self):
        harness.need(harness.built_with("libmicrohttpd"), "vprof was built without libmicrohttpd")
        text = self.scrape()
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.scrape("/other")
        self.assertEqual(refused.exception.code, 404)
        found = families(text)
        times = found["vprof_guest_vcpu_seconds_total"]
        self.assertEqual({labels["mode"] for labels, _ in times}, MODES)
        self.assertEqual({(labels["domain"], labels["vcpu"]) for labels, _ in times}, {(self.name, "0")})
        self.assertGreater(sum(value for labels, value in times if labels["mode"] in ("kernel", "user", "guest")), 0)
        self.assertEqual([value for _, value in found["vprof_guest_up"]], [1])
        self.assertGreater(found["vprof_guest_samples_total"][0][1], 0)
        self.assertGreater(sum(value for _, value in found["vprof_guest_exits_total"]), 0)
        self.assertEqual({labels["cause"] for labels, _ in found["vprof_guest_lost_samples_total"]}, {"ring", "throttled", "discarded"})
        results = {labels["result"]: value for labels, value in found["vprof_push_profiles_total"]}
        self.assertEqual((results["refused"], results["dropped"]), (0, DROPPED))
        self.assertGreater(results["sent"], 0)

        names = set(re.findall(r"\bvprof_\w+", DASHBOARD.read_text()))
        self.assertGreater(len(names), 5)
        self.assertEqual(names - found.keys(), set())

    def check_prometheus(self):
        """What Debian's Prometheus has of the guest; each expression of the dashboard is one for it, and has an answer."""
        prometheus = Prometheus(self, self.metrics)
        self.assertEqual(prometheus.check_metrics(self.scrape()), (0, ""))
        self.wait(lambda: prometheus.query("vprof_guest_up"), "Prometheus to scrape the daemon")
        [(labels, value)] = prometheus.query("vprof_guest_up")
        self.assertEqual((labels["domain"], labels["job"], labels["instance"], value), (self.name, "vprof", self.metrics, 1))
        self.wait(lambda: prometheus.query('sum(rate(vprof_guest_vcpu_seconds_total{mode=~"kernel|user|guest|kvm|vmm"}[1m])) > 0'),
                  "a rate of the guest's vCPU")
        silent = [expression for expression in dashboard_expressions() if not prometheus.query(expression)]
        # Exits have a time only where KVM's trace points tell them apart.
        self.assertEqual([expression for expression in silent if "exit_seconds" not in expression], [])

    def fill_spool(self):
        """What is older than the guest's profiles, and more than the spool may have; returns how many."""
        self.spool.mkdir()
        for i in range(FILLERS):
            head = f'{{"format":"vprof-push","version":1,"name":"filler{i}{{}}","from":1,"until":2}}\n'.encode()
            (self.spool / f"{i:016x}-1.push").write_bytes(head + os.urandom(200000))

    def check_outage(self, guest):
        """While the server fails, profiles wait. What the spool has no room for is dropped, the oldest first, and counted: nothing
        else is lost."""
        self.wait_for_guest(guest.pid, lambda guest: guest["profiles"] >= 2)
        self.wait(lambda: self.server.attempts > 0 and self.status()["push"].get("spooled", 0) > 1, "profiles in the spool")
        push = self.status()["push"]
        self.assertIn("503", push["why"])
        self.assertLessEqual(push["spooled-bytes"], 1 << 20)
        self.assertEqual((push["sent"], push["dropped"]), (0, DROPPED))
        self.server.works.set()

        def accounted():
            push, made = self.status()["push"], self.only_guest()["profiles"]
            return push["spooled"] == 0 and push["sent"] + push["dropped"] == FILLERS + made
        self.wait(accounted, "every profile to be sent or counted as dropped")
        self.assertEqual(sorted(name for name in self.server.names if name.startswith("filler")),
                         [f"filler{i}{{}}" for i in range(DROPPED, FILLERS)])
        self.assertEqual((self.status()["push"]["dropped"], self.status()["push"]["refused"]), (DROPPED, 0))
        self.assertRegex(self.names_with("first")[0], rf"^vprof\{{domain={self.name},event=[\w-]+,host={socket.gethostname()},.*run=first\}}$")

    def reload(self, daemon, label, api):
        self.configure(label, api)
        daemon.send_signal(signal.SIGHUP)
        self.manager.hear("RELOADING=1")

    def check_other_servers(self, daemon):
        """Parca and a collector take what the daemon makes, and which guest it is of."""
        self.reload(daemon, "second", "parca")
        self.wait(lambda: self.server.labels["parca"], "a profile at Parca")
        self.reload(daemon, "third", "otlp")
        self.wait(lambda: self.server.labels["otlp"], "a profile at the collector")
        labels, resource = self.server.labels["parca"][0], self.server.labels["otlp"][0]
        self.assertEqual([labels[name] for name in ("__name__", "service_name", "domain", "host", "run")],
                         ["vprof", "vprof", self.name, socket.gethostname(), "second"])
        self.assertEqual([resource[name] for name in ("service.name", "host.name", "hypervisor.host.name", "run")],
                         ["vprof", self.name, socket.gethostname(), "third"])
        self.config.write_text("[nonsense]\nkey=value\n")
        daemon.send_signal(signal.SIGHUP)
        self.manager.hear("RELOADING=1")
        self.manager.hear("READY=1")
        self.configure("third", "otlp")

    def check_no_spool(self, guest):
        """A spool that takes nothing more, as that of a full disk, costs the profile and not the sampling."""
        shutil.rmtree(self.spool)
        self.spool.write_text("not a folder")
        self.wait_for_guest(guest.pid, lambda guest: guest["profiles-lost"] > 0)
        found = self.only_guest()
        self.assertIn("Not a directory", found["profiles-why"])
        self.assertEqual((found["state"], found["restarts"]), ("sampling", 0))

    def test_a_guest_comes_and_goes(self):
        harness.need_program("protoc", "protobuf-compiler")
        self.fill_spool()
        self.configure("first", spool_mib=1)
        daemon = self.begin()
        self.assertEqual(self.status()["guests"], [])
        guest = self.guest()
        self.check_outage(guest)
        self.wait_for_guest(guest.pid, lambda guest: guest["samples"] > 0)
        self.check_metrics()
        self.check_prometheus()
        self.manager.hear("WATCHDOG=1")

        # An engine that dies is started again.
        os.kill(self.only_guest()["engine"]["pid"], signal.SIGKILL)
        self.wait_for_guest(guest.pid, lambda guest: guest["restarts"] == 1)
        self.check_other_servers(daemon)
        self.wait_for_guest(guest.pid)
        self.assertIn(f"\n{self.name} ", self.run_program(VPROF, "daemon", "--config", self.config, "status")[0])

        guest.terminate()
        self.wait(lambda: not self.only_guest(), "the guest's end")
        last = self.guest()
        self.wait_for_guest(last.pid)
        self.check_no_spool(last)
        err = self.end(daemon)
        self.assertIn("; the configuration stays as it was\n", err)
        self.assertIsNone(last.poll())
        self.assertFalse((self.folder / "status.sock").exists())
        self.assertEqual(self.server.refused, [])

    def test_many_guests(self):
        """All at once: each is sampled, and has a profile of its own at the server, unless it is halted."""
        images = {f"{self.name}-{i}": "halt" if i % 4 == 3 else "one_in_five" for i in range(MANY_GUESTS)}
        self.server.works.set()
        for number, image in enumerate(images.values()):
            self.guest(image, f"-{number}")
        daemon = self.begin()

        def all_there():
            guests = {guest["name"]: guest for guest in self.status()["guests"]}
            return guests.keys() == images.keys() and all(
                guest["state"] == "sampling" and (images[name] == "halt" or guest["profiles"] > 0) for name, guest in guests.items())
        self.wait(all_there, f"{MANY_GUESTS} guests")
        busy = {name for name, image in images.items() if image != "halt"}
        self.wait(lambda: busy <= {re.search("domain=([^,]*),", name)[1] for name in self.server.names}, "a profile of each")
        self.assertEqual([(guest["restarts"], guest["lost"]["ring"]) for guest in self.status()["guests"]], [(0, 0)] * MANY_GUESTS)
        self.assertEqual(self.server.refused, [])
        self.end(daemon)

    def test_what_it_refuses(self):
        self.refused(VPROF, "daemon", "--config", self.config, "status", message="no daemon serves .*status.sock")
        self.refused(VPROF, "daemon", "--config", self.folder / "none", message="cannot read .*/none: No such file")
        self.refused(VPROF, "daemon", "again", status=2, message="expected run, status or check")
        self.refused(VPROF, "daemon", "check", "--json", status=2, message="--json goes with status")
        self.assertIn("is in order", self.run_program(VPROF, "daemon", "check", "--config", self.config)[0])
        daemon = self.begin()
        self.refused(VPROF, "daemon", "--config", self.config, message="another daemon serves")
        self.end(daemon)


if __name__ == "__main__":
    harness.main()
