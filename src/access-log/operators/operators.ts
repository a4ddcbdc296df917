// The table of format operators: name, parameter and implementation.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { isFieldName } from '../../common/text/header-names.js';
import { didYouMean } from '../../common/text/suggest.js';
import type { LogBuffer } from '../log-buffer.js';
import { longFlags, shortFlags } from '../stream/response-flags.js';
import { PROTOCOL_NAMES, Protocol, type StreamInfo, UNSET } from '../stream/stream-info.js';
import { AddressOperator } from './address-operator.js';
import { operatorError } from './format-error.js';
import { HeaderOperator, type HeadName } from './header-operator.js';
import { type HeaderNeeds, Literal, NumberOperator, type Operator, TextOperator } from './operator.js';
import { type ReplyBody, ReplyBodyOperator } from './reply-body-operator.js';
import { FormattedTimeOperator, IsoTimeOperator } from './time-operator.js';
import { isUnimplementedOperator } from './unimplemented-operators.js';

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
}

/** Creates the operator for a call and adds the headers that it reads to `needs`. Throws a BatonError for an invalid call. */
export function createOperator(call: OperatorCall, needs: HeaderNeeds): Operator {
  const entry = call.name === LOCAL_REPLY_BODY ? REPLY_BODY : OPERATORS.get(call.name);
  if (entry === undefined) throw operatorError(missing(call.name));
  if (entry.parameter === 'none' && call.parameter !== undefined)
    throw operatorError(`operator %${call.name}% takes no parameter`);
  if (entry.parameter === 'required' && (call.parameter ?? '') === '')
    throw operatorError(`operator %${call.name}% needs a parameter`);
  if (!entry.length && call.maxLength !== undefined) throw operatorError(`operator %${call.name}% takes no length`);
  return entry.create(call, needs);
}

function missing(name: string): string {
  return isUnimplementedOperator(name)
    ? `operator %${name}% is not implemented in Baton`
    : `unknown operator %${name}%${didYouMean(name, OPERATORS.keys())}`;
}

/** Returns the names of the operators that are available in every format. */
export function operatorNames(): string[] {
  return [...OPERATORS.keys()];
}

interface Entry {
  parameter: 'none' | 'optional' | 'required';
  length: boolean;
  create(call: OperatorCall, needs: HeaderNeeds): Operator;
}

const LOCAL_REPLY_BODY = 'LOCAL_REPLY_BODY';
/** Formats of other places do not have the text. */
const NO_REPLY_BODY: ReplyBody = { text: '' };
const REPLY_BODY: Entry = {
  parameter: 'none',
  length: false,
  create({ replyBody }) {
    return new ReplyBodyOperator(replyBody ?? NO_REPLY_BODY);
  },
};

const OPERATORS: ReadonlyMap<string, Entry> = new Map<string, Entry>([
  ['START_TIME', time('utc')],
  ['START_TIME_LOCAL', time('local')],
  ['REQ', header('request')],
  ['REQUEST_HEADER', header('request')],
  ['REQ_WITHOUT_QUERY', header('request', true)],
  ['RESP', header('response')],
  ['RESPONSE_HEADER', header('response')],
  ['TRAILER', header('trailers')],
  ['RESPONSE_TRAILER', header('trailers')],
  ['PROTOCOL', text((info) => PROTOCOL_NAMES[info.protocol]!)],
  ['UPSTREAM_PROTOCOL', text((info) => PROTOCOL_NAMES[info.upstreamProtocol]!)],
  ['RESPONSE_CODE', number((info) => info.responseCode)],
  ['RESPONSE_CODE_DETAILS', responseCodeDetails()],
  ['RESPONSE_FLAGS', { parameter: 'none', length: false, create: () => new FlagsOperator(shortFlags) }],
  ['RESPONSE_FLAGS_LONG', { parameter: 'none', length: false, create: () => new FlagsOperator(longFlags) }],
  ['BYTES_RECEIVED', number((info) => info.bytesReceived)],
  ['BYTES_SENT', number((info) => info.bytesSent)],
  ['DURATION', number((info) => info.durationMs)],
  ['REQUEST_DURATION', number((info) => between(info.startMonotonicMs, info.lastDownstreamRxMs))],
  ['REQUEST_TX_DURATION', number((info) => between(info.startMonotonicMs, info.lastUpstreamTxMs))],
  ['RESPONSE_DURATION', number((info) => between(info.startMonotonicMs, info.firstUpstreamRxMs))],
  ['RESPONSE_TX_DURATION', number((info) => between(info.firstUpstreamRxMs, info.lastDownstreamTxMs))],
  ['COMMON_DURATION', commonDuration()],
  ['UPSTREAM_HOST', text((info) => info.upstreamHost)],
  ['UPSTREAM_CLUSTER', text((info) => info.upstreamCluster?.observabilityName ?? '')],
  ['UPSTREAM_CLUSTER_RAW', text((info) => info.upstreamCluster?.name ?? '')],
  ...address('UPSTREAM_LOCAL', (info) => info.upstreamLocalAddress),
  ...address('UPSTREAM_REMOTE', (info) => info.upstreamRemoteAddress),
  ['UPSTREAM_REQUEST_ATTEMPT_COUNT', number((info) => info.attemptCount)],
  ['UPSTREAM_TRANSPORT_FAILURE_REASON', text((info) => oneWord(info.upstreamTransportFailureReason))],
  ...address('DOWNSTREAM_REMOTE', (info) => info.downstreamRemoteAddress),
  ...address('DOWNSTREAM_DIRECT_REMOTE', (info) => info.downstreamDirectRemoteAddress),
  ...address('DOWNSTREAM_LOCAL', (info) => info.downstreamLocalAddress),
  ...address('DOWNSTREAM_DIRECT_LOCAL', (info) => info.downstreamDirectLocalAddress),
  ['CONNECTION_ID', number((info) => info.connectionId)],
  ['CONNECTION_TERMINATION_DETAILS', text((info) => info.connectionTerminationDetails)],
  ['REQUESTED_SERVER_NAME', text((info) => info.requestedServerName)],
  ['ROUTE_NAME', text((info) => info.routeName)],
  ['VIRTUAL_HOST_NAME', text((info) => info.virtualHostName)],
  ['STREAM_ID', streamId()],
  ['HOSTNAME', { parameter: 'none', length: false, create: () => new Literal(hostname() || '-') }],
  ['ENVIRONMENT', environment()],
]);

function text(get: (info: StreamInfo) => string): Entry {
  return { parameter: 'none', length: false, create: () => new TextOperator(get) };
}

function number(get: (info: StreamInfo) => number): Entry {
  return { parameter: 'none', length: false, create: () => new NumberOperator(get) };
}

function header(head: HeadName, withoutQuery = false): Entry {
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
function streamId(): Entry {
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

function time(zone: 'utc' | 'local'): Entry {
  return {
    parameter: 'optional',
    length: false,
    create: ({ parameter }) =>
      parameter === undefined || parameter === ''
        ? new IsoTimeOperator(zone)
        : new FormattedTimeOperator(parameter, zone),
  };
}

/** Returns the operators NAME_ADDRESS, NAME_ADDRESS_WITHOUT_PORT and NAME_PORT. */
function address(name: string, get: (info: StreamInfo) => string): [string, Entry][] {
  const part = (which: 'host' | 'port'): Entry => ({
    parameter: 'none',
    length: false,
    create: () => new AddressOperator(get, which),
  });
  return [
    [`${name}_ADDRESS`, text(get)],
    [`${name}_ADDRESS_WITHOUT_PORT`, part('host')],
    [`${name}_PORT`, part('port')],
  ];
}

function responseCodeDetails(): Entry {
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
function oneWord(text: string): string {
  return text.includes(' ') ? text.replaceAll(' ', '_') : text;
}

/** Points in time for %COMMON_DURATION(FROM:TO:ms)%. */
const TIME_POINTS: ReadonlyMap<string, (info: StreamInfo) => number> = new Map([
  ['DS_RX_BEG', (info: StreamInfo) => info.startMonotonicMs],
  ['DS_RX_END', (info: StreamInfo) => info.lastDownstreamRxMs],
  ['US_TX_BEG', (info: StreamInfo) => info.firstUpstreamTxMs],
  ['US_TX_END', (info: StreamInfo) => info.lastUpstreamTxMs],
  ['US_RX_BEG', (info: StreamInfo) => info.firstUpstreamRxMs],
  ['US_RX_END', (info: StreamInfo) => info.lastUpstreamRxMs],
  ['DS_TX_BEG', (info: StreamInfo) => info.firstDownstreamTxMs],
  ['DS_TX_END', (info: StreamInfo) => info.lastDownstreamTxMs],
]);
const PER_MILLISECOND: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['us', 1e3],
  ['ns', 1e6],
]);

function commonDuration(): Entry {
  return {
    parameter: 'required',
    length: false,
    create({ name, parameter }) {
      const [from = '', to = '', precision = 'ms', ...rest] = parameter!.split(':');
      const begin = TIME_POINTS.get(from);
      const end = TIME_POINTS.get(to);
      const factor = PER_MILLISECOND.get(precision);
      if (begin === undefined || end === undefined || factor === undefined || rest.length > 0) {
        throw operatorError(
          `operator %${name}% takes FROM:TO:PRECISION of ${[...TIME_POINTS.keys()].join(' ')} and ms, us or ns, not '${parameter}'`,
        );
      }
      return new NumberOperator((info) => {
        const duration = between(begin(info), end(info));
        return duration < 0 ? duration : duration * factor;
      });
    },
  };
}

function environment(): Entry {
  return {
    parameter: 'required',
    length: true,
    create({ name, parameter, maxLength, isInHeader }) {
      const value = (process.env[parameter!] ?? '-').slice(0, maxLength);
      if (isInHeader && /[\r\n]/.test(value)) {
        throw operatorError(
          `operator %${name}(${parameter})% has a value with a line break, which no header can contain`,
        );
      }
      return new Literal(value);
    },
  };
}

/** Returns the milliseconds between two points in time, or UNSET if one of them is not set. */
function between(from: number, to: number): number {
  return from === UNSET || to < from ? UNSET : to - from;
}

/** Writes flags as text. The last text is cached, because most streams have none or the same as the previous stream. */
class FlagsOperator implements Operator {
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
