// Loaded into Baton before itself (--import): a stats sink with a mistake, which its configuration names. It is configured by the message
// of the Wasm sink.

import type { Wasm } from '../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import type { StatsSinkExtension } from '../../../src/extensions/sdk.js';

const TYPE = 'envoy.extensions.stat_sinks.wasm.v3.Wasm';

const faulty: StatsSinkExtension<Wasm> = {
  category: 'envoy.stats_sinks',
  name: 'acme.faulty',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: { [TYPE]: { config: true }, 'envoy.extensions.wasm.v3.PluginConfig': { name: true } },
  async createOnPrimary({ config }) {
    return {
      // biome-ignore lint/correctness/useYield: the mistake comes first
      *flush() {
        if (config!.name === 'rejection') void Promise.reject(new TypeError('a promise is left behind'));
        else throw new TypeError('a mistake in flush()');
      },
      close: () => Promise.resolve(),
    };
  },
};

(EXTENSIONS as StatsSinkExtension[]).push(faulty as StatsSinkExtension);
