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

t.test('unquoted words of YAML 1.1 are booleans where a value is free, and text in strings', async (t) => {
  const words = {
    ...{ yes: true, Yes: true, YES: true, on: true, On: true, ON: true, y: true, Y: true },
    ...{ no: false, No: false, NO: false, off: false, Off: false, OFF: false, n: false, N: false },
    ...{ yEs: 'yEs', oN: 'oN', nO: 'nO', oFF: 'oFF', '"yes"': 'yes', "'off'": 'off', yes1: 'yes1' },
  };
  for (const [written, value] of Object.entries(words)) {
    const free = `node: { metadata: { a: { b: ${written} }, ${written}: [ ${written}, x ] } }\n`;
    const key = written.replaceAll(/["']/g, '');
    const metadata = { a: { b: value }, [key]: [value, 'x'] };
    for (const form of [free, NOT_PLAIN + free]) t.same(bootstrapOf(form).node?.metadata, metadata, written);
    for (const before of ['', NOT_PLAIN]) {
      t.same(
        bootstrapOf(`${before}node:\n  metadata:\n    a: ${written}\n`).node?.metadata,
        { a: value },
        'in block form',
      );
      t.equal(bootstrapOf(`${before}node: { id: ${written} }\n`).node?.id, key);
    }
    const merged = `node: { metadata: { a: &a { b: ${written} }, c: { <<: *a }, d: &d ${written}, e: *d } }\n`;
    t.same(bootstrapOf(merged).node?.metadata, { a: { b: value }, c: { b: value }, d: value, e: value });
  }
  t.same(bootstrapOf('{"node": {"metadata": {"a": "yes"}}}', { file: 'a.json' }).node?.metadata, { a: 'yes' });
  t.same(bootstrapOf('node:\n  metadata:\n    b: |-\n      yes\n').node?.metadata, { b: 'yes' });
});

t.test('hexadecimal numbers may have a sign', async (t) => {
  const text = 'node: { metadata: { a: -0x1f, b: +0x1F, c: "-0x1f" } }\n';
  for (const form of [text, NOT_PLAIN + text]) t.same(bootstrapOf(form).node?.metadata, { a: -31, b: 31, c: '-0x1f' });
});

t.test('runtime values of YAML 1.1 are booleans', async (t) => {
  const { layers: [layer] = [] } = bootstrapOf(
    'layered_runtime: { layers: [{ name: a, static_layer: { gate: off, other: "off" } }] }',
  ).layered_runtime!;
  t.same(layer?.static_layer, { gate: false, other: 'off' });
});

t.test('wrappers, durations and enums may be in the form of messages and quoted numbers', async (t) => {
  const cluster = (fields: string) =>
    bootstrapOf(`static_resources: { clusters: [{ name: a, load_assignment: { cluster_name: a }, ${fields} }] }`)
      .static_resources!.clusters![0]!;
  const LIMIT = 'per_connection_buffer_limit_bytes';
  t.equal(cluster(`${LIMIT}: { value: 7 }`)[LIMIT], 7);
  t.equal(cluster(`${LIMIT}: {}`)[LIMIT], 0);
  for (const written of ["'0x400'", "'0X400'", "'+0x400'"]) t.equal(cluster(`${LIMIT}: ${written}`)[LIMIT], 1024);
  t.throws(() => cluster(`${LIMIT}: { value: 7, x: 1 }`), { message: /expected a whole number, found a map/ });
  t.throws(() => cluster(`${LIMIT}: { value: -7 }`), { message: /limit_bytes.value: -7 is out of range/ });
  t.equal(cluster('connect_timeout: { seconds: 1, nanos: 5 }').connect_timeout, '1.000000005s');
  t.equal(cluster("connect_timeout: { seconds: '2' }").connect_timeout, '2s');
  for (const written of ['{ seconds: -1 }', '{ nanos: 1000000000 }', '{ seconds: 1, x: 1 }'])
    t.throws(() => cluster(`connect_timeout: ${written}`), { message: /connect_timeout: .*duration/ });
  for (const written of ["'3'", "'+3'", "'03'", '3']) t.equal(cluster(`lb_policy: ${written}`).lb_policy, 'RANDOM');
  for (const written of ["'99'", "'0x3'", "'3.0'"]) t.throws(() => cluster(`lb_policy: ${written}`), written);
});

t.test('a file with an unknown ending is JSON', async (t) => {
  const text = '{"node": {"id": "a"}}';
  for (const file of ['a.conf', 'config', 'a.yaml.bak']) t.equal(bootstrapOf(text, { file }).node?.id, 'a');
  t.match(problemsOf('node: { id: a }', { file: 'a.conf' }), /'\.conf' is read as JSON/);
});
