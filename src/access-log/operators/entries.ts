// Entries of the table of operators: which parameter and length an operator takes, and how it is created.

import { randomUUID } from 'node:crypto';
import { isFieldName } from '../../common/text/header-names.js';
import type { CelExpressionConfig } from '../../config/generated/api.js';
import { endpointIdOf } from '../../io/addresses/address.js';
import type { LogBuffer } from '../log-buffer.js';
import { type CloseType, Protocol, type StreamInfo } from '../stream/stream-info.js';
import { AddressOperator } from './address-operator.js';
import { HeadersBytesOperator } from './bytes-operators.js';
import { celOperator } from './cel-operator.js';
import { filterStateOperator } from './filter-state-operator.js';
import { operatorError } from './format-error.js';
import { HeaderOperator, type HeadName } from './header-operator.js';
import { metadataOfType } from './metadata-operator.js';
import { type HeaderNeeds, Literal, NumberOperator, type Operator, TextOperator } from './operator.js';
import type { ReplyBody } from './reply-body-operator.js';
import { FormattedTimeOperator, type GetTime, IsoTimeOperator } from './time-operator.js';

/** An operator as written in a format: %NAME(parameter):maxLength%. */
export interface OperatorCall {
  name: string;
  /** The text between the brackets; undefined without brackets. */
  parameter: string | undefined;
  /** The number after the colon. */
  maxLength: number | undefined;
  /** The format's output is a header value. */
  isInHeader: boolean;
  /** Set in a format of local replies: their text. */
  replyBody?: ReplyBody | undefined;
  /** Functions of %CEL()% and %TYPED_CEL()%. */
  cel?: CelExpressionConfig | undefined;
}

/** An operator of the table. */
export interface Entry {
  parameter: 'none' | 'optional' | 'required';
  length: boolean;
  create(call: OperatorCall, needs: HeaderNeeds): Operator;
}

const BYTE_KINDS = {
  received: ['WIRE_BYTES_RECEIVED'],
  sent: ['WIRE_BYTES_SENT'],
  headersReceived: ['HEADER_BYTES_RECEIVED', 'DECOMPRESSED_HEADER_BYTES_RECEIVED'],
  headersSent: ['HEADER_BYTES_SENT', 'DECOMPRESSED_HEADER_BYTES_SENT'],
};

export function text(get: (info: StreamInfo) => string): Entry {
  return { parameter: 'none', length: false, create: () => new TextOperator(get) };
}

export function number(get: (info: StreamInfo) => number): Entry {
  return { parameter: 'none', length: false, create: () => new NumberOperator(get) };
}

export function header(head: HeadName, withoutQuery = false): Entry {
  return {
    parameter: 'required',
    length: true,
    create({ name, parameter, maxLength, isInHeader }, needs) {
      const names = parameter!.split('?');
      if (names.length > 2)
        throw operatorError(`operator %${name}% takes one alternative header, not ${names.length - 1}`);
      for (const header of names) {
        if (!isFieldName(header.replace(/^:/, '')))
          throw operatorError(`operator %${name}% names an invalid header '${header}'`);
        needs[head].add(header.toLowerCase());
      }
      return new HeaderOperator({ head, names, maxBytes: maxLength, withoutQuery, isInHeader });
    },
  };
}

/** The stream ID is the x-request-id. That of a TCP connection is a UUID, made when it is first logged. */
export function streamId(): Entry {
  const byHeader = header('request');
  return {
    parameter: 'none',
    length: false,
    create: (call, needs) => new StreamIdOperator(byHeader.create({ ...call, parameter: 'x-request-id' }, needs)),
  };
}

class StreamIdOperator implements Operator {
  readonly isNumber = false;
  readonly #header: Operator;

  constructor(header: Operator) {
    this.#header = header;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    if (info.protocol !== Protocol.None || info.requestHeaders !== undefined) return this.#header.write(info, out);
    info.streamId ||= randomUUID();
    out.text(info.streamId);
    return true;
  }
}

export function time(get: GetTime, zone: 'utc' | 'local'): Entry {
  return withParameter('optional', false, ({ parameter }) =>
    parameter === undefined || parameter === ''
      ? new IsoTimeOperator(get, zone)
      : new FormattedTimeOperator(get, parameter, zone),
  );
}

export function withParameter(parameter: Entry['parameter'], length: boolean, create: Entry['create']): Entry {
  return { parameter, length, create };
}

export function metadata(type: string, length: boolean): Entry {
  return withParameter('required', length, ({ parameter, maxLength }) => metadataOfType(type, parameter!, maxLength));
}

export function expression(isTyped: boolean): Entry {
  return withParameter('required', true, ({ cel, maxLength, name, parameter }, needs) =>
    celOperator({ name, parameter: parameter!, maxLength }, isTyped, cel, needs),
  );
}

export function filterState(isUpstream: boolean): Entry {
  return withParameter('required', true, ({ name, parameter, maxLength }) =>
    filterStateOperator(name, parameter!, maxLength, isUpstream),
  );
}

export function headersBytes(head: HeadName): Entry {
  return withParameter('none', false, (_call, needs) => new HeadersBytesOperator(head, needs));
}

/** Returns the operators of one side for bytes on the wire. HTTP/1.1 does not compress headers. */
export function wireBytes(
  side: string,
  bytes: { readonly [kind in keyof typeof BYTE_KINDS]: (info: StreamInfo) => number },
): [string, Entry][] {
  return (Object.keys(BYTE_KINDS) as (keyof typeof BYTE_KINDS)[]).flatMap((kind) =>
    BYTE_KINDS[kind].map((name): [string, Entry] => [
      `${side}_${name}`,
      withParameter('none', false, (_call, needs) => {
        needs.wireBytes = true;
        return new NumberOperator(bytes[kind]);
      }),
    ]),
  );
}

/** Only internal addresses have an endpoint ID: that of others is an empty text. */
export function endpointId(get: (info: StreamInfo) => string): Entry {
  return withParameter('none', false, () => new EndpointIdOperator(get));
}

class EndpointIdOperator implements Operator {
  readonly isNumber = false;
  readonly #get: (info: StreamInfo) => string;

  constructor(get: (info: StreamInfo) => string) {
    this.#get = get;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const address = this.#get(info);
    out.text(endpointIdOf(address));
    return address !== '';
  }
}

const CLOSE_TYPES = ['Normal', 'LocalReset', 'RemoteReset'];

export function closeTypeText(type: CloseType): string {
  return CLOSE_TYPES[type]!;
}

/** Returns the operators NAME_ADDRESS, NAME_ADDRESS_WITHOUT_PORT and NAME_PORT. */
export function address(name: string, get: (info: StreamInfo) => string): [string, Entry][] {
  return [
    [`${name}_ADDRESS`, text(get)],
    [
      `${name}_ADDRESS_WITHOUT_PORT`,
      withParameter('optional', false, (call) => new AddressOperator(get, 'host', maskBits(call))),
    ],
    [`${name}_PORT`, withParameter('none', false, () => new AddressOperator(get, 'port'))],
  ];
}

/** Returns the number of significant bits; undefined without a parameter. */
export function maskBits({ name, parameter }: OperatorCall): number | undefined {
  if (parameter === undefined || parameter === '') return undefined;
  const bits = Number(parameter);
  if (/^[0-9]{1,3}$/.test(parameter) && bits <= 128) return bits;
  throw operatorError(`operator %${name}% takes a number of bits, at most 128, not '${parameter}'`);
}

export function responseCodeDetails(): Entry {
  return {
    parameter: 'optional',
    length: false,
    create({ name, parameter }) {
      if (parameter === undefined || parameter === '')
        return new TextOperator((info) => oneWord(info.responseCodeDetails));
      if (parameter === 'ALLOW_WHITESPACES') return new TextOperator((info) => info.responseCodeDetails);
      throw operatorError(`operator %${name}% takes ALLOW_WHITESPACES, not '${parameter}'`);
    },
  };
}

/** Replaces spaces, so that a line can be split at its spaces. */
export function oneWord(text: string): string {
  return text.includes(' ') ? text.replaceAll(' ', '_') : text;
}

export function environment(): Entry {
  return {
    parameter: 'required',
    length: true,
    create({ name, parameter, maxLength, isInHeader }) {
      const value = process.env[parameter!]?.slice(0, maxLength) ?? '-';
      if (isInHeader && /[\r\n]/.test(value)) {
        throw operatorError(
          `operator %${name}(${parameter})% has a value with a line break, which no header can contain`,
        );
      }
      return new Literal(value);
    },
  };
}

/** Writes flags as text. The last text is cached, because most streams have none or the same as the previous stream. */
export class FlagsOperator implements Operator {
  readonly isNumber = false;
  readonly #format: (flags: number) => string;
  #flags = 0;
  #text = '-';

  constructor(format: (flags: number) => string) {
    this.#format = format;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    if (info.responseFlags !== this.#flags) {
      this.#flags = info.responseFlags;
      this.#text = this.#format(this.#flags);
    }
    out.text(this.#text);
    return true;
  }
}
