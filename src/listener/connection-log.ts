// The access log of a listener: one record for each connection when it ends, and for each socket that gets no connection.

import type { AccessLogger } from '../access-log/access-logger.js';
import { ResponseFlag } from '../access-log/stream/response-flags.js';
import { StreamInfo } from '../access-log/stream/stream-info.js';
import { addressText } from '../io/addresses/address.js';
import type { Clock } from '../io/time/clock.js';
import type { DownstreamConnection, OwnerLog } from './downstream-connection.js';
import type { ConnectionProperties } from './network-filter.js';

export class ConnectionLog implements OwnerLog {
  readonly #loggers: readonly AccessLogger[];
  readonly #clock: Clock;

  /** @param loggers at least one */
  constructor(loggers: readonly AccessLogger[], clock: Clock) {
    this.#loggers = loggers;
    this.#clock = clock;
  }

  begin(connection: DownstreamConnection): StreamInfo {
    const info = this.#infoFrom(connection.startMonotonicMs);
    info.downstream = connection;
    if (connection.dynamicMetadata !== undefined) info.shareDynamicMetadata(connection.dynamicMetadata);
    info.chain = connection.chain.names;
    info.connectionId = connection.serial;
    info.connectionStartMs = connection.startMonotonicMs;
    return info;
  }

  ended({ info, startMonotonicMs, terminationDetails }: DownstreamConnection): void {
    if (info === undefined) return;
    info.connectionTerminationDetails ||= terminationDetails;
    info.connectionEndMs = this.#clock.monotonicMs;
    info.durationMs = this.#clock.monotonicMs - startMonotonicMs;
    this.#log(info);
  }

  /** Logs a socket that matches no filter chain. */
  unmatched(socket: ConnectionProperties, startMonotonicMs = this.#clock.monotonicMs): void {
    const info = this.#socketInfo(socket, startMonotonicMs);
    info.responseFlags = ResponseFlag.NoRouteFound;
    info.responseCodeDetails = 'filter_chain_not_found';
    this.#log(info);
  }

  /** Logs a socket that listener filters have dropped. */
  dropped(socket: ConnectionProperties, startMonotonicMs: number): void {
    this.#log(this.#socketInfo(socket, startMonotonicMs));
  }

  close(): void {
    for (const logger of this.#loggers) logger.close();
  }

  #socketInfo({ detected, direct, local, remote }: ConnectionProperties, startMonotonicMs: number): StreamInfo {
    const info = this.#infoFrom(startMonotonicMs);
    const localText = addressText(local);
    info.downstream = {
      remoteText: addressText(remote),
      directRemoteText: addressText(direct),
      localText,
      directLocalText: localText,
      security: undefined,
      transportFailure: '',
      detected,
    };
    info.connectionStartMs = startMonotonicMs;
    info.durationMs = this.#clock.monotonicMs - startMonotonicMs;
    return info;
  }

  #infoFrom(startMonotonicMs: number): StreamInfo {
    const { monotonicMs, realtimeMs } = this.#clock;
    const info = new StreamInfo();
    info.reset(realtimeMs - (monotonicMs - startMonotonicMs), startMonotonicMs);
    return info;
  }

  #log(info: StreamInfo): void {
    info.accessLogType = 'NotSet';
    for (const logger of this.#loggers) logger.log(info);
  }
}
