"""What the scenarios of all Python clients need: arguments, the utterance, checks."""

import argparse
import asyncio
import itertools
import re
import sys
import traceback
import wave

import pydantic

EVENT_LIMIT_S = 60
LOOK_S = 0.02
RATE = 24_000
BYTES_PER_MS = 48  # 16 bit
CHUNK_MS = 20

# What the echo repeats and the fake voice carries out: a short answer, and long ones that are made twice as fast as they are
# heard, or at once. Whoever interrupts them has something left to hear.
GREETING = "say dur=0.3 tag=50"
LONG_PACED = "say dur=30 tag=123 rt=2"
LONG_AT_ONCE = "say dur=30 tag=123"

# What the scripted model answers with a call, and what the tool returns.
TOOL_QUESTION = 'call get_weather {"city": "Paris"}'
WEATHER = "the weather is say dur=1 tag=77 today"


class Violation(Exception):
    """The server broke the contract."""


def expect(found, expected, what):
    if found != expected:
        raise Violation(f"{what} is {found!r}, expected {expected!r}")


def extra_members(value, path=""):
    """Paths of all members that the types do not know."""
    if isinstance(value, pydantic.BaseModel):
        for name in value.model_extra or {}:
            yield f"{path}.{name}".lstrip(".")
        for name in type(value).model_fields:
            yield from extra_members(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for element in value:
            yield from extra_members(element, path)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True, help="ws://host:port/v1/realtime")
    parser.add_argument("--wav", required=True, help="an utterance, 24 kHz mono 16 bit")
    return parser.parse_args()


def utterance(path):
    """The samples of the file, then a second of silence that ends the turn."""
    with wave.open(path, "rb") as wav:
        expect((wav.getnchannels(), wav.getsampwidth(), wav.getframerate()), (1, 2, RATE), "format of --wav")
        return wav.readframes(wav.getnframes()) + bytes(1_000 * BYTES_PER_MS)


async def paced(pcm):
    """Chunks of 20 ms, each when a microphone would have it."""
    due = asyncio.get_running_loop().time()
    for start in range(0, len(pcm), CHUNK_MS * BYTES_PER_MS):
        due += CHUNK_MS / 1_000
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        yield pcm[start : start + CHUNK_MS * BYTES_PER_MS]


def sounds(pcm):
    """Values of the samples and how often each follows itself, `[(50, 7200), (6000, 12000)]`; silence does not count."""
    samples = filter(None, memoryview(pcm).cast("h"))
    return [(value, len(list(same))) for value, same in itertools.groupby(samples)]


def order(transcript):
    """What the fake voice makes of a transcript, in the form of `sounds`."""
    if not (found := re.search(r"dur=([\d.]+) tag=(\d+)", transcript)):
        raise Violation(f"the answer is {transcript!r}")
    return (int(found[2]), round(float(found[1]) * RATE))


class Watch:
    """Failures so far. Whoever waits fails with the first one, and never waits for ever."""

    def __init__(self):
        self.failures = []

    def fail(self, what):
        self.failures.append(str(what).strip())

    def check(self):
        if self.failures:
            raise Violation("; ".join(self.failures))

    async def until(self, what, condition):
        """Waits until `condition()` is truthy, and returns that."""
        deadline = asyncio.get_running_loop().time() + EVENT_LIMIT_S
        while not (found := condition()):
            self.check()
            if asyncio.get_running_loop().time() > deadline:
                raise Violation(f"no {what} within {EVENT_LIMIT_S} s")
            await asyncio.sleep(LOOK_S)
        return found


def run(banner, args, scenarios):
    """Runs the scenarios one after the other; the first that fails ends the program."""

    async def all_of_them():
        for scenario in scenarios:
            try:
                seen = await scenario(args)
            except Exception as error:
                raise Violation(f"{scenario.__name__}: {type(error).__name__}: {error}") from error
            print(f"{scenario.__name__}: {seen}", flush=True)

    print(banner, flush=True)
    try:
        asyncio.run(all_of_them())
    except Violation as violation:
        traceback.print_exc()
        sys.exit(f"FAILED: {violation}")
