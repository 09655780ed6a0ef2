"""The events of the conformance cases against the types of the installed client: exit code 0 only if every one is known, fits its
type strictly, and every event that the guide says we send is among them."""

import argparse
import collections
import json
import pathlib
import sys

import pydantic

from events import rows, verdict
from realtime import Strict
from scenario import Violation


def without_extensions(members):
    """The types know PCM of 24 kHz only; the other rates are an extension of ours."""
    if members.get("type") == "audio/pcm" and members.get("rate") in (8_000, 16_000, 48_000):
        members["rate"] = 24_000
    return members


def judge(file, kinds):
    """What is wrong with the first bad event of a case, which the ones behind it may need; adds the types of all to `kinds`."""
    client = Strict(None)
    wrong = []
    for line in file.read_text().splitlines():
        event = json.loads(line, object_hook=without_extensions)
        kinds[event.get("type")] += 1
        try:
            if not wrong:
                client.checked(event)
        except (Violation, pydantic.ValidationError) as violation:
            wrong.append(f"{file.name}: {violation}\n  in the event {line[:1000]}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=pathlib.Path, required=True, help="a folder, the events of each case in a file")
    parser.add_argument("--root", type=pathlib.Path, required=True)
    args = parser.parse_args()
    kinds = collections.Counter()
    wrong = [problem for case in sorted(args.events.iterdir()) for problem in judge(case, kinds)]
    guide = (args.root / "src/guide/protocol.md").read_text()
    sent = {name for name, text, _ in rows(guide, "Server events") if not text.startswith("never")}
    wrong += [f"{name}: in no case" for name in sorted(sent - kinds.keys())]
    wrong += [f"{name}: the guide says that it is not sent" for name in sorted(kinds.keys() - sent)]
    print(f"{kinds.total()} events of {len(kinds)} types")
    return verdict(wrong)


if __name__ == "__main__":
    sys.exit(main())
