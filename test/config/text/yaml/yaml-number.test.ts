// Unquoted integers in YAML have the meaning that Envoy gives them, in both parsers.

import t from 'tap';
import { yamlInteger } from '../../../../src/config/text/yaml/yaml-number.js';
import { valueOfJson } from '../../../../src/runtime/value.js';
import { bootstrapOf, problemsOf } from '../../load-text.js';

/** A text that only the library parses. */
const NOT_PLAIN = '# é\n';

t.test('the mode of a socket is octal with a leading zero', async (t) => {
  const modes = { '0400': 0o400, '0600': 0o600, '0777': 0o777, '00': 0, '0o400': 0o400, '0x100': 0o400, '384': 384 };
  for (const [written, mode] of Object.entries({ ...modes, "'0400'": 400, '08': 8, '0b1': undefined })) {
    const text = `admin: { address: { pipe: { path: /a, mode: ${written} } } }\n`;
    const modeOf = (form: string) => bootstrapOf(form).admin?.address?.pipe?.mode ?? 0;
    for (const form of [text, NOT_PLAIN + text]) {
      if (mode === undefined) t.throws(() => modeOf(form), { message: /expected a whole number, found '0b1'/ });
      else t.equal(modeOf(form), mode, written);
    }
  }
});

t.test('integers are signed and have 64 bits', async (t) => {
  const cases: readonly (readonly [string, bigint | undefined])[] = [
    ['0', 0n],
    ['-010', -8n],
    ['+017', 15n],
    ['0X1f', 31n],
    ['-0x10', -16n],
    ['9223372036854775807', 2n ** 63n - 1n],
    ['9223372036854775808', undefined],
    ['-9223372036854775808', -(2n ** 63n)],
    ['0777777777777777777777', 2n ** 63n - 1n],
    ['01000000000000000000000', undefined],
    ['09', undefined],
    ['0o7', undefined],
    ['1.0', undefined],
    ['1e3', undefined],
    ['', undefined],
    ['9'.repeat(1_000_000), undefined],
  ];
  for (const [text, value] of cases) t.equal(yamlInteger(text), value, text.slice(0, 30));
});

t.test('a key keeps its text', async (t) => {
  const text = `${NOT_PLAIN}node: { metadata: { 0400: a, 1.0: b, 12: c, True: d, "08": e } }\n`;
  t.same(bootstrapOf(text).node?.metadata, { '0400': 'a', '1.0': 'b', 12: 'c', True: 'd', '08': 'e' });
});

t.test('a number that Envoy accepts as a string is accepted as a string', async (t) => {
  const numbers = {
    ...{
      '1.0': '1.0',
      '1.50': '1.50',
      '-2.5': '-2.5',
      '1e3': '1e3',
      '.5': '.5',
      '0o17': '0o17',
      '08': '08',
      '.inf': '.inf',
    },
    ...{ 3000000000: '3000000000', '0xFFFFFFFFF': '68719476735', '99999999999999999999': '99999999999999999999' },
  };
  for (const [written, text] of Object.entries(numbers)) {
    const node = `node: { id: ${written}, cluster: "1.0" }\n`;
    const list = `static_resources:\n  clusters:\n  - alt_stat_name: ${written}\n    name: a\n`;
    for (const before of ['', NOT_PLAIN]) {
      t.same(bootstrapOf(before + node).node, { id: text, cluster: '1.0' }, written);
      t.equal(bootstrapOf(before + list).static_resources?.clusters?.[0]?.alt_stat_name, text);
    }
    t.equal(bootstrapOf(`node: { id: &a ${written}, cluster: *a }\n`).node?.cluster, text);
    t.equal(bootstrapOf(`node: { id: "${written}" }`).node?.id, written);
  }
});

t.test('small integers and numbers in JSON are not accepted as strings', async (t) => {
  for (const written of ['12', '-1', '0', '0400', '0x1F', '2147483647']) {
    t.match(
      problemsOf(`node: { id: ${written} }`),
      /node\.id: expected text, found the number -?\d+; put it in quotes/,
    );
  }
  t.match(
    problemsOf('{"node": {"id": 1.5}}', { file: 'a.json' }),
    /expected text, found the number 1\.5; put it in quotes/,
  );
  t.match(problemsOf('node: { id: true }'), /expected text, found true/);
});

t.test('numbers within a TypedStruct are handled', async (t) => {
  const { stats_sinks: [sink] = [] } = bootstrapOf(`stats_sinks:
- name: a
  typed_config:
    "@type": type.googleapis.com/xds.type.v3.TypedStruct
    type_url: type.googleapis.com/envoy.config.metrics.v3.StatsdSink
    value:
      prefix: 2.50
      address: { socket_address: { address: 127.0.0.1, port_value: 8125 } }
`);
  t.match(sink?.typed_config, { prefix: '2.50' });
});

t.test('untyped numbers are numbers if they are 32-bit integers, and otherwise keep their text', async (t) => {
  const values = {
    ...{ '1.10': '1.10', '1.0': '1.0', '.5': '.5', '1e400': '1e400', '.inf': '.inf', '-.nan': '-.nan' },
    ...{
      2147483648: '2147483648',
      '1234567890123456789': '1234567890123456789',
      '18446744073709551615': '18446744073709551615',
    },
    ...{
      '0x1FFFFFFFF': '8589934591',
      '0x10': 16,
      '010': 8,
      '-1': -1,
      '0': 0,
      2147483647: 2147483647,
      '"1.10"': '1.10',
    },
  };
  for (const [written, value] of Object.entries(values)) {
    const text = `node: { metadata: { aB: 3.0, a: { a_b: ${written} }, a_b: 4.0, b: [ 5.0, ${written} ] } }\n`;
    const metadata = { aB: '3.0', a: { a_b: value }, a_b: '4.0', b: ['5.0', value] };
    for (const form of [text, NOT_PLAIN + text]) t.same(bootstrapOf(form).node?.metadata, metadata, written);
    t.same(bootstrapOf(`node: { metadata: { a: ${written} } }`).node?.metadata, { a: value });
  }
  const json = '{"node": {"metadata": {"a": 1.10, "b": 2147483648}}}';
  t.same(bootstrapOf(json, { file: 'a.json' }).node?.metadata, { a: 1.1, b: 2147483648 });
});

t.test('a runtime value with a decimal point stays a number', async (t) => {
  const { layered_runtime: runtime } = bootstrapOf(
    'layered_runtime: { layers: [ { name: a, staticLayer: { a: 1.50 } } ] }',
  );
  t.same(valueOfJson(runtime?.layers?.[0]?.static_layer?.['a']), {
    text: '1.50',
    double: 1.5,
    integer: 1,
    fraction: undefined,
  });
});

t.test('numbers in very many merged maps are parsed in linear time', async (t) => {
  const maps = Array.from({ length: 20_000 }, (_none, index) => `    m${index}: { <<: *a }\n`);
  const { metadata } = bootstrapOf(`node:\n  metadata:\n    a: &a { x: 1.10 }\n${maps.join('')}`).node ?? {};
  t.same([metadata?.['m0'], metadata?.['m19999']], [{ x: '1.10' }, { x: '1.10' }]);
});
