// Conversations with a codec as text. A line is one of
//   >> bytes       received, with \r \n \t \xNN escapes; neighbouring lines are one piece
//   << bytes       sent since the last such line; neighbouring lines are joined
//   .. event       events of owner and stream, in order
//   !! command     what the stream or the owner does, see COMMANDS
// Each conversation is played with whole pieces, byte by byte, and split in two at every position: nothing may differ.

import type { Test } from 'tap';
import { ResetReason } from '../../../src/http/codec/streams.js';
import { ClientPeer, type Message, ServerPeer } from './peers.js';

interface Step {
  kind: '>>' | '<<' | '..' | '!!';
  text: string;
}

type Peer = ServerPeer | ClientPeer;
type Options = Record<string, unknown>;

const MAX_BYTES_SPLIT_TWICE = 120;

export function playServer(t: Test, name: string, script: string, options: Options = {}): void {
  play(t, name, script, () => new ServerPeer(options));
}

export function playClient(t: Test, name: string, script: string, options: Options = {}): void {
  play(t, name, script, () => new ClientPeer(options));
}

/** Ways to split a piece of a conversation. */
type Cut = (text: string, before: number) => string[];

function play(t: Test, name: string, script: string, makePeer: () => Peer): void {
  t.test(name, (t) => {
    const steps = parse(script);
    const total = steps.reduce((sum, { kind, text }) => sum + (kind === '>>' ? text.length : 0), 0);
    let played = 0;
    for (const [how, cut] of cuts(total)) {
      // One failure is enough.
      if (!run(t, steps, makePeer(), cut, how)) break;
      played++;
    }
    t.ok(played > 0, `played in ${played} ways`);
    t.end();
  });
}

function* cuts(total: number): Generator<[string, Cut]> {
  yield ['whole', (text) => [text]];
  yield ['byte by byte', (text) => [...text]];
  for (let at = 1; at < total; at++) yield [`split at ${at}`, splitAt(at)];
  // Two splits: a retained part is continued and retained again.
  if (total > MAX_BYTES_SPLIT_TWICE) return;
  for (let first = 1; first < total; first++) {
    for (let second = first + 1; second < total; second++) {
      yield [`split at ${first} and ${second}`, splitTwice(first, second)];
    }
  }
}

function splitAt(place: number): Cut {
  return (text, before) => {
    const at = place - before;
    return at <= 0 || at >= text.length ? [text] : [text.slice(0, at), text.slice(at)];
  };
}

function splitTwice(first: number, second: number): Cut {
  return (text, before) =>
    splitAt(first)(text, before).flatMap((part, index, parts) =>
      splitAt(second)(part, before + (index === 0 ? 0 : parts[0]!.length)),
    );
}

/** Plays the conversation once; returns whether it went as written. */
function run(t: Test, steps: Step[], peer: Peer, cut: Cut, how: string): boolean {
  let received = 0;
  for (const [index, { kind, text }] of steps.entries()) {
    if (kind === '>>') {
      for (const part of cut(text, received)) peer.receive(part);
      received += text.length;
    } else if (kind === '!!') {
      const [name = '', ...words] = text.split(' ');
      peer.turn(() => COMMANDS[name]!(peer, unescaped(words.join(' '))));
    } else {
      const found = kind === '<<' ? peer.wire.take() : peer.journal.take().join('\n');
      if (found !== text) return t.equal(found, text, `${how}, step ${index + 1}`);
    }
  }
  const rest = [peer.wire.take(), ...peer.journal.take()].filter((text) => text !== '');
  peer.turn(() => peer.codec.destroy());
  const kept = peer.wire.memory.retainedBytes();
  if (rest.length === 0 && kept === 0) return true;
  return t.same({ rest, kept }, { rest: [], kept: 0 }, `${how}, the end`);
}

function parse(script: string): Step[] {
  const steps: Step[] = [];
  for (const line of script.split('\n')) {
    const trimmed = line.trim();
    if (trimmed === '') continue;
    const kind = trimmed.slice(0, 2) as Step['kind'];
    const raw = trimmed.slice(3);
    const text = kind === '>>' || kind === '<<' ? unescaped(raw) : raw;
    const last = steps.at(-1);
    if (last?.kind === kind && kind === '..') last.text += `\n${unescaped(text)}`;
    else if (last?.kind === kind && kind !== '!!') last.text += text;
    else steps.push({ kind, text: kind === '..' ? unescaped(text) : text });
  }
  return steps;
}

function unescaped(text: string): string {
  return text.replace(/\\(?:r|n|t|s|x([0-9a-f]{2}))/g, (code, hex: string | undefined) =>
    hex === undefined
      ? { '\\r': '\r', '\\n': '\n', '\\t': '\t', '\\s': ' ' }[code]!
      : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

type Command = (peer: Peer, text: string) => void;

/** Messages are written as `200 name=value …` or `POST /path name=value …`, with a complete body after ` | `. */
const COMMANDS: Readonly<Record<string, Command>> = {
  answer: (peer, text) => respond(peer as ServerPeer, text),
  /** A header section whose body follows. */
  begin: (peer, text) => (peer as ServerPeer).begin(messageOf(text).message),
  /** The end of a tunnel's sending direction. */
  half: (peer) => (peer as ServerPeer).codec.halfClose(),
  inform: (peer, text) => (peer as ServerPeer).informational(messageOf(text).message),
  /** The response to every further request. */
  auto: (peer, text) => {
    (peer as ServerPeer).onRequest = () => respond(peer as ServerPeer, text);
  },
  continue: (peer) => (peer as ServerPeer).codec.sendContinue(),
  request: (peer, text) => request(peer as ClientPeer, text, true),
  /** A request that continues. */
  open: (peer, text) => request(peer as ClientPeer, text, false),
  body: (peer, text) => peer.body(text, false),
  last: (peer, text) => peer.body(text, true),
  finish: (peer) => peer.codec.data(0, 0, true),
  trailers: (peer, text) => peer.trailers(messageOf(text).message.fields),
  pause: (peer) => peer.codec.pauseReading(),
  resume: (peer) => peer.codec.resumeReading(),
  blocked: (peer) => peer.codec.blocked(),
  drained: (peer) => peer.codec.drained(),
  fin: (peer) => peer.codec.end(),
  broken: (peer) => (peer as ClientPeer).codec.interrupted(),
  reset: (peer) => peer.codec.reset(ResetReason.LocalReset),
  destroy: (peer) => peer.codec.destroy(),
};

function request(client: ClientPeer, text: string, isComplete: boolean): void {
  const { message, body } = messageOf(text);
  client.request(message, body, isComplete);
}

function respond(server: ServerPeer, text: string): void {
  const { message, body } = messageOf(text);
  server.answer(message, body);
}

function messageOf(text: string): { message: Message; body: string | undefined } {
  const bar = text.indexOf(' | ');
  const head = bar < 0 ? text : text.slice(0, bar);
  const words = head.split(' ').filter((word) => word !== '');
  const fields = words
    .filter((word) => word.includes('='))
    .map((word): [string, string] => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]);
  const start = words.filter((word) => !word.includes('=')).join(' ');
  return { message: { start, fields }, body: bar < 0 ? undefined : text.slice(bar + 3) };
}
