// Times one access log line: `npm run build && node dist/scripts/bench/components/access-log.js`. Prints nanoseconds per line for
// a few formats.

import { compileFormat, DEFAULT_FORMAT, type Format } from '../../../src/access-log/formats/format.js';
import { compileJsonFormat } from '../../../src/access-log/formats/json-format.js';
import { LogBuffer } from '../../../src/access-log/log-buffer.js';
import { Protocol, StreamInfo } from '../../../src/access-log/stream/stream-info.js';
import { headerKey } from '../../../src/common/text/header-names.js';
import { HeaderBlock, Method } from '../../../src/http/headers/header-block.js';
import { Memory } from '../../../src/io/memory.js';

const LINES = 2_000_000;
const ROUNDS = 5;

const formats: readonly (readonly [name: string, format: Format])[] = [
  ['default', compileFormat(DEFAULT_FORMAT)],
  ['short', compileFormat('%START_TIME(%s.%3f)% %REQ(:PATH)% %RESPONSE_CODE% %DURATION%\n')],
  [
    'json',
    compileJsonFormat({
      time: '%START_TIME%',
      method: '%REQ(:METHOD)%',
      path: '%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%',
      protocol: '%PROTOCOL%',
      status: '%RESPONSE_CODE%',
      flags: '%RESPONSE_FLAGS%',
      bytes: { received: '%BYTES_RECEIVED%', sent: '%BYTES_SENT%' },
      duration: '%DURATION%',
      agent: '%REQ(USER-AGENT)%',
      host: '%UPSTREAM_HOST%',
    }),
  ],
];

const info = makeStream();
const buffer = new LogBuffer(128 * 1024);
for (const [name, format] of formats) {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) best = Math.min(best, time(format));
  console.log(`${name}: ${best.toFixed(0)} ns a line`);
}

/** Returns the CPU nanoseconds per line, with an advancing clock as under load. */
function time(format: Format): number {
  const start = process.cpuUsage();
  for (let line = 0; line < LINES; line++) {
    info.startRealtimeMs = 1_700_000_000_000 + (line >> 5);
    format.write(info, buffer);
    if (buffer.length > 64 * 1024) buffer.length = 0;
  }
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1000) / LINES;
}

function makeStream(): StreamInfo {
  const memory = new Memory();
  const request = new HeaderBlock(memory);
  request.setMethod(Method.Get, 'GET');
  request.setPath('/api/v1/items/1234?view=full');
  for (const [name, value] of [
    ['host', 'shop.example.com'],
    ['user-agent', 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'],
    ['accept', '*/*'],
    ['x-forwarded-for', '203.0.113.7'],
    ['x-request-id', '9f1c2d3e-4b5a-4697-8877-66554433aabb'],
  ] as const) {
    request.add(headerKey(name), value);
  }
  const response = new HeaderBlock(memory);
  response.setStatus(200);
  response.add(headerKey('x-envoy-upstream-service-time'), '12');
  const stream = new StreamInfo();
  stream.reset(Date.now(), 1000);
  stream.protocol = Protocol.Http11;
  stream.responseCode = 200;
  stream.bytesSent = 10_240;
  stream.durationMs = 13;
  stream.requestHeaders = request;
  stream.responseHeaders = response;
  stream.upstreamHost = '10.0.35.28:8080';
  return stream;
}
