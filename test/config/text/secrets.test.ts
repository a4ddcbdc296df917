// Values that the API marks as sensitive occur in no message and no excerpt, whatever else is wrong with the text.

import t from 'tap';
import { loadConfiguration } from '../../../src/config/load/load.js';
import { loadSchema } from '../../../src/config/schema/schema.js';
import { formatProblems } from '../../../src/config/text/problem.js';
import { SENSITIVE_NAMES } from '../../../src/config/text/secrets.js';
import { testCatalog } from '../catalog.js';
import { problemsOf } from '../load-text.js';

const TLS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';

/** A secret in flow style, on one line. */
const secret = (fields: string) => `static_resources: { secrets: [ { name: s, ${fields} } ] }`;

/** Each case contains HUSH as a secret or near a misspelt one, and a mistake. */
const TEXTS: readonly (readonly [what: string, text: string])[] = [
  ['an unknown field next to it', secret('tls_certificate: { private_key: { inline_string: HUSH } }, x: 1')],
  [
    'an unknown field after a long one',
    secret(`tls_certificate: { private_key: { inline_string: ${'x'.repeat(300)}HUSH } }, x: 1`),
  ],
  ['its own name misspelt', secret('tls_certificate: { pasword: { inline_string: HUSH } }')],
  ['in camelCase', secret('tlsCertificate: { privatKey: { inlineString: HUSH } }')],
  ['a misspelt field of it', secret('tls_certificate: { password: { inline_strin: HUSH } }')],
  ['text where fields belong', secret('tls_certificate: { private_key: HUSH }')],
  ['invalid base64', secret('tls_certificate: { private_key: { inline_bytes: "HUSH!!!" } }')],
  ['two members of its oneof', secret('tls_certificate: { password: { filename: /x, inline_string: HUSH } }')],
  ['of a list', secret('session_ticket_keys: { keys: [ { inline_bytes: HUSHHUSH, a: 1 } ] }')],
  ['a missing bracket', `${secret('generic_secret: { secret: { inline_string: HUSH } }').slice(0, -2)}`],
  ['a missing quote', secret('generic_secret: { secret: { inline_string: "HUSH } }')],
  [
    'an invalid block scalar header',
    'static_resources:\n secrets:\n - generic_secret:\n    secret:\n     inline_string: |HUSH\n',
  ],
  [
    'a line of the secret that is indented too little',
    'a:\n  private_key:\n    inline_string: |\n      HUSH\n     HUSH\n  HUSH\n',
  ],
  ['duplicate keys', secret('generic_secret: { secret: { inline_string: HUSH }, secret: { inline_string: HUSH } }')],
  [
    'an unknown extension',
    `static_resources: { clusters: [ { name: a, transport_socket: { name: tls, typed_config: { "@type": ${TLS}s, common_tls_context: { tls_certificates: [ { private_key: { inline_string: HUSH } } ] } } } } ] }`,
  ],
  [
    'a secret in an alias',
    `node: { metadata: { a: &a HUSH }, x: 1 }\n${secret('tls_certificate: { private_key: { inline_string: *a } }')}`,
  ],
];

t.test('a mistake next to a secret is reported without showing the line', async (t) => {
  for (const [what, text] of TEXTS) {
    for (const shown of [problemsOf(text), optionProblems(text)]) {
      t.match(shown, /^[^\n]*:\d+:\d+: /, what);
      t.notMatch(shown, /HUSH/, what);
    }
  }
});

t.test('a mistake in single-line JSON is reported without showing the line', async (t) => {
  const json = (fields: object) => JSON.stringify({ static_resources: { secrets: [{ name: 's', ...fields }] } });
  const key = { private_key: { inline_string: 'HUSH' } };
  for (const text of [
    json({ tls_certificate: { ...key, x: 1 } }),
    json({ tls_certificate: key }).replace('HUSH"', 'HUSH'),
    json({ tls_certificate: key }).replace(/}$/, ''),
    json({ tls_certificate: key }).replace('"HUSH"', '"\\HUSH"'),
  ]) {
    const shown = problemsOf(text, { file: 'a.json' });
    t.match(shown, /^a\.json:1:\d+: /);
    t.notMatch(shown, /HUSH/);
  }
});

t.test('other lines of such a configuration are shown', async (t) => {
  const text = `static_resources:
  secrets:
  - name: s
    tls_certificate:
      private_key: { filename: /nowhere }
      password: { inline_string: HUSH }
      passwort: 1
  clusters: [ { name: a, x: 1 } ]
`;
  const shown = problemsOf(text);
  t.notMatch(shown, /HUSH/);
  t.match(shown, /\n {2}8 \| {3}clusters: \[ \{ name: a, x: 1 \} \]\n/);
  t.match(shown, /\n {2}5 \| {7}private_key: \{ filename: \/nowhere \}\n/, 'file names are not secret');
  const far = `node: { metadata: { a: [ ${'x, '.repeat(100)} ], password: HUSH, b: [ ${'x, '.repeat(100)} ] }, y: 1 }`;
  t.match(
    problemsOf(far),
    /^baton\.yaml:1:\d+: node\.y: .*\n {2}1 \| ….*y: 1 }\n/,
    'a part that is cut off needs no hiding',
  );
});

t.test('the list has the names that the API marks, and the enclosing fields of ambiguous ones', async (t) => {
  const schema = loadSchema();
  const marked = new Set<string>();
  for (const message of schema.messageNames()) {
    for (const { name, isSensitive } of schema.message(message)!.fields.values()) if (isSensitive) marked.add(name);
  }
  for (const name of ['keys', 'secrets', 'typed_config']) t.ok(marked.delete(name), 'an ambiguous name');
  const holders = ['generic_secret', 'private_key_provider', 'session_ticket_keys'];
  t.same([...marked, ...holders].sort(), [...SENSITIVE_NAMES].sort());
});

function optionProblems(yaml: string): string {
  const result = loadConfiguration({ yaml }, testCatalog());
  return result.ok ? '' : formatProblems(result.errors);
}

t.test('nested aliases and very many aliases are handled', async (t) => {
  const nest = (inner: string) => `${'['.repeat(80)}${inner}${']'.repeat(80)}`;
  const chain = Array.from({ length: 500 }, (_, at) => `a${at}: &a${at} ${nest(at === 0 ? 'x' : `*a${at - 1}`)}`);
  const many = Array.from({ length: 20_000 }, (_, at) => `b${at}: *v`);
  const text = ['v: &v { key: authorization, value: HUSH }', ...chain, ...many, 'x: 1 # HUSH'].join('\n');
  const shown = problemsOf(text);
  t.match(shown, /unknown field 'v'/);
  t.notMatch(shown, /value: HUSH/);
});
