"""The tables of events in the guide against the types of the installed client: exit code 0 only if both know the same events,
and every proof that the tables name is there."""

import argparse
import pathlib
import re
import sys
import typing

from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent


def of_package(union):
    """Wire names of the events of a union of the package."""
    for cls in typing.get_args(typing.get_args(union)[0]):
        yield from typing.get_args(cls.model_fields["type"].annotation)


def rows(guide, heading):
    """Name and proofs of each row of the table below a heading."""
    table = guide.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for line in table.splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            yield cells[0].strip("` "), re.findall(r"`([^`]+)`", cells[-1]) if len(cells) == 3 else []


def is_there(proof, tests):
    if proof.endswith(".jsonl"):
        return (tests / "conformance/cases" / proof).is_file()
    module, _, name = proof.partition("::")
    file = tests / "it" / f"{module}.rs"
    return file.is_file() and f"fn {name}()" in file.read_text()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    root = parser.parse_args().root
    guide = (root / "src/guide/protocol.md").read_text()
    wrong = []
    for heading, union in (("Client events", RealtimeClientEvent), ("Server events", RealtimeServerEvent)):
        known, table = set(of_package(union)), dict(rows(guide, heading))
        wrong += [f"{heading}: the table lacks {name}" for name in sorted(known - table.keys())]
        wrong += [f"{heading}: {name} is no event of the package" for name in sorted(table.keys() - known)]
        for name, proofs in table.items():
            wrong += [f"{name}: no {proof}" for proof in proofs if not is_there(proof, root / "tests")]
        print(f"{heading}: {len(table)} of {len(known)}")
    for problem in wrong:
        print(problem)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
