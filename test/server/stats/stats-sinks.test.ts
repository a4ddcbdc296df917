// The creation of sinks.

import t from 'tap';
import type { ExtensionFinder, PrimaryContext } from '../../../src/extensions/factories.js';
import { StatsSinks } from '../../../src/server/stats/stats-sinks.js';

t.test('a sink that cannot be created is named', async (t) => {
  const extension = { name: 'own.sink', createOnPrimary: () => Promise.reject(new Error('no such device')) };
  const finder = { statsSink: () => extension } as unknown as ExtensionFinder;
  const created = (name?: string) =>
    StatsSinks.create([{ ...(name && { name }), typed_config: { '@type': '' } }], finder, {} as PrimaryContext, 0);
  await t.rejects(created('mine'), { message: "stats sink 'mine' cannot be created: no such device" });
  await t.rejects(created(), { message: "stats sink 'own.sink' cannot be created: no such device" });
});

t.test('a sink is created once descriptors, which were short, are available again', async (t) => {
  let tries = 0;
  const sink = { flush: () => [], close: async () => {} };
  const createOnPrimary = async () => {
    if (++tries < 3) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
    return sink;
  };
  const finder = { statsSink: () => ({ name: 'own.sink', createOnPrimary }) } as unknown as ExtensionFinder;
  const sinks = await StatsSinks.create([{ typed_config: { '@type': '' } }], finder, {} as PrimaryContext, 0);
  t.equal(tries, 3);
  t.notOk(sinks.isEmpty);
  await sinks.close();
});
