// The access logs of a TCP proxy: a record at the end of each connection and, with access_log_options, others before.

import type { AccessLogger } from '../../../../access-log/access-logger.js';
import { StreamBytes } from '../../../../access-log/stream/stream-bytes.js';
import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { durationMs } from '../../../../common/time/duration.js';
import type { TcpProxy as TcpProxyConfig } from '../../../../config/generated/api.js';
import type { Clock } from '../../../../io/time/clock.js';
import { Timer, type TimingWheel } from '../../../../io/time/timing-wheel.js';
import type { WorkerContext } from '../../../factories.js';
import { createAccessLoggers } from '../../../registry.js';

type RecordType = 'TcpConnectionStart' | 'TcpUpstreamConnected' | 'TcpPeriodic' | 'TcpConnectionEnd';

export interface ProxyLogs {
  readonly start: readonly AccessLogger[];
  readonly connected: readonly AccessLogger[];
  readonly periodic: readonly AccessLogger[];
  readonly end: readonly AccessLogger[];
  /** 0: no periodic records. */
  readonly intervalMs: number;
}

export function createProxyLogs(config: TcpProxyConfig, context: WorkerContext): ProxyLogs {
  const { access_log: logs, access_log_options: options } = config;
  const interval = options?.access_log_flush_interval ?? config.access_log_flush_interval;
  const logsConnected = options?.flush_access_log_on_connected ?? config.flush_access_log_on_connected ?? false;
  const create = (isUsed: boolean, type: RecordType) => (isUsed ? createAccessLoggers(logs, type, context) : []);
  return {
    start: create(options?.flush_access_log_on_start ?? false, 'TcpConnectionStart'),
    connected: create(logsConnected, 'TcpUpstreamConnected'),
    periodic: create(interval !== undefined, 'TcpPeriodic'),
    end: create(true, 'TcpConnectionEnd'),
    intervalMs: interval === undefined ? 0 : durationMs(interval),
  };
}

export function closeProxyLogs({ connected, end, periodic, start }: ProxyLogs): void {
  for (const log of [...start, ...connected, ...periodic, ...end]) log.close();
}

/** Logs the state of a connection. `isTunnel`: the bytes of the requests to hosts are counted by their connections. */
export function logConnection(
  logs: readonly AccessLogger[],
  type: RecordType,
  info: StreamInfo,
  clock: Clock,
  isTunnel: boolean,
): void {
  info.durationMs = clock.monotonicMs - info.startMonotonicMs;
  info.accessLogType = type;
  const bytes = (info.downstreamBytes = new StreamBytes());
  bytes.received = info.bytesReceived;
  bytes.sent = info.bytesSent;
  if (!isTunnel) {
    info.upstreamBytes.sent = info.bytesReceived;
    info.upstreamBytes.received = info.bytesSent;
  }
  for (const logger of logs) logger.log(info);
}

/** Calls `log` regularly until stop(). */
export class PeriodicLog {
  readonly #wheel: TimingWheel;
  readonly #intervalMs: number;
  readonly #log: () => void;
  readonly #timer = new Timer<PeriodicLog>(this, (each) => each.#fired());

  constructor(wheel: TimingWheel, intervalMs: number, log: () => void) {
    this.#wheel = wheel;
    this.#intervalMs = intervalMs;
    this.#log = log;
    wheel.schedule(this.#timer, intervalMs);
  }

  stop(): void {
    this.#wheel.cancel(this.#timer);
  }

  #fired(): void {
    this.#wheel.schedule(this.#timer, this.#intervalMs);
    this.#log();
  }
}
