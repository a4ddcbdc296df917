// The common context of all clients of one Redis proxy on one worker.

import type { Clock, Memory, Random, Timers } from '../../../sdk.js';
import type { ClientMemory } from './client-memory.js';
import type { CommandKind } from './commands.js';
import type { ClientCredentials } from './credentials.js';
import type { ExternalAuth } from './external-auth.js';
import type { Faults } from './faults.js';
import type { Routes } from './routes.js';
import type { ProxyStats } from './stats.js';
import type { HostClients } from './upstream/host-clients.js';

export interface RedisProxyContext {
  readonly memory: Memory;
  readonly clientMemory: ClientMemory;
  readonly clock: Clock;
  readonly wheel: Timers;
  readonly random: Random;
  readonly kinds: ReadonlyMap<string, CommandKind>;
  readonly routes: Routes;
  readonly hosts: HostClients;
  readonly credentials: ClientCredentials;
  /** A service decides about clients, and not the credentials; undefined: there is none. */
  readonly externalAuth: ExternalAuth | undefined;
  /** Undefined: none. */
  readonly faults: Faults | undefined;
  readonly stats: ProxyStats;
  /** latency_in_micros. */
  readonly countsMicros: boolean;
  /** Clients and hosts use RESP3, after HELLO 3. */
  readonly usesResp3: boolean;
  /** enable_redirection. */
  readonly followsRedirections: boolean;
}
