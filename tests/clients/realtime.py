"""The official OpenAI client against a running server: every event must be one that its own types know.

Scenarios: an audio turn, a text turn, barge-in, cancel, items cut, shown and deleted, a tool round trip, answers out of band,
a session that transcribes, a full pool. Exit code 0 only if all of them pass.
"""

import argparse
import asyncio
import base64
import collections
import json
import sys
import typing
import wave

import openai
import pydantic
import websockets
from openai.types.realtime import RealtimeServerEvent

from scenario import Violation, expect, extra_members

APPEND_BYTES = 960  # 20 ms at 24 kHz, 16 bit
EVENT_LIMIT_S = 60

# Members that a real server sends and the client's types do not list.
KNOWN_EXTRA = {"session.id", "session.object"}


def event_types():
    """Wire name of an event -> its pydantic class."""
    union = typing.get_args(RealtimeServerEvent)[0]
    classes = {}
    for cls in typing.get_args(union):
        for name in typing.get_args(cls.model_fields["type"].annotation):
            classes[name] = cls
    return classes


EVENT_TYPES = event_types()


class Strict:
    """A connection of the official client whose events are all checked."""

    def __init__(self, connection):
        self.connection = connection
        self.items = set()
        self.responses = {}
        # Of each response, the place of its items, and the items that are done.
        self.places = collections.defaultdict(dict)
        self.done_items = collections.defaultdict(dict)
        # Items that the client has cut.
        self.cut_items = set()
        # Text of each content part, and arguments of each call, as their deltas made them, whoever was listening.
        self.texts = collections.defaultdict(str)
        self.arguments = collections.defaultdict(str)
        self.event_ids = set()
        self.count = 0

    async def event(self):
        raw = await asyncio.wait_for(self.connection.recv_bytes(), EVENT_LIMIT_S)
        try:
            event = self.checked(json.loads(raw))
            # The client's own lenient parser must come to the same class.
            lenient = self.connection.parse_event(raw)
            if type(lenient) is not type(event):
                raise Violation(f"the client reads it as {type(lenient).__name__}")
        except (Violation, pydantic.ValidationError) as violation:
            raise Violation(f"{violation}\nin the event {raw[:1000]!r}") from violation
        self.count += 1
        return event

    def checked(self, value):
        cls = EVENT_TYPES.get(value.get("type"))
        if cls is None:
            raise Violation(f"unknown event type {value.get('type')!r}")
        event = cls.model_validate_json(json.dumps(value), strict=True)
        unknown = [path for path in extra_members(event) if path not in KNOWN_EXTRA]
        if unknown:
            raise Violation(f"members that the types do not know: {unknown}")
        if event.event_id in self.event_ids:
            raise Violation("this event_id has been used before")
        self.event_ids.add(event.event_id)
        self.check_ids(event)
        self.check_response(event)
        self.check_deltas(event)
        return event

    def check_ids(self, event):
        kind = event.type
        previous = getattr(event, "previous_item_id", None)
        if previous is not None and previous not in self.items:
            raise Violation(f"previous item {previous} was never announced")
        if kind in ("input_audio_buffer.speech_started", "input_audio_buffer.timeout_triggered", "input_audio_buffer.committed"):
            self.items.add(event.item_id)
        elif kind == "conversation.item.added":
            self.items.add(event.item.id)
        elif kind == "response.created":
            if event.response.id in self.responses:
                raise Violation("a second response.created")
            self.responses[event.response.id] = "open"
        elif kind == "response.output_item.added":
            self.items.add(event.item.id)
        elif getattr(event, "item_id", None) is not None and event.item_id not in self.items:
            raise Violation(f"item {event.item_id} was never announced")
        elif kind == "conversation.item.done" and event.item.id not in self.items:
            raise Violation(f"item {event.item.id} was never announced")

    def check_response(self, event):
        """A response is announced, its items keep their places, it ends with the items that have ended, and is silent afterwards."""
        kind = event.type
        response = getattr(event, "response_id", None) or getattr(getattr(event, "response", None), "id", None)
        item = getattr(event, "item_id", None) or getattr(getattr(event, "item", None), "id", None)
        if kind == "conversation.item.truncated":
            self.cut_items.add(item)
        if kind in ("conversation.item.added", "conversation.item.done"):
            response = next((made for made, places in self.places.items() if item in places.values()), None)
        if response is None:
            return
        state = self.responses.get(response)
        if state is None:
            raise Violation(f"response {response} was never announced")
        if state == "done":
            raise Violation(f"something of response {response} after its response.done")
        if (place := getattr(event, "output_index", None)) is not None:
            places = self.places[response]
            if kind == "response.output_item.added":
                expect(place, len(places), "output_index of a new item")
                places[place] = item
            expect(item, places.get(place), f"the item at output_index {place}")
        if kind == "response.output_item.done":
            if place in self.done_items[response]:
                raise Violation(f"item {item} is done twice")
            self.done_items[response][place] = event.item
        if kind == "response.done":
            self.responses[response] = "done"
            done = [item for _, item in sorted(self.done_items[response].items())]
            for shown, whole in zip(event.response.output, done):
                # A cut behind the end of the item leaves a beginning of its words.
                if shown.id in self.cut_items and whole.content[0].transcript.startswith(shown.content[0].transcript):
                    whole.content = shown.content
            expect(event.response.output, done, "output")
            expect(len(done), len(self.places[response]), "number of items that are done")

    def check_deltas(self, event):
        """What the deltas make is the whole."""
        kind = event.type
        if kind in ("response.output_audio_transcript.delta", "response.output_text.delta"):
            self.texts[event.item_id, event.content_index] += event.delta
        elif kind == "response.output_audio_transcript.done":
            expect(self.texts[event.item_id, event.content_index], event.transcript, "what the deltas make")
        elif kind == "response.output_text.done":
            expect(self.texts[event.item_id, event.content_index], event.text, "what the deltas make")
        elif kind == "response.function_call_arguments.delta":
            self.arguments[event.call_id] += event.delta
        elif kind == "response.function_call_arguments.done":
            expect(self.arguments[event.call_id], event.arguments, "what the deltas make")
        elif kind == "response.output_item.done" and event.item.type == "function_call":
            expect(self.arguments[event.item.call_id], event.item.arguments, "what the deltas make")

    async def until(self, kind):
        """Reads until an event of this kind; errors fail."""
        seen = []
        while True:
            event = await self.event()
            seen.append(event)
            if event.type == kind:
                return event, seen
            if event.type == "error":
                raise Violation(f"while waiting for {kind}: {event.error}")

    async def answer(self):
        """A whole response: its final object, its text, its audio."""
        created, _ = await self.until("response.created")
        return await self.rest_of(created.response.id)

    async def rest_of(self, response_id):
        text, audio = "", b""
        while True:
            event = await self.event()
            if event.type == "error":
                raise Violation(f"within {response_id}: {event.error}")
            if getattr(event, "response_id", None) == response_id:
                if event.type in ("response.output_audio_transcript.delta", "response.output_text.delta"):
                    text += event.delta
                elif event.type == "response.output_audio.delta":
                    audio += base64.b64decode(event.delta, validate=True)
            elif event.type == "response.done" and event.response.id == response_id:
                return event.response, text, audio

    async def ask(self, text):
        content = [{"type": "input_text", "text": text}]
        await self.connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        await self.connection.response.create()

    async def speak(self, pcm, paced):
        silence = bytes(APPEND_BYTES) * 50
        due = asyncio.get_running_loop().time()
        for start in range(0, len(pcm + silence), APPEND_BYTES):
            chunk = (pcm + silence)[start : start + APPEND_BYTES]
            await self.connection.input_audio_buffer.append(audio=base64.b64encode(chunk).decode())
            if paced:
                due += 0.02
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))


class Scenarios:
    def __init__(self, args):
        self.client = openai.AsyncOpenAI(api_key="no-key", websocket_base_url=args.url.removesuffix("/realtime"))
        self.args = args
        with wave.open(args.wav, "rb") as wav:
            expect((wav.getnchannels(), wav.getsampwidth(), wav.getframerate()), (1, 2, 24_000), "format of --wav")
            self.pcm = wav.readframes(wav.getnframes())

    def connect(self):
        return self.client.realtime.connect(model="antiphon")

    async def opened(self, connection):
        strict = Strict(connection)
        created = await strict.event()
        expect(created.type, "session.created", "the first event")
        pcm = {"type": "audio/pcm", "rate": 24_000}
        turns = {"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 500}
        audio = {"input": {"format": pcm, "turn_detection": turns}, "output": {"format": pcm}}
        await connection.session.update(session={"type": "realtime", "audio": audio})
        await strict.until("session.updated")
        return strict

    async def audio_turn(self):
        async with self.connect() as connection:
            strict = await self.opened(connection)
            speaking = asyncio.create_task(strict.speak(self.pcm, paced=True))
            started, _ = await strict.until("input_audio_buffer.speech_started")
            stopped, _ = await strict.until("input_audio_buffer.speech_stopped")
            committed, _ = await strict.until("input_audio_buffer.committed")
            heard, _ = await strict.until("conversation.item.input_audio_transcription.completed")
            ids = {started.item_id, stopped.item_id, committed.item_id, heard.item_id}
            expect(ids, {started.item_id}, "the item of the utterance")
            if not heard.transcript.strip():
                raise Violation("the transcript is empty")
            response, text, audio = await strict.answer()
            expect(response.status, "completed", "status")
            expect(response.output[0].content[0].transcript, text, "the transcript in response.done")
            if not text or len(audio) < 4_800:
                raise Violation(f"the answer is {text!r} and {len(audio)} bytes of audio")
            await speaking
            return strict.count

    async def text_turn(self):
        async with self.connect() as connection:
            strict = await self.opened(connection)
            for _ in range(2):
                await strict.ask(self.args.question)
                response, text, audio = await strict.answer()
                expect(response.status, "completed", "status")
                if not text or len(audio) < 4_800:
                    raise Violation(f"the answer is {text!r} and {len(audio)} bytes of audio")
            await connection.response.create(response={"output_modalities": ["text"]})
            response, text, audio = await strict.answer()
            expect((response.status, bool(text), audio), ("completed", True, b""), "a text answer")
            return strict.count

    async def barge_in(self):
        async with self.connect() as connection:
            strict = await self.opened(connection)
            await strict.ask(self.args.long_question)
            created, _ = await strict.until("response.created")
            await strict.until("response.output_audio.delta")
            await strict.speak(self.pcm, paced=False)
            response, _, _ = await strict.rest_of(created.response.id)
            expect(response.status, "cancelled", "status")
            expect(response.status_details.reason, "turn_detected", "reason")
            response, text, audio = await strict.answer()
            expect((response.status, bool(text), bool(audio)), ("completed", True, True), "the next answer")
            return strict.count

    async def cancel(self):
        async with self.connect() as connection:
            strict = await self.opened(connection)
            await strict.ask(self.args.long_question)
            created, _ = await strict.until("response.created")
            await strict.until("response.output_audio.delta")
            await connection.response.cancel()
            response, _, _ = await strict.rest_of(created.response.id)
            expect(response.status, "cancelled", "status")
            expect(response.status_details.reason, "client_cancelled", "reason")
            await connection.response.cancel(event_id="cancel_nothing")
            while (event := await strict.event()).type != "error":
                pass
            expect(event.error.event_id, "cancel_nothing", "event_id of the error")
            await strict.ask(self.args.question)
            response, text, _ = await strict.answer()
            expect((response.status, bool(text)), ("completed", True), "the next answer")
            return strict.count

    async def items(self):
        async with self.connect() as connection:
            strict = await self.opened(connection)
            await strict.ask(self.args.question)
            response, text, audio = await strict.answer()
            item_id = response.output[0].id
            whole_ms = len(audio) // 48
            items = connection.conversation.item
            # A part of a millisecond counts as a whole one.
            await items.truncate(item_id=item_id, content_index=0, audio_end_ms=whole_ms + 2, event_id="too_long")
            while (event := await strict.event()).type != "error":
                pass
            expect((event.error.event_id, event.error.param), ("too_long", "audio_end_ms"), "the error")
            await items.truncate(item_id=item_id, content_index=0, audio_end_ms=whole_ms // 2)
            truncated, _ = await strict.until("conversation.item.truncated")
            expect((truncated.item_id, truncated.audio_end_ms), (item_id, whole_ms // 2), "what was cut")
            await items.retrieve(item_id=item_id)
            retrieved, _ = await strict.until("conversation.item.retrieved")
            heard = retrieved.item.content[0].transcript
            if heard == text or not text.startswith(heard):
                raise Violation(f"half of {text!r} is {heard!r}")
            await items.delete(item_id=item_id)
            deleted, _ = await strict.until("conversation.item.deleted")
            expect(deleted.item_id, item_id, "what was deleted")
            await strict.ask(self.args.question)
            response, text, _ = await strict.answer()
            expect((response.status, bool(text)), ("completed", True), "the next answer")
            return strict.count

    async def tools(self):
        async with self.connect() as connection:
            strict = await self.opened(connection)
            parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
            weather = {"type": "function", "name": "get_weather", "description": "The weather in a city.", "parameters": parameters}
            await connection.session.update(session={"type": "realtime", "tools": [weather], "tool_choice": "auto"})
            updated, _ = await strict.until("session.updated")
            expect([tool.name for tool in updated.session.tools], ["get_weather"], "the tools")
            await strict.ask('call get_weather {"city": "Paris"}')
            done, seen = await strict.until("response.function_call_arguments.done")
            if not any(event.type == "response.function_call_arguments.delta" for event in seen):
                raise Violation("arguments without deltas")
            expect((done.name, json.loads(done.arguments)), ("get_weather", {"city": "Paris"}), "the call")
            response, text, audio = await strict.rest_of(done.response_id)
            expect((response.status, text, audio), ("completed", "", b""), "the response that calls")
            [call] = response.output
            expect((call.id, call.call_id, call.name), (done.item_id, done.call_id, "get_weather"), "the item of the call")
            answer = "It is seven degrees and raining."
            output = {"type": "function_call_output", "call_id": call.call_id, "output": answer}
            await connection.conversation.item.create(item=output)
            added, _ = await strict.until("conversation.item.added")
            expect((added.item.call_id, added.previous_item_id), (call.call_id, call.id), "the output and its place")
            await connection.response.create()
            response, text, audio = await strict.answer()
            expect((response.status, text.strip(), bool(audio)), ("completed", answer, True), "the answer")
            return strict.count

    async def asides(self):
        """Two written responses out of band while one is spoken."""
        async with self.connect() as connection:
            strict = await self.opened(connection)
            await strict.ask(self.args.long_question)
            spoken, _ = await strict.until("response.created")
            for name in ("first", "second"):
                content = [{"type": "input_text", "text": name}]
                question = {"type": "message", "role": "user", "content": content}
                request = {"conversation": "none", "output_modalities": ["text"], "metadata": {"name": name}, "input": [question]}
                await connection.response.create(response=request)
            asides = {}
            while len(asides) < 2:
                done, _ = await strict.until("response.done")
                asides[(done.response.metadata or {}).get("name")] = done.response
            for name in ("first", "second"):
                answer = asides[name]
                found = (answer.status, answer.conversation_id, answer.output[0].content[0].text)
                expect(found, ("completed", None, name), "an answer out of band")
            await connection.response.cancel()
            response, _, _ = await strict.rest_of(spoken.response.id)
            expect(response.status, "cancelled", "status of the spoken answer")
            return strict.count

    async def captions(self):
        """A session that only transcribes."""
        async with self.client.realtime.connect(extra_query={"intent": "transcription"}) as connection:
            strict = Strict(connection)
            created = await strict.event()
            expect((created.type, created.session.type), ("session.created", "transcription"), "the session")
            speaking = asyncio.create_task(strict.speak(self.pcm, paced=False))
            heard, seen = await strict.until("conversation.item.input_audio_transcription.completed")
            kind = "conversation.item.input_audio_transcription."
            words = "".join(event.delta for event in seen if event.type == kind + "delta")
            segments = [event.text for event in seen if event.type == kind + "segment"]
            expect((words, segments), (heard.transcript, [heard.transcript]), "deltas and segments")
            await speaking
            await connection.response.create(event_id="no_answers")
            while (event := await strict.event()).type != "error":
                pass
            expect((event.error.event_id, event.error.code), ("no_answers", "invalid_session_type"), "the error")
            return strict.count

    async def full_pool(self):
        held = []
        try:
            for _ in range(self.args.units):
                connection = await self.connect_when_free()
                held.append(connection)
            async with self.connect() as connection:
                strict = Strict(connection)
                refused = await strict.event()
                expect(refused.type, "error", "the first event")
                expect(refused.error.type, "session_limit_reached", "type of the error")
                try:
                    event = await strict.event()
                except websockets.exceptions.ConnectionClosed as closed:
                    expect(closed.rcvd and closed.rcvd.code, 1008, "close code")
                else:
                    raise Violation(f"{event.type} after the refusal")
            return strict.count
        finally:
            for connection in held:
                await connection.close()

    async def connect_when_free(self):
        """The client that was there before has gone, its unit may still be on its way back."""
        while True:
            connection = await self.connect().enter()
            first = await Strict(connection).event()
            if first.type == "session.created":
                return connection
            expect(first.error.type, "session_limit_reached", "type of the error")
            await connection.close()

    async def run(self):
        # The full pool comes last: it takes every unit.
        scenarios = (self.audio_turn, self.text_turn, self.barge_in, self.cancel, self.items, self.tools)
        scenarios += (self.asides, self.captions, self.full_pool)
        for scenario in scenarios:
            try:
                events = await scenario()
            except Exception as error:
                raise Violation(f"{scenario.__name__}: {type(error).__name__}: {error}") from error
            print(f"{scenario.__name__}: {events} events, all of them known")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True, help="ws://host:port/v1/realtime")
    parser.add_argument("--wav", required=True, help="an utterance, 24 kHz mono 16 bit")
    parser.add_argument("--question", required=True, help="a short written question")
    parser.add_argument("--long-question", required=True, help="a question with a long spoken answer")
    parser.add_argument("--units", type=int, required=True, help="size of the server's pool")
    print(f"openai {openai.__version__}, websockets {websockets.__version__}, pydantic {pydantic.VERSION}")
    try:
        asyncio.run(Scenarios(parser.parse_args()).run())
    except Violation as violation:
        sys.exit(f"FAILED: {violation}")


if __name__ == "__main__":
    main()
