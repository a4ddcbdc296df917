// ext_proc in front of a client that reads slowly: nothing of a processed body is lost, and the host is held back.

import { once } from 'node:events';
import type { ClientHttp2Stream } from 'node:http2';
import t, { type Test } from 'tap';
import { httpRequest, startUpstream, staticCluster, waitFor } from '../../harness/index.js';
import { openSession } from '../h2/http2-client.js';
import { type ProxyParts, type Script, startProcessedProxy } from './processed-proxy.js';
import { pass } from './processor.js';

const PIECE = Buffer.alloc(8 * 1024, 'p').toString('base64');
const PIECES = 15;
const CHUNK = Buffer.alloc(64 * 1024, 'h');
const LARGE = 48 * 1024 * 1024;
/** Of the bytes that the sockets hold. */
const MOST_UNDER_WAY = 16 * 1024 * 1024;

/** Answers with a body of its own, and ends the call. */
const ending: Script = (kind, call) => {
  if (kind !== 'response_body') return call.send(pass(kind));
  if (!call.stream.writable) return;
  for (let left = PIECES - 1; left >= 0; left--) {
    const streamed_response = { body: PIECE, end_of_stream: left === 0 };
    call.send(pass(kind, { body_mutation: { streamed_response } }));
  }
  call.end();
};

function start(t: Test, parts: ProxyParts) {
  return startProcessedProxy(t, { command: undefined }, parts);
}

/** Sends a request whose response is not read. */
async function open(t: Test, port: number, path: string): Promise<ClientHttp2Stream> {
  const stream = openSession(t, port).request({ ':path': path });
  stream.on('error', () => {});
  await once(stream, 'response');
  return stream;
}

t.test('answers that wait for the client outlast their call', async (t) => {
  const mode = { response_body_mode: 'FULL_DUPLEX_STREAMED', response_trailer_mode: 'SEND' };
  const proxy = await start(t, {
    filters: { main: { processing_mode: mode } },
    scripts: { '/ending': ending },
    listener: { per_connection_buffer_limit_bytes: 16 * 1024 },
  });
  const stream = await open(t, await proxy.port('main'), '/ending?body=x');
  await waitFor(() => proxy.callsOf('/ending?body=x')[0]!.isClosed, { what: 'the end of the call' });
  let received = 0;
  stream.on('data', (bytes: Buffer) => {
    received += bytes.length;
  });
  await once(stream, 'close');
  t.same([received, stream.rstCode], [PIECES * 8 * 1024, 0]);
});

t.test('a host is read no faster than its client reads', async (t) => {
  let sent = 0;
  const host = await startUpstream(t, (_request, answer) => {
    answer.on('error', () => {});
    const write = () => {
      while (sent < LARGE) {
        sent += CHUNK.length;
        if (!answer.write(CHUNK)) return void answer.once('drain', write);
      }
      answer.end();
    };
    write();
  });
  const proxy = await start(t, {
    filters: { main: { processing_mode: { response_body_mode: 'STREAMED' } } },
    scripts: {},
    clusters: [staticCluster('large', host.port)],
    routes: [{ match: { path: '/large' }, route: { cluster: 'large', timeout: '0s' } }],
  });
  const port = await proxy.port('main');
  const stream = await open(t, port, '/large');
  let read = 0;
  let most = 0;
  while (read < LARGE / 4) {
    const bytes = stream.read() as Buffer | null;
    if (bytes === null) await once(stream, 'readable');
    read += bytes?.length ?? 0;
    most = Math.max(most, sent - read);
    // Meanwhile the host could send much more.
    await httpRequest(port, '/small');
  }
  t.ok(most < MOST_UNDER_WAY, `${most} bytes`);
  stream.destroy();
});
