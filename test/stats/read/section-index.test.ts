import fc from 'fast-check';
import t from 'tap';
import { defineLayout } from '../../../src/stats/layout.js';
import { StatsReader } from '../../../src/stats/read/reader.js';
import { renderText } from '../../../src/stats/render/render-text.js';
import { statsSettings } from '../../../src/stats/settings/settings.js';
import { StatsStore } from '../../../src/stats/store.js';
import type { ScopeRef } from '../../../src/stats/thread-stats.js';

const Small = defineLayout({ total: 'counter', active: 'gauge' });
const Other = defineLayout({ took_ms: 'histogram', state: 'text', seen: 'counter' });

const textOf = (reader: StatsReader) => Buffer.concat([...renderText(reader)]).toString();

t.test('after any changes, a refreshed reader sees the same stats as a new one', async (t) => {
  const prefix = fc.constantFrom('a.', 'a.b.', 'b.', 'b.c.d.', 'c.');
  const step = fc.record({ prefix, kind: fc.constantFrom('small', 'other', 'name', 'remove', 'look'), n: fc.nat(3) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const settings = statsSettings({ stats_matcher: { exclusion_list: { patterns: [{ suffix: 'name1' }] } } }, []);
      const store = new StatsStore({ workers: 1, settings });
      const follower = store.reader();
      const refs: ScopeRef[] = [];
      for (const { prefix, kind, n } of steps) {
        if (kind === 'small') refs.push(store.addScope(prefix, Small));
        else if (kind === 'other') refs.push(store.addScope(prefix, Other, { hidden: n === 0 }));
        else if (kind === 'name') store.own.dynamicCounter(prefix, `name${n}`).add(1);
        else if (kind === 'remove' && refs.length > 0) store.removeScope(refs.splice(n % refs.length, 1)[0]!);
        else follower.refresh();
      }
      follower.refresh();
      t.equal(textOf(follower), textOf(new StatsReader(store.readerAttachment())));
    }),
    { numRuns: 200 },
  );
});

t.test('unchanged sections remain the same objects', async (t) => {
  const store = new StatsStore({ workers: 1 });
  store.addScope('a.', Small);
  const gone = store.addScope('b.', Small);
  store.own.dynamicCounter('a.', 'x').add(1);
  const reader = store.reader();
  const [scope, names] = reader.sections;
  store.removeScope(gone);
  store.addScope('c.', Small);
  store.own.dynamicCounter('c.', 'x').add(1);
  reader.refresh();
  t.equal(reader.sections.length, 4);
  t.equal(reader.sections[0], scope);
  t.equal(reader.sections[1], names);
});
