#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""schema_test.py FA_SCHEMA FILE: the file that the C++ tests wrote is valid, and damaged copies are not."""

import copy
import json
import subprocess
import sys
from typing import Any

try:
    import jsonschema
except ImportError:
    print("skipped: the Python package jsonschema is not installed")
    sys.exit(77)


def main() -> int:
    schema = json.loads(subprocess.check_output([sys.argv[1], "results"]))
    with open(sys.argv[2], encoding="utf-8") as file:
        sample = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    errors = [error.message for error in validator.iter_errors(sample)]

    def damaged(*path_and_value: Any) -> Any:
        document = copy.deepcopy(sample)
        *path, last, value = path_and_value
        node = document
        for key in path:
            node = node[key]
        node[last] = value
        if validator.is_valid(document):
            errors.append(f"accepted {path_and_value}")

    damaged("schema", 2)
    damaged("generator", "git_dirty", "no")
    damaged("device", "kind", "cpu")
    damaged("rows", 0, "status", "fine")
    damaged("rows", 0, "reason", "ok has no reason")
    damaged("rows", 0, "problem", "heads", 0)
    damaged("rows", 0, "time_ms", "median", 0)
    damaged("rows", 0, "launches", 1, "time_ms", "median", -1)
    damaged("rows", 0, "launches", 1, "resources", None)
    damaged("rows", 0, "launches", sample["rows"][0]["launches"][:1])
    damaged("rows", 1, "launches", sample["rows"][0]["launches"])  # it was not timed
    damaged("rows", 4, "copy_bytes", 1)  # a matrix product is no copy
    damaged("rows", 5, "tflops", 1.0)
    damaged("rows", 5, "gbs", None)
    damaged("rows", 1, "reason", "")
    damaged("rows", 1, "tflops", 12.0)
    damaged("device", "kind", "vm")  # a VM row never has a time
    for error in errors:
        print(error)
    print(f"{len(errors)} problems")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
