// What filters of listeners have on the primary: made with the listeners, closed with the server.

import type { Listener } from '../../config/generated/api.js';
import type { PostEndpoint, PrimaryFilterContext, PrimaryPart } from '../../extensions/factories.js';
import type { ExtensionRegistry } from '../../extensions/registry.js';
import { checkMessage } from '../admin/check-message.js';
import type { PrimaryPorts } from '../workers/primary-ports.js';

export class FilterParts {
  readonly #context: PrimaryFilterContext;
  #parts: PrimaryPart[] = [];

  /** @param serve adds an endpoint to the admin interface; what it returns removes it */
  constructor(extensions: ExtensionRegistry, ports: PrimaryPorts, serve: (endpoint: PostEndpoint) => () => void) {
    this.#context = { extensions, serve, checkMessage, port: (name) => ports.port(name) };
  }

  create(listeners: readonly Listener[]): void {
    const chains = listeners.flatMap((listener) => listener.filter_chains ?? []);
    for (const filter of chains.flatMap((chain) => chain.filters ?? [])) {
      const config = filter.typed_config!;
      const extension = this.#context.extensions.networkFilter(config);
      this.#parts.push(...(extension.createOnPrimary?.(config, this.#context) ?? []));
    }
  }

  close(): void {
    for (const part of this.#parts) part.close();
    this.#parts = [];
  }
}
