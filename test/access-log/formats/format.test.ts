// Format strings: every operator, invalid formats, and buffers.

import { hostname } from 'node:os';
import t from 'tap';
import { compileFormat, DEFAULT_FORMAT } from '../../../src/access-log/formats/format.js';
import { LogBuffer } from '../../../src/access-log/log-buffer.js';
import { FormatError } from '../../../src/access-log/operators/format-error.js';
import { operatorNames } from '../../../src/access-log/operators/operators.js';
import { ResponseFlag } from '../../../src/access-log/stream/response-flags.js';
import { Protocol } from '../../../src/access-log/stream/stream-info.js';
import { fields, request, response, stream, tcpStream } from '../stream.js';

function print(format: string, info = stream()): string {
  return compileFormat(format).text(info);
}

t.test('the default format', async (t) => {
  t.equal(
    print(DEFAULT_FORMAT),
    '[2016-04-15T20:17:00.310Z] "GET /api/v1/locations?x=1 HTTP/1.1" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" ' +
      '"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "10.0.2.1:80"\n',
  );
  t.equal(
    print(DEFAULT_FORMAT, tcpStream({ responseFlags: ResponseFlag.DownstreamProtocolError, responseCode: 400 })),
    '[2016-04-15T20:17:00.000Z] "- - -" 400 DPE 0 0 0 - "-" "-" "-" "-" "-"\n',
  );
});

t.test('every operator writes its value, or the placeholder of a missing one', async (t) => {
  const full = stream({
    responseTrailers: fields({ 'grpc-status': '0' }),
    upstreamLocalAddress: '127.0.0.1:40000',
    upstreamProtocol: Protocol.Http2,
    upstreamTransportFailureReason: 'TLS error',
    responseFlags: ResponseFlag.UpstreamConnectionFailure | ResponseFlag.UpstreamRetryLimitExceeded,
    responseCodeDetails: 'no healthy upstream',
    connectionTerminationDetails: 'idle',
    downstream: {
      ...stream().downstream!,
      detected: {
        transportProtocol: 'tls',
        applicationProtocols: ['h2'],
        serverName: 'example.com',
        ja3: '93c7d42c0df602fb91589311534831f5',
        ja4: 't13d181100_85036bcba153_d41ae481755e',
      },
    },
    virtualHostName: 'default',
  });
  process.env.BATON_TEST_ZONE = 'zone-a';
  const cases: [format: string, expected: string, missing: string][] = [
    ['%START_TIME%', '2016-04-15T20:17:00.310Z', '2016-04-15T20:17:00.000Z'],
    ['%REQ(:METHOD)%', 'GET', '-'],
    ['%REQ(:PATH)%', '/api/v1/locations?x=1', '-'],
    ['%REQ(:AUTHORITY)%', 'locations', '-'],
    ['%REQ(:SCHEME)%', 'http', '-'],
    ['%REQ(X-CUSTOM)%', 'custom value', '-'],
    ['%REQ(x-none?user-agent)%', 'nsq2http', '-'],
    ['%REQ(X-CUSTOM?USER-AGENT):6%', 'custom', '-'],
    ['%REQ(:PATH):4%', '/api', '-'],
    ['%REQ(X-EMPTY)%', '', '-'],
    ['%REQ(:STATUS)%', '-', '-'],
    ['%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH)%', '/api/v1/locations', '-'],
    ['%REQ_WITHOUT_QUERY(X-CUSTOM)%', 'custom value', '-'],
    ['%RESP(:STATUS)%', '204', '-'],
    ['%RESP(:STATUS):1%', '2', '-'],
    ['%RESP(SERVER)%', 'baton', '-'],
    ['%RESP(:PATH)%', '-', '-'],
    ['%TRAILER(GRPC-STATUS)%', '0', '-'],
    ['%REQUEST_HEADER(x-none?user-agent):3%', 'nsq', '-'],
    ['%RESPONSE_HEADER(SERVER)%', 'baton', '-'],
    ['%RESPONSE_TRAILER(GRPC-STATUS)%', '0', '-'],
    ['%PROTOCOL%', 'HTTP/1.1', '-'],
    ['%UPSTREAM_PROTOCOL%', 'HTTP/2', '-'],
    ['%RESPONSE_CODE%', '204', '0'],
    ['%RESPONSE_CODE_DETAILS%', 'no_healthy_upstream', '-'],
    ['%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)%', 'no healthy upstream', '-'],
    ['%RESPONSE_FLAGS%', 'URX,UF', '-'],
    ['%RESPONSE_FLAGS_LONG%', 'UpstreamRetryLimitExceeded,UpstreamConnectionFailure', '-'],
    ['%BYTES_RECEIVED%', '154', '0'],
    ['%BYTES_SENT%', '0', '0'],
    ['%DURATION%', '226', '0'],
    ['%REQUEST_DURATION%', '1', '-'],
    ['%REQUEST_TX_DURATION%', '3', '-'],
    ['%RESPONSE_DURATION%', '100', '-'],
    ['%RESPONSE_TX_DURATION%', '126', '-'],
    ['%COMMON_DURATION(US_TX_BEG:US_RX_END)%', '148', '-'],
    ['%COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)%', '1500', '-'],
    ['%COMMON_DURATION(US_RX_END:US_TX_BEG:ms)%', '-', '-'],
    ['%UPSTREAM_HOST%', '10.0.2.1:80', '-'],
    ['%UPSTREAM_CLUSTER%', 'places', '-'],
    ['%UPSTREAM_CLUSTER_RAW%', 'places.v2', '-'],
    ['%UPSTREAM_LOCAL_ADDRESS%', '127.0.0.1:40000', '-'],
    ['%UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%', '127.0.0.1', '-'],
    ['%UPSTREAM_LOCAL_PORT%', '40000', '-'],
    ['%UPSTREAM_REMOTE_PORT%', '80', '-'],
    ['%UPSTREAM_REQUEST_ATTEMPT_COUNT%', '2', '0'],
    ['%UPSTREAM_TRANSPORT_FAILURE_REASON%', 'TLS_error', '-'],
    ['%DOWNSTREAM_REMOTE_ADDRESS%', '10.0.35.28:0', '-'],
    ['%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%', '10.0.35.28', '-'],
    ['%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%', '[2001:db8::1]:51234', '-'],
    ['%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%', '2001:db8::1', '-'],
    ['%DOWNSTREAM_DIRECT_REMOTE_PORT%', '51234', '-'],
    ['%DOWNSTREAM_LOCAL_ADDRESS%', '/run/baton.sock', '-'],
    ['%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%', '/run/baton.sock', '-'],
    ['%DOWNSTREAM_LOCAL_PORT%', '-', '-'],
    ['%DOWNSTREAM_DIRECT_LOCAL_ADDRESS%', '/run/baton.sock', '-'],
    ['%DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT%', '/run/baton.sock', '-'],
    ['%DOWNSTREAM_DIRECT_LOCAL_PORT%', '-', '-'],
    ['%CONNECTION_ID%', '17', '0'],
    ['%CONNECTION_TERMINATION_DETAILS%', 'idle', '-'],
    ['%REQUESTED_SERVER_NAME%', 'example.com', '-'],
    ['%REQUESTED_SERVER_NAME()%', 'example.com', '-'],
    ['%REQUESTED_SERVER_NAME(SNI_ONLY:HOST)%', 'example.com', '-'],
    ['%REQUESTED_SERVER_NAME(SNI_FIRST)%', 'example.com', '-'],
    ['%REQUESTED_SERVER_NAME(HOST_FIRST)%', 'locations', '-'],
    ['%REQUESTED_SERVER_NAME(HOST_FIRST:ORIG)%', 'example.com', '-'],
    ['%TLS_JA3_FINGERPRINT%', '93c7d42c0df602fb91589311534831f5', '-'],
    ['%TLS_JA4_FINGERPRINT%', 't13d181100_85036bcba153_d41ae481755e', '-'],
    ['%ROUTE_NAME%', 'to_places', '-'],
    ['%VIRTUAL_HOST_NAME%', 'default', '-'],
    ['%HOSTNAME%', hostname(), hostname()],
    ['%ENVIRONMENT(BATON_TEST_ZONE)%', 'zone-a', 'zone-a'],
    ['%ENVIRONMENT(BATON_TEST_ZONE):4%', 'zone', 'zone'],
    ['%ENVIRONMENT(BATON_TEST_NONE)%', '-', '-'],
    ['100%% of %PROTOCOL%', '100% of HTTP/1.1', '100% of -'],
    ['', '', ''],
  ];
  for (const [format, expected, missing] of cases) {
    t.equal(print(format, full), expected, format);
    t.equal(print(format, tcpStream()), missing, `${format} without a value`);
  }
});

t.test('%STREAM_ID% is the request ID, or a UUID of a TCP connection', async (t) => {
  t.equal(print('%STREAM_ID%', stream()), 'cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2');
  const info = tcpStream();
  const id = print('%STREAM_ID%', info);
  t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  t.equal(print('%STREAM_ID%', info), id, 'the same in each log');
  t.not(print('%STREAM_ID%', tcpStream()), id);
});

t.test('omitEmptyValues leaves out missing values', async (t) => {
  const format = compileFormat('<%REQ(X-NONE)%|%UPSTREAM_HOST%|%RESPONSE_FLAGS%>', { omitEmptyValues: true });
  t.equal(format.text(stream()), '<|10.0.2.1:80|->');
});

t.test('the start time in every format', async (t) => {
  const info = stream({ startRealtimeMs: Date.UTC(2018, 2, 5, 3, 4, 9) + 7.25 });
  const cases: [format: string, expected: string][] = [
    ['%Y/%m/%dT%H:%M:%S%z %s', '2018/03/05T03:04:09+0000 1520219049'],
    ['%s.%3f', '1520219049.007'],
    ['%s.%6f', '1520219049.007250'],
    ['%s.%9f %f', '1520219049.007250000 007250000'],
    ['%1f', '0'],
    ['%E3S %E*S %E6f %Ez', '09.007 09.007250000 007250 +00:00'],
    ['%a %A %b %B %h %c', 'Mon Monday Mar March Mar Mon Mar  5 03:04:09 2018'],
    ['%C %D %e %F %I %j %p %r %R', '20 03/05/18  5 2018-03-05 03 064 AM 03:04:09 AM 03:04'],
    ['%T %u %w %x %X %y %Z%%', '03:04:09 1 1 03/05/18 03:04:09 18 UTC%'],
  ];
  for (const [format, expected] of cases) t.equal(print(`%START_TIME(${format})%`, info), expected, format);
  const format = compileFormat('%START_TIME% %START_TIME(%S.%3f)%');
  t.equal(format.text(stream({ startRealtimeMs: 999 })), '1970-01-01T00:00:00.999Z 00.999');
  t.equal(format.text(stream({ startRealtimeMs: 1001 })), '1970-01-01T00:00:01.001Z 01.001', 'when the second changes');
  t.equal(format.text(stream({ startRealtimeMs: 1000 })), '1970-01-01T00:00:01.000Z 01.000');
  process.env.TZ = 'Asia/Kolkata';
  t.equal(print('%START_TIME_LOCAL% %START_TIME_LOCAL(%H:%M %Z)%', info), '2018-03-05T08:34:09.007+05:30 08:34 +0530');
  process.env.TZ = 'UTC';
});

t.test('every flag has a short and a long text', async (t) => {
  const flags: [ResponseFlag, string][] = [
    [ResponseFlag.NoHealthyUpstream, 'UH'],
    [ResponseFlag.UpstreamConnectionFailure, 'UF'],
    [ResponseFlag.UpstreamOverflow, 'UO'],
    [ResponseFlag.NoRouteFound, 'NR'],
    [ResponseFlag.UpstreamRetryLimitExceeded, 'URX'],
    [ResponseFlag.ConnectAttemptsExceeded, 'URX'],
    [ResponseFlag.NoClusterFound, 'NC'],
    [ResponseFlag.DurationTimeout, 'DT'],
    [ResponseFlag.DownstreamConnectionTermination, 'DC'],
    [ResponseFlag.FailedLocalHealthCheck, 'LH'],
    [ResponseFlag.UpstreamRequestTimeout, 'UT'],
    [ResponseFlag.LocalReset, 'LR'],
    [ResponseFlag.UpstreamRemoteReset, 'UR'],
    [ResponseFlag.UpstreamConnectionTermination, 'UC'],
    [ResponseFlag.DelayInjected, 'DI'],
    [ResponseFlag.FaultInjected, 'FI'],
    [ResponseFlag.RateLimited, 'RL'],
    [ResponseFlag.UnauthorizedExternalService, 'UAEX'],
    [ResponseFlag.RateLimitServiceError, 'RLSE'],
    [ResponseFlag.InvalidEnvoyRequestHeaders, 'IH'],
    [ResponseFlag.StreamIdleTimeout, 'SI'],
    [ResponseFlag.DownstreamProtocolError, 'DPE'],
    [ResponseFlag.UpstreamProtocolError, 'UPE'],
    [ResponseFlag.UpstreamMaxStreamDurationReached, 'UMSDR'],
    [ResponseFlag.ResponseFromCacheFilter, 'RFCF'],
    [ResponseFlag.NoFilterConfigFound, 'NFCF'],
    [ResponseFlag.OverloadManager, 'OM'],
    [ResponseFlag.DnsResolutionFailed, 'DF'],
    [ResponseFlag.DropOverload, 'DO'],
    [ResponseFlag.DownstreamRemoteReset, 'DR'],
    [ResponseFlag.UnconditionalDropOverload, 'UDO'],
  ];
  const format = compileFormat('%RESPONSE_FLAGS% %RESPONSE_FLAGS_LONG%');
  for (const [flag, short] of flags) {
    const [shown, long] = format.text(stream({ responseFlags: flag })).split(' ');
    t.equal(shown, short);
    t.match(long, /^[A-Z][a-z]+[A-Za-z]+$/, long);
  }
});

t.test('numbers of any size', async (t) => {
  for (const value of [0, 9, 10, 999_999_999, 1_000_000_000, 4_294_967_296, Number.MAX_SAFE_INTEGER]) {
    t.equal(print('%BYTES_SENT%', stream({ bytesSent: value })), String(value));
  }
});

t.test('bytes of headers are written as they were received', async (t) => {
  const bytes = Array.from({ length: 128 }, (_, i) => String.fromCharCode(128 + i)).join('');
  const long = 'x'.repeat(5000);
  const info = stream({ requestHeaders: request('/', { 'x-raw': bytes, 'x-long': long }) });
  t.equal(print('%REQ(X-RAW)%', info), bytes);
  t.equal(print('%REQ(X-LONG)%', info), long, 'also longer ones than the buffer');
  t.equal(
    print('%ROUTE_NAME%', stream({ routeName: 'größe' })),
    Buffer.from('größe').toString('latin1'),
    'names are UTF-8',
  );
});

t.test('a format lists the headers that it reads', async (t) => {
  const format = compileFormat('%REQ(A?b)% %REQ(:PATH)% %RESP(Server)%');
  t.same([...format.needs.request], ['a', 'b', ':path']);
  t.same([...format.needs.response], ['server']);
  t.equal(format.needs.trailers.size, 0);
  t.equal(compileFormat('%RESPONSE_CODE% %DURATION%').needs.request.size, 0);
});

t.test('unknown and malformed operators are refused with name and position', async (t) => {
  const cases: [format: string, position: number, message: RegExp][] = [
    ['%UPSTREAM_HSOT%', 0, /unknown operator %UPSTREAM_HSOT%/],
    ['abc %NOPE(x)%', 4, /unknown operator %NOPE%/],
    ['%UPSTREAM_HSOT%', 0, /did you mean 'UPSTREAM_HOST'\?/],
    ['%DOWNSTREAM_CX_RTT%', 0, /operator %DOWNSTREAM_CX_RTT% is not implemented in Baton/],
    ['%UPSTREAM_PEER_SERIAL%', 0, /unknown operator %UPSTREAM_PEER_SERIAL%/],
    ['%DOWNSTREAM_PEER_SUBJECT(CN)%', 0, /operator %DOWNSTREAM_PEER_SUBJECT% takes no parameter/],
    ['%REQUESTED_SERVER_NAME(FOO)%', 0, /operator %REQUESTED_SERVER_NAME% takes one of SNI_ONLY SNI_FIRST HOST_FIRST/],
    ['%REQUESTED_SERVER_NAME(SNI_FIRST:FOO)%', 0, /after a colon one of ORIG_OR_HOST HOST ORIG, not 'SNI_FIRST:FOO'/],
    ['%REQUESTED_SERVER_NAME:5%', 0, /operator %REQUESTED_SERVER_NAME% takes no length/],
    ['50% done', 2, /no operator follows '%'/],
    ['%REQ(X', 0, /no operator follows '%' \(one is %NAME%, %NAME\(parameter\)% or %NAME\(parameter\):length%/],
    ['%PROTOCOL', 0, /no operator follows/],
    ['%REQ(A):x%', 0, /no operator follows/],
    ['%REQ(A) %REQ(B)%', 0, /no operator follows/],
    ['%REQ%', 0, /%REQ% needs a parameter/],
    ['%REQ()%', 0, /%REQ% needs a parameter/],
    ['%REQ(A?B?C)%', 0, /one alternative header, not 2/],
    ['%REQ(A B)%', 0, /invalid header 'A B'/],
    ['%REQ(A?)%', 0, /invalid header ''/],
    ['%PROTOCOL(1)%', 0, /%PROTOCOL% takes no parameter/],
    ['%PROTOCOL:3%', 0, /%PROTOCOL% takes no length/],
    ['%START_TIME(%n)%', 0, /unknown time specifier '%n'/],
    ['%START_TIME(%q)%', 0, /unknown time specifier '%q'/],
    ['%START_TIME(%)%', 0, /unknown time specifier '%'/],
    ['%RESPONSE_CODE_DETAILS(X)%', 0, /takes ALLOW_WHITESPACES/],
    ['%COMMON_DURATION(DS_RX_BEG)%', 0, /takes FROM:TO:PRECISION/],
    ['%COMMON_DURATION(DS_RX_BEG:DS_TX_END:toString)%', 0, /takes FROM:TO:PRECISION/],
  ];
  for (const [format, position, message] of cases) {
    try {
      compileFormat(format);
      t.fail(format);
    } catch (error) {
      t.ok(error instanceof FormatError && error.position === position, format);
      t.match((error as Error).message, message);
      t.match((error as Error).message, `position ${position} of format ${JSON.stringify(format)}`);
    }
  }
});

t.test('a line is complete wherever its buffer has to grow', async (t) => {
  const format = compileFormat('é %START_TIME(%s.%9f)% %RESPONSE_CODE% %TRAILER(X)% %REQ(:PATH)% %UPSTREAM_HOST%\n');
  const whole = format.text(stream());
  t.match(whole, /^\S+ 1460751420\.310000000 204 - \/api\/v1\/locations\?x=1 10\.0\.2\.1:80\n$/);
  for (let capacity = 0; capacity < whole.length; capacity++) {
    const line = new LogBuffer(capacity);
    format.write(stream(), line);
    t.equal(line.latin1(), whole, `room for ${capacity} bytes`);
  }
});

/** Operators that need a parameter of their own kind, and those that take a name. */
const PARAMETERS: Readonly<Record<string, string>> = {
  COMMON_DURATION: '(DS_RX_BEG:DS_TX_END:ns)',
  METADATA: '(ROUTE:X)',
  COALESCE: '({"operators":["PROTOCOL"]})',
  CEL: '(request.path)',
  TYPED_CEL: '(request.path)',
};
const NEEDS_PARAMETER =
  /^(REQ|REQ_WITHOUT_QUERY|RESP|ENVIRONMENT|STREAM_INFO_REQ|QUERY_PARAM)$|(_HEADER|TRAILER|_METADATA|FILTER_STATE)$/;

t.test('no operator fails on an empty stream', async (t) => {
  for (const name of operatorNames()) {
    const format = `%${name}${PARAMETERS[name] ?? (NEEDS_PARAMETER.test(name) ? '(X)' : '')}%`;
    t.type(print(format, tcpStream()), 'string', name);
    t.type(print(format, stream({ responseHeaders: response(200) })), 'string', name);
  }
});
