"""The tables of events in the guide against the types of the installed client: exit code 0 only if both know the same events,
and each has a proof that is there: a dialogue with this event, or a test."""

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
    """Name, text and proofs of each row of the table below a heading."""
    table = guide.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for line in table.splitlines():
        if line.startswith("| `"):
            name, text, proofs = (cell.strip() for cell in line.strip("|").split(" | "))
            yield name.strip("`"), text, re.findall(r"`([^`]+)`", proofs)


def proves(proof, name, text, tests):
    """Whether the proof is there; a dialogue also holds the event, unless that is never sent."""
    if proof.endswith(".jsonl"):
        file = tests / "conformance/cases" / proof
        return file.is_file() and (text.startswith("never") or f'"type":"{name}"' in file.read_text().replace("\\", ""))
    module, _, test = proof.partition("::")
    file = tests / f"{module}.rs" if "/" in module else tests / "it" / f"{module}.rs"
    return file.is_file() and f"fn {test}(" in file.read_text()


def verdict(wrong: list[str]) -> int:
    """Prints what is wrong; the exit status."""
    for problem in wrong:
        print(problem)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    root = parser.parse_args().root
    guide = (root / "src/guide/protocol.md").read_text()
    wrong = []
    for heading, union in (("Client events", RealtimeClientEvent), ("Server events", RealtimeServerEvent)):
        known, table = set(of_package(union)), list(rows(guide, heading))
        names = {name for name, _, _ in table}
        wrong += [f"{heading}: the table lacks {name}" for name in sorted(known - names)]
        wrong += [f"{heading}: {name} is no event of the package" for name in sorted(names - known)]
        for name, text, proofs in table:
            wrong += [f"{name}: without a proof"] if not proofs else []
            wrong += [f"{name}: {proof} does not prove it" for proof in proofs if not proves(proof, name, text, root / "tests")]
        print(f"{heading}: {len(names)} of {len(known)}")
    return verdict(wrong)


if __name__ == "__main__":
    sys.exit(main())
