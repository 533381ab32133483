# SPDX-License-Identifier: BSD-2-Clause
"""A debuginfod server of a test's own."""
import os
import re
import subprocess

import web_server


def build_id(program):
    notes = subprocess.run(["readelf", "-nW", program], capture_output=True, text=True, check=True).stdout
    return re.search("Build ID: ([0-9a-f]+)", notes).group(1)


def environment(test, url, cache="cache"):
    """That names this server, and a folder of its own for what comes from there."""
    return os.environ | {"DEBUGINFOD_URLS": url, "no_proxy": "*", "DEBUGINFOD_CACHE_PATH": str(test.folder / cache)}


def serve(test, files, cache="cache"):
    """What it is asked for, and the environment that names it. files: their contents by what is asked for."""
    asked = []

    def respond(handler):
        asked.append(handler.path)
        content = files.get(handler.path)
        handler.send_response(200 if content else 404)
        handler.end_headers()
        handler.wfile.write(content or b"")

    return asked, environment(test, web_server.serve(test, respond), cache)
