// The client codec frame by frame: requests and responses, limits and faults of hosts, and connections that end.

import t from 'tap';
import { headerKey } from '../../../src/common/text/header-names.js';
import type { ClientCodecEvents } from '../../../src/http/codec/connections.js';
import { DEFAULT_HTTP2_OPTIONS, type Http2Options } from '../../../src/http/codec/options.js';
import type { CodecError, RequestEncoder, ResetReason, ResponseDecoder } from '../../../src/http/codec/streams.js';
import { H2ClientCodec } from '../../../src/http/h2/client-codec.js';
import { H2ClientStream } from '../../../src/http/h2/client-stream.js';
import { HeaderBlock, METHOD_NAMES, type Method } from '../../../src/http/headers/header-block.js';
import { StepPool } from '../../../src/http/step-pool.js';
import { describe } from '../h1/peers.js';
import { Wire } from '../h1/wire.js';
import { data, FramePeer, FrameType, frame, resetFrame, settings, uint32, windowUpdate } from './frames.js';

const RESET_NAMES = ['', 'ConnectionTermination', 'ProtocolError', 'LocalReset', 'RemoteReset', 'RefusedStream'];

class ClientPeer implements ClientCodecEvents {
  readonly wire = new Wire();
  readonly frames = new FramePeer();
  readonly codec: H2ClientCodec;
  #journal: string[] = [];

  constructor(options: Partial<Http2Options> = {}) {
    const { memory } = this.wire;
    const stats = { increment: () => {}, decrement: () => {} };
    const pool = new StepPool(memory, () => new H2ClientStream());
    this.codec = new H2ClientCodec(
      memory,
      this.wire,
      this,
      { ...DEFAULT_HTTP2_OPTIONS, ...options },
      stats,
      pool,
      1000,
    );
    this.turn(() => {});
  }

  /** Begins a request, which more follows with `isOpen`. Its events are recorded with `name`. */
  request(
    name: string,
    { method = 'GET', body, isOpen = false }: { method?: string; body?: string; isOpen?: boolean } = {},
  ): RequestEncoder {
    const note = (text: string) => this.#journal.push(`${name} ${text}`);
    const { memory } = this.wire;
    const decoder: ResponseDecoder = {
      onInformational: (headers) => note(`informed ${describe(headers)}`),
      onHeaders: (headers, endStream) => note(`${describe(headers)}${endStream ? ' end' : ''}`),
      onData: (offset, length, endStream) =>
        note(`data ${memory.text(offset, offset + length)}${endStream ? ' end' : ''}`),
      onTrailers: (trailers) => note(`trailers ${describe(trailers)}`),
      onReset: (reason: ResetReason) => note(`reset ${RESET_NAMES[reason]}`),
      onWriteBlocked: () => note('blocked'),
      onWriteDrained: () => note('drained'),
    };
    const encoder = this.codec.newStream(decoder);
    this.turn(() => {
      const headers = new HeaderBlock(memory);
      headers.setMethod((METHOD_NAMES.indexOf(method) + 1) as Method, method);
      headers.setPath(`/${name}`);
      headers.add(headerKey('host'), 'a.test');
      encoder.headers(headers, body === undefined);
      headers.drop();
      if (body !== undefined) this.#send(encoder, body, !isOpen);
    });
    return encoder;
  }

  /** Sends the rest of a request's body. */
  finish(encoder: RequestEncoder, body: string): void {
    this.turn(() => this.#send(encoder, body, true));
  }
  #send(encoder: RequestEncoder, body: string, endStream: boolean): void {
    const { memory } = this.wire;
    const offset = memory.scratch(body.length);
    memory.write(offset, body);
    encoder.data(offset, body.length, endStream);
  }

  receive(...parts: Buffer[]): void {
    this.wire.turn(Buffer.concat(parts).toString('latin1'), (offset, length) => this.codec.receive(offset, length));
  }
  turn(act: () => void): void {
    this.wire.turn('', act);
  }
  sent(): string[] {
    return this.frames.read(Buffer.from(this.wire.take(), 'latin1'));
  }
  events(): string[] {
    const journal = this.#journal;
    this.#journal = [];
    return journal;
  }
  end(): number {
    this.turn(() => this.codec.destroy());
    return this.wire.memory.retainedBytes();
  }

  onStreamComplete(reusable: boolean): void {
    this.#journal.push(reusable ? 'complete' : 'complete, unusable');
  }
  onCloseNotice(): void {
    this.#journal.push('close notice');
  }
  onCheckDue(): void {
    this.#journal.push('check due');
  }
  onProtocolError(error: CodecError): void {
    this.#journal.push(`protocol error ${error.detail}`);
  }
  onEnded(): void {
    this.#journal.push('ended');
  }
}

/** A connection on which settings have been exchanged. */
function connected(options: Partial<Http2Options> = {}, ...limits: [number, number][]): ClientPeer {
  const peer = new ClientPeer(options);
  peer.receive(settings(...limits));
  peer.sent();
  return peer;
}

t.test('a connection begins with the preface and the settings of Envoy', (t) => {
  const peer = new ClientPeer();
  t.same(peer.sent(), ['preface', 'Settings 2=0 1=4096 8=0 3=1024 4=16777216', 'WindowUpdate +25100289']);
  t.equal(peer.codec.freeStreams, 100, 'until the host has sent its limit');
  peer.receive(settings([3, 7]));
  t.same(peer.sent(), ['Settings ack']);
  t.equal(peer.codec.freeStreams, 7);
  t.end();
});

t.test('requests share the connection', (t) => {
  const peer = connected();
  peer.request('one');
  peer.request('two', { method: 'POST', body: 'hello' });
  t.same(peer.sent(), [
    'Headers 1 :method: GET; :path: /one; :scheme: http; :authority: a.test end',
    'Headers 3 :method: POST; :path: /two; :scheme: http; :authority: a.test',
    'Data 3 hello end',
  ]);
  const answers = new FramePeer();
  peer.receive(
    answers.headers(
      3,
      [
        [':status', '200'],
        ['content-length', '2'],
      ],
      false,
    ),
  );
  peer.receive(answers.headers(1, [[':status', '204']]), data(3, 'ok', true));
  t.same(peer.events(), ['two 200 content-length=2', 'one 204 end', 'complete', 'two data ok end', 'complete']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('streams are numbered in the order of their heads', (t) => {
  const peer = connected();
  const late = peer.codec.newStream({} as ResponseDecoder);
  peer.request('first');
  t.match(peer.sent(), [/^Headers 1 /]);
  peer.turn(() => late.reset(3));
  t.same(peer.sent(), [], 'the host does not know a request that has not begun');
  t.same(peer.events(), ['complete']);
  t.equal(peer.codec.freeStreams, 1023);
  t.end();
});

t.test('informational responses, trailers, and responses without body', (t) => {
  const peer = connected();
  peer.request('one');
  peer.request('head', { method: 'HEAD' });
  const answers = new FramePeer();
  peer.receive(
    answers.headers(
      1,
      [
        [':status', '103'],
        ['link', '</a>'],
      ],
      false,
    ),
    answers.headers(1, [[':status', '200']], false),
    data(1, 'abc'),
    answers.headers(1, [['grpc-status', '0']]),
    answers.headers(3, [
      [':status', '200'],
      ['content-length', '9'],
    ]),
  );
  t.same(peer.events(), [
    'one informed 103 link=</a>',
    'one 200',
    'one data abc',
    'one trailers grpc-status=0',
    'complete',
    'head 200 content-length=9 end',
    'complete',
  ]);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a response before the end of its request ends the exchange', (t) => {
  const peer = connected({}, [4, 2]);
  peer.request('one', { method: 'POST', body: 'hello' });
  peer.sent();
  peer.receive(new FramePeer().headers(1, [[':status', '413']]));
  t.same(peer.sent(), ['RstStream 1 CANCEL']);
  t.same(peer.events(), ['one blocked', 'one 413 end', 'complete']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a request that is not complete when its response ends is reset: its stream may serve another one', (t) => {
  const peer = connected();
  const encoder = peer.request('one', { method: 'POST', body: 'hel', isOpen: true });
  peer.receive(new FramePeer().headers(1, [[':status', '413']]));
  t.same(peer.events(), ['one 413 end', 'one reset LocalReset', 'complete']);
  peer.sent();
  peer.finish(encoder, 'lo');
  t.same(peer.sent(), []);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a body waits for the windows of the host', (t) => {
  const peer = connected({}, [4, 2]);
  peer.request('one', { method: 'POST', body: 'hello' });
  peer.receive(windowUpdate(1, 2), windowUpdate(1, 9));
  t.same(peer.sent().slice(1), ['Data 1 he', 'Data 1 ll', 'Data 1 o end']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a request gets no events once both directions of its tunnel have ended, while its last bytes wait', (t) => {
  for (const isClientFirst of [true, false]) {
    const peer = connected({}, [4, 2]);
    const answers = new FramePeer();
    const encoder = peer.request('one', { method: 'CONNECT', body: '1', isOpen: true });
    peer.receive(answers.headers(1, [[':status', '200']], false));
    peer.sent();
    if (isClientFirst) peer.finish(encoder, '2345');
    peer.receive(data(1, 'bye', true));
    if (!isClientFirst) peer.finish(encoder, '2345');
    t.same(peer.events(), ['one 200', ...(isClientFirst ? ['one blocked'] : []), 'one data bye end', 'check due']);
    peer.receive(windowUpdate(1, 2));
    t.same(peer.sent(), ['Data 1 2', 'Data 1 34']);
    peer.receive(resetFrame(1));
    t.same(peer.events(), ['complete']);
    t.equal(peer.end(), 0);
  }
  t.end();
});

t.test('the rest of a tunnel that both sides have ended is given up if the host does not take it', (t) => {
  const peer = connected({ flushTimeoutMs: 1000 }, [4, 2]);
  const encoder = peer.request('one', { method: 'CONNECT', body: '1', isOpen: true });
  peer.request('two', { method: 'POST', body: '12345' });
  peer.receive(new FramePeer().headers(1, [[':status', '200']], false));
  peer.turn(() => peer.codec.check(4000));
  peer.turn(() => peer.codec.check(9000));
  peer.finish(encoder, '2345');
  peer.events();
  peer.receive(data(1, '', true));
  t.same(peer.events(), ['one data  end', 'check due']);
  t.equal(peer.codec.check(10_000), 1000);
  peer.receive(windowUpdate(1, 1));
  t.equal(peer.codec.check(10_900), 1000, 'the host has taken some of it');
  peer.turn(() => peer.codec.check(11_800));
  peer.sent();
  peer.turn(() => peer.codec.check(11_900));
  t.same(peer.sent(), ['RstStream 1 CANCEL']);
  t.same(peer.events(), ['complete'], 'a request whose caller waits has timeouts of its own');
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a CONNECT has no content-length', (t) => {
  const peer = connected();
  peer.turn(() => {
    const headers = new HeaderBlock(peer.wire.memory);
    headers.setMethod((METHOD_NAMES.indexOf('CONNECT') + 1) as Method, 'CONNECT');
    headers.setPath('a.test:443');
    headers.add(headerKey('host'), 'a.test:443');
    headers.add(headerKey('content-length'), '0');
    const decoder = { onReset: () => {} } as Partial<ResponseDecoder> as ResponseDecoder;
    peer.codec.newStream(decoder).headers(headers, false);
    headers.drop();
  });
  t.same(peer.sent(), ['Headers 1 :method: CONNECT; :authority: a.test:443']);
  t.equal(peer.end(), 0);
  t.end();
});

t.test('a stream that the host resets', (t) => {
  const peer = connected();
  for (const name of ['one', 'two', 'three']) peer.request(name);
  peer.receive(resetFrame(1, 7), resetFrame(3, 2), new FramePeer().headers(5, [[':status', '200']]));
  t.same(peer.events(), [
    'one reset RefusedStream',
    'complete',
    'two reset RemoteReset',
    'complete',
    'three 200 end',
    'complete',
  ]);
  t.end();
});

t.test('after GOAWAY streams below its limit continue, the others were not processed', (t) => {
  const peer = connected();
  for (const name of ['one', 'two', 'three']) peer.request(name);
  peer.receive(frame(FrameType.GoAway, 0, 0, Buffer.concat([uint32(0x7fffffff), uint32(0)])));
  t.same(peer.events(), ['close notice']);
  t.equal(peer.codec.freeStreams, 0);
  peer.receive(frame(FrameType.GoAway, 0, 0, Buffer.concat([uint32(3), uint32(0)])));
  peer.receive(new FramePeer().headers(3, [[':status', '200']]));
  t.same(peer.events(), ['three reset RefusedStream', 'complete', 'two 200 end', 'complete']);
  peer.turn(() => peer.codec.end());
  t.same(peer.events(), ['one reset ConnectionTermination', 'ended']);
  t.equal(peer.end(), 0);
  t.end();
});

const FAULTS: [string, (answers: FramePeer) => Buffer[], string][] = [
  ['a response to no request', (answers) => [answers.headers(3, [[':status', '200']])], 'PROTOCOL_ERROR'],
  ['a pushed stream', () => [frame(FrameType.PushPromise, 4, 1, uint32(2))], 'PROTOCOL_ERROR'],
  ['ENABLE_PUSH', () => [settings([2, 1])], 'PROTOCOL_ERROR'],
  ['no :status', (answers) => [answers.headers(1, [['x', 'y']])], 'PROTOCOL_ERROR'],
  ['101', (answers) => [answers.headers(1, [[':status', '101']], false)], 'PROTOCOL_ERROR'],
  ['an informational response that ends', (answers) => [answers.headers(1, [[':status', '103']])], 'PROTOCOL_ERROR'],
  [
    'Connection',
    (answers) => [
      answers.headers(1, [
        [':status', '200'],
        ['connection', 'close'],
      ]),
    ],
    'PROTOCOL_ERROR',
  ],
  ['a window that overflows', () => [windowUpdate(0, 0x7fffffff)], 'FLOW_CONTROL_ERROR'],
  ['a reset of no request', () => [resetFrame(3)], 'PROTOCOL_ERROR'],
];

t.test('faults of hosts end the connection', (t) => {
  for (const [name, faults, code] of FAULTS) {
    const peer = connected();
    peer.request('one');
    peer.sent();
    peer.receive(...faults(new FramePeer()));
    t.match(peer.sent(), [new RegExp(`GoAway last 0 ${code}`)], name);
    t.match(peer.events(), ['one reset ProtocolError', /protocol error/], name);
    t.equal(peer.end(), 0, name);
  }
  t.end();
});

t.test('a response that is not as long as its content-length costs its own stream', (t) => {
  const peer = connected();
  peer.request('one');
  peer.request('two');
  const answers = new FramePeer();
  peer.receive(
    answers.headers(
      1,
      [
        [':status', '200'],
        ['content-length', '5'],
      ],
      false,
    ),
    data(1, 'abc', true),
  );
  peer.receive(answers.headers(3, [[':status', '200']]));
  t.same(peer.events(), ['one 200 content-length=5', 'one reset ProtocolError', 'complete', 'two 200 end', 'complete']);
  t.match(peer.sent().at(-1), 'RstStream 1 PROTOCOL_ERROR');
  t.equal(peer.end(), 0);
  t.end();
});
