"""The official OpenAI client against the endpoints beside the Realtime one: transcription, speech, the language model.

Exit code 0 only if all of them do what the client's own types expect.
"""

import argparse
import io
import sys
import wave

import openai

from scenario import Violation, expect, extra_members


class Scenarios:
    def __init__(self, args):
        self.client = openai.OpenAI(api_key="no-key", base_url=args.url, max_retries=0)
        self.args = args

    def transcription(self):
        with open(self.args.wav, "rb") as wav:
            heard = self.client.audio.transcriptions.create(file=wav, model="any", language="en")
            expect(type(heard).__name__, "Transcription", "the class")
            expect(list(extra_members(heard)), [], "members that the types do not know")
            wav.seek(0)
            text = self.client.audio.transcriptions.create(file=wav, model="any", response_format="text")
        expect(text.strip(), heard.text, "the same recording as text")
        if self.args.words.lower() not in heard.text.lower():
            raise Violation(f"heard {heard.text!r}, expected {self.args.words!r} in it")
        return heard.text

    def speech(self):
        said = {"model": "any", "voice": "alloy", "input": "The quick brown fox jumps over the lazy dog."}
        streaming = self.client.audio.speech.with_streaming_response
        with streaming.create(**said, response_format="pcm") as response:
            expect(response.headers["content-type"], "audio/pcm", "the content type")
            pieces = list(response.iter_bytes())
        pcm = b"".join(pieces)
        if len(pcm) < 24_000 or len(pcm) % 2 or len(pieces) < 2:
            raise Violation(f"{len(pcm)} bytes of audio in {len(pieces)} pieces")
        wav = self.client.audio.speech.create(**said, response_format="wav").read()
        with wave.open(io.BytesIO(wav), "rb") as spoken:
            expect((spoken.getnchannels(), spoken.getsampwidth(), spoken.getframerate()), (1, 2, 24_000), "the format")
        try:
            self.client.audio.speech.create(**said, response_format="mp3")
        except openai.BadRequestError as refused:
            expect(refused.param, "response_format", "what is wrong")
        else:
            raise Violation("MP3 was not refused")
        back = ("speech.wav", wav, "audio/wav")
        heard = self.client.audio.transcriptions.create(file=back, model="any").text
        if self.args.understands and "fox" not in heard.lower():
            raise Violation(f"what was spoken is heard as {heard!r}")
        return f"{len(pcm) / 48_000:.1f} s, heard again as {heard!r}"

    def chat(self):
        messages = [{"role": "user", "content": "Say hello."}]
        text = ""
        for chunk in self.client.chat.completions.create(model="any", messages=messages, stream=True):
            expect(chunk.object, "chat.completion.chunk", "the object")
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        whole = self.client.chat.completions.create(model="any", messages=messages, max_tokens=20)
        expect(whole.choices[0].message.role, "assistant", "the role")
        if not text or not whole.choices[0].message.content:
            raise Violation("the answer is empty")
        if not self.client.models.list().data:
            raise Violation("there is no model")
        return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True, help="base address, up to and including /v1")
    parser.add_argument("--wav", required=True, help="a recording")
    parser.add_argument("--words", required=True, help="words of it")
    parser.add_argument("--understands", action="store_true", help="the models are real")
    scenarios = Scenarios(parser.parse_args())
    for name in ("transcription", "speech", "chat"):
        print(f"{name}: {getattr(scenarios, name)()}")


if __name__ == "__main__":
    try:
        main()
    except (Violation, openai.OpenAIError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)
