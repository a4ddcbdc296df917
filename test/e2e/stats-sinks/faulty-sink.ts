// Loaded into Baton before its own code (--import): a stats sink with the mistake that its configuration names. It is
// configured by the message of the Wasm sink.

import type { Wasm } from '../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import { getLogger, HttpCall, headerKey, Method, type StatsSinkExtension } from '../../../src/extensions/sdk.js';
import { partialTable } from '../../config/partial-table.js';

const TYPE = 'envoy.extensions.stat_sinks.wasm.v3.Wasm';

const logger = getLogger('testing');
const HOST = headerKey('host');

const REQUEST: Parameters<typeof HttpCall.start>[2] = {
  timeoutMs: 10_000,
  body: [],
  writeHead(head) {
    head.setMethod(Method.Get, 'GET');
    head.setPath('/');
    head.add(HOST, 'host');
  },
};

const EVENTS: Parameters<typeof HttpCall.start>[3] = {
  onAnswer() {
    throw new TypeError('a mistake in onAnswer()');
  },
  onFailure: (reason) => logger.error(`no answer: ${reason}`),
};

const faulty: StatsSinkExtension<Wasm> = {
  category: 'envoy.stats_sinks',
  name: 'acme.faulty',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: partialTable({ [TYPE]: { config: true }, 'envoy.extensions.wasm.v3.PluginConfig': { name: true } }),
  async createOnPrimary({ config }, { calls }) {
    if (config!.name === 'creation') await new Promise(() => {});
    const host = calls.reference('host');
    return {
      // biome-ignore lint/correctness/useYield: the mistake comes first
      *flush() {
        if (config!.name === 'answer') HttpCall.start(calls, host.current, REQUEST, EVENTS);
        else if (config!.name === 'rejection') void Promise.reject(new TypeError('a promise is left behind'));
        else throw new TypeError('a mistake in flush()');
      },
      close: () => Promise.resolve(),
    };
  },
};

(EXTENSIONS as StatsSinkExtension[]).push(faulty as StatsSinkExtension);
