// The choice of a content coding by accept-encoding. All results are Envoy's.

import t from 'tap';
import { Choice, chooseEncoding } from '../../../../../src/extensions/filters/http/compressor/accept-encoding.js';

const offer = (...encodings: string[]) =>
  encodings.map((encoding) => ({ encoding: encoding.replace('!', ''), isPreferred: encoding.endsWith('!') }));

const { Identity, Named, None, Wildcard } = {
  Named: Choice.Named,
  Wildcard: Choice.Wildcard,
  Identity: Choice.Identity,
  None: Choice.None,
};

t.test('one coding', (t) => {
  const cases: [string, string, Choice][] = [
    ['gzip', 'gzip', Named],
    ['*', 'gzip', Wildcard],
    ['identity', 'identity', Identity],
    ['gzip;q=0.5, identity', 'identity', Identity],
    ['gzip, identity;q=0.5', 'gzip', Named],
    [' gzip ; q=1', 'gzip', Named],
    ['gzip;q=0.0001', 'gzip', Named],
    ['gzip;Q=0.5', 'gzip', Named],
    ['deflate, gzip;q=1.0, *;q=0.5', 'gzip', Named],
    ['gzip;foo=bar;q=0', 'gzip', Named],
    ['gzip;q=2', 'gzip', Named],
    ['gzip;q=0', 'identity', None],
    ['gzip;q=0, *', 'identity', None],
    ['*;q=0', 'identity', None],
    ['identity;q=0', 'identity', None],
    ['GZIP', 'identity', None],
    ['x-gzip', 'identity', None],
    ['deflate', 'identity', None],
    ['gzip;q=abc', 'identity', None],
    ['gzip;q=', 'identity', None],
    // Read in linear time.
    [`gzip;q=${'1'.repeat(500_000)}x`, 'identity', None],
    ['gzip;q=-1', 'identity', None],
    ['', 'identity', None],
    [',,', 'identity', None],
  ];
  for (const [text, encoding, choice] of cases) t.same(chooseEncoding(text, offer('gzip')), { encoding, choice }, text);
  t.same(chooseEncoding('gzip', []), { encoding: 'identity', choice: None }, 'no compressor may compress the response');
  t.end();
});

t.test('several codings: the best one, then the first one of the header, then the first one of the chain', (t) => {
  const cases: [string, string][] = [
    ['gzip', 'gzip'],
    ['gzip, br', 'gzip'],
    ['br, gzip', 'br'],
    ['zstd, br;q=0.5', 'zstd'],
    ['gzip;q=0.8, br;q=0.9, zstd', 'zstd'],
    ['*', 'br'],
    ['br;q=0,*', 'gzip'],
  ];
  for (const [text, encoding] of cases) t.match(chooseEncoding(text, offer('br', 'gzip', 'zstd')), { encoding }, text);
  t.end();
});

t.test('choose_first decides among codings that the client likes equally', (t) => {
  const one = offer('br', 'gzip!');
  for (const text of ['gzip', 'gzip, br', 'br, gzip']) t.match(chooseEncoding(text, one), { encoding: 'gzip' }, text);
  for (const text of ['br', 'br, gzip;q=0.5', '*']) t.match(chooseEncoding(text, one), { encoding: 'br' }, text);
  const both = offer('gzip!', 'br!');
  t.match(chooseEncoding('gzip, br', both), { encoding: 'br' });
  for (const text of ['br, gzip', 'gzip, identity', 'identity, gzip', '*, gzip', 'gzip;q=0.5, br;q=0.5, *'])
    t.match(chooseEncoding(text, both), { encoding: 'gzip' }, text);
  t.end();
});

t.test('a long header costs time in proportion to its length', (t) => {
  const text = Array.from({ length: 20_000 }, (_, index) => `c${index};q=0.${index}`).join(', ');
  t.match(chooseEncoding(`${text}, gzip;q=0.01`, offer('gzip', 'br')), { encoding: 'gzip' });
  t.end();
});
