// Expressions have the values that they have in Envoy 1.40: the tables are its answers, in the JSON form of %TYPED_CEL()%.

import t, { type Test } from 'tap';
import { expressionOfText } from '../../src/access-log/attributes/stream-expression.js';
import { StreamInfo } from '../../src/access-log/stream/stream-info.js';
import { TextHeaders } from '../../src/access-log/stream/text-headers.js';
import { celJson, celText } from '../../src/cel/output.js';
import { BatonError } from '../../src/common/errors/errors.js';
import type { CelExpressionConfig, Json } from '../../src/config/generated/api.js';

const refused = Symbol('refused');
/** undefined: an error of the evaluation, or a value without JSON form. */
type Rows = readonly (readonly [expression: string, result: Json | typeof refused | undefined])[];

const ALL: CelExpressionConfig = {
  enable_string_concat: true,
  enable_string_conversion: true,
  enable_string_functions: true,
};

const LANGUAGE: Rows = [
  ["'a' + 'b'", undefined],
  ["b'a' + b'b'", undefined],
  ['[1] + [2]', undefined],
  ['string(1)', refused],
  ["int('5')", 5],
  ['int(5.7)', 5],
  ['uint(3)', 3],
  ['double(1)', 1],
  ["bytes('a')", 'YQ=='],
  ["'abc'.size()", 3],
  ["size('abc')", 3],
  ['size([1,2])', 2],
  ['1 in [1,2]', true],
  ['1u in [1]', true],
  ['1 == 1u', true],
  ['1 == 1.0', true],
  ['1 < 1.5', true],
  ['1u < 2', true],
  ["'a' == 1", false],
  ['1 + 1u', undefined],
  ['1 / 0', undefined],
  ['1 % 0', undefined],
  ['9223372036854775807 + 1', undefined],
  ['[1,2].exists(x, x==1)', refused],
  ['[1,2].all(x, x>0)', refused],
  ['[1,2].map(x, x+1)', refused],
  ['[1,2].filter(x, x>1)', refused],
  ['[1,2].exists_one(x, x==1)', refused],
  ['type(1) == int', true],
  ['type(null) == null_type', true],
  ["type('a') == string", true],
  ['true ? 1 : nope', 1],
  ["timestamp('2020-01-02T03:04:05Z').getHours('Europe/Berlin')", 4],
  ["timestamp('2020-01-02T03:04:05Z').getHours('+02:00')", 5],
  ["timestamp('2020-01-02T03:04:05.123Z').getMilliseconds()", 123],
  ["duration('1h').getHours()", 1],
  ["duration('3661s').getMinutes()", 61],
  ['timestamp(0)', '1970-01-01T00:00:00Z'],
  ["int(timestamp('2020-01-01T00:00:00Z'))", 1577836800],
  ["string(timestamp('2020-01-01T00:00:00Z'))", refused],
  ["string(duration('1s'))", refused],
  ["'a'.lowerAscii()", refused],
  ["'A'.lowerAscii()", refused],
  ["'a,b'.split(',')", refused],
  ["'abc'.replace('a','x')", refused],
  ["'abc'.substring(1)", refused],
  ["'abc'.charAt(1)", refused],
  ["'abc'.indexOf('c')", refused],
  ["' a '.trim()", refused],
  ["['a','b'].join()", refused],
  ["'A'.upperAscii()", refused],
  ['request[1]', undefined],
  ['[1,2][0]', 1],
  ['[1,2][5]', undefined],
  ["{'a':1}['b']", undefined],
  ["{'a':1}.a", 1],
  ['dyn(1)', 1],
  ['"a" < "b"', true],
  ['b"a" < b"b"', true],
  ['true < false', false],
  ['!true', false],
  ['-(-1)', 1],
  ['0.0/0.0', null],
  ["'é'.size()", 1],
  ['optional.of(1)', refused],
  ['cel.bind(x, 1, x)', refused],
  ['math.greatest(1,2)', refused],
  ["base64.encode(b'a')", refused],
  ['"\\x41"', 'A'],
  ['1e3', 1000],
  ['0x10', 16],
  ['a.b.c.d()', refused],
  ['foo(1)', refused],
  ["string('a')", refused],
  ["bool('true')", true],
  ['type(dyn(1))', undefined],
  ["timestamp('x')", undefined],
  ["timestamp('2020-02-30T00:00:00Z')", undefined],
  ["timestamp('2020-01-01T24:00:00Z')", undefined],
  ["timestamp('2020-01-01T00:00:00123Z')", undefined],
  ["timestamp('2020-01-01t00:00:00z')", '2020-01-01T00:00:00Z'],
  ["duration('x')", undefined],
  ["int('x')", undefined],
  ['uint(-1)', undefined],
  ['int(9223372036854775808.0)', undefined],
  ['in', refused],
  ['1 +', refused],
  ['`a`', refused],
  ['[1,2,3][?0]', refused],
  ['size(request)', 0],
  ['type(request) == map', true],
  ['type([1]) == list', true],
  ['type(1u) == uint', true],
  ['type(1.0) == double', true],
  ["type(b'') == bytes", true],
  ['type(true) == bool', true],
  ['type(int) == type', true],
  ["{'a':1,'a':2}", undefined],
  ['[1,2] == [1,2]', true],
  ['[1,2] == [1.0,2u]', true],
  ["{'a':1} == {'a':1.0}", true],
  ["1 in {'a':1}", false],
  ["'a' in {'a':1}", true],
  ['1 in {1:1}', true],
  ['1u in {1:1}', true],
  ['1.0 in {1:1}', true],
  ["{1:'x'}[1u]", 'x'],
  ["{1:'x'}[1.0]", 'x'],
  ['[1,2][1.0]', 2],
  ['[1,2][1u]', 2],
  ['[1,2][-1]', undefined],
  ["'a' in 'abc'", undefined],
  ['null == 1', false],
  ['null == null', true],
  ["1 != 'a'", true],
  ["b'a' == 'a'", false],
  ['[1] < [2]', undefined],
  ['null < null', undefined],
  ["'a' && false", false],
  ["'a' && true", undefined],
  ["'a' || true", true],
  ['1 ? 2 : 3', undefined],
  ['-9223372036854775808', -(2 ** 63)],
  ['9223372036854775808', refused],
  ['-(-9223372036854775807-1)', undefined],
  ['18446744073709551615u', 2 ** 64],
  ['0u - 1u', undefined],
  ['5 % 3', 2],
  ['-5 % 3', -2],
  ['-5 / 3', -1],
  ['5.0 % 3.0', undefined],
  ['1.5 + 1', undefined],
  ['1 + 1.0', undefined],
  ['2 * 3', 6],
  ['2.5 * 2.0', 5],
  ["duration('1s') + duration('1s')", '2s'],
  ["duration('1s') * 2", undefined],
  ["duration('-1.5h')", '-5400s'],
  ["duration('1')", undefined],
  ["duration('100000000000s')", '100000000000s'],
  ["timestamp('2020-01-01T00:00:00+02:00')", '2019-12-31T22:00:00Z'],
  ["timestamp('9999-12-31T23:59:59Z') + duration('1h')", undefined],
  ["timestamp('2020-01-01T00:00:00Z') - timestamp('2019-01-01T00:00:00Z')", '31536000s'],
  ["timestamp('2020-01-01T00:00:00Z').getDate()", 1],
  ["timestamp('2020-01-01T00:00:00Z').getDayOfMonth()", 0],
  ["timestamp('2020-01-01T00:00:00Z').getDayOfYear()", 0],
  ["timestamp('2020-01-01T00:00:00Z').getMonth()", 0],
  ["timestamp('2020-01-01T00:00:00Z').getSeconds()", 0],
  ["timestamp('2020-01-01T00:00:00Z').getMinutes('X/Y')", undefined],
  ["timestamp('2020-01-01T00:00:00Z').getHours('02:00')", 2],
  ["timestamp('2020-01-01T00:00:00Z').getHours('-2:00')", 22],
  ["duration('1.5s').getMilliseconds()", 500],
  ["duration('1.5s').getSeconds()", 1],
  ["duration('1h').getDate()", undefined],
  ['timestamp(1.5)', undefined],
  ['duration(1)', undefined],
  ["duration('1.5s') == duration('1500ms')", true],
  ["int(duration('5s'))", undefined],
  ["int('0x10')", undefined],
  ["int(' 5')", 5],
  ["int('-5')", -5],
  ['int(true)', 1],
  ['int(1e19)', undefined],
  ['int(-1.9)', -1],
  ["uint('5')", 5],
  ['uint(5.9)', 5],
  ['uint(-0.5)', undefined],
  ["double('1.5')", 1.5],
  ["double('x')", undefined],
  ["double('1e5')", 100000.0],
  ['double(5u)', 5],
  ["bytes('é')", 'w6k='],
  ["bytes(b'a')", 'YQ=='],
  ["string(b'abc')", refused],
  ["bool('1')", true],
  ["bool('false')", false],
  ["bool('x')", undefined],
  ['bool(true)', true],
  ["dyn('a') == 'a'", true],
  ["type(dyn('a')) == string", true],
  ["'a'.matches('a')", true],
  ["'abc'.contains('')", true],
  ["'\\U0001F600'.size()", 1],
  ["'\\u00e9'", 'é'],
  ["'\\377'", 'ÿ'],
  ["b'\\u00e9'", refused],
  ['R"\\d"', '\\d'],
  ['"""a"b"""', 'a"b'],
  ["'a' 'b'", refused],
  ['1 .foo', undefined],
  ['1 < 2 == true', true],
  ['1+1', 2],
  [".size('abc') + .int('1')", 4],
  ['[.int == int]', [true]],
  ['.5 + .25', 0.75],
  ['1..int', refused],
  ['..int', refused],
  ['1u', 1],
  ['1.5', 1.5],
  ['-1', -1],
  ["'a'", 'a'],
  ["b'abc'", 'YWJj'],
  ['null', null],
  ['true', true],
  ["[1,'a']", [1, 'a']],
  ["{'a':1}", { a: 1 }],
  ['{1:2}', { '1': 2 }],
  ["duration('1.5s')", '1.500s'],
  ["timestamp('2020-01-01T00:00:00Z')", '2020-01-01T00:00:00Z'],
  ['type(1)', undefined],
  ['int', undefined],
];

const STRING_FUNCTIONS: Rows = [
  ['"a" + "b"', 'ab'],
  ['b"a" + b"b"', 'YWI='],
  ['[1] + [2]', undefined],
  ['string(1)', '1'],
  ['string(1u)', '1'],
  ['string(1.5)', '1.5'],
  ['string(1e20)', '1e+20'],
  ['string(0.1)', '0.1'],
  ['string(true)', 'true'],
  ['string(null)', undefined],
  ["string('a')", 'a'],
  ["string(b'abc')", 'abc'],
  ["string(b'\\xff')", undefined],
  ["string(duration('1.5s'))", '1.500s'],
  ["string(timestamp('2020-01-01T00:00:00.5Z'))", '2020-01-01T00:00:00.500Z'],
  ['string([1])', undefined],
  ['"AbÉ".lowerAscii()', 'abÉ'],
  ['"abé".upperAscii()', 'ABé'],
  ["'a,b,c'.split(',')", ['a', 'b', 'c']],
  ["'a,b,c'.split(',', 2)", ['a', 'b,c']],
  ["'abc'.split('')", ['a', 'b', 'c']],
  ["'a,b'.split(',',0)", []],
  ["'a,b'.split(',',-1)", ['a', 'b']],
  ["'abab'.replace('a','x')", 'xbxb'],
  ["'abab'.replace('a','x',1)", 'xbab'],
  ["'abab'.replace('','-')", '-a-b-a-b-'],
  ["'abc'.substring(1)", 'bc'],
  ["'abc'.substring(1,2)", 'b'],
  ["'abc'.substring(9)", undefined],
  ["'abc'.charAt(1)", 'b'],
  ["'abc'.charAt(3)", ''],
  ["'abc'.charAt(4)", undefined],
  ["'abc'.indexOf('c')", 2],
  ["'abcabc'.indexOf('c',3)", 5],
  ["'abcabc'.lastIndexOf('c')", 5],
  ["' a '.trim()", 'a'],
  ["['a','b'].join()", 'ab'],
  ["['a','b'].join('-')", 'a-b'],
  ['[1].join()', undefined],
  ["'abc'.reverse()", 'cba'],
  ["'a'.size() + 1", 2],
  ["'a'+1", undefined],
  ["matches('a','a')", true],
];

/** As %CEL()% writes them. */
const TEXTS: readonly (readonly [expression: string, text: string])[] = [
  ['type(1)', 'CelType value'],
  ['90.5', '90.5'],
  ['1234567.0', '1.23457e+06'],
  ['123456.0', '123456'],
  ['0.00001', '1e-05'],
  ["duration('90s')", '1m30s'],
  ["duration('3661.5s')", '1h1m1.5s'],
  ["duration('0s')", '0'],
  ["duration('-1.5ms')", '-1.5ms'],
  ["duration('15ns')", '15ns'],
  ["duration('1500ns')", '1.5us'],
  ["timestamp('2020-01-01T00:00:00Z')", '2020-01-01T00:00:00+00:00'],
];

t.test('operators, functions and literals have the values of Envoy', async (t) => check(t, LANGUAGE));
t.test('string functions have the values of Envoy', async (t) => check(t, STRING_FUNCTIONS, ALL));

t.test('texts of values are those of Envoy', async (t) => {
  for (const [text, expected] of TEXTS) {
    const value = evaluate(text);
    t.equal(value === undefined ? undefined : Buffer.from(celText(value), 'latin1').toString(), expected, text);
  }
});

t.test('an expression that could take long is refused or has a bounded result', async (t) => {
  for (const text of [
    '['.repeat(5000),
    '!'.repeat(90_000),
    '-('.repeat(2000),
    `a${'.b'.repeat(1000)}`,
    `1${'+1'.repeat(1000)}`,
    'x'.repeat(100_001),
    '[[1,2].map(a, [1,2].map(b, a))]',
    `'a'.matches('(a{1,90}){1,90}')`,
  ])
    t.throws(() => expressionOfText(text), BatonError, text.slice(0, 40));
  const chain = Array.from({ length: 1500 }, () => "'a' == 'b'").join(' || ');
  t.equal(evaluate(chain), false, 'a chain of || is not deep');
  const squared = `'${'a'.repeat(2000)}'`;
  t.equal(evaluate(`${squared}.replace('a', ${squared})`, ALL), undefined, 'no text of megabytes is made');
  t.equal(evaluate(`'a'.matches('(a*)*' + '(a*)*b')`, ALL), false, 'patterns are matched by RE2');
  t.equal(evaluate(`'a'.matches('a{99}' + '')`, ALL), undefined, 'a computed pattern is bounded too');
  const info = new StreamInfo();
  info.requestHeaders = TextHeaders.ofRequest('GET', '/', { 'x-n': `${'1'.repeat(500_000)}x` });
  t.equal(expressionOfText("double(request.headers['x-n'])").evaluate(info), undefined, 'digits are read once');
});

function check(t: Test, rows: Rows, config?: CelExpressionConfig): void {
  for (const [text, expected] of rows) {
    if (expected === refused) t.throws(() => expressionOfText(text, config), BatonError, text);
    else t.strictSame(plain(json(text, config)), expected, text);
  }
}

function evaluate(text: string, config?: CelExpressionConfig) {
  return expressionOfText(text, config).evaluate(new StreamInfo());
}

function json(text: string, config?: CelExpressionConfig): Json | undefined {
  const value = evaluate(text, config);
  return value === undefined ? undefined : celJson(value);
}

/** Without prototypes. */
function plain(value: Json | undefined): Json | undefined {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as Json);
}
