// Hostile and damaged input is refused within bounds; no content of a file makes the loader throw.

import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type LoadResult, loadConfiguration } from '../../src/config/load/load.js';
import { Decoder } from '../../src/config/schema/decode.js';
import { loadSchema } from '../../src/config/schema/schema.js';
import { formatProblems } from '../../src/config/text/problem.js';
import { Problems } from '../../src/config/text/problems.js';
import { testCatalog } from './catalog.js';
import { GOOD } from './good.js';
import { bootstrapOf, loadText, problemsOf } from './load-text.js';

t.test('values that are nested too deeply are refused in every format', async (t) => {
  const levels = 100_000;
  t.match(problemsOf('['.repeat(levels)), /^baton\.yaml:1:\d+: nested deeper than 100 levels\n/);
  for (const open of ['[', '{a: ', '- ', '? ', '[{']) {
    t.match(problemsOf(open.repeat(1_000_000)), /^baton\.yaml:1:\d+: nested deeper than 100 levels\n/, open);
  }
  t.match(problemsOf(`node: ${'{ a: '.repeat(150)}${'}'.repeat(150)}`), /nested deeper than 100 levels/);
  t.match(
    problemsOf(`${'['.repeat(levels)}${']'.repeat(levels)}`, { file: 'a.json' }),
    /nested deeper than 100 levels/,
  );
  const struct = 'fields { value { struct_value { '.repeat(levels);
  t.match(
    problemsOf(`node { metadata { ${struct}`, { file: 'a.pb_text' }),
    /^a\.pb_text: unable .*: max depth exceeded/,
  );
  t.match(
    problemsOf('admin { address { '.repeat(levels), { file: 'a.pb_text' }),
    /unknown field 'admin'.*\n.*\n.*\n.*expected '}'/,
  );
  t.match(
    problemsOf(new Uint8Array(50_000).fill(0x0b), { file: 'a.pb' }),
    /^a\.pb: unable to read the file as a binary/,
  );
});

t.test('files other than regular ones are refused at once, since a pipe may never begin or end', async (t) => {
  const folder = t.testdir({ 'folder.yaml': {}, 'good.yaml': GOOD });
  const [pipe, endless, link] = ['pipe.yaml', 'endless.json', 'link.yaml'].map((name) => join(folder, name));
  execFileSync('mkfifo', [pipe!]);
  symlinkSync('/dev/zero', endless!);
  symlinkSync('good.yaml', link!);
  const refusal = (path: string) => problemsIn(loadConfiguration({ path }, testCatalog()));
  t.equal(refusal(pipe!), `${pipe}: unable to read file: it is not a regular file`);
  t.equal(refusal(endless!), `${endless}: unable to read file: it is not a regular file`);
  t.equal(refusal(join(folder, 'folder.yaml')), `${folder}/folder.yaml: unable to read file: it is a directory`);
  t.equal(refusal(link!), '', 'a link to a file is accepted');
  const key = GOOD.replace(
    '- filters:',
    `- transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context: { tls_certificates: [ { certificate_chain: { filename: ${pipe} }, private_key: { filename: ${endless} } } ] }
      filters:`,
  );
  t.match(problemsOf(key), /certificate_chain\.filename: unable to read file: it is not a regular file/);
  t.match(problemsOf(key), /private_key\.filename: unable to read file: it is not a regular file/);
});

t.test('endlessly expanding aliases are refused', async (t) => {
  const lines = ['    a0: &a0 [x, x, x, x, x, x, x, x, x]'];
  for (let level = 1; level < 12; level++) {
    lines.push(
      `    a${level}: &a${level} [${Array(9)
        .fill(`*a${level - 1}`)
        .join(', ')}]`,
    );
  }
  t.match(problemsOf(`node:\n  metadata:\n${lines.join('\n')}\n`), /aliases expand to too many values/);
});

t.test('maps that are repeatedly merged with the same maps are refused', async (t) => {
  const merged = (level: number) => Array(8).fill(`*m${level}`).join(', ');
  const maps = Array.from(
    { length: 30 },
    (_, level) => `  m${level + 1}: &m${level + 1} { <<: [${merged(level)}], k${level}: 1 }`,
  );
  const text = `node:\n  m0: &m0 { id: 1 }\n${maps.join('\n')}\n`;
  t.match(problemsOf(text), /baton\.yaml:32:3: node\.m30: unknown field/);
  t.match(problemsOf(`${text}  <<: *m30\n  metadata: 1\n`), /baton\.yaml:34:13: node\.metadata: expected/);
  const keys = Array.from({ length: 2000 }, (_, i) => `a${i}: 1`).join(', ');
  const copies = '    - { <<: *a }\n'.repeat(1000);
  t.match(
    problemsOf(`node:\n  metadata:\n    a: &a { ${keys} }\n    b:\n${copies}`),
    /aliases expand to too many values/,
  );
});

t.test('the value that exceeds the maximum is refused, whatever its kind', async (t) => {
  const any = { '@type': 'type.googleapis.com/acme.Unknown', a: 1 };
  const filter = { name: 'a', typed_config: any };
  for (let most = 1; most < 10; most++) {
    const problems = new Problems([]);
    const decoder = new Decoder(loadSchema(), problems, 'refuse', most);
    decoder.decode('envoy.config.listener.v3.FilterChain', { filters: [filter] });
    const messages = problems.errors.map(({ message }) => message);
    t.strictSame(messages, most <= 6 ? ['aliases expand to too many values'] : [], `${most} values`);
  }
});

// If the time grew faster than the text, none of these would end within the test's timeout.
t.test('the time for a text is linear in its length', async (t) => {
  const hashes = `${' #'.repeat(100)}\n`;
  const comment = problemsOf(`node { id: 1\n${hashes}\u0001 }`, { file: 'a.pb_text' });
  t.match(comment, /^a\.pb_text:3:1: .*an unexpected character/m);
  const digits = '9'.repeat(2_000_000);
  t.match(
    problemsOf(`stats_flush_interval: ${digits}s\n`),
    /^baton\.yaml:1:23: stats_flush_interval: expected a duration/,
  );
  const keys = 20_000;
  const texts = {
    'a.yaml': 'node: {}\n'.repeat(keys),
    'a.json': `{${Array(keys).fill('"node": {}\n').join(',')}}`,
    'a.pb_text': 'node {}\n'.repeat(keys),
  };
  for (const [file, text] of Object.entries(texts)) {
    const problems = problemsOf(text, { file }).match(/'node' is set twice/g);
    t.equal(problems?.length, 100, `${file}: repeated mistakes are reported up to a limit`);
  }
});

// Expressions with alternatives keep a state for each repetition, and the engine's stack is limited.
t.test('texts of megabytes are read, or refused with their places', async (t) => {
  const length = 16_000_000;
  const longTexts = {
    'a plain scalar': 'a'.repeat(length),
    'a plain scalar with colons': `${'a:'.repeat(length / 2)}a`,
    'a number': '1.'.padEnd(length, '1'),
    'a quoted scalar': `"${'a'.repeat(length)}"`,
  };
  for (const [what, text] of Object.entries(longTexts)) t.equal(problemsOf(`node:\n  id: ${text}\n`), '', what);
  const wrong = 'node { ids: "a" }';
  const longProtos = {
    'blank lines': [`${'\n'.repeat(length)}${wrong}`, `${length + 1}:8: node.ids: unknown field`],
    comments: [`${'# a\n'.repeat(length / 4)}${wrong}`, `${length / 4 + 1}:8: node.ids: unknown field`],
    'a string': [`node { id: "${'a'.repeat(length)}" ids: "a" }`, `1:${length + 15}: node.ids: unknown field`],
    'an open string': [`node { id: "${'a'.repeat(length)}`, '1:12: an unterminated string'],
    escapes: [`node { id: "${'\\377'.repeat(length / 4)}" }`, '1:12: node.id: its escapes are not UTF-8'],
  };
  for (const [what, [text, problem]] of Object.entries(longProtos)) {
    t.match(problemsOf(text!, { file: 'a.pb_text' }), `a.pb_text:${problem}`, what);
  }
});

t.test('an unknown name of megabytes is refused within seconds', async (t) => {
  const begun = process.cpuUsage();
  const problems = problemsOf(`{"node": {"${'a_b'.repeat(5_000_000)}": 1}}`, { file: 'a.json' });
  const { user } = process.cpuUsage(begun);
  t.match(problems, /^a\.json:1:11: node\.a_ba_b/);
  t.ok(user < 8_000_000, `${user / 1e6} s`);
});

t.test('escapes in text protobufs are UTF-8, in strings but not in bytes', async (t) => {
  const problems = (text: string) => problemsOf(`node { ${text} ids: "a" }`, { file: 'a.pb_text' });
  for (const good of ['"\\303\\251"', '"\\xc3" "\\xa9"', '"\\u00e9\\n\\\\377"', '"\\U0001f600"', '"é"']) {
    t.notMatch(problems(`id: ${good}`), /escapes/, good);
  }
  for (const bad of ['"\\303"', '"\\xC3a"', '"a" "\\377"', "'\\x80'"]) {
    t.match(problems(`id: ${bad}`), /^a\.pb_text:1:12: node\.id: its escapes are not UTF-8; write/m, bad);
  }
});

t.test('messages are limited in length, even if they quote long values', async (t) => {
  const address = '1.'.repeat(10_000);
  const host = `{ endpoint: { address: { socket_address: { address: "${address}", port_value: 1 } } } }`;
  const assignment = `{ cluster_name: c, endpoints: [{ lb_endpoints: [${host}] }] }`;
  const problems = problemsOf(
    `static_resources: { clusters: [{ name: c, type: STATIC, load_assignment: ${assignment} }] }\n`,
  );
  t.match(problems, /^baton\.yaml:1:\d+: static_resources\.clusters\[0\]\..*1\.1\.1/);
  t.ok(problems.length < 5000, `${problems.length} characters`);
});

t.test('keys with a meaning in JavaScript are ordinary keys', async (t) => {
  const text = '{"node": {"metadata": {"__proto__": {"x": 1}, "constructor": 2, "toString": 3}}}';
  for (const file of ['a.json', 'a.yaml']) {
    const metadata = bootstrapOf(text, { file }).node?.metadata;
    t.same(Object.keys(metadata ?? {}).sort(), ['__proto__', 'constructor', 'toString']);
    t.equal(({} as { x?: number }).x, undefined);
  }
  t.match(problemsOf('{"constructor": 1, "__proto__": 2}', { file: 'a.json' }), /unknown field '__proto__'/);
});

t.test('a randomly damaged configuration is either loaded or refused with places and reasons', async (t) => {
  const random = seeded(20_240_607);
  const json = JSON.stringify(bootstrapOf(GOOD), null, 1);
  let refused = 0;
  for (let round = 0; round < 300; round++) {
    const [file, text] = round % 2 === 0 ? (['a.yaml', GOOD] as const) : (['a.json', json] as const);
    const damaged = damage(text, random);
    const result = loadText(damaged, { file });
    if (result.ok) continue;
    refused++;
    const shown = formatProblems(result.errors);
    t.ok(shown.length > 0);
    t.notMatch(shown, /\.js:\d+|\bat \w+ \(|undefined|\[object/, `round ${round}`, { damaged });
  }
  t.ok(refused > 50, `${refused} of 300 were refused`);
});

/** Damages a text like editors, templates and attackers do. */
function damage(text: string, random: (below: number) => number): string {
  const lines = text.split('\n');
  const line = random(lines.length);
  const at = random(text.length);
  switch (random(8)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + PIECES[random(PIECES.length)] + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(at + 1 + random(20));
    case 3:
      return lines.filter((_text, index) => index !== line).join('\n');
    case 4:
      lines.splice(line, 0, lines[random(lines.length)]!);
      return lines.join('\n');
    case 5:
      lines[line] = lines[line]!.replace(/[\w.-]+(?=[^\w.-]*$)/, PIECES[random(PIECES.length)]!);
      return lines.join('\n');
    case 6:
      lines[line] = ` ${lines[line]}`;
      return lines.join('\n');
    default: {
      const words = text.match(/[a-z_]{4,}/g)!;
      return text.replace(words[random(words.length)]!, words[random(words.length)]!);
    }
  }
}

const PIECES = [
  ...['null', '{}', '[]', '-1', '1e999', '99999999999999999999', '0.5', 'true', '"', "'", '&a ', '*a', '!x ', '<<: '],
  ...[
    '\t',
    '\u0000',
    '\ud800',
    '\n',
    '---\n',
    '{',
    '}',
    ']',
    ':',
    ',',
    '#',
    '%',
    '@',
    '5s',
    '-5s',
    '"@type": x',
    '\ufeff',
  ],
];

/** A seeded random generator (mulberry32), so that a failing round can be repeated. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function problemsIn(result: LoadResult): string {
  return result.ok ? '' : formatProblems(result.errors);
}

t.test('list elements of the wrong type are reported everywhere, and nothing throws', async (t) => {
  const clusters = [
    {
      name: 'c',
      type: 'STATIC',
      health_checks: [
        {
          timeout: '1s',
          interval: '1s',
          unhealthy_threshold: 1,
          healthy_threshold: 1,
          http_health_check: {
            path: '/',
            expected_statuses: [{ start: 200, end: 300 }],
            request_headers_to_add: [{ header: { key: 'x', value: 'y' } }],
            request_headers_to_remove: ['x'],
          },
        },
      ],
      circuit_breakers: { thresholds: [{ max_connections: 1 }] },
      load_assignment: { cluster_name: 'c', endpoints: [{ lb_endpoints: [{ endpoint: {} }] }] },
    },
  ];
  const whole = { static_resources: { clusters } };
  for (const at of elementsOf(whole)) {
    for (const wrong of [1, null, [], true]) {
      const copy = structuredClone(whole);
      const path = [...at];
      const last = path.pop()!;
      let holder: unknown = copy;
      for (const key of path) holder = (holder as Record<string, unknown>)[key];
      (holder as unknown[])[Number(last)] = wrong;
      t.not(problemsOf(JSON.stringify(copy), { file: 'a.json' }), '', `${JSON.stringify(wrong)} at ${at.join('.')}`);
    }
  }
});

/** Returns the paths of all list elements. */
function elementsOf(value: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => {
    const place = [...at, key];
    return [...(Array.isArray(value) ? [place] : []), ...elementsOf(each, place)];
  });
}
