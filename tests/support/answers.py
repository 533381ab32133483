# SPDX-License-Identifier: BSD-2-Clause
"""Compares the answer of a control method with the rows that query-schema has for it: these members, and no others."""
import re

TYPES = {
    "address": lambda value: isinstance(value, str) and re.fullmatch("0x[0-9a-f]+", value),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "object": lambda value: isinstance(value, dict),
    "any": lambda value: True,
}


def value_errors(schema, row, type_, value, where):
    if not TYPES[type_](value):
        yield f"{where}: {value!r} is no {type_}"
    elif "members-of" in row:
        rows, = (of.get("returns", of.get("data")) for of in schema["methods"] + schema["events"] if of["name"] == row["members-of"])
        yield from member_errors(schema, rows, value, where)
    elif "members" in row:
        yield from member_errors(schema, row["members"], value, where)


def errors_of(schema, row, value, where):
    type_ = row["type"]
    if value is None:
        if not row.get("nullable") and type_ != "any":
            yield f"{where}: null"
    elif not type_.startswith("["):
        yield from value_errors(schema, row, type_, value, where)
    elif not isinstance(value, list):
        yield f"{where}: {value!r} is no array"
    else:
        for element in value:
            yield from value_errors(schema, row, type_.strip("[]"), element, where)


def member_errors(schema, rows, value, where):
    named = {row["name"]: row for row in rows}
    others = named.pop("*", None)
    for name, row in named.items():
        if name not in value and not row.get("optional"):
            yield f"{where}: no member {name}"
    if others and "names" in others:
        wanted = {term["name"] for term in schema[others["names"]]}
        if wanted != value.keys():
            yield f"{where}: {sorted(wanted ^ value.keys())} differ from {others['names']}"
    for name, member in value.items():
        row = named.get(name, others)
        if row is None:
            yield f"{where}: member {name} is not declared"
        else:
            yield from errors_of(schema, row, member, f"{where}, {name}")


def answer_errors(schema, method, answer):
    """What is wrong with an answer to `method`; nothing when it is as declared."""
    described = next(one for one in schema["methods"] if one["name"] == method)
    return list(member_errors(schema, described["returns"], answer, method))
