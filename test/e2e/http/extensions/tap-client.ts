// A client of POST /tap that decodes traces as messages of the API.

import { type IncomingMessage, request } from 'node:http';
import { createRequire } from 'node:module';
import type protobufjs from 'protobufjs';
import type * as ProtoJson from 'protobufjs/ext/protojson.js';
import { loadAllMessages } from '../../../../src/config/schema/messages.js';
import { type Config, type Teardown, withDeadline } from '../../harness/index.js';

const require = createRequire(import.meta.url);
const protobuf = require('protobufjs/light.js') as typeof protobufjs;
const protojson = require('protobufjs/ext/protojson.js') as typeof ProtoJson;
const root = loadAllMessages();
const TRACE = root.lookupType('envoy.data.tap.v3.TraceWrapper');

/** envoy.data.tap.v3.TraceWrapper in proto JSON, as far as tests use it. */
export interface Trace {
  httpBufferedTrace?: {
    request?: TraceMessage;
    response?: TraceMessage;
    downstreamConnection?: { localAddress: TraceAddress; remoteAddress: TraceAddress };
  };
  httpStreamedTraceSegment?: { traceId: string } & Record<string, unknown>;
}

export interface TraceMessage {
  headers: { key: string; value?: string; rawValue?: string }[];
  body?: { asBytes?: string; asString?: string; truncated?: boolean };
  trailers?: { key: string; value: string }[];
  headersReceivedTime?: string;
}

interface TraceAddress {
  socketAddress: { address: string; portValue: number };
}

export interface TapClient {
  readonly response: IncomingMessage;
  /** Everything received, as Latin-1. */
  text: string;
  /** Settles when the response is complete, or cut off. */
  readonly ended: Promise<void>;
  /** Complete traces in a JSON format. */
  traces(): Trace[];
  /** Complete traces in PROTO_BINARY_LENGTH_DELIMITED. */
  binaryTraces(): Trace[];
  /** Disconnects. */
  close(): void;
}

/** Sends a TapRequest; resolves with the response's header section. */
export function attach(t: Teardown, adminPort: number, body: Config | string): Promise<TapClient> {
  const opened = new Promise<TapClient>((resolve, reject) => {
    const options = { port: adminPort, host: '127.0.0.1', path: '/tap', method: 'POST', agent: false };
    const outgoing = request(options, (response) => {
      const client: TapClient = {
        response,
        text: '',
        ended: new Promise((done) => response.on('close', done)),
        traces: () => jsonTraces(client.text),
        binaryTraces: () => binaryTraces(Buffer.from(client.text, 'latin1')),
        close: () => outgoing.destroy(),
      };
      response.setEncoding('latin1').on('data', (text: string) => {
        client.text += text;
      });
      response.on('error', () => {});
      resolve(client);
    });
    outgoing.on('error', reject);
    outgoing.end(typeof body === 'string' ? body : JSON.stringify(body));
    t.teardown(() => outgoing.destroy());
  });
  return withDeadline(opened, 'an answer of /tap');
}

/** Returns a TapRequest that streams to the client. */
export function tapRequest(match: Config, output: Config = {}, sink: Config = {}): Config {
  const sinks = [{ streaming_admin: {}, ...sink }];
  return { config_id: 'main', tap_config: { match, output_config: { sinks, ...output } } };
}

function jsonTraces(text: string): Trace[] {
  const documents = Buffer.from(text, 'latin1')
    .toString()
    .split(/(?<=^}\n)/m);
  return documents
    .filter((document) => document.endsWith('\n}\n'))
    .map((document) => checked(protojson.fromJson(TRACE, JSON.parse(document) as never)));
}

function binaryTraces(bytes: Buffer): Trace[] {
  const traces: Trace[] = [];
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const length = reader.uint32();
    if (reader.pos + length > reader.len) break;
    traces.push(checked(TRACE.decode(bytes.subarray(reader.pos, reader.pos + length))));
    reader.skip(length);
    if (reader.pos <= start) break;
  }
  return traces;
}

function checked(message: protobufjs.Message): Trace {
  const problem = TRACE.verify(message);
  if (problem !== null) throw new Error(problem);
  return protojson.toJson(TRACE, message) as Trace;
}
