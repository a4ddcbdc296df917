// A scripted external processor (envoy.service.ext_proc.v3.ExternalProcessor) over gRPC.

import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { encodeJson, loadMessages } from '../../../../src/config/schema/messages.js';
import { framed, MessageReader } from '../../../../src/grpc/message-reader.js';
import type { Teardown } from '../../harness/index.js';

const REQUEST = 'envoy.service.ext_proc.v3.ProcessingRequest';
const RESPONSE = 'envoy.service.ext_proc.v3.ProcessingResponse';
const types = loadMessages(REQUEST, RESPONSE);

export interface Field {
  readonly key: string;
  readonly value?: string;
  readonly raw_value?: Uint8Array;
}

interface Head {
  readonly headers?: { readonly headers?: readonly Field[] };
  readonly end_of_stream?: boolean;
}

interface Body {
  readonly body?: Uint8Array;
  readonly end_of_stream?: boolean;
}

interface Trailers {
  readonly trailers?: { readonly headers?: readonly Field[] };
}

/** A decoded ProcessingRequest. */
export interface Question {
  readonly request_headers?: Head;
  readonly response_headers?: Head;
  readonly request_body?: Body;
  readonly response_body?: Body;
  readonly request_trailers?: Trailers;
  readonly response_trailers?: Trailers;
  readonly metadata_context?: object;
  readonly attributes?: Record<string, { fields?: Record<string, object> }>;
  readonly observability_mode?: boolean;
  readonly protocol_config?: object;
}

/** What a question is about. */
export type QuestionKind =
  | 'request_headers'
  | 'response_headers'
  | 'request_body'
  | 'response_body'
  | 'request_trailers'
  | 'response_trailers';

/** One call of the proxy. */
export class ProcessorCall {
  readonly questions: Question[] = [];
  /** The proxy has ended its half, or reset the stream. */
  isEnded = false;
  isClosed = false;

  constructor(
    readonly head: IncomingHttpHeaders,
    readonly stream: ServerHttp2Stream,
  ) {}

  /** Sends a ProcessingResponse in the API's JSON form. */
  send(answer: object): void {
    this.sendBytes(encodeJson(types[RESPONSE], answer));
  }

  /** Sends a message of any bytes. */
  sendBytes(message: Uint8Array): void {
    if (this.stream.writable) this.stream.write(framed(message));
  }

  /** Ends the call with a status. */
  end(status = 0): void {
    this.stream.once('wantTrailers', () => this.stream.sendTrailers({ 'grpc-status': String(status) }));
    this.stream.end();
  }

  /** The questions as short text: `request_headers`, `request_body:abc`, `request_body:abc;end`. */
  get summary(): string[] {
    return this.questions.map((question) => {
      const kind = kindOf(question);
      const part = question[kind] as Body & Head;
      const body = kind.endsWith('body') ? `:${Buffer.from(part.body ?? '').toString('latin1')}` : '';
      return `${kind}${body}${part.end_of_stream === true ? ';end' : ''}`;
    });
  }
}

export interface Processor {
  readonly port: number;
  readonly calls: ProcessorCall[];
}

/** Starts a processor; `answer` is called for each question. */
export async function startProcessor(
  t: Teardown,
  answer: (question: Question, kind: QuestionKind, call: ProcessorCall) => void,
): Promise<Processor> {
  const calls: ProcessorCall[] = [];
  const server = createServer();
  server.on('stream', (stream, head) => {
    const reader = new MessageReader(2 ** 26);
    const call = new ProcessorCall(head, stream);
    calls.push(call);
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('data', (bytes: Buffer) => {
      reader.push(bytes);
      for (let message = reader.next(); message !== undefined; message = reader.next()) {
        const type = types[REQUEST];
        const question = type.toObject(type.decode(message as Buffer)) as Question;
        call.questions.push(question);
        answer(question, kindOf(question), call);
      }
    });
    stream.on('end', () => {
      call.isEnded = true;
      if (stream.writable) call.end();
    });
    stream.on('close', () => {
      call.isClosed = true;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, calls };
}

/** Returns the answer that lets a message of this kind pass. */
export function pass(kind: QuestionKind, response?: object): object {
  return { [kind]: response === undefined ? {} : kind.endsWith('trailers') ? response : { response } };
}

/** Returns the value of a field in a question; undefined: there is none. */
export function fieldOf(head: Head | undefined, name: string): string | undefined {
  const field = head?.headers?.headers?.find(({ key }) => key === name);
  if (field === undefined) return undefined;
  return field.value || Buffer.from(field.raw_value ?? '').toString('latin1');
}

function kindOf(question: Question): QuestionKind {
  return KINDS.find((kind) => question[kind] !== undefined) ?? 'request_headers';
}

const KINDS: readonly QuestionKind[] = [
  'request_headers',
  'response_headers',
  'request_body',
  'response_body',
  'request_trailers',
  'response_trailers',
];
