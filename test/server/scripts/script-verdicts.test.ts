// What modules say of delivered configurations, when the threads that ask them fail.

import t from 'tap';
import type { checkScripts } from '../../../src/scripts/read-scripts.js';
import { type ScriptConfig, ScriptVerdicts } from '../../../src/server/scripts/script-verdicts.js';

const VERSION = { generation: 1, image: { name: 'm', entry: 'file:///m.js', files: {} } };
const use = (config: unknown): ScriptConfig => ({ module: 'm', kind: 'http filter', config });

/** Returns verdicts whose threads fail with a configuration of which `isFault` holds, and how many threads have been started. */
function withThreads(isFault: (config: unknown) => boolean) {
  const started = { count: 0 };
  const check: typeof checkScripts = async (images, uses) => {
    started.count++;
    const isFailed = uses.some(({ config }) => isFault(config));
    const refused = uses.filter(({ config }) => config === 'refused').map(({ path }) => ({ path, message: 'no' }));
    const mistakes = isFailed ? [{ path: '', message: 'it does not end' }] : refused;
    return images.map((image) => ({ name: image.name, image, mistakes, identities: {} }));
  };
  return { started, verdicts: new ScriptVerdicts(() => VERSION, check) };
}

t.test('one configuration at fault among thousands is found with few threads', async (t) => {
  const { started, verdicts } = withThreads((config) => config === 777);
  const uses = Array.from({ length: 2500 }, (_, index) => use(index));
  await verdicts.prepare([[...uses, use('refused')]]);
  t.ok(started.count < 110, `${started.count} threads`);
  t.equal(verdicts.refusal(use(777)), 'it does not end');
  t.equal(verdicts.refusal(use('refused')), 'no');
  t.same(
    uses.filter((each) => verdicts.refusal(each) !== undefined),
    [use(777)],
  );
});

t.test('many configurations at fault are given up after a few threads', async (t) => {
  const { started, verdicts } = withThreads((config) => typeof config === 'number');
  await verdicts.prepare([Array.from({ length: 400 }, (_, index) => use(index))]);
  t.ok(started.count < 10, `${started.count} threads`);
  t.match(verdicts.refusal(use(399)), 'the checks of others have failed');
});

t.test('a configuration is checked again if its thread has failed, but not for ever', async (t) => {
  let isBusy = true;
  const { started, verdicts } = withThreads((config) => isBusy || config === 'fault');
  await verdicts.prepare([[use('good')]]);
  t.equal(verdicts.refusal(use('good')), 'it does not end');
  isBusy = false;
  await verdicts.prepare([[use('good')]]);
  t.equal(verdicts.refusal(use('good')), undefined);
  for (let count = 0; count < 9; count++) await verdicts.prepare([[use('good'), use('fault')]]);
  t.equal(verdicts.refusal(use('fault')), 'it does not end');
  t.equal(started.count, 5);
});

t.test('the verdicts of a large update outlast a small one', async (t) => {
  const { verdicts } = withThreads(() => false);
  const large = [use('refused'), ...Array.from({ length: 12_000 }, (_, index) => use(index))];
  await verdicts.prepare([large]);
  await verdicts.prepare([[use('small')]]);
  t.equal(verdicts.refusal(use('refused')), 'no');
});
