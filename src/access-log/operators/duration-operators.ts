// %COMMON_DURATION(FROM:TO:PRECISION)% and operators for one duration.

import type { LogBuffer } from '../log-buffer.js';
import { type StreamInfo, UNSET } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import { NumberOperator, type Operator } from './operator.js';

type TimePoint = (info: StreamInfo) => number;

const TIME_POINTS: ReadonlyMap<string, TimePoint> = new Map<string, TimePoint>([
  ['DS_CX_BEG', (info) => info.connectionStartMs],
  ['DS_CX_END', (info) => info.connectionEndMs],
  ['DS_RX_BEG', (info) => info.startMonotonicMs],
  ['DS_RX_END', (info) => info.lastDownstreamRxMs],
  ['US_CX_BEG', (info) => info.upstreamConnectStartMs],
  ['US_CX_END', (info) => info.upstreamConnectEndMs],
  ['US_TX_BEG', (info) => info.firstUpstreamTxMs],
  ['US_TX_END', (info) => info.lastUpstreamTxMs],
  ['US_RX_BEG', (info) => info.firstUpstreamRxMs],
  ['US_RX_BODY_BEG', (info) => info.firstUpstreamBodyRxMs],
  ['US_RX_END', (info) => info.lastUpstreamRxMs],
  ['DS_TX_BEG', (info) => info.firstDownstreamTxMs],
  ['DS_TX_END', (info) => info.lastDownstreamTxMs],
]);
const PER_MILLISECOND: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['us', 1e3],
  ['ns', 1e6],
]);

/** Creates the operator. As in Envoy any other point is a name that a filter may set; no filter of this build does. */
export function commonDuration(parameter: string): Operator {
  const [from = '', to, precision = 'ms', ...rest] = parameter.split(':');
  const factor = PER_MILLISECOND.get(precision);
  if (to === undefined || factor === undefined || rest.length > 0) {
    throw operatorError(`operator %COMMON_DURATION% takes FROM:TO:PRECISION with ms, us or ns, not '${parameter}'`);
  }
  const begin = TIME_POINTS.get(from);
  const end = TIME_POINTS.get(to);
  if (begin === undefined || end === undefined) return new NumberOperator(() => UNSET);
  return new DurationOperator(begin, end, factor);
}

class DurationOperator implements Operator {
  readonly isNumber = true;
  readonly #begin: TimePoint;
  readonly #end: TimePoint;
  readonly #factor: number;

  constructor(begin: TimePoint, end: TimePoint, factor: number) {
    this.#begin = begin;
    this.#end = end;
    this.#factor = factor;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const duration = between(this.#begin(info), this.#end(info));
    if (duration < 0) return false;
    out.number(Math.floor(duration * this.#factor));
    return true;
  }
}

/** Returns the milliseconds between two points in time, or UNSET if one of them is not set. */
export function between(from: number, to: number): number {
  return from === UNSET || to === UNSET || to < from ? UNSET : to - from;
}
