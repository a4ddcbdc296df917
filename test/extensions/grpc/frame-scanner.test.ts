// Frames are found wherever the pieces of a body begin and end.

import t from 'tap';
import { Base64Decoder } from '../../../src/extensions/filters/http/grpc-web/base64-decoder.js';
import { Base64Frames } from '../../../src/extensions/filters/http/grpc-web/base64-frames.js';
import { FrameScanner, frameHeader } from '../../../src/extensions/grpc/frame-scanner.js';

/** Pseudo-random whole numbers below `limit`. */
function numbers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % limit;
  };
}

function* piecesOf(whole: Uint8Array, next: (limit: number) => number): Generator<Uint8Array> {
  for (let at = 0; at < whole.length; ) {
    const end = Math.min(whole.length, at + 1 + next(9));
    yield whole.subarray(at, end);
    at = end;
  }
}

t.test('frames are counted and ended at the same places for any split', (t) => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = numbers(seed);
    const lengths = Array.from({ length: next(6) }, () => next(20));
    const frames = lengths.map((length) => Buffer.concat([frameHeader(length), Buffer.alloc(length, 1)]));
    const scanner = new FrameScanner();
    const ends: number[] = [];
    let offset = 0;
    for (const piece of piecesOf(Buffer.concat(frames), next)) {
      for (let at = 0; at < piece.length; ) {
        at = scanner.next(piece, at, piece.length);
        if (scanner.isBetweenFrames) ends.push(offset + at);
      }
      offset += piece.length;
    }
    t.equal(scanner.count, lengths.length);
    let sum = 0;
    t.same(
      ends,
      lengths.map((length) => (sum += length + 5)),
    );
  }
  t.end();
});

t.test('a length of four bytes is unsigned', (t) => {
  const scanner = new FrameScanner();
  t.equal(scanner.next(Uint8Array.of(0, 255, 255, 255, 255, 7, 7), 0, 7), 7);
  t.notOk(scanner.isBetweenFrames);
  t.end();
});

t.test('frames have the same base64 for any split, and a cut frame is not lost', (t) => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = numbers(seed);
    const frames = Array.from({ length: 1 + next(5) }, () => {
      const length = next(20);
      return Buffer.concat([frameHeader(length), Buffer.alloc(length, next(256))]);
    });
    const cut = next(4);
    frames.push(Buffer.from(frameHeader(100)).subarray(0, cut));
    const encoder = new Base64Frames();
    let text = '';
    for (const piece of piecesOf(Buffer.concat(frames), next))
      text += Buffer.from(encoder.encode(piece, 0, piece.length)).toString('latin1');
    text += Buffer.from(encoder.end()).toString('latin1');
    t.equal(text, frames.map((each) => each.toString('base64')).join(''));
  }
  t.end();
});

t.test('base64 is decoded for any split, and anything else is refused', (t) => {
  for (let seed = 1; seed <= 200; seed++) {
    const next = numbers(seed);
    const bytes = Buffer.from(Array.from({ length: next(60) }, () => next(256)));
    const text = Buffer.from(bytes.toString('base64'), 'latin1');
    const decoder = new Base64Decoder();
    const parts: Uint8Array[] = [];
    for (const piece of piecesOf(text, next)) {
      const decoded = decoder.decode(Buffer.from(piece).toString('latin1'), false);
      if (typeof decoded === 'string') t.fail(decoded);
      else parts.push(decoded);
    }
    t.same(decoder.decode('', true), Buffer.alloc(0));
    t.ok(Buffer.concat(parts).equals(bytes));
    const place = next(text.length + 1);
    const spoilt = `${text.toString('latin1', 0, place)}\n${text.toString('latin1', place)}`;
    t.type(new Base64Decoder().decode(spoilt, true), 'string');
  }
  t.end();
});
