// Batches of spans and log records: what cannot be exported is counted, and what waits is exported.

import t from 'tap';
import { RecordBatch } from '../../../src/extensions/access-loggers/open-telemetry/batch.js';
import { SpanBuffer } from '../../../src/extensions/tracers/common/span-buffer.js';

const TIMERS = { reschedule() {}, cancel() {} };
const ONE = new Uint8Array(1);
/** Batches are sent in a microtask that is queued before this one. */
const endOfTurn = Promise.resolve();
type Done = (failure: string) => void;

function spanBuffer(send: (done: Done) => void) {
  const counts = { sent: 0, dropped: 0, unsent: 0 };
  const options = { collector: 'c', minSpans: { value: 1 }, intervalMs: { value: 1000 }, maxSpans: 100 };
  const buffer = new SpanBuffer(TIMERS, options, {
    export: (_spans, done) => send(done),
    sent: (spans) => (counts.sent += spans),
    dropped(spans, wasExported) {
      counts.dropped += spans;
      if (!wasExported) counts.unsent += spans;
    },
    timerFlushed() {},
  });
  return { buffer, counts };
}

function recordBatch(send: (done: Done) => void) {
  const counts = { written: 0, dropped: 0 };
  const exporter = { place: '', export: (_request: Uint8Array, done: Done) => send(done), close() {} };
  const options = { flushMs: 1000, maxBytes: 1, encode: () => ONE };
  const batch = new RecordBatch(exporter, TIMERS, options, {
    written: (records) => (counts.written += records),
    dropped: (records) => (counts.dropped += records),
  });
  return { batch, counts };
}

function noRoom(): never {
  throw new Error('no room');
}

t.test('spans whose export throws are lost, and later ones are exported', async (t) => {
  let send: (done: Done) => void = noRoom;
  const { buffer, counts } = spanBuffer((done) => send(done));
  for (let i = 0; i < 50; i++) buffer.add(ONE);
  await endOfTurn;
  t.strictSame(counts, { sent: 50, dropped: 50, unsent: 50 });
  send = (done) => done('');
  buffer.add(ONE);
  await endOfTurn;
  t.strictSame(counts, { sent: 51, dropped: 50, unsent: 50 });
});

t.test('spans that wait at the end are exported when an earlier export ends', async (t) => {
  const pending: Done[] = [];
  const { buffer, counts } = spanBuffer((done) => pending.push(done));
  for (let i = 0; i < 20; i++) {
    buffer.add(ONE);
    await endOfTurn;
  }
  t.equal(counts.sent, 16, 'some wait');
  buffer.close();
  pending[0]!('');
  t.equal(counts.sent, 20);
});

t.test('the spans of one turn are exported together, unless the buffer is full before', async (t) => {
  let exports = 0;
  const { buffer, counts } = spanBuffer((done) => {
    exports++;
    done('');
  });
  for (let i = 0; i < 40; i++) buffer.add(ONE);
  await endOfTurn;
  t.equal(exports, 1);
  for (let i = 0; i < 250; i++) buffer.add(ONE);
  await endOfTurn;
  t.equal(exports, 4);
  t.strictSame(counts, { sent: 290, dropped: 0, unsent: 0 });
});

t.test('records whose export throws are lost, and later ones are exported', (t) => {
  let send: (done: Done) => void = noRoom;
  const { batch, counts } = recordBatch((done) => send(done));
  for (let i = 0; i < 20; i++) batch.add(ONE);
  t.strictSame(counts, { written: 0, dropped: 20 });
  send = (done) => done('');
  batch.add(ONE);
  t.strictSame(counts, { written: 1, dropped: 20 });
  t.end();
});

t.test('a full batch is exported when an earlier export ends', (t) => {
  const pending: Done[] = [];
  const { batch } = recordBatch((done) => pending.push(done));
  for (let i = 0; i < 10; i++) batch.add(ONE);
  t.equal(pending.length, 8, 'some wait');
  pending[0]!('');
  t.equal(pending.length, 9);
  t.end();
});
