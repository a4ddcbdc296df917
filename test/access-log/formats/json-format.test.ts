// JSON formats: types of values, escaping, and invalid formats.

import fc from 'fast-check';
import t from 'tap';
import { compileJsonFormat } from '../../../src/access-log/formats/json-format.js';
import { Mistakes } from '../../../src/common/errors/errors.js';
import type { Struct } from '../../../src/config/generated/api.js';
import { request, stream, tcpStream } from '../stream.js';

function print(format: Struct, info = stream(), options = {}): string {
  return compileJsonFormat(format, options).text(info);
}

t.test('values keep their types, keys are sorted, one object is one line', async (t) => {
  const format = {
    status: '%RESPONSE_CODE%',
    duration: '%DURATION%',
    method: '%REQ(:METHOD)%',
    text: '%REQ(:METHOD)% in %DURATION% ms',
    constant: 'plain "text"',
    percent: '100%%',
    number: 1.5,
    flag: true,
    nothing: null,
    none: '%REQ(X-NONE)%',
    noneInText: '<%REQ(X-NONE)%>',
    port: '%DOWNSTREAM_DIRECT_REMOTE_PORT%',
    nested: { z: '%PROTOCOL%', a: ['%ROUTE_NAME%', { b: '%BYTES_RECEIVED%' }, 1] },
    empty: {},
    emptyText: '%REQ(X-EMPTY)%',
  };
  t.equal(
    print(format),
    '{"constant":"plain \\"text\\"","duration":226,"empty":{},"emptyText":"","flag":true,"method":"GET",' +
      '"nested":{"a":["to_places",{"b":154},1],"z":"HTTP/1.1"},"none":null,"noneInText":"<->","nothing":null,' +
      '"number":1.5,"percent":"100%","port":51234,"status":204,"text":"GET in 226 ms"}\n',
  );
});

t.test('keys without a value can be left out', async (t) => {
  const format = {
    a: '%REQ(X-NONE)%',
    b: '%PROTOCOL%',
    c: { d: '%UPSTREAM_HOST%' },
    e: ['%ROUTE_NAME%', '%DURATION%'],
    f: '[%UPSTREAM_HOST%]',
    g: '%RESPONSE_FLAGS%',
  };
  t.equal(print(format, tcpStream(), { omitEmptyValues: true }), '{"c":{},"e":[0],"f":"[]","g":"-"}\n');
});

t.test('asStrings writes all values as strings, for the deprecated json_format', async (t) => {
  const format = { a: '%DURATION%', b: '%REQ(X-NONE)%', c: 7, d: '%PROTOCOL%' };
  t.equal(print(format, stream(), { asStrings: true }), '{"a":"226","b":"-","c":"7","d":"HTTP/1.1"}\n');
});

t.test('for any received bytes the line is valid JSON in UTF-8 with the same text', async (t) => {
  const format = compileJsonFormat({ agent: '%REQ(USER-AGENT)%', both: 'a%REQ(USER-AGENT)%b' });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const value = Buffer.from(bytes).toString('latin1');
      const line = Buffer.from(
        format.text(stream({ requestHeaders: request('/', { 'user-agent': value }) })),
        'latin1',
      );
      const text = new TextDecoder('utf-8', { fatal: true }).decode(line);
      const { agent, both } = JSON.parse(text) as { agent: string; both: string };
      if (both !== `a${agent}b`) throw new Error(`${both} is not a${agent}b`);
      if (text.indexOf('\n') !== text.length - 1) throw new Error('more than one line');
      let isUtf8 = true;
      try {
        new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
      } catch {
        isUtf8 = false;
      }
      const expected = isUtf8 ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) : undefined;
      if (expected !== undefined && expected !== agent) throw new Error(`${agent} is not ${expected}`);
    }),
  );
  for (const text of ['\u0000\b\t\n\f\r"\\/', 'größe 🎉 \u2028', '\u007f']) {
    const raw = Buffer.from(text).toString('latin1');
    const line = format.text(stream({ requestHeaders: request('/', { 'user-agent': raw }) }));
    t.equal(JSON.parse(Buffer.from(line, 'latin1').toString()).agent, text);
  }
  for (const [raw, shown] of [
    ['\xff', '\u00ff'],
    ['\xc0\x80', '\u00c0\u0080'],
    ['\xed\xa0\x80', '\u00ed\u00a0\u0080'],
    ['\xe2\x82', '\u00e2\u0082'],
    ['\xf4\x90\x80\x80', '\u00f4\u0090\u0080\u0080'],
  ]) {
    const line = format.text(stream({ requestHeaders: request('/', { 'user-agent': raw! }) }));
    t.equal(JSON.parse(line).agent, shown, 'invalid UTF-8 is written as Latin-1');
  }
});

t.test('every byte is preserved at every position', async (t) => {
  const places = Array.from({ length: 9 }, (_place, at) => at);
  const format = compileJsonFormat(Object.fromEntries(places.map((at) => [`x${at}`, `%REQ(X${at})%`])));
  const wrong: string[] = [];
  for (let byte = 0; byte < 256; byte++) {
    const values = Object.fromEntries(
      places.map((at) => [`x${at}`, `${'x'.repeat(at)}${String.fromCharCode(byte)}${'~'.repeat(8 - at)}`]),
    );
    const line = JSON.parse(format.text(stream({ requestHeaders: request('/', values) })));
    for (const name of Object.keys(values)) if (line[name] !== values[name]) wrong.push(`${byte}: ${line[name]}`);
  }
  t.same(wrong, []);
});

t.test('an invalid operator is refused with its key', async (t) => {
  t.throws(() => compileJsonFormat({ a: { b: ['x', '%NOPE%'] } }), {
    where: 'a.b[1]',
    message: /unknown operator %NOPE% at position 0/,
  });
});

t.test('all invalid operators are reported together, each with its key', async (t) => {
  const format = { a: '%NOPE%', b: { 'c.d': ['%START_TIME%', 'x %NONE% %REQ(A)% %'] } };
  try {
    compileJsonFormat(format, { where: ['json_format'] });
    t.fail('it must be refused');
  } catch (error) {
    t.match(Mistakes.of(error), [
      { where: 'json_format.a', message: /%NOPE% at position 0/ },
      { where: 'json_format.b["c.d"][1]', message: /%NONE% at position 2/ },
      { where: 'json_format.b["c.d"][1]', message: /no operator follows '%' .* at position 18/ },
    ]);
  }
});

t.test('a JSON format lists the headers that it reads', async (t) => {
  const format = compileJsonFormat({ a: { b: '%REQ(X)%' }, c: ['%TRAILER(Y)%'] });
  t.same([...format.needs.request], ['x']);
  t.same([...format.needs.trailers], ['y']);
  t.equal(format.needs.response.size, 0);
});
