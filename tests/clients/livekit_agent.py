"""LiveKit's OpenAI realtime model in an `AgentSession` whose room is this program, against a running server.

Scenarios: an audio turn, an interruption of an answer that is being made and of one that is still played, a tool round trip. An
error of the session, a warning in the client's log, or an exception fails. Exit code 0 only if all of them pass.
"""

import asyncio
import importlib.metadata
import logging
import time

from livekit import rtc
from livekit.agents import Agent, AgentSession, function_tool
from livekit.agents.voice import io
from livekit.plugins.openai.realtime import RealtimeModel

from scenario import (
    BYTES_PER_MS,
    LONG_AT_ONCE,
    LONG_PACED,
    RATE,
    TOOL_QUESTION,
    WEATHER,
    Violation,
    Watch,
    arguments,
    expect,
    order,
    paced,
    run,
    sounds,
    utterance,
)


def frame(pcm):
    return rtc.AudioFrame(data=pcm, sample_rate=RATE, num_channels=1, samples_per_channel=len(pcm) // 2)


class Microphone(io.AudioInput):
    def __init__(self):
        super().__init__(label="microphone")
        self.frames = asyncio.Queue()

    async def __anext__(self):
        return await self.frames.get()

    async def speak(self, pcm):
        async for chunk in paced(pcm):
            self.frames.put_nowait(frame(chunk))


class Loudspeaker(io.AudioOutput):
    """Plays in real time; keeps what it was given of each answer, and how much of it was played."""

    def __init__(self):
        super().__init__(label="loudspeaker", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=RATE)
        self.given = []
        self.finished = []
        self.capturing = False
        self.end = None

    async def capture_frame(self, frame):
        await super().capture_frame(frame)
        if not self.capturing:
            self.capturing = True
            self.given.append(b"")
            self.started = time.monotonic()
            self.on_playback_started(created_at=time.time())
        self.given[-1] += bytes(frame.data)

    def length(self):
        return len(self.given[-1]) / BYTES_PER_MS / 1_000

    def played(self):
        """Seconds of the present answer that have been heard."""
        return min(time.monotonic() - self.started, self.length()) if self.capturing else 0.0

    def flush(self):
        super().flush()
        if self.capturing and self.end is None:
            left = self.length() - self.played()
            self.end = asyncio.get_running_loop().call_later(left, self.finish, False)

    def clear_buffer(self):
        if self.capturing:
            self.finish(True)

    def finish(self, interrupted):
        if self.end:
            self.end.cancel()
        self.end = None
        played = self.played()
        self.capturing = False
        self.finished.append((interrupted, played))
        self.on_playback_finished(playback_position=played, interrupted=interrupted)


class Room(logging.Handler):
    """An agent session as a user runs it, and what the user sees of it."""

    def __init__(self, args, tools=()):
        super().__init__(level=logging.WARNING)
        self.watch = Watch()
        self.microphone = Microphone()
        self.loudspeaker = Loudspeaker()
        self.sent = []
        base_url = args.url.removesuffix("/realtime")
        self.model = RealtimeModel(api_key="no-key", base_url=base_url)
        # The server says when the user speaks; this loudspeaker cannot pause; its sound does not come back to the microphone.
        handling = {"turn_detection": "realtime_llm", "interruption": {"resume_false_interruption": False}}
        self.session = AgentSession(llm=self.model, vad=None, turn_handling=handling, aec_warmup_duration=None)
        self.session.input.audio = self.microphone
        self.session.output.audio = self.loudspeaker
        self.session.on("error", lambda event: self.watch.fail(event.error))
        self.agent = Agent(instructions="You are tested.", tools=list(tools))

    def emit(self, record):
        self.watch.fail(self.format(record))

    async def __aenter__(self):
        logging.getLogger().addHandler(self)
        await self.session.start(self.agent)
        self.agent.realtime_llm_session.on("openai_client_event_queued", self.sent.append)
        return self

    async def __aexit__(self, kind, error, traceback):
        await self.session.aclose()
        await self.model.aclose()
        logging.getLogger().removeHandler(self)
        if error is None:
            self.watch.check()

    def messages(self):
        return [(item.role, item.text_content) for item in self.session.history.items if item.type == "message"]

    async def finished(self, number):
        await self.watch.until(f"end of answer {number}", lambda: len(self.loudspeaker.finished) >= number)

    async def said(self, *roles):
        """What the history holds, once the messages have these roles."""

        def found():
            messages = self.messages()
            return [role for role, _ in messages] == list(roles) and [text for _, text in messages]

        return await self.watch.until(f"history with {roles}", found)


async def audio_turn(args):
    async with Room(args) as room:
        await room.microphone.speak(utterance(args.wav))
        user, assistant = await room.said("user", "assistant")
        await room.finished(1)
        expect(user, assistant, "what the echo has heard")
        expect(sounds(room.loudspeaker.given[0]), [order(assistant)], "what was played")
        return assistant


async def tool_round_trip(args):
    calls = []

    @function_tool
    async def get_weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: The name of the city.
        """
        calls.append(city)
        return WEATHER

    async with Room(args, [get_weather]) as room:
        room.session.generate_reply(user_input=TOOL_QUESTION)
        *_, answer = await room.said("user", "assistant")
        await room.finished(1)
        expect(calls, ["Paris"], "calls")
        if WEATHER not in answer:
            raise Violation(f"the answer is {answer!r}")
        expect(sounds(room.loudspeaker.given[0]), [order(answer)], "what was played")
        return answer


async def interruption(args, question=LONG_PACED):
    async with Room(args) as room:
        room.session.generate_reply(user_input=question)
        await room.watch.until("a second of audio", lambda: room.loudspeaker.played() >= 1)
        await room.microphone.speak(utterance(args.wav))
        *_, answer = await room.said("user", "assistant", "user", "assistant")
        await room.finished(2)
        [(interrupted, played), (whole, _)] = room.loudspeaker.finished
        expect((interrupted, whole), (True, False), "interrupted")
        expect(sounds(room.loudspeaker.given[1]), [order(answer)], "what was played")
        [cut] = [event for event in room.sent if event["type"] == "conversation.item.truncate"]
        expect(cut["audio_end_ms"], int(played * 1_000), "where the client cut")
        return f"cut at {cut['audio_end_ms']} ms"


async def interruption_of_playback(args):
    """The answer is complete, its user still hears it."""
    return await interruption(args, LONG_AT_ONCE)


def main():
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("livekit-agents", "livekit-plugins-openai", "openai")]
    run(", ".join(versions), arguments(), (audio_turn, interruption, interruption_of_playback, tool_round_trip))


if __name__ == "__main__":
    main()
