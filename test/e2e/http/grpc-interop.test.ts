// gRPC's interoperability cases (github.com/grpc/grpc, doc/interop-test-descriptions.md) with client and server of grpc-js, through the
// proxy: HTTP/2 on both sides, without and with TLS.

import {
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import type { Test } from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  HTTP2_CLUSTER,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  staticCluster,
  type Teardown,
  withDeadline,
} from '../harness/index.js';
import { clientTls, httpsListener, serverTls, trustedCa } from '../tls/contexts.js';
import { managerOf, routeTo } from './proxy.js';

const SERVICE = '/grpc.testing.TestService/';
/** The sizes of the specification's cases. */
const LARGE_REQUEST = 271_828;
const LARGE_RESPONSE = 314_159;
const RESPONSES = [31_415, 9, 2_653, 58_979];
const REQUESTS = [27_182, 8, 1_828, 45_904];
const SPECIAL_MESSAGE = '\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n';
const INITIAL = 'x-grpc-test-echo-initial';
const TRAILING = 'x-grpc-test-echo-trailing-bin';

/** What a request asks for: JSON, and padding. */
interface Order {
  /** Sizes of the answers. */
  readonly sizes?: readonly number[];
  readonly code?: number;
  readonly message?: string;
  readonly neverAnswers?: boolean;
}

const order = (wanted: Order, bytes = 0) =>
  Buffer.concat([Buffer.from(`${JSON.stringify(wanted)}\n`), Buffer.alloc(bytes)]);
const orderIn = (request: Buffer) => JSON.parse(request.subarray(0, request.indexOf('\n')).toString()) as Order;
const same = (bytes: Buffer) => bytes;

besideEnvoy('without TLS', (t, program) => runCases(t, program, false));
besideEnvoy('with TLS on both sides', (t, program) => runCases(t, program, true));

async function runCases(t: Test, program: ProxyProgram, isSecure: boolean): Promise<void> {
  const client = await startPath(t, program, isSecure);
  await unaryCases(t, client);
  await streamingCases(t, client);
  await cancelledCases(t, client);
}

async function unaryCases(t: Test, client: TestClient): Promise<void> {
  t.same(await client.unary(Buffer.alloc(0)), { code: 0, bytes: 0 }, 'empty_unary');
  const large = await client.unary(order({ sizes: [LARGE_RESPONSE] }, LARGE_REQUEST));
  t.same(large, { code: 0, bytes: LARGE_RESPONSE }, 'large_unary');
  const failed = await client.unary(order({ code: 2, message: 'test status message' }));
  t.match(failed, { code: 2, details: 'test status message' }, 'status_code_and_message');
  const special = await client.unary(order({ code: 2, message: SPECIAL_MESSAGE }));
  t.match(special, { code: 2, details: SPECIAL_MESSAGE }, 'special_status_message');
  t.match(await client.unary(order({}), 'Unimplemented'), { code: status.UNIMPLEMENTED }, 'unimplemented_method');
  const metadata = new Metadata();
  metadata.set(INITIAL, 'test_initial_metadata_value');
  metadata.set(TRAILING, Buffer.from('ababab', 'hex'));
  const echoed = await client.withMetadata(metadata);
  t.equal(echoed.initial.get(INITIAL)[0], 'test_initial_metadata_value', 'custom_metadata');
  t.same(echoed.trailing.get(TRAILING)[0], Buffer.from('ababab', 'hex'));
  const timedOut = await client.unary(order({ neverAnswers: true }), 'Unary', 50);
  t.match(timedOut, { code: status.DEADLINE_EXCEEDED }, 'timeout_on_sleeping_server');
}

async function streamingCases(t: Test, client: TestClient): Promise<void> {
  t.equal(await client.clientStream(REQUESTS), 74_922, 'client_streaming');
  t.same(await client.serverStream(RESPONSES), RESPONSES, 'server_streaming');
  t.same(await client.pingPong(REQUESTS, RESPONSES), RESPONSES, 'ping_pong');
  t.same(await client.pingPong([], []), [], 'empty_stream');
  const failed = await client.duplexError(order({ code: 2, message: 'test status message' }));
  t.match(failed, { code: 2, details: 'test status message' }, 'status_code_and_message of a stream');
}

async function cancelledCases(t: Test, client: TestClient): Promise<void> {
  const begun = client.duplex();
  begun.cancel();
  t.equal((await ended(begun)).code, status.CANCELLED, 'cancel_after_begin');
  const answered = client.duplex();
  answered.write(order({ sizes: [31_415] }));
  await next(answered);
  answered.cancel();
  t.equal((await ended(answered)).code, status.CANCELLED, 'cancel_after_first_response');
  t.same(await client.unary(Buffer.alloc(0)), { code: 0, bytes: 0 }, 'the connection goes on');
}

interface Outcome {
  readonly code: number;
  readonly bytes?: number;
  readonly details?: string;
}

class TestClient {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  unary(request: Buffer, method = 'Unary', timeoutMs?: number): Promise<Outcome> {
    const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
    return withDeadline(
      new Promise((resolve) => {
        this.#client.makeUnaryRequest(SERVICE + method, same, same, request, options, (error, answer) =>
          resolve(error === null ? { code: 0, bytes: answer!.length } : { code: error.code, details: error.details }),
        );
      }),
      method,
    );
  }

  withMetadata(metadata: Metadata): Promise<{ readonly initial: Metadata; readonly trailing: Metadata }> {
    return withDeadline(
      new Promise((resolve, reject) => {
        let initial = new Metadata();
        const call = this.#client.makeUnaryRequest(
          `${SERVICE}Unary`,
          same,
          same,
          Buffer.alloc(0),
          metadata,
          (error) => {
            if (error !== null) reject(error);
          },
        );
        call.on('metadata', (received) => {
          initial = received;
        });
        call.on('status', ({ metadata: trailing }) => resolve({ initial, trailing }));
      }),
      'metadata',
    );
  }

  /** Returns the sum of the sizes that the server has received. */
  clientStream(sizes: readonly number[]): Promise<number> {
    return withDeadline(
      new Promise((resolve, reject) => {
        const call = this.#client.makeClientStreamRequest(`${SERVICE}ClientStream`, same, same, (error, answer) =>
          error === null ? resolve(answer!.readUInt32BE()) : reject(error),
        );
        for (const size of sizes) call.write(Buffer.alloc(size));
        call.end();
      }),
      'a stream of requests',
    );
  }

  /** Returns the sizes of the answers. */
  serverStream(sizes: readonly number[]): Promise<number[]> {
    return withDeadline(
      new Promise((resolve, reject) => {
        const received: number[] = [];
        const call = this.#client.makeServerStreamRequest(`${SERVICE}ServerStream`, same, same, order({ sizes }));
        call.on('data', (answer: Buffer) => received.push(answer.length));
        call.on('error', reject);
        call.on('end', () => resolve(received));
      }),
      'a stream of responses',
    );
  }

  duplex(): ClientDuplexStream<Buffer, Buffer> {
    return this.#client.makeBidiStreamRequest(`${SERVICE}Duplex`, same, same);
  }

  /** Sends each request after the answer to the one before. Returns the sizes of the answers. */
  async pingPong(requests: readonly number[], sizes: readonly number[]): Promise<number[]> {
    const call = this.duplex();
    const received: number[] = [];
    for (const [index, size] of sizes.entries()) {
      call.write(order({ sizes: [size] }, requests[index]!));
      received.push((await next(call)).length);
    }
    call.end();
    const { code } = await ended(call);
    if (code !== 0) throw new Error(`the stream ended with status ${code}`);
    return received;
  }

  duplexError(request: Buffer): Promise<Outcome> {
    const call = this.duplex();
    call.write(request);
    return ended(call);
  }
}

function next(call: ClientDuplexStream<Buffer, Buffer>): Promise<Buffer> {
  return withDeadline(new Promise((resolve) => call.once('data', resolve)), 'an answer of the stream');
}

function ended(call: ClientDuplexStream<Buffer, Buffer>): Promise<Outcome> {
  call.resume();
  return withDeadline(
    new Promise((resolve) => {
      call.on('error', ({ code, details }: ServiceError) => resolve({ code, details }));
      call.on('status', ({ code, details }) => resolve({ code, details }));
    }),
    'the end of the stream',
  );
}

/** Starts a server, a proxy before it, and a client. */
async function startPath(t: Test, program: ProxyProgram, isSecure: boolean): Promise<TestClient> {
  const root = isSecure ? await Authority.create() : undefined;
  const certificate = await root?.issue({ names: ['server.test'] });
  const pair = certificate && { private_key: Buffer.from(certificate.key), cert_chain: Buffer.from(certificate.chain) };
  const serverPort = await startServer(t, pair ? ServerCredentials.createSsl(null, [pair]) : undefined);
  const manager = managerOf([routeTo({ prefix: '/' }, 'host', { timeout: '0s' })], { http_filters: [ROUTER_FILTER] });
  const alpn = { alpn_protocols: ['h2'] };
  const secure = certificate &&
    root && {
      listener: httpsListener('grpc', serverTls([certificate], alpn), manager),
      cluster: { transport_socket: clientTls({ validation_context: trustedCa(root) }, { sni: 'server.test' }) },
    };
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'warning'],
    config: bootstrap({
      listeners: [secure?.listener ?? httpListener('grpc', 0, manager)],
      clusters: [staticCluster('host', serverPort, { ...HTTP2_CLUSTER, ...secure?.cluster })],
    }),
  });
  const address = `127.0.0.1:${await baton.listenerPort('grpc')}`;
  const trust = root && credentials.createSsl(Buffer.from(root.certificate));
  const client = new Client(address, trust ?? credentials.createInsecure(), {
    'grpc.ssl_target_name_override': 'server.test',
    'grpc.default_authority': 'server.test',
  });
  t.teardown(() => client.close());
  return new TestClient(client);
}

/** Starts the server of the cases. Returns its port. */
async function startServer(t: Teardown, secure = ServerCredentials.createInsecure()): Promise<number> {
  const server = new Server();
  const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
    path: SERVICE + name,
    requestStream,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  });
  server.addService(
    {
      Unary: method('Unary', false, false),
      ClientStream: method('ClientStream', true, false),
      ServerStream: method('ServerStream', false, true),
      Duplex: method('Duplex', true, true),
    },
    { Unary: unary, ClientStream: clientStream, ServerStream: serverStream, Duplex: duplex },
  );
  t.teardown(() => server.forceShutdown());
  return new Promise((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', secure, (error, port) => (error === null ? resolve(port) : reject(error))),
  );
}

function unary(call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>): void {
  const [initial] = call.metadata.get(INITIAL);
  const [trailing] = call.metadata.get(TRAILING);
  const head = new Metadata();
  if (initial !== undefined) head.set(INITIAL, initial);
  call.sendMetadata(head);
  const tail = new Metadata();
  if (trailing !== undefined) tail.set(TRAILING, trailing);
  if (call.request.length === 0) return done(null, Buffer.alloc(0), tail);
  const { code, message = '', neverAnswers, sizes = [0] } = orderIn(call.request);
  if (neverAnswers === true) return;
  if (code !== undefined) done({ code, details: message });
  else done(null, Buffer.alloc(sizes[0]!), tail);
}

function clientStream(call: ServerReadableStream<Buffer, Buffer>, done: sendUnaryData<Buffer>): void {
  let sum = 0;
  call.on('data', (request: Buffer) => {
    sum += request.length;
  });
  call.on('end', () => {
    const answer = Buffer.alloc(4);
    answer.writeUInt32BE(sum);
    done(null, answer);
  });
}

function serverStream(call: ServerWritableStream<Buffer, Buffer>): void {
  for (const size of orderIn(call.request).sizes ?? []) call.write(Buffer.alloc(size));
  call.end();
}

function duplex(call: ServerDuplexStream<Buffer, Buffer>): void {
  call.on('error', () => {});
  call.on('data', (request: Buffer) => {
    const { code, message = '', sizes = [] } = orderIn(request);
    if (code !== undefined) return void call.emit('error', { code, details: message });
    for (const size of sizes) call.write(Buffer.alloc(size));
  });
  call.on('end', () => call.end());
}
