"""records.py - result files, read without Railgauge.

    records.py validate SCHEMA FILE...  every record is valid by the JSON Schema, which names all of
                                        its members but numbers of rows, which are statistics
    records.py launches FILE DIR        writes launches of the job of FILE, with other values
    records.py merged CSV FILE...       the CSV of `railgauge show` has the medians over the files
    records.py hosts FILE NAME...       none of the names is in the file
    records.py groups FILE NAMES...     the groups of hosts have these names, with commas between
    records.py rows FILE COUNT          writes a file of so many rows
"""
import json
import statistics
import sys


def records(path):
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def strict(schema):
    """The schema of the file's version, without members that it does not name, statistics apart."""
    for kind in ("run", "end"):
        schema["definitions"][kind]["additionalProperties"] = False
    return schema


def validate(schema_path, *paths):
    import jsonschema
    with open(schema_path) as text:
        schema = json.load(text)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(strict(schema))
    wrong = 0
    for path in paths:
        for number, record in enumerate(records(path), 1):
            for error in validator.iter_errors(record):
                deepest = jsonschema.exceptions.best_match([error])
                print(f"{path}:{number}: {list(deepest.path)}: {deepest.message}")
                wrong += 1
    # The schema refuses as well.
    for broken in ({}, {"schema": 2, "type": "dance"}, {"schema": 3, "type": "end", "status": 0, "rows": 0},
                   {"schema": 2, "type": "end", "status": "0", "rows": 0}):
        if validator.is_valid(broken):
            print(f"the schema takes {broken}")
            wrong += 1
    return wrong


def write(path, all_records):
    with open(path, "w") as out:
        for record in all_records:
            out.write(json.dumps(record, separators=(",", ":")) + "\n")


def launches(path, directory):
    for number in range(7):
        changed = records(path)
        changed[0]["provenance"]["utc"] = f"2026-01-0{number + 1}T00:00:00Z"
        for i, record in enumerate(changed):
            if record["type"] == "row":
                # No order of the launches holds for all rows.
                record["median"] *= 1 + (number * 5 + i) % 7 / 10
        write(f"{directory}/launch{number}.jsonl", changed)
    return 0


def merged(csv_path, *paths):
    import csv
    values = {}
    for path in paths:
        for record in records(path):
            if record["type"] == "row":
                values.setdefault((record["way"], record["bytes"]), []).append(record["median"])
    wrong = 0
    with open(csv_path) as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        known = values.pop((row["way"], int(row["bytes"])))
        if abs(float(row["median"]) / statistics.median(known) - 1) > 1e-8 or \
                int(row["launches"]) != len(paths) or row["ci_of"] != "launches":
            print(f"{row}: the files say {statistics.median(known)}")
            wrong += 1
    return wrong + len(values) + (not rows)


def hosts(path, *names):
    with open(path) as text:
        whole = text.read()
    return sum(name in whole for name in names)


def groups(path, *names):
    found = records(path)[0]["hosts"]
    loads = [len(group["load_average"]) for group in found]
    return [",".join(group["names"]) for group in found] != list(names) or \
        loads != [len(group["names"]) for group in found]


def rows(path, count):
    statistic = {"mean": 1.5, "min": 1, "max": 2, "p99": None, "sd": 0.1, "n": 100}
    with open(path, "w") as out:
        out.write('{"schema":2,"type":"run","program":"rg_x","title":"t","metric":"latency",'
                  '"ways":["a","b"]}\n')
        for i in range(int(count)):
            row = {"schema": 2, "type": "row", "way": "ab"[i % 2], "bytes": i // 2, "median": i + 0.25,
                   "valid": None, "cut": False, **statistic, "pairs": 1, "iterations": 100, "runs": 131,
                   "ledger": [{"rail": "soft0:1", "sent_bytes": 6400, "messages": 100}] * 2}
            out.write(json.dumps(row, separators=(",", ":")) + "\n")
        out.write('{"schema":2,"type":"end","status":0,"rows":%d}\n' % int(count))
    return 0


if __name__ == "__main__":
    functions = {f.__name__: f for f in (validate, launches, merged, hosts, groups, rows)}
    sys.exit(1 if functions[sys.argv[1]](*sys.argv[2:]) else 0)
