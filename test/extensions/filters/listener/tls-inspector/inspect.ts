// Calls a listener filter without a listener, and counts its stats.

import type { WorkerContext } from '../../../../../src/extensions/factories.js';
import type { DetectedProtocols } from '../../../../../src/io/tls/detected-protocols.js';
import type { ListenerFilter } from '../../../../../src/listener/listener-filter.js';
import type { Layout } from '../../../../../src/stats/layout.js';

/** What a filter has returned, detected and counted. */
export interface Inspected {
  result: number;
  detected: Partial<DetectedProtocols> | undefined;
  /** Counters that are not 0, and the samples of histograms. */
  stats: Record<string, number>;
}

/** @param detected what earlier filters have detected */
export function inspect(
  create: (context: WorkerContext) => ListenerFilter,
  bytes: Uint8Array,
  detected?: DetectedProtocols,
): Inspected {
  const stats: Record<string, number> = {};
  const scope = (_prefix: string, { at }: Layout) => {
    const nameOf = (slot: number) => Object.entries<number>(at).find(([, each]) => each === slot)![0];
    return {
      increment: (slot: number) => void (stats[nameOf(slot)] = (stats[nameOf(slot)] ?? 0) + 1),
      record: (slot: number, sample: number) => void (stats[nameOf(slot)] = sample),
    };
  };
  const filter = create({ scope } as unknown as WorkerContext);
  const connection = {
    remote: undefined as never,
    local: undefined as never,
    detected,
    originalDestination: () => undefined,
    detect() {
      this.detected ??= { transportProtocol: '', applicationProtocols: [], serverName: '', ja3: '', ja4: '' };
      return this.detected;
    },
  };
  return { result: filter.inspect(bytes, connection), detected: connection.detected, stats };
}
