// Error messages about invalid configurations show no credential.

import t from 'tap';
import { ExtensionCatalog } from '../../../src/config/catalog/extension.js';
import { loadConfiguration } from '../../../src/config/load/load.js';
import { formatProblems } from '../../../src/config/text/problem.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import { CONFIGURATION_CHECKS } from '../../../src/server/configuration/configuration-checks.js';
import { withFile } from '../../config/load-text.js';
import { bootstrap, type Config, startBaton } from '../harness/index.js';
import { leaks } from './credentials.js';
import { mistakes } from './invalid-configurations.js';

const catalog = new ExtensionCatalog(EXTENSIONS);

const complete = (config: Config): Config => ({ ...bootstrap({ listeners: [], clusters: [] }), ...config });

/** Yields the text, and for a message also its forms on one line, as an option, and in text protobuf. */
function* texts(broken: Config | string): Generator<[name: string, text: string]> {
  if (typeof broken === 'string') return yield ['a.yaml', broken];
  yield ['lines.json', JSON.stringify(complete(broken), null, 1)];
  yield ['line.json', JSON.stringify(complete(broken))];
  yield ['cut.json', JSON.stringify(complete(broken)).slice(0, -1)];
  yield ['camel.yaml', JSON.stringify(complete(broken)).replace(/"[a-z_]+":/g, camel)];
}

function camel(key: string): string {
  return key.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

t.test('errors of a file and of an option show no credential', async (t) => {
  for (const [what, broken] of mistakes()) {
    for (const [name, text] of texts(broken)) {
      const results = [withFile(text, name, (path) => loadConfiguration({ path }, catalog, CONFIGURATION_CHECKS))];
      results.push(loadConfiguration({ yaml: text }, catalog, CONFIGURATION_CHECKS));
      for (const result of results) {
        t.notOk(result.ok, `${what}: ${name}`);
        if (!result.ok) t.same(leaks(what, formatProblems([...result.errors, ...result.warnings])), []);
      }
    }
  }
});

t.test('errors on the command line and in the log show no credential', async (t) => {
  for (const [what, config] of mistakes().slice(0, 2)) {
    for (const mode of ['validate', 'serve']) {
      const baton = await startBaton(t, { config: config as Config, args: ['--mode', mode], wait: 'spawned' });
      await baton.exited;
      t.match(baton.stdout + baton.stderr, /value/, what);
      t.same(leaks(what, baton.stdout + baton.stderr), []);
    }
  }
});
