// `RealtimeSession` of `@openai/agents` over its stock WebSocket transport, with the settings that it comes with, against
// a running server. The client's own log, its `error` events and events that its schemas do not know are failures.
//
// Scenarios: an audio turn, an interruption of an answer that is being made and of one that is still played, a tool round trip.
// Exit code 0 only if all of them pass.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { RealtimeAgent, RealtimeSession, tool } from '@openai/agents/realtime';
import { z } from 'zod';

// The client treats an event that it cannot parse as one that it does not know, and says nothing.
import { parseRealtimeEvent } from './node_modules/@openai/agents-realtime/dist/openaiRealtimeEvents.mjs';

const EVENT_LIMIT_MS = 60_000;
const CHUNK_MS = 20;
const BYTES_PER_MS = 48; // 24 kHz, 16 bit

// What the echo repeats and the fake voice carries out: long answers that are made twice as fast as they are heard, or at once.
const LONG_PACED = 'say dur=30 tag=123 rt=2';
const LONG_AT_ONCE = 'say dur=30 tag=123';

// What the scripted model answers with a call, and what the tool returns.
const TOOL_QUESTION = 'call get_weather {"city": "Paris"}';
const WEATHER = 'the weather is say dur=1 tag=77 today';

// --url ws://host:port/v1/realtime --wav an utterance, 24 kHz mono 16 bit
const { values: args } = parseArgs({ options: { url: { type: 'string' }, wav: { type: 'string' } } });

function expect(found, expected, what) {
  const [f, e] = [JSON.stringify(found), JSON.stringify(expected)];
  if (f !== e) throw new Error(`${what} is ${f}, expected ${e}`);
}

// The samples of a 16-bit WAV file whose only chunks are `fmt ` and `data`.
function pcmOf(path) {
  const wav = readFileSync(path);
  expect([wav.readUInt16LE(22), wav.readUInt32LE(24), wav.readUInt16LE(34)], [1, 24_000, 16], 'format of --wav');
  return wav.subarray(44);
}

// The fake voice carries out `say dur=<s> tag=<int>`, so the transcript says which samples must have come.
function checkSpoken(transcript, audio = Buffer.alloc(0)) {
  const [, seconds, tag] = transcript.match(/dur=([\d.]+) tag=(\d+)/) ?? [];
  const samples = new Int16Array(audio.buffer, audio.byteOffset, audio.length / 2);
  expect(samples.length, Math.round(seconds * 24_000), `number of samples of "${transcript}"`);
  expect([...new Set(samples)], [Number(tag)], `samples of "${transcript}"`);
}

// A session, and what its user sees of it.
class Client {
  constructor(tools = []) {
    const agent = new RealtimeAgent({ name: 'tester', instructions: 'You are tested.', tools });
    this.session = new RealtimeSession(agent, { transport: 'websocket' });
    this.seen = []; // server events
    this.audio = new Map(); // of each response
    this.interruptions = 0;
    this.failures = [];
    this.wake = () => {};
    const note = (what) => (...details) => this.fail(what, ...details);
    console.warn = note('the client warns');
    console.error = note('the client logs an error');
    process.on('uncaughtException', note('exception'));
    this.session.on('error', note('error event'));
    this.session.on('audio_interrupted', () => (this.interruptions += 1));
    this.session.on('audio', ({ responseId, data }) => {
      const before = this.audio.get(responseId) ?? Buffer.alloc(0);
      this.audio.set(responseId, Buffer.concat([before, Buffer.from(data)]));
    });
    this.session.on('transport_event', (event) => {
      if (parseRealtimeEvent({ data: JSON.stringify(event) }).isGeneric) this.fail('the client does not know', event);
      this.seen.push(event);
      setImmediate(() => this.wake()); // after all other listeners
    });
  }

  fail(...what) {
    this.failures.push(what.map((part) => part?.stack ?? (typeof part === 'string' ? part : JSON.stringify(part))).join(' '));
    this.wake();
  }

  // Waits until `condition()` is truthy.
  async until(what, condition) {
    const deadline = Date.now() + EVENT_LIMIT_MS;
    for (;;) {
      if (this.failures.length > 0) throw new Error(`while waiting for ${what}: ${this.failures.join('; ')}`);
      const found = condition();
      if (found) return found;
      const left = deadline - Date.now();
      if (left <= 0) throw new Error(`no ${what} within ${EVENT_LIMIT_MS} ms; last ${JSON.stringify(this.seen.slice(-3))}`);
      await Promise.race([new Promise((resolve) => (this.wake = resolve)), sleep(left, undefined, { ref: false })]);
    }
  }

  event(type, number = 1) {
    return this.until(`${type} number ${number}`, () => this.seen.filter((event) => event.type === type)[number - 1]);
  }

  async speak(pcm) {
    const withSilence = Buffer.concat([pcm, Buffer.alloc(1_000 * BYTES_PER_MS)]);
    const step = CHUNK_MS * BYTES_PER_MS;
    const start = Date.now();
    for (let at = 0; at < withSilence.length; at += step) {
      const chunk = Uint8Array.from(withSilence.subarray(at, at + step));
      this.session.sendAudio(chunk.buffer);
      await sleep(Math.max(0, start + at / BYTES_PER_MS - Date.now()));
    }
  }

  // The history's message of the response's item.
  message(response) {
    const id = response.output.find((item) => item.type === 'message')?.id;
    return this.session.history.find((item) => item.itemId === id);
  }

  // Checks that a response is whole, in the history and by ear.
  checkAnswer({ response }) {
    expect(response.status, 'completed', 'status');
    const { status, content } = this.message(response);
    expect(status, 'completed', 'status in the history');
    checkSpoken(content[0].transcript, this.audio.get(response.id));
    return content[0].transcript;
  }
}

async function audioTurn(client) {
  await client.speak(pcmOf(args.wav));
  client.checkAnswer(await client.event('response.done'));
  const user = client.session.history.find((item) => item.role === 'user');
  if (!user.content[0].transcript) throw new Error(`no transcript of the user in ${JSON.stringify(user)}`);
  expect(client.interruptions, 0, 'interruptions');
}

async function interruption(client) {
  await interrupted(client, LONG_PACED, 'cancelled', 'incomplete');
}

// The answer is complete, its user still hears it.
async function interruptionOfPlayback(client) {
  await interrupted(client, LONG_AT_ONCE, 'completed', 'completed');
}

async function interrupted(client, question, responseStatus, itemStatus) {
  client.session.sendMessage(question);
  const { response } = await client.event('response.created');
  const madeMs = () => (client.audio.get(response.id)?.length ?? 0) / BYTES_PER_MS;
  await client.until('a second of audio', () => madeMs() >= 1_000);
  await sleep(1_000); // the client takes the time since the first audio for what has been heard
  const speaking = client.speak(pcmOf(args.wav));
  const cut = await client.event('conversation.item.truncated');
  expect(client.interruptions, 1, 'interruptions');
  if (cut.audio_end_ms < 1_000 || cut.audio_end_ms > madeMs()) throw new Error(`cut at ${cut.audio_end_ms} ms of ${madeMs()}`);
  const first = await client.event('response.done');
  expect([first.response.id, first.response.status], [response.id, responseStatus], 'the interrupted response');
  expect([cut.item_id, client.message(first.response).status], [first.response.output[0].id, itemStatus], 'the cut item');
  client.checkAnswer(await client.event('response.done', 2));
  await speaking;
}

async function toolRoundTrip(client, calls) {
  client.session.sendMessage(TOOL_QUESTION);
  const { response } = await client.event('response.done');
  expect([response.status, response.output.map((item) => item.type)], ['completed', ['function_call']], 'the first response');
  const answer = client.checkAnswer(await client.event('response.done', 2));
  expect(calls, [{ city: 'Paris' }], 'calls');
  if (!answer.includes(WEATHER)) throw new Error(`the answer is ${answer}`);
  const call = client.session.history.find((item) => item.type === 'function_call');
  expect([call.status, call.output], ['completed', WEATHER], 'the call in the history');
}

async function run(scenario) {
  const calls = [];
  const getWeather = tool({
    name: 'get_weather',
    description: 'The weather in a city.',
    parameters: z.object({ city: z.string() }),
    execute: async (parameters) => {
      calls.push(parameters);
      return WEATHER;
    },
  });
  const client = new Client(scenario === toolRoundTrip ? [getWeather] : []);
  await client.session.connect({ apiKey: 'no-key', url: `${args.url}?model=gpt-realtime` });
  await client.event('session.updated');
  await scenario(client, calls);
  // When this is answered, so is all that the client has sent before.
  const updates = client.seen.filter((event) => event.type === 'session.updated').length;
  client.session.transport.sendEvent({ type: 'session.update', session: { type: 'realtime' } });
  await client.event('session.updated', updates + 1);
  client.session.close();
  process.stdout.write(`${scenario.name}: ${client.seen.length} events\n`);
}

const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url)));
process.stdout.write(`${Object.entries(dependencies).flat().join(' ')} node ${process.version}\n`);
for (const scenario of [audioTurn, interruption, interruptionOfPlayback, toolRoundTrip]) {
  try {
    await run(scenario);
  } catch (error) {
    process.stderr.write(`FAILED: ${scenario.name}: ${error.stack ?? error.message}\n`);
    process.exit(1);
  }
}
