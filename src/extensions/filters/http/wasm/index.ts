// envoy.filters.http.wasm: runs modules of the proxy-wasm ABI for requests and responses.

import type { WasmWasm as Wasm } from '../../../../config/generated/api.js';
import type { HttpFilter, HttpFilterExtension, HttpFilterFactory, StreamControl, WorkerContext } from '../../../sdk.js';
import { PLUGIN_FIELDS } from '../../../wasm/implemented.js';
import { checkPlugin } from '../../../wasm/plugin/check-plugin.js';
import type { PluginUse } from '../../../wasm/plugin/plugin-use.js';
import { readPlugin } from '../../../wasm/plugin/read-plugin.js';
import { wasmScopes } from '../../../wasm/stats.js';
import { usePlugin } from '../../../wasm/worker-vms.js';
import { FailedPlugin } from './failed-plugin.js';
import { HttpContext, type SharedByRequests } from './http-context.js';

const WASM = 'envoy.extensions.filters.http.wasm.v3.Wasm';

export const wasm: HttpFilterExtension<Wasm> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.wasm',
  typeUrls: [`type.googleapis.com/${WASM}`],
  implemented: { [WASM]: { config: true }, ...PLUGIN_FIELDS },
  validate: (config, report) => checkPlugin((config as Wasm).config, report),
  scopes: ({ config }) => wasmScopes(config?.name ?? ''),
  createOnPrimary(_config, context) {
    context.guardWorkers();
    return { close() {} };
  },
  createOnWorker: ({ config }, context, { bufferLimit }) =>
    new WasmChain(usePlugin(readPlugin(config!, 'config'), context), { memory: context.memory, bufferLimit }, context),
};

class WasmChain implements HttpFilterFactory {
  readonly #use: PluginUse;
  readonly #shared: SharedByRequests;
  readonly #clock: WorkerContext['clock'];

  constructor(use: PluginUse, shared: SharedByRequests, { clock }: WorkerContext) {
    this.#use = use;
    this.#shared = shared;
    this.#clock = clock;
  }

  create(stream: StreamControl): HttpFilter | undefined {
    const root = this.#use.acquire(this.#clock.monotonicMs);
    if (root !== undefined) return new HttpContext(this.#shared, this.#use, root, stream);
    return this.#use.plugin.failurePolicy === 'FAIL_OPEN' ? undefined : new FailedPlugin(stream);
  }

  close(): void {
    this.#use.release();
  }
}
