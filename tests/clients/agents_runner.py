"""`RealtimeRunner` of the agents SDK for Python over its stock WebSocket model, with the settings that it comes with, against a
running server.

Scenarios: an audio turn, an interruption by the user of an answer that is being made and of one that is still played, one by the
program with the server's own turn detection and without, a tool round trip. An error of the session, a warning in the client's
log, or an exception fails. Exit code 0 only if all of them pass.
"""

import asyncio
import importlib.metadata
import logging

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeRunner

from scenario import (
    BYTES_PER_MS,
    LONG_AT_ONCE,
    LONG_PACED,
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

# The client takes audio to be played as it comes; a second of it has been heard by then.
HEARD_S = 1


class Talk(logging.Handler):
    """A session as a user runs it, and what the user sees of it."""

    def __init__(self, args, tools=(), settings=None):
        super().__init__(level=logging.WARNING)
        self.watch = Watch()
        self.agent = RealtimeAgent(name="tester", instructions="You are tested.", tools=list(tools))
        self.model = {"api_key": "no-key", "url": f"{args.url}?model=gpt-realtime", "initial_model_settings": settings or {}}
        self.audio = {}  # of each item
        self.interruptions = 0
        self.server = []  # its events
        self.history = []

    def emit(self, record):
        self.watch.fail(self.format(record))

    async def __aenter__(self):
        logging.getLogger().addHandler(self)
        self.session = await RealtimeRunner(self.agent).run(model_config=self.model)
        await self.session.__aenter__()
        self.listening = asyncio.create_task(self.listen())
        await self.event("session.updated")
        return self

    async def __aexit__(self, kind, error, traceback):
        await self.session.close()
        await self.listening
        logging.getLogger().removeHandler(self)
        if error is None:
            self.watch.check()

    async def listen(self):
        try:
            async for event in self.session:
                match event.type:
                    case "error":
                        self.watch.fail(event.error)
                    case "audio":
                        self.audio[event.item_id] = self.audio.get(event.item_id, b"") + event.audio.data
                    case "audio_interrupted":
                        self.interruptions += 1
                    case "history_updated":
                        self.history = list(event.history)
                    case "history_added":
                        self.history = [*self.history, event.item]
                    case "raw_model_event" if event.data.type == "raw_server_event":
                        self.server.append(event.data.data)
        except Exception as error:
            self.watch.fail(repr(error))

    def seen(self, kind):
        return [event for event in self.server if event["type"] == kind]

    async def event(self, kind, number=1):
        await self.watch.until(f"{kind} number {number}", lambda: len(self.seen(kind)) >= number)
        return self.seen(kind)[number - 1]

    async def speak(self, pcm):
        async for chunk in paced(pcm):
            await self.session.send_audio(chunk)

    def made_ms(self, item):
        return len(self.audio.get(item, b"")) / BYTES_PER_MS

    async def remembers(self, item, text):
        """Waits until the client's history holds these words of the item."""

        def found():
            return any(entry.item_id == item and entry.content[0].transcript == text for entry in self.history)

        await self.watch.until(f"{text!r} in the history", found)

    async def answer(self, number):
        """The words of a response that is whole, in the history and by ear."""
        response = (await self.event("response.done", number))["response"]
        expect(response["status"], "completed", "status")
        [item] = [item for item in response["output"] if item["type"] == "message"]
        text = item["content"][0]["transcript"]
        await self.remembers(item["id"], text)
        expect(sounds(self.audio[item["id"]]), [order(text)], f"what was made of {text!r}")
        return text

    async def interruptible(self, question):
        """Asks for an answer and waits until some of it has been heard; the id of its item."""
        await self.session.send_message(question)
        item = (await self.event("response.output_item.added"))["item"]["id"]
        await self.watch.until("a second of audio", lambda: self.made_ms(item) >= 1_000 * HEARD_S)
        await asyncio.sleep(HEARD_S)
        return item

    async def is_cut(self, item):
        """The cut that the server has confirmed, and what it keeps of the item's words."""
        cut = await self.event("conversation.item.truncated")
        expect(cut["item_id"], item, "the cut item")
        if not 1_000 * HEARD_S <= cut["audio_end_ms"] <= self.made_ms(item) + 1:
            raise Violation(f"cut at {cut['audio_end_ms']} ms of {self.made_ms(item)}")
        # The client asks for what is left as soon as a cut is confirmed.
        retrieved = await self.event("conversation.item.retrieved")
        expect(retrieved["item"]["id"], item, "what the client has asked for")
        return cut["audio_end_ms"], retrieved["item"]["content"][0]["transcript"]


async def audio_turn(args):
    async with Talk(args) as talk:
        await talk.speak(utterance(args.wav))
        text = await talk.answer(1)
        heard = (await talk.event("conversation.item.input_audio_transcription.completed"))["transcript"]
        expect(heard, text, "what the echo has heard")
        expect(talk.interruptions, 0, "interruptions")
        return text


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

    async with Talk(args, [get_weather]) as talk:
        await talk.session.send_message(TOOL_QUESTION)
        answer = await talk.answer(2)
        expect(calls, ["Paris"], "calls")
        if WEATHER not in answer:
            raise Violation(f"the answer is {answer!r}")
        return answer


async def interruption(args, question=LONG_PACED, status="cancelled"):
    async with Talk(args) as talk:
        item = await talk.interruptible(question)
        await talk.speak(utterance(args.wav))
        cut_ms, _ = await talk.is_cut(item)
        expect((await talk.event("response.done"))["response"]["status"], status, "the interrupted response")
        await talk.answer(2)
        expect(talk.interruptions, 1, "interruptions")
        return f"cut at {cut_ms} ms"


async def interruption_of_playback(args):
    """The answer is complete, its user still hears it."""
    return await interruption(args, LONG_AT_ONCE, "completed")


async def interruption_by_program(args):
    """The server does not interrupt: the client cuts the answer that is being made, then cancels it."""
    settings = {"turn_detection": {"type": "server_vad", "interrupt_response": False}}
    async with Talk(args, settings=settings) as talk:
        item = await talk.interruptible(LONG_PACED)
        await talk.session.interrupt()
        cut_ms, kept = await talk.is_cut(item)
        done = (await talk.event("response.done"))["response"]
        expect((done["status"], done["output"][0]["content"][0]["transcript"]), ("cancelled", kept), "the response")
        await talk.session.send_message("say dur=0.3 tag=50")
        await talk.answer(2)
        expect(talk.interruptions, 1, "interruptions")
        return f"cut at {cut_ms} ms"


async def cut_by_program(args):
    """The server interrupts: the client leaves the cancel to it, and so only cuts; the answer goes on to its end."""
    async with Talk(args) as talk:
        item = await talk.interruptible("say dur=4 tag=123 rt=2")
        await talk.session.interrupt()
        cut_ms, kept = await talk.is_cut(item)
        done = (await talk.event("response.done"))["response"]
        left = done["output"][0]["content"][0]["transcript"]
        expect((done["status"], kept.startswith(left)), ("completed", True), f"the response, which holds {left!r} of {kept!r}")
        return f"cut at {cut_ms} ms"


def main():
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("openai-agents", "openai", "websockets")]
    scenarios = (
        audio_turn,
        interruption,
        interruption_of_playback,
        interruption_by_program,
        cut_by_program,
        tool_round_trip,
    )
    run(", ".join(versions), arguments(), scenarios)


if __name__ == "__main__":
    main()
