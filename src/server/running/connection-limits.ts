// The limit of the connections of the whole process, on the primary: set by the overload manager for listeners, or by runtime.

import { CONNECTION_MONITOR, monitoredConnections } from '../../config/fields/connection-monitor.js';
import type { Bootstrap } from '../../config/generated/api.js';
import { ConnectionLimit, GLOBAL_CONNECTION_LIMIT, UNLIMITED } from '../../listener/connection-limit.js';
import { getLogger } from '../../log/logger.js';
import type { Runtime } from '../../runtime/runtime.js';
import { overloadPrefix, ResourceStats } from '../../stats/layouts/overload.js';
import { PRIMARY, SharedWords } from '../../upstream/shared-words.js';
import type { Primary } from '../primary.js';

const logger = getLogger('runtime');

export class ConnectionLimits {
  readonly #primary: Primary;
  readonly #runtime: Runtime;
  readonly #isMonitored: boolean;
  #ofPrimary: ConnectionLimit | undefined;
  #hasWarned = false;

  constructor(primary: Primary, runtime: Runtime, bootstrap: Bootstrap) {
    this.#primary = primary;
    this.#runtime = runtime;
    this.#isMonitored = monitoredConnections(bootstrap) !== undefined;
    if (this.#isMonitored) primary.scopes.add(overloadPrefix(CONNECTION_MONITOR), ResourceStats);
    this.#warn();
  }

  /** Called when runtime may have changed. */
  update(): void {
    this.#ofPrimary?.update();
    this.#warn();
  }

  /**
   * The limit for connections that the primary accepts. As in Envoy, the overload manager does not count these: only runtime
   * does.
   */
  get ofPrimary(): ConnectionLimit {
    this.#ofPrimary ??= this.#create();
    return this.#ofPrimary;
  }

  #create(): ConnectionLimit {
    const { listenersBlock, words } = this.#primary;
    const block = this.#isMonitored ? words.allocateListener() : listenersBlock;
    const limit = this.#runtime.integer(GLOBAL_CONNECTION_LIMIT, UNLIMITED);
    return new ConnectionLimit(new SharedWords(words.handle(PRIMARY)), block, limit);
  }

  #warn(): void {
    if (!this.#isMonitored || this.#hasWarned || this.#runtime.get(GLOBAL_CONNECTION_LIMIT) === undefined) return;
    this.#hasWarned = true;
    logger.warning(
      `overload_manager limits the connections of listeners: the runtime key '${GLOBAL_CONNECTION_LIMIT}' counts for the admin interface alone`,
    );
  }
}
