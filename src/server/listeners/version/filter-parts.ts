// The parts of listeners' filters on the primary. They are created with a filter chain, and closed with it.

import { callExtension } from '../../../common/errors/defects.js';
import { namedScripts } from '../../../config/fields/scripts.js';
import type { AccessLog, FilterChain } from '../../../config/generated/api.js';
import type { PostEndpoint, PrimaryFilterContext, PrimaryPart } from '../../../extensions/factories.js';
import { closePart } from '../../../extensions/primary-part.js';
import type { ExtensionRegistry } from '../../../extensions/registry.js';
import { checkMessage } from '../../configuration/check-message.js';
import type { InitManager } from '../../init/init-manager.js';
import type { PrimaryPorts } from '../../workers/primary-ports.js';

export class FilterParts {
  readonly #context: Omit<PrimaryFilterContext, 'waitFor'>;
  readonly #open = new Set<PrimaryPart>();

  /** @param serve adds an admin endpoint, and returns a function that removes it */
  constructor(
    extensions: ExtensionRegistry,
    ports: PrimaryPorts,
    serve: (endpoint: PostEndpoint) => () => void,
    running: Pick<PrimaryFilterContext, 'routes' | 'filterConfigs' | 'scripts' | 'secrets' | 'guardWorkers'>,
  ) {
    this.#context = { extensions, serve, checkMessage, port: (name) => ports.port(name), ...running };
  }

  /**
   * Creates the parts of one chain, to be closed when no worker has the chain any more. `init` waits for their targets. Throws
   * BatonError, with nothing left open, when a filter cannot be used as configured.
   */
  create(chain: FilterChain, init: InitManager): PrimaryPart {
    const context: PrimaryFilterContext = { ...this.#context, waitFor: (name, isLocal) => init.add(name, isLocal) };
    const parts: { part: PrimaryPart; extension: string }[] = [];
    const all: PrimaryPart = {
      close: () => {
        if (this.#open.delete(all)) for (const { part, extension } of parts) closePart(part, extension);
      },
      prepareRoutes: (config) => {
        const changes = parts.flatMap(({ part }) => part.prepareRoutes?.(config) ?? []);
        return () => {
          for (const change of changes) change();
        };
      },
    };
    this.#open.add(all);
    try {
      for (const { typed_config: config } of chain.filters ?? []) {
        const extension = context.extensions.networkFilter(config!);
        const own = callExtension('createOnPrimary', extension.name, () =>
          extension.createOnPrimary?.(config!, context),
        );
        parts.push(...(own ?? []).map((part) => ({ part, extension: extension.name })));
      }
      parts.push(...this.#loggerParts(chain));
    } catch (error) {
      all.close();
      throw error;
    }
    return all;
  }

  /** Creates the parts of access loggers outside of chains. Throws BatonError when one cannot be used as configured. */
  createForLogs(logs: readonly AccessLog[]): PrimaryPart {
    const parts = this.#loggerParts(logs);
    const all: PrimaryPart = {
      close: () => {
        if (this.#open.delete(all)) for (const { part, extension } of parts) closePart(part, extension);
      },
    };
    this.#open.add(all);
    return all;
  }

  /** Access loggers have no parts of their own, except those in TypeScript. */
  #loggerParts(config: unknown): { readonly part: PrimaryPart; readonly extension: string }[] {
    const loggers = namedScripts(config).filter(({ kind }) => kind === 'access logger');
    return loggers.map(({ config: own, kind, module }) => ({
      part: this.#context.scripts.use(module, kind, own),
      extension: module,
    }));
  }

  /** Closes the parts of all remaining chains. */
  close(): void {
    for (const part of this.#open) part.close();
  }
}
