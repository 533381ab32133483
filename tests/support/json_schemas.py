# SPDX-License-Identifier: BSD-2-Clause
"""What commands print with --json, against the published JSON Schemas."""
import functools
import json

import harness

try:
    import jsonschema
except ImportError:
    jsonschema = None

FOLDER = harness.SOURCE / "host-cli" / "schemas"


def closed(schema):
    """The schema without the freedom to add members: a new one must be described."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: closed(part) for key, part in schema.items()}
    if "properties" in copy and "object" in copy.get("type", ()):
        copy.setdefault("additionalProperties", False)
    return copy


@functools.cache
def validator(name):
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(closed(schema))


def check(test, name, document):
    """Where the validator is not installed, golden/schemas is skipped, which says so."""
    if jsonschema:
        errors = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator(name).iter_errors(document)]
        test.assertEqual(errors, [], name)
    return document
