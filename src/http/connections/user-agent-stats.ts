// Stats of connections from mobile clients: http.<stat_prefix>.user_agent.ios. and .android.
//
// As in Envoy, the first request of a connection determines the device type, stat names are created with the first such connection, and
// user-agent is matched case-sensitively.

import { headerKey } from '../../common/text/header-names.js';
import type { DynamicCounter, DynamicHistogram, ThreadStats } from '../../stats/thread-stats.js';
import type { HeaderBlock } from '../headers/header-block.js';

export class UserAgentStats {
  readonly #stats: ThreadStats;
  readonly #prefix: string;
  #ios: DeviceStats | undefined;
  #android: DeviceStats | undefined;

  /** `prefix`: `http.<stat_prefix>.` */
  constructor(stats: ThreadStats, prefix: string) {
    this.#stats = stats;
    this.#prefix = prefix;
  }

  /** Returns the stats for the client that sends these headers; undefined if its device type is not counted. */
  of(headers: HeaderBlock): DeviceStats | undefined {
    const index = headers.findValue(USER_AGENT);
    if (index < 0) return undefined;
    if (hasWord(headers, index, IOS)) return (this.#ios ??= this.#newDevice('ios'));
    if (hasWord(headers, index, ANDROID)) return (this.#android ??= this.#newDevice('android'));
    return undefined;
  }

  #newDevice(name: string): DeviceStats {
    return new DeviceStats(this.#stats, this.#prefix, `user_agent.${name}.`);
  }
}

/** The stats of one device type. */
export class DeviceStats {
  readonly connections: DynamicCounter;
  readonly requests: DynamicCounter;
  /** Connections that the client closed while requests were active. */
  readonly closedByPeer: DynamicCounter;
  readonly lengthMs: DynamicHistogram;

  constructor(stats: ThreadStats, prefix: string, group: string) {
    this.connections = stats.dynamicCounter(prefix, `${group}downstream_cx_total`);
    this.requests = stats.dynamicCounter(prefix, `${group}downstream_rq_total`);
    this.closedByPeer = stats.dynamicCounter(prefix, `${group}downstream_cx_destroy_remote_active_rq`);
    this.lengthMs = stats.dynamicHistogram(prefix, `${group}downstream_cx_length_ms`);
  }
}

const USER_AGENT = headerKey('user-agent');
const IOS = Buffer.from('iOS');
const ANDROID = Buffer.from('android');

function hasWord(headers: HeaderBlock, index: number, word: Uint8Array): boolean {
  const { bytes } = headers.memory;
  const last = headers.valueEnd(index) - word.length;
  for (let start = headers.valueStart(index); start <= last; start++) {
    let i = 0;
    while (i < word.length && bytes[start + i] === word[i]) i++;
    if (i === word.length) return true;
  }
  return false;
}
