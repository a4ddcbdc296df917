import t from 'tap';
import { type KnownLoggers, updatedRules } from '../../src/admin/logging-update.js';
import { type LevelRules, levelFor } from '../../src/log/level-rules.js';

const COMPONENTS: KnownLoggers = { isFineGrain: false, files: [] };
const FILES: KnownLoggers = {
  isFineGrain: true,
  files: [
    { component: 'main', file: 'src/server/server.js' },
    { component: 'http', file: 'src/http/codec.js' },
    { component: 'http', file: 'src/http/routing/actions/route.js' },
  ],
};
const START: LevelRules = { level: 'info', components: [{ component: 'dns', level: 'error' }], overrides: [] };

function update(known: KnownLoggers, rules: LevelRules, ...parameters: [string, string][]): LevelRules {
  return updatedRules(parameters, rules, known)!;
}

t.test('each update is relative to the defaults, not to the previous update', async (t) => {
  let rules = update(COMPONENTS, START, ['paths', 'http:debug,dns:trace']);
  t.equal(levelFor(rules, 'http', ''), 'debug');
  t.equal(levelFor(rules, 'dns', ''), 'trace');
  rules = update(COMPONENTS, rules, ['upstream', 'warn']);
  t.equal(levelFor(rules, 'upstream', ''), 'warning');
  t.equal(levelFor(rules, 'http', ''), 'info', 'reset to the default');
  t.equal(levelFor(rules, 'dns', ''), 'error', 'reset to the default of the command line');
  t.equal(
    levelFor(update(COMPONENTS, rules, ['paths', 'http:debug,, ,dns:trace,']), 'dns', ''),
    'trace',
    'surplus commas',
  );
  rules = update(COMPONENTS, rules, ['level', 'critical']);
  t.equal(levelFor(rules, 'dns', ''), 'critical');
  rules = update(COMPONENTS, rules, ['group', 'http:off']);
  t.equal(levelFor(rules, 'http', ''), 'off');
  t.equal(levelFor(rules, 'dns', ''), 'critical', 'level= changes the default');
});

t.test('files are matched by path, name, pattern and group, and the first match counts', async (t) => {
  const codec = (rules: LevelRules) => levelFor(rules, 'http', 'src/http/codec.js');
  for (const name of ['src/http/codec.js', 'codec.js', 'codec', 'src/http/*', 'c?d*', '*']) {
    t.equal(codec(update(FILES, START, [name, 'debug'])), 'debug', name);
  }
  t.equal(codec(update(FILES, START, ['group', 'http:debug'])), 'debug');
  t.equal(levelFor(update(FILES, START, ['group', 'http:debug']), 'main', 'src/server/server.js'), 'info');
  t.equal(codec(update(FILES, START, ['paths', 'codec:trace,src/*:off'])), 'trace');
  t.equal(codec(update(FILES, START, ['paths', 'src/*:off,codec:trace'])), 'off');
  t.equal(codec(update(FILES, START, ['not-there-yet*', 'trace'])), 'info');
});

t.test('empty values of a form are ignored', async (t) => {
  t.equal(
    updatedRules(
      [
        ['level', ''],
        ['paths', ''],
      ],
      START,
      COMPONENTS,
    ),
    undefined,
  );
  t.equal(update(COMPONENTS, START, ['level', ''], ['paths', 'http:debug']).overrides.length, 1);
});

t.test('an invalid update is refused as a whole', async (t) => {
  for (const [known, parameters, message] of [
    [COMPONENTS, [['level', 'loud']], 'unknown logger level'],
    [COMPONENTS, [['nonsense', 'info']], 'unknown logger name'],
    [
      COMPONENTS,
      [
        ['level', 'info'],
        ['paths', 'http:info'],
      ],
      'invalid number of parameters',
    ],
    [COMPONENTS, [['paths', 'http:info,nonsense:info']], 'unknown logger name'],
    [COMPONENTS, [['paths', 'http:info,dns:loud']], 'unknown logger level'],
    [COMPONENTS, [['paths', 'http']], 'empty logger name or empty logger level'],
    [COMPONENTS, [['paths', ':info']], 'empty logger name or empty logger level'],
    [COMPONENTS, [['group', 'http:']], 'empty logger name or empty logger level in group'],
    [COMPONENTS, [['group', 'nonsense:info']], 'unknown logger name'],
    [FILES, [['nonsense', 'info']], 'unknown logger name'],
    [FILES, [['paths', '*:info,'.repeat(1001)]], 'more than 1000 paths'],
    [FILES, [[`${'*'.repeat(2000)}s`, 'info']], 'patterns with wildcards of more than 2000 characters together'],
    [
      FILES,
      [['paths', 'src/server/a??????????*.js:info,'.repeat(100)]],
      'patterns with wildcards of more than 2000 characters together',
    ],
  ] as [KnownLoggers, [string, string][], string][]) {
    t.throws(() => updatedRules(parameters, START, known), { message }, JSON.stringify(parameters).slice(0, 80));
  }
});
