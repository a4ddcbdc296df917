// A processor that is called by HTTP (ExtProcHttpService): each question is a POST request with the message as JSON.

import { encodeJson, loadMessages } from '../../../grpc-sdk.js';
import { filledStruct, type ProtoStruct } from '../../../messages/proto-struct.js';
import { type HttpCall, type HttpService, messageOf } from '../../../sdk.js';
import type { CallRecord } from './call-record.js';
import type { ProcessorEvents, ProcessorStream } from './processor-stream.js';

const QUESTION = 'envoy.service.ext_proc.v3.ProcessingRequest';
const ANSWER = 'envoy.service.ext_proc.v3.ProcessingResponse';
const OK = 200;

let types: ReturnType<typeof loadMessages<typeof QUESTION | typeof ANSWER>> | undefined;

/** A decoded question, with bytes in base64. */
interface Question {
  readonly metadata_context?: { readonly filter_metadata?: { readonly [namespace: string]: ProtoStruct } };
  readonly attributes?: { readonly [namespace: string]: ProtoStruct };
}

export class HttpProcessor implements ProcessorStream {
  readonly queuedBytes = 0;
  readonly #service: HttpService;
  readonly #record: CallRecord;
  readonly #events: ProcessorEvents;
  /** Both messages of a stream may have a call. */
  readonly #calls = new Set<HttpCall>();

  constructor(service: HttpService, record: CallRecord, events: ProcessorEvents) {
    this.#service = service;
    this.#record = record;
    this.#events = events;
  }

  send(message: Uint8Array): void {
    const body = Buffer.from(jsonOf(message));
    this.#record.bytesSent += body.length;
    let call: HttpCall | undefined;
    const ended = () => {
      if (call !== undefined) this.#calls.delete(call);
    };
    call = this.#service.post('application/json', [body], {
      onAnswer: ({ body: answer, status }) => {
        ended();
        this.#record.bytesReceived += answer.length;
        if (status === OK) this.#answered(answer);
        else this.#events.onRefused(`it has answered with status ${status}`);
      },
      onFailure: (reason) => {
        ended();
        this.#events.onRefused(reason);
      },
    });
    if (call !== undefined) this.#calls.add(call);
  }

  // Each question has one answer.
  pause(): void {}
  resume(): void {}
  end(): void {}

  close(): void {
    for (const call of this.#calls) this.#service.cancel(call);
    this.#calls.clear();
  }

  #answered(answer: Buffer): void {
    let message: Uint8Array;
    try {
      message = encodeJson(prepareQuestions()[ANSWER], JSON.parse(answer.toString()) as object);
    } catch (error) {
      return this.#events.onRefused(`its answer is no ProcessingResponse: ${messageOf(error)}`);
    }
    this.#events.onAnswer(message);
  }
}

/** As in Envoy, fields have the names of the .proto file. */
function jsonOf(message: Uint8Array): string {
  const type = prepareQuestions()[QUESTION];
  const question = type.toObject(type.decode(message), { bytes: String }) as Question;
  const { attributes, metadata_context: metadata, ...rest } = question;
  return JSON.stringify({
    ...rest,
    metadata_context:
      metadata?.filter_metadata === undefined ? {} : { filter_metadata: plain(metadata.filter_metadata) },
    ...(attributes && { attributes: plain(attributes) }),
  });
}

function plain(structs: { readonly [namespace: string]: ProtoStruct }): object {
  return Object.fromEntries(Object.entries(structs).map(([name, struct]) => [name, filledStruct(struct) ?? {}]));
}

/** Loads the types of questions and answers, which takes long. */
export function prepareQuestions(): NonNullable<typeof types> {
  return (types ??= loadMessages(QUESTION, ANSWER));
}
