// The answers of a processor (envoy.service.ext_proc.v3.ProcessingResponse).

import { loadMessages } from '../../../grpc-sdk.js';
import type { ProtoStruct } from '../../../messages/proto-struct.js';

const MESSAGE = 'envoy.service.ext_proc.v3.ProcessingResponse';

/** A decoded answer, with the API's names. */
export interface Answer {
  readonly request_headers?: PartAnswer;
  readonly response_headers?: PartAnswer;
  readonly request_body?: PartAnswer;
  readonly response_body?: PartAnswer;
  readonly request_trailers?: TrailersAnswer;
  readonly response_trailers?: TrailersAnswer;
  readonly immediate_response?: ImmediateResponse;
  readonly dynamic_metadata?: ProtoStruct;
  readonly mode_override?: ModeOverride;
  readonly override_message_timeout?: { readonly seconds?: number; readonly nanos?: number };
}

/** HeadersResponse or BodyResponse. */
export interface PartAnswer {
  readonly response?: CommonResponse;
}

export interface TrailersAnswer {
  readonly header_mutation?: HeaderMutation;
}

export interface CommonResponse {
  /** 1: CONTINUE_AND_REPLACE. */
  readonly status?: number;
  readonly header_mutation?: HeaderMutation;
  readonly body_mutation?: BodyMutation;
  readonly clear_route_cache?: boolean;
}

export interface BodyMutation {
  readonly body?: Uint8Array;
  readonly clear_body?: boolean;
  readonly streamed_response?: { readonly body?: Uint8Array; readonly end_of_stream?: boolean };
}

export interface HeaderMutation {
  readonly set_headers?: readonly HeaderOption[];
  readonly remove_headers?: readonly string[];
}

export interface HeaderOption {
  readonly header?: { readonly key?: string; readonly raw_value?: Uint8Array };
  /** The deprecated google.protobuf.BoolValue. */
  readonly append?: { readonly value?: boolean };
}

export interface ImmediateResponse {
  readonly status?: { readonly code?: number };
  readonly headers?: HeaderMutation;
  readonly body?: Uint8Array;
  readonly grpc_status?: { readonly status?: number };
  readonly details?: string;
}

/** A ProcessingMode with the numbers of its values. */
export interface ModeOverride {
  readonly request_header_mode?: number;
  readonly response_header_mode?: number;
  readonly request_body_mode?: number;
  readonly response_body_mode?: number;
  readonly request_trailer_mode?: number;
  readonly response_trailer_mode?: number;
}

let type: ReturnType<typeof loadMessages>[string] | undefined;

/** Decodes an answer. Throws if the bytes are not one. */
export function decodeAnswer(message: Uint8Array): Answer {
  const answer = prepareAnswers();
  return answer.toObject(answer.decode(message), { longs: Number }) as Answer;
}

/** Loads the type of answers, which takes long. */
export function prepareAnswers(): NonNullable<typeof type> {
  return (type ??= loadMessages(MESSAGE)[MESSAGE]);
}
