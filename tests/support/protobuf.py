# SPDX-License-Identifier: BSD-2-Clause
"""Messages as Google's protoc decodes them, by descriptions that others have published."""
import ast
import re
import subprocess

import harness

TOKEN = re.compile(r'\s*(?:(?P<name>\w+)(?:: (?P<value>"(?:[^"\\]|\\.)*"|\S+)| (?P<open>\{))|(?P<close>\}))')
BOOLEANS = {"false": False, "true": True}


def length(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def serialized(module):
    """The FileDescriptorProto in a module that protoc has made for Python."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile":
            return node.args[0].value
    raise AssertionError(f"{module} has no description")


def describe(modules, file):
    """Writes a FileDescriptorSet of such modules, those ahead that others import."""
    files = [serialized(module) for module in modules]
    file.write_bytes(b"".join(b"\x0a" + length(len(one)) + one for one in files))


def parse(text):
    """protoc's text: of each message a dictionary of lists, and what it does not know under its number."""
    top = message = {}
    stack = []
    at = 0
    while match := TOKEN.match(text, at):
        at = match.end()
        if match["close"]:
            message = stack.pop()
        elif match["open"]:
            stack.append(message)
            message.setdefault(match["name"], []).append({})
            message = message[match["name"]][-1]
        else:
            value = match["value"]
            message.setdefault(match["name"], []).append(BOOLEANS[value] if value in BOOLEANS else ast.literal_eval(value))
    if stack or text[at:].strip():
        raise AssertionError(f"protoc printed something else: {text[at:at + 100]}")
    return top


def decode(descriptions, kind, file):
    harness.need_program("protoc", "protobuf-compiler")
    with file.open("rb") as stream:
        done = subprocess.run(["protoc", f"--descriptor_set_in={descriptions}", f"--decode={kind}"], stdin=stream,
                              capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    return parse(done.stdout.decode())


def unknown_fields(message):
    """The numbers of fields that the description does not have, wherever they are."""
    found = {name for name in message if name.isdigit()}
    for values in message.values():
        for value in values:
            if isinstance(value, dict):
                found |= unknown_fields(value)
    return found
