"""pipecat's OpenAI realtime service in a pipeline with a loop-back transport, against a running server.

Scenarios: an audio turn, an interruption of an answer that is being made and of one that is still played, a tool round trip. An
error frame, a warning in the client's log, or an exception fails. Exit code 0 only if all of them pass.
"""

import asyncio
import importlib.metadata

from loguru import logger
from pipecat.frames.frames import (
    ErrorFrame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMRunFrame,
    TTSAudioRawFrame,
)
from pipecat.observers.base_observer import BaseObserver
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime.events import ConversationItemTruncateEvent
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.transports.base_input import BaseInputTransport
from pipecat.transports.base_output import BaseOutputTransport
from pipecat.transports.base_transport import TransportParams
from pipecat.workers.runner import WorkerRunner

from scenario import (
    BYTES_PER_MS,
    GREETING,
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

# The log is not printed; what it holds while a scenario runs is checked.
logger.remove()


class Microphone(BaseInputTransport):
    async def start(self, frame):
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def speak(self, pcm):
        async for chunk in paced(pcm):
            await self.push_audio_frame(InputAudioRawFrame(audio=chunk, sample_rate=RATE, num_channels=1))


class Loudspeaker(BaseOutputTransport):
    """Plays in real time; keeps what it has played."""

    played = b""

    async def start(self, frame):
        await super().start(frame)
        await self.set_transport_ready(frame)

    async def write_audio_frame(self, frame):
        await asyncio.sleep(len(frame.audio) / BYTES_PER_MS / 1_000)
        self.played += frame.audio
        return True


class Frames(BaseObserver):
    """Frames that the scenarios look at, in order."""

    KINDS = (InterruptionFrame, TTSAudioRawFrame)

    def __init__(self, watch):
        super().__init__(observe_every_push=False)
        self.watch = watch
        self.seen = []

    async def on_push_frame(self, data):
        if isinstance(data.frame, ErrorFrame):
            self.watch.fail(data.frame.error)
        if not isinstance(data.frame, self.KINDS) or data.direction != FrameDirection.DOWNSTREAM:
            return  # What is broadcast goes both ways.
        if isinstance(data.frame, TTSAudioRawFrame) and isinstance(data.source, Loudspeaker):
            return  # A transport makes new frames of what it plays.
        self.seen.append(data.frame)

    def of(self, kind):
        return [frame for frame in self.seen if isinstance(frame, kind)]


class Service(OpenAIRealtimeLLMService):
    """The stock service; what it sends is kept."""

    sent = ()

    async def send_client_event(self, event):
        self.sent += (event,)
        await super().send_client_event(event)


class Bot:
    """A pipeline as pipecat's examples build it, and what its user sees of it."""

    def __init__(self, args, question, tools=()):
        self.watch = Watch()
        self.frames = Frames(self.watch)
        params = TransportParams(audio_in_enabled=True, audio_out_enabled=True)
        self.microphone = Microphone(params)
        self.loudspeaker = Loudspeaker(params)
        settings = OpenAIRealtimeLLMService.Settings(system_instruction="You are tested.")
        self.service = Service(api_key="no-key", base_url=args.url, settings=settings)
        self.context = LLMContext([{"role": "user", "content": question}], list(tools))
        user, assistant = LLMContextAggregatorPair(self.context)
        stages = [self.microphone, user, self.service, self.loudspeaker, assistant]
        rates = PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE)
        self.worker = PipelineWorker(Pipeline(stages), params=rates, observers=[self.frames])

    async def __aenter__(self):
        self.sink = logger.add(self.watch.fail, level="WARNING", format="{level} {name}: {message}")
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self.worker)
        self.running = asyncio.create_task(runner.run())
        await self.worker.queue_frame(LLMRunFrame())
        return self

    async def __aexit__(self, kind, error, traceback):
        await self.worker.cancel()
        await self.running
        logger.remove(self.sink)
        if error is None:
            self.watch.check()

    async def messages(self, *roles):
        """What the context holds, once the messages have these roles."""

        def found():
            messages = self.context.get_messages()
            return [message["role"] for message in messages] == list(roles) and messages

        return await self.watch.until(f"context with {roles}", found)

    def made(self):
        """The sounds that the service has made."""
        return sounds(b"".join(frame.audio for frame in self.frames.of(TTSAudioRawFrame)))

    async def plays(self, expected):
        """Waits until this has been played, and nothing else."""

        def enough():
            return sum(length for _, length in sounds(self.loudspeaker.played)) >= sum(length for _, length in expected)

        await self.watch.until("end of the answer", enough)
        expect(sounds(self.loudspeaker.played), expected, "what was played")


async def audio_turn(args):
    # Pipelines of pipecat begin with a message that the bot answers.
    async with Bot(args, GREETING) as bot:
        await bot.plays([order(GREETING)])
        await bot.microphone.speak(utterance(args.wav))
        *_, user, assistant = await bot.messages("user", "assistant", "user", "assistant")
        expect(user["content"], assistant["content"], "what the echo has heard")
        both = [order(GREETING), order(assistant["content"])]
        await bot.plays(both)
        expect(bot.made(), both, "what was made")
        return assistant["content"]


async def tool_round_trip(args):
    calls = []

    async def get_weather(params: FunctionCallParams, city: str):
        """The weather in a city.

        Args:
            city: The name of the city.
        """
        calls.append(city)
        await params.result_callback({"report": WEATHER})

    async with Bot(args, TOOL_QUESTION, [get_weather]) as bot:
        *_, answer = await bot.messages("user", "assistant", "tool", "assistant")
        expect(calls, ["Paris"], "calls")
        if WEATHER not in answer["content"]:
            raise Violation(f"the answer is {answer}")
        await bot.plays([order(WEATHER)])
        return answer["content"]


async def interruption(args, question=LONG_PACED):
    async with Bot(args, question) as bot:
        await bot.watch.until("a second of audio", lambda: len(bot.loudspeaker.played) >= 1_000 * BYTES_PER_MS)
        await bot.microphone.speak(utterance(args.wav))
        *_, answer = await bot.messages("user", "assistant", "user", "assistant")
        tag, length = order(question)
        heard = next(iter(sounds(bot.loudspeaker.played)))
        if heard[0] != tag or heard[1] >= length:
            raise Violation(f"{heard} was played of {(tag, length)}")
        await bot.plays([heard, order(answer["content"])])
        expect(len(bot.frames.of(InterruptionFrame)), 1, "interruptions")
        [cut] = [event.audio_end_ms for event in bot.service.sent if isinstance(event, ConversationItemTruncateEvent)]
        if cut < 900:
            raise Violation(f"cut at {cut} ms")
        return f"cut at {cut} ms"


async def interruption_of_playback(args):
    """The answer is complete, its user still hears it."""
    return await interruption(args, LONG_AT_ONCE)


def main():
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("pipecat-ai", "openai", "websockets")]
    run(", ".join(versions), arguments(), (audio_turn, interruption, interruption_of_playback, tool_round_trip))


if __name__ == "__main__":
    main()
