"""The JSON Schema of gateway.toml as editors use it: it accepts every example and refuses mistyped keys.

Takes the file of the schema and the root of the checkout.
"""

import copy
import json
import re
import sys
import tomllib
from pathlib import Path

from jsonschema import Draft202012Validator

SMALLEST = {"listen": "127.0.0.1:8080", "route": [{"path": "/", "upstream": ["127.0.0.1:9000"]}]}


def every_key(example):
    """The example with the keys that stand behind a #."""
    return re.sub(r"^# (?=\[|[a-z_.]+ = )", "", example, flags=re.MULTILINE)


def blocks(page):
    """The blocks of TOML on a page."""
    return re.findall(r"^```toml\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)


def tables(value):
    """Every table in a configuration."""
    if isinstance(value, dict):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from tables(below)


def main(schema, root):
    schema = json.loads(schema.read_text())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    example = (root / "examples/gateway.toml").read_text()
    accepted = [("examples/gateway.toml", tomllib.loads(example))]
    accepted.append(("examples/gateway.toml with every key", tomllib.loads(every_key(example))))
    for page in sorted((root / "docs").rglob("*.md")):
        if page.name == "gateway-config.md":
            continue
        for block in blocks(page.read_text()):
            value = tomllib.loads(block)
            # Other blocks configure the broker or a mix of requests.
            if value.keys() & schema["properties"].keys():
                accepted.append((str(page.relative_to(root)), SMALLEST | value))
    failures = []
    for name, value in accepted:
        for error in validator.iter_errors(value):
            failures.append(f"{name}: {error.json_path}: {error.message}")
    full = accepted[1][1]
    refused = [{key: value for key, value in full.items() if key != gone} for gone in SMALLEST]
    for place in range(sum(1 for _ in tables(full))):
        mistyped = copy.deepcopy(full)
        list(tables(mistyped))[place]["unknown"] = 1
        refused.append(mistyped)
    refused += [SMALLEST | {"timeouts": {"idle": wrong}} for wrong in (60, "60", "60 sec", "", "s")]
    refused += [SMALLEST | {"compression": wrong} for wrong in ({"policy": "treshold"}, {"steps": []}, {"steps": ["gzip-9"]})]
    failures += [f"accepted: {json.dumps(value)}" for value in refused if validator.is_valid(value)]
    for line in failures:
        print(f"FAILED {line}")
    print(f"{len(accepted)} configurations accepted, {len(refused)} refused")
    return 1 if failures or len(accepted) < 5 else 0


sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
